"""A gateway in small: it runs the hostile programs in one sandbox and says what became of it.

Run as `python -m tests.hostile.gateway_under_attack JSON` by root or by an ordinary user. It is
the victim itself: it prints what the programs said, what they printed, and its own state and that
of its files before and after.
"""

import asyncio
import json
import os
import resource
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from adapters.sandbox.backend import Backend
from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.landlock import Landlock
from adapters.sandbox.power_drop import hide_from_others
from adapters.system.clock import SystemClock
from runtime.ports.sandbox import SandboxCommand, SandboxLimits

SECRET = "made-up-secret"
KERNEL_TABLES = (
    *("/proc/timer_list", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/pagetypeinfo"),
)
HOST_KEY = "/proc/sys/net/ipv4/tcp_fastopen_key"
"""What only root may read under /proc; the key only where the network is the host's."""
_ATTEMPTS = Path(__file__).with_name("attempts.py").read_text()
_LIMITS = SandboxLimits(timeout_s=120.0, memory_bytes=8 * 1024**3)


def sandbox_of(name: str) -> Backend:
    """`landlock-5` uses no more of Landlock than version 5 has, which keeps no signal inside."""
    clock = SystemClock()
    if name == "bubblewrap":
        return Bubblewrap(clock, cgroups=Cgroups())
    if name == "landlock-5":
        return Landlock(clock, cgroups=Cgroups(), abi=5)
    return Landlock(clock, cgroups=Cgroups())


def make_place() -> Path:
    place = Path(tempfile.mkdtemp(prefix="hostile-")).resolve()
    for folder in ("workspace", "outside", "home"):
        (place / folder).mkdir()
    for name, mode in (("plain", 0o640), ("suid", 0o4755), ("sgid", 0o2755), ("secret", 0o600)):
        (place / "outside" / name).write_text(f"{SECRET}\n")
        (place / "outside" / name).chmod(mode)
    (place / "outside" / "folder").mkdir(mode=0o2755)
    return place


def state_of(place: Path, victim: int) -> dict[str, Any]:
    """What must be the same afterwards."""
    kinds = ("CPU", "AS", "NOFILE", "NPROC", "FSIZE")
    found: dict[str, Any] = {
        "limits": [list(resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))) for name in kinds],
        "victim": [
            list(resource.prlimit(victim, getattr(resource, f"RLIMIT_{name}"))) for name in kinds
        ],
        "nice": [os.getpriority(os.PRIO_PROCESS, pid) for pid in (0, victim)],
        "scheduler": [os.sched_getscheduler(pid) for pid in (0, victim)],
        "affinity": [sorted(os.sched_getaffinity(pid)) for pid in (0, victim)],
        "oom": Path("/proc/self/oom_score_adj").read_text(),
        "state": Path(f"/proc/{victim}/stat").read_text().rpartition(")")[2].split()[0],
        "hostname": os.uname().nodename,
        "core_pattern": Path("/proc/sys/kernel/core_pattern").read_text(),
    }
    for path in (*(place / "outside").rglob("*"), place / "outside", place / "home"):
        seen = path.lstat()
        content = path.read_bytes().decode() if path.is_file() else ""
        times = [seen.st_mtime_ns, seen.st_ctime_ns, seen.st_nlink]
        found[str(path)] = [seen.st_mode, seen.st_uid, seen.st_gid, *times, content]
    return found


def left_behind(key: int) -> list[str]:
    """What reaches other sessions: System V objects of our key, and files in shared folders."""
    found = []
    for kind in ("shm", "msg", "sem"):
        rows = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]
        found += [kind for row in rows if int(row.split()[0]) == key]
    for folder in ("/dev/shm", "/tmp", "/var/tmp", "/dev/mqueue"):
        if (Path(folder) / f"hostile-{key}").exists():
            found.append(folder)
    return found


def start_neighbour() -> "subprocess.Popen[bytes]":
    """Something that the gateway runs for another session."""
    return subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)


def plant(top: str) -> list[str]:
    """What an administrator keeps deep below the folders that are shown; only root can put it
    there. The files that others may not read."""
    if os.geteuid() != 0:
        return []
    deep = Path(top) / "deep"
    closed = deep / "closed"
    closed.mkdir(parents=True)
    for path, mode in (
        (deep / "file", 0o600),
        (deep / "of-a-group", 0o640),
        (closed / "file", 0o644),
    ):
        path.write_text(f"{SECRET}\n")
        path.chmod(mode)
    for path, mode in ((deep, 0o755), (closed, 0o700)):
        path.chmod(mode)
    return [str(path) for path in sorted(deep.rglob("*")) if path.is_file()]


def closed_files() -> list[str]:
    """Files that only root may read, and some that a gateway could know."""
    found = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/proc/kcore", *KERNEL_TABLES]
    for path in sorted(Path("/etc").rglob("*")):
        try:
            if path.is_file() and not path.stat().st_mode & 0o004:
                found.append(str(path))
        except OSError:
            continue
    return found[:60]


def python_of(readable: str) -> tuple[str, tuple[str, ...]]:
    real = os.path.realpath(readable)
    return real, (sys.base_prefix, str(Path(real).parent))


async def attack(given: dict[str, Any]) -> dict[str, Any]:
    place = make_place()
    key = secrets.randbelow(2**30) + 1
    connections: list[None] = []

    def connected(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(None)
        writer.close()

    hide_from_others()
    deep = plant(given["planted"])
    neighbour = start_neighbour()
    tcp = await asyncio.start_server(connected, "127.0.0.1", 0)
    path, abstract = str(place / "home" / "socket"), f"hostile-{key}"
    unix = await asyncio.start_unix_server(connected, path)
    hidden = await asyncio.start_unix_server(connected, f"\0{abstract}")
    (place / "home" / "hidden").mkdir()
    try:
        async with tcp, unix, hidden:
            targets = {
                "victim": os.getpid() if given["victim"] == "gateway" else neighbour.pid,
                "key": key,
                "canaries": [
                    str(place / "outside" / name) for name in ("suid", "sgid", "plain", "folder")
                ],
                "secrets": [
                    str(place / "outside" / "secret"),
                    *deep,
                    *closed_files(),
                    *([HOST_KEY] if given["network"] else []),
                ],
                "hidden": str(place / "home" / "hidden"),
                "port": tcp.sockets[0].getsockname()[1],
                "socket": path,
                "abstract": abstract,
                "fuzz": given["fuzz"],
            }
            before = state_of(place, neighbour.pid)
            output, code = await run(given, place, targets)
            after = state_of(place, neighbour.pid)
        head, _, told = output.rstrip().rpartition("\n")
        return {
            "attempts": json.loads(told) if told.startswith("{") else {"broken": output[-2000:]},
            "printed": head,
            "code": code,
            "changed": {
                name: [before[name], after.get(name)]
                for name in before
                if before[name] != after.get(name)
            },
            "left": left_behind(key),
            "connections": len(connections),
            "neighbour": neighbour.poll(),
        }
    finally:
        neighbour.kill()
        neighbour.wait()
        shutil.rmtree(place, ignore_errors=True)


async def run(given: dict[str, Any], place: Path, targets: dict[str, Any]) -> tuple[str, int]:
    python, roots = python_of(sys.executable)
    # What is shown of the files outside is shown to read: the hardest case for modes and owners.
    shown = (str(place / "outside"),) if given["shown"] else ()
    workspace = str(place / "workspace")
    command = SandboxCommand(
        command=(python, "-I", "-S", "-c", _ATTEMPTS, json.dumps(targets)),
        cwd=workspace,
        writable=() if given["read_only"] else (workspace,),
        readable=(*roots, *shown, *((workspace,) if given["read_only"] else ())),
        hidden=(str(place / "outside" / "secret"),) if shown else (),
        network=given["network"],
        limits=_LIMITS,
    )
    output = bytearray()
    async with await sandbox_of(given["sandbox"]).start(command) as process:
        while chunk := await process.read():
            output += chunk
        ended = await process.wait()
    return output.decode("utf-8", "replace"), ended.code


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(attack(json.loads(sys.argv[1])))))
