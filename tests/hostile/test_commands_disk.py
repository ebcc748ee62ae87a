"""No command fills the disk (SEC-6): the quota of a session, on each backend."""

import asyncio
import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.landlock import Landlock
from adapters.sandbox.launch_spec import DISK_INTERVAL_S
from runtime.ports.sandbox import SandboxExit, SandboxLimits
from runtime.tools.base import ToolContext
from runtime.tools.builtin.shell import Exec, ExecArguments, ExecSettings
from runtime.tools.seen_versions import SeenFiles
from runtime.workspace.layout import Layout
from tests.contract.sandbox import conftest
from tests.contract.sandbox.conftest import PYTHON, Bench, HandClock, clock, groups

__all__ = ["clock", "groups"]
INTERVAL_S = 0.05
MB = 1024**2
QUOTA = 12
LEADERLESS = """
import ctypes, os, threading, time
def fill():
    file = os.open('f', os.O_CREAT | os.O_WRONLY)
    os.unlink('f')
    while True:
        os.write(file, bytes(500000))
        time.sleep(0.01)
threading.Thread(target=fill).start()
ctypes.CDLL(None).syscall({'x86_64': 60}.get(os.uname().machine, 93), 0)
"""
DEEP = """
import os
for _ in range(30):
    os.mkdir('d' * 200)
    os.chdir('d' * 200)
with open('f', 'wb') as file:
    while True:
        file.write(bytes(500000))
        __import__('time').sleep(0.01)
"""
UNCOUNTED = """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def write(number):
    with open(f'f{number}', 'wb') as file:
        file.write(bytes(4000000))
import os, time
for _ in range(30):
    os.mkdir('d' * 200)
    os.chdir('d' * 200)
for number in range(100):
    if os.fork() == 0:
        write(number)
        os._exit(0)
    time.sleep(0.1)
"""
"""Nobody waits for the writers, so that nobody's count has what they wrote."""
MAPPED = """
import mmap, os, time
for number in range(400):
    file = os.open('f', os.O_CREAT | os.O_RDWR)
    os.unlink('f')
    os.truncate(file, 2000000)
    globals()[f'kept{number}'] = kept = mmap.mmap(file, 2000000)
    os.close(file)
    kept.write(b'x' * 2000000)
    # Only what the kernel wrote out so far is counted at once.
    kept.flush()
    time.sleep(0.02)
"""
QUEUED = """
import os, socket, time
ours, theirs = socket.socketpair()
for _ in range(400):
    file = os.open('f', os.O_CREAT | os.O_RDWR)
    os.unlink('f')
    os.write(file, bytes(2000000))
    socket.send_fds(ours, [b'x'], [file])
    os.close(file)
    time.sleep(0.02)
"""


def program(text: str) -> str:
    """A command that runs it."""
    return f"{PYTHON} -I -S -c {shlex.quote(text)}; sleep 100"


FILLERS = {
    "large files": "for i in $(seq 400); do head -c 2000000 /dev/zero > f$i; sleep 0.02; done",
    "allocated": "for i in $(seq 400); do fallocate -l 2M f$i || exit 9; sleep 0.02; done",
    "deleted but open": "exec 9> f; rm f; while head -c 500000 /dev/zero >&9; do sleep 0.01; done",
    "without a first thread": program(LEADERLESS),
    "too deep": program(DEEP),
    "too deep by strangers": program(UNCOUNTED),
    "deleted but mapped": program(MAPPED),
    "in the queue of a socket": program(QUEUED),
    "in a closed folder": "mkdir c; exec 9> c/f; chmod 0 c; "
    "while head -c 500000 /dev/zero >&9; do sleep 0.01; done",
    "in a folder that is only listed": "mkdir c; exec 9> c/f; chmod 444 c; "
    "while head -c 500000 /dev/zero >&9; do sleep 0.01; done",
    "temporary": 'cd "$TMPDIR"; while head -c 500000 /dev/zero >> f; do sleep 0.01; done',
    "empty files": "for i in $(seq 400); do mkdir d$i; (cd d$i; : > $(seq 0); for j in $(seq 200);"
    " do : > $j; done); done; sleep 100",
}
"""Ways to use more than the quota; each would go on for long."""


@pytest.fixture(params=["bubblewrap", "landlock"])
async def confined(
    request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock, groups: Cgroups
) -> Bench:
    """A backend that measures more often than the gateway's."""
    await conftest.build(request.param, clock, groups)
    (tmp_path / "workspace").mkdir()
    kind = Bubblewrap if request.param == "bubblewrap" else Landlock
    sandbox = kind(clock, cgroups=groups, disk_interval_s=INTERVAL_S)
    return Bench(sandbox, clock, tmp_path, groups)


async def run(confined: Bench, command: str, session: str | None = None) -> SandboxExit:
    confined.limits = SandboxLimits(disk_bytes=QUOTA * MB, free_bytes=MB, file_bytes=200 * MB)
    _, ended = await confined.run(replace(confined.command(command), session=session))
    return ended


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize(
    ("confined", "how"),
    [
        (backend, how)
        for backend in ("bubblewrap", "landlock")
        for how in FILLERS
        # Bubblewrap's /tmp lies in memory, where the size of a file system bounds it.
        if (backend, how) != ("bubblewrap", "temporary")
    ],
    indirect=["confined"],
)
async def test_a_command_that_fills_the_disk_is_ended(confined: Bench, how: str) -> None:
    ended = await run(confined, FILLERS[how])
    assert (ended.limit, ended.signal) == ("disk", 9)
    if (closed := confined.workspace / "c").exists():
        # An ordinary user may not look into it otherwise.
        closed.chmod(0o755)
    # By handles: some paths are too long.
    used = sum(
        os.stat(name, dir_fd=handle, follow_symlinks=False).st_blocks * 512
        for _, _, names, handle in os.fwalk(confined.workspace)
        for name in names
    )
    assert used < 20 * QUOTA * MB


@pytest.mark.requirement("SEC-6")
async def test_what_is_not_the_disk_is_not_counted(confined: Bench) -> None:
    """A sparse file, and one that is written again and again."""
    ended = await run(
        confined,
        "truncate -s 100M sparse; for i in $(seq 12); do head -c 2000000 /dev/zero > f; "
        "sleep 0.05; done",
    )
    assert (ended.limit, ended.code) == (None, 0)


@pytest.mark.requirement("SEC-6")
async def test_the_commands_of_a_session_share_the_quota(confined: Bench) -> None:
    part = f"head -c {7 * MB} /dev/zero > $(date +%N); sleep 0.5"
    assert (await run(confined, part, "ses_1")).limit is None
    assert (await run(confined, part, "ses_1")).limit == "disk"
    assert (await run(confined, part, "ses_2")).limit is None
    # What was removed can be used again.
    assert (await run(confined, f"rm *; {part}", "ses_1")).limit is None


@pytest.mark.requirement("SEC-6")
async def test_a_session_beyond_its_quota_can_still_remove_what_it_has(
    confined: Bench, tmp_path: Path
) -> None:
    """Also while others write, which makes its supervisor look."""
    assert (await run(confined, f"head -c {14 * MB} /dev/zero > f; sleep 0.5", "ses_1")).limit
    others = tmp_path / "others"
    others.write_bytes(bytes(8 * MB))
    before = "while [ ! -e go ]; do sleep 0.05; done"
    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        cleaning = group.create_task(run(confined, f"{before}; rm f", "ses_1"), name="clean")
        for part in range(8):
            others.write_bytes(bytes(8 * MB * (part + 1)))
            # Its looks are 50 ms apart.
            await run(confined, "sleep 0.1")
        (confined.workspace / "go").touch()
    assert (cleaning.result().limit, cleaning.result().code) == (None, 0)
    assert not (confined.workspace / "f").exists()


@pytest.mark.requirement("SEC-6")
async def test_a_disk_that_is_nearly_full_ends_whoever_writes(confined: Bench) -> None:
    confined.limits = SandboxLimits(free_bytes=2**60)
    _, ended = await confined.run(
        replace(confined.command("head -c 9000000 /dev/zero > f; sleep 100"))
    )
    assert ended.limit == "free_space"
    _, quiet = await confined.run("sleep 0.2")
    assert quiet.code == 0 or quiet.limit == "free_space"


@pytest.mark.requirement("SEC-6")
async def test_no_file_grows_beyond_the_limit_of_a_file(confined: Bench) -> None:
    """Whoever writes too fast to be measured is stopped by the kernel."""
    confined.limits = SandboxLimits(file_bytes=MB)
    _, ended = await confined.run("exec head -c 9000000 /dev/zero > f")
    assert ended.limit == "file_size"
    assert (confined.workspace / "f").stat().st_size == MB


@pytest.mark.requirement("SEC-6")
async def test_the_disk_is_measured_each_second(confined: Bench) -> None:
    """By whom nobody told another interval."""
    assert DISK_INTERVAL_S == 1.0
    kind = Bubblewrap if confined.sandbox.name == "bubblewrap" else Landlock
    confined.sandbox = kind(confined.clock, cgroups=confined.groups)
    ended = await run(confined, f"head -c {3 * QUOTA * MB} /dev/zero > f; sleep 20")
    assert ended.limit == "disk"


def context_of(confined: Bench, session: str = "ses_1") -> ToolContext:
    """A turn of this session in the working folder of its workspace."""
    layout = Layout.of(confined.workspace)
    layout.files.mkdir(exist_ok=True)
    return ToolContext(
        session_id=session,
        run_id="run_1",
        call_id="call_1",
        layout=layout,
        roots=(),
        files=SeenFiles(),
        emit=lambda text: None,
        notes=True,
    )


@pytest.mark.requirement("SEC-6")
async def test_the_commands_of_the_tool_share_the_quota_of_their_session(confined: Bench) -> None:
    limits = SandboxLimits(disk_bytes=QUOTA * MB, file_bytes=200 * MB)
    tool = Exec(confined.sandbox, ExecSettings(limits=limits))
    part = ExecArguments(command=f"head -c {7 * MB} /dev/zero > $(date +%N); sleep 0.5")
    told = [
        (await tool.run(part, context_of(confined, session))).content
        for session in ("ses_1", "ses_1", "ses_2")
    ]
    assert [one.startswith("[ended: it used more than") for one in told] == [False, True, False]


@pytest.mark.requirement("SEC-6", "TOOL-5")
@pytest.mark.parametrize("confined", ["bubblewrap"], indirect=True)
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
async def test_a_folder_in_memory_holds_no_more_than_a_command_may_use(
    confined: Bench, folder: str
) -> None:
    confined.groups = Cgroups()
    confined.sandbox = Bubblewrap(confined.clock, cgroups=confined.groups)
    confined.limits = SandboxLimits(memory_bytes=64 * MB)
    output, ended = await confined.run(
        f"head -c {100 * MB} /dev/zero > {folder}/f; stat -c %s {folder}/f"
    )
    assert ended.code == 0
    assert 0 < int(output.split()[-1]) <= 64 * MB


@pytest.mark.requirement("SEC-6")
async def test_the_model_is_told_what_ended_its_command(confined: Bench) -> None:
    limits = SandboxLimits(disk_bytes=QUOTA * MB, file_bytes=200 * MB)
    tool = Exec(confined.sandbox, ExecSettings(limits=limits))
    async with asyncio.timeout(300):
        told = await tool.run(ExecArguments(command=FILLERS["large files"]), context_of(confined))
    first = told.content.splitlines()[0]
    assert first.startswith(f"[ended: it used more than {QUOTA} MB of disk, all commands of this")
