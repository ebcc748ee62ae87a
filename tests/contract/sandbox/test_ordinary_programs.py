"""What ordinary programs do goes on working under the filter (TOOL-5).

Each line is a program as people run it; all run in one command, on each backend, and with no more
of Landlock than version 5 has, where the supervisor passes on the signals.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.landlock import Landlock
from adapters.sandbox.probe import try_backend
from runtime.ports.sandbox import SandboxLimits
from tests.contract.sandbox.conftest import PYTHON, Bench, HandClock, build

PROGRAMS = {
    "git": "git init -q r && cd r && echo a > a && git add a && git -c user.name=x"
    " -c user.email=x@y commit -qm m && git status --short && git gc -q",
    "make": r"printf 'all: a b\na:\n\ttouch a\nb:\n\ttouch b\n' > Makefile && make -j4",
    "gcc": "echo 'int main(){return 0;}' > x.c && gcc x.c -o x && ./x",
    "tar": "mkdir -p t/a && echo x > t/a/b && chmod 750 t/a && tar czf t.tgz t && rm -rf t"
    " && tar xzf t.tgz && test $(stat -c %a t/a) = 750",
    "touch": "touch -d 2001-01-01 q && test $(stat -c %Y q) -lt 1000000000 && touch q"
    " && cp -p q q2 && ln -s q l && touch -h -d 2001-01-01 l && mv q q3",
    "install": "touch i && install -m 755 i i2 && chown $(id -u):$(id -g) i2",
    "timeout": "timeout 0.1 sleep 9; test $? = 124",
    "jobs": "set -m; sleep 9 & kill %1; wait; true",
    "trap": "trap 'exit 0' USR1; kill -USR1 $$; exit 1",
    "group": "setsid sh -c 'sleep 9 & sleep 9 & kill -TERM 0'; test $? = 143",
    "pipes": "seq 100 | sort -R | head -5 | xargs -P4 -n1 echo",
    "substitution": "diff <(echo a) <(echo a)",
    "priorities": "nice true && renice -n 19 $$ && taskset -p 1 $$ && prlimit --pid $$ --core=0",
    "tail": "echo x > f; timeout 0.2 tail -f f; test $? = 124",
    "users": "id && getent passwd root && date && hostname",
    "allocation": "fallocate -l 1M fa && truncate -s 10M sp && dd if=/dev/zero of=z bs=1k count=9",
    "sqlite": "{python} -c \"import sqlite3; c = sqlite3.connect('d'); c.execute('pragma"
    " journal_mode=wal'); c.execute('create table t(a)'); c.commit()\"",
    "threads": '{python} -c "import threading, os; t = threading.Thread(target=int); t.start();'
    ' t.join(); os.sched_getaffinity(0)"',
    "children": "{python} -c \"import subprocess, os; p = subprocess.Popen(['sleep', '9'],"
    " start_new_session=True); os.killpg(p.pid, 9); assert p.wait() == -9;"
    " p = subprocess.Popen(['sleep', '9']); p.terminate(); assert p.wait() == -15\"",
    "mapping": "{python} -c \"import mmap; f = open('m', 'w+b'); f.truncate(4096);"
    ' mmap.mmap(f.fileno(), 4096)[0] = 1"',
    "certificates": '{python} -c "import ssl; ssl.create_default_context()"',
    "node": "node -e \"const fs = require('fs'); fs.watch('.', () => 0).close();"
    " fs.writeFileSync('n', ''); fs.utimesSync('n', 1, 2);"
    " require('child_process').execSync('true')\"",
    "perl": 'perl -e \'open(F, ">p"); utime(1, 2, "p") == 1 or die; kill(0, $$) or die\'',
}
OPTIONAL = {"gcc", "make", "node", "perl", "git"}

SIGNALS_ITSELF = """
import os, signal
signal.signal(signal.SIGUSR1, lambda number, frame: None)
for _ in range(300):
    os.kill(os.getpid(), signal.SIGUSR1)
print('done')
"""


@pytest.mark.requirement("TOOL-5")
async def test_a_call_that_is_passed_on_is_not_interrupted(
    tmp_path: Path, clock: HandClock
) -> None:
    """Here the signal itself arrives while its sender waits for the supervisor."""
    (tmp_path / "workspace").mkdir()
    await build("landlock", clock, Cgroups())
    bench = Bench(Landlock(clock, cgroups=Cgroups(), abi=5), clock, tmp_path)
    output, _ = await bench.run(bench.python(SIGNALS_ITSELF))
    assert output == "done\n"


@pytest.mark.requirement("TOOL-5", "SEC-6")
@pytest.mark.parametrize("name", ["bubblewrap", "landlock", "landlock-5"])
async def test_ordinary_programs_work(name: str, tmp_path: Path, clock: HandClock) -> None:
    (tmp_path / "workspace").mkdir()
    sandbox = await build(name.removesuffix("-5"), clock, Cgroups())
    if name == "landlock-5":
        sandbox = Landlock(clock, cgroups=Cgroups(), abi=5)
        assert await try_backend(sandbox) is None
    bench = Bench(sandbox, clock, tmp_path)
    # V8 reserves far more address space than it uses, and without a cgroup that is the limit.
    bench.limits = SandboxLimits(memory_bytes=2**46)
    lines = []
    for label, program in PROGRAMS.items():
        if label in OPTIONAL:
            lines.append(f"command -v {label} > /dev/null || echo absent: {label}")
        text = program.replace("{python}", PYTHON).replace("'", "'\\''")
        absent = f"! command -v {label} > /dev/null ||" if label in OPTIONAL else ""
        lines.append(f"{absent} out=$(bash -c '{text}' 2>&1) || echo \"failed: {label}: $out\"")
    output, ended = await bench.run(replace(bench.command("\n".join(lines))))
    assert [line for line in output.splitlines() if not line.startswith("absent: ")] == []
    assert ended.code == 0
