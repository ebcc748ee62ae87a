"""Running the image as an engine does: by an OCI runtime, with what `docker run` would ask of it.

A container has a root that cannot be written, no capability, namespaces of its own and the image's
user. `DEFAULT` is what Docker does to every container beside that; `UNCONFINED` is what its options
`seccomp=unconfined` and `systempaths=unconfined` leave. AppArmor and SELinux are not imitated.
"""

import asyncio
import json
import os
import shlex
import signal
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.image.build import ROOT, Image
from tests.scenario.process.program import Program

PROFILE: Final = Path("/usr/share/containers/seccomp.json")
"""The profile of Podman, from the Debian package that buildah needs."""
NEW_NAMESPACES: Final = 0x7E020000
FOR_ADMINISTRATORS: Final = frozenset(
    {
        *("add_key", "bpf", "fanotify_init", "fsconfig", "fsmount", "fsopen", "fspick"),
        *("get_mempolicy", "kcmp", "keyctl", "lookup_dcookie", "mbind", "mount", "mount_setattr"),
        *("move_mount", "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root"),
        *("process_madvise", "quotactl", "quotactl_fd", "request_key", "set_mempolicy"),
        *("set_mempolicy_home_node", "setdomainname", "sethostname", "setns", "syslog", "umount"),
        *("umount2", "unshare"),
    }
)
"""Calls that Podman's profile allows and Docker's refuses to a container without capabilities."""
MASKED: Final = (
    *("/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug"),
    *("/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/firmware"),
)
READ_ONLY: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
MOUNTS: Final = (
    ("/proc", "proc", ()),
    ("/dev", "tmpfs", ("nosuid", "strictatime", "mode=755", "size=65536k")),
    ("/dev/pts", "devpts", ("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620")),
    ("/dev/shm", "tmpfs", ("nosuid", "noexec", "nodev", "mode=1777", "size=65536k")),
    ("/dev/mqueue", "mqueue", ("nosuid", "noexec", "nodev")),
    ("/sys", "sysfs", ("nosuid", "noexec", "nodev", "ro")),
)
TEMPORARY: Final = ("rw", "noexec", "nosuid", "nodev", "mode=1777")
"""How `docker run --tmpfs PATH` mounts."""
CAPABILITIES: Final = ("bounding", "effective", "inheritable", "permitted", "ambient")
# The runtime refuses a machine that has both versions of control groups. Nothing is limited here,
# so it may see one that is empty.
RUNTIME: Final = (
    *("unshare", "--mount", "sh", "-c", 'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'),
    *("crun", "crun", "--cgroup-manager=disabled"),
)


@dataclass(frozen=True)
class Security:
    """What an engine refuses to a container."""

    seccomp: Mapping[str, object] | None = None
    masked: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()


def docker_profile() -> dict[str, object]:
    """Docker's default profile for a container without capabilities.

    It is made of Podman's, which allows new namespaces. As with Docker, a call that is younger than
    the profile does not exist (ENOSYS), and so does clone3, whose flags a filter cannot see.
    """
    rules = []
    for rule in json.loads(PROFILE.read_text("utf-8"))["syscalls"]:
        only_for = rule.get("includes", {})
        if only_for.get("caps") or "amd64" not in only_for.get("arches", ["amd64"]):
            continue
        allows = rule["action"] == "SCMP_ACT_ALLOW"
        kept = {*FOR_ADMINISTRATORS, "clone", "clone3"} if allows else set()
        names = [name for name in rule["names"] if name not in kept]
        about = {key: rule[key] for key in ("args", "errnoRet") if rule.get(key) is not None}
        rules.append({"names": names, "action": rule["action"], **about})
    flags = {"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    rules += [
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [flags]},
        {"names": sorted(FOR_ADMINISTRATORS), "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
    ]
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 38,
        "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": [rule for rule in rules if rule["names"]],
    }


DEFAULT: Final = "default"
UNCONFINED: Final = "unconfined"


def security(name: str) -> Security:
    """What `DEFAULT` or `UNCONFINED` refuses."""
    return Security(docker_profile(), MASKED, READ_ONLY) if name == DEFAULT else Security()


@dataclass(frozen=True)
class Options:
    """What is said to `docker run`."""

    env: Mapping[str, str] = field(default_factory=dict)
    tmpfs: tuple[str, ...] = ()
    security: str = DEFAULT
    host_network: bool = False


def example(page: str) -> tuple[Options, str]:
    """The first `docker run` of a page: what it asks for, and where it wants its volume.

    A variable without a value is handed on from a shell that sets none.
    """
    text = (ROOT / page).read_text("utf-8").replace("\\\n", " ")
    line = next(line for line in text.splitlines() if line.startswith("$ docker run "))
    words = iter(shlex.split(line.removeprefix("$ docker run ")))
    env: dict[str, str] = {}
    tmpfs: list[str] = []
    volume, read_only = "", False
    for word in words:
        if word == "--read-only":
            read_only = True
        elif word in ("-v", "--volume"):
            volume = next(words).partition(":")[2]
        elif word in ("-e", "--env"):
            name, given, value = next(words).partition("=")
            env |= {name: value} if given else {}
        elif word == "--tmpfs":
            tmpfs.append(next(words))
        elif word in ("-p", "--publish", "--name"):
            next(words)
        else:
            assert word in ("gatehouse", "-d", "--detach", "--init"), f"{page}: {word}"
    assert read_only, f"{page}: without --read-only"
    return Options(env, tuple(tmpfs)), volume


@dataclass
class Container:
    """A running image. `pid` is process 1 of its namespace, as this machine numbers it."""

    program: Program
    name: str
    folder: Path
    pid: int

    async def execute(self, *command: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
        """(exit code, output) of a command inside, as `docker exec` runs it."""
        process = json.loads((self.folder / "config.json").read_text("utf-8"))["process"]
        process["args"] = command
        process["env"] += [f"{name}={value}" for name, value in (env or {}).items()]
        file = self.folder / f"{uuid.uuid4().hex}.json"
        file.write_text(json.dumps(process), encoding="utf-8")
        ran = await asyncio.create_subprocess_exec(
            *(*_runtime(self.folder), "exec", "--process", str(file), self.name),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await ran.communicate()
        return ran.returncode or 0, output.decode()

    async def says(self, *command: str) -> str:
        """The output of a command that must pass."""
        code, said = await self.execute(*command)
        assert code == 0, f"{shlex.join(command)}: {code}\n{said}\n{self.program.transcript}"
        return said

    def signal(self, number: signal.Signals) -> None:
        """As `docker stop` or `docker kill` sends it."""
        os.kill(self.pid, number)


@asynccontextmanager
async def running(
    image: Image, volume: Path, options: Options, *arguments: str
) -> AsyncIterator[Container]:
    """The image at work on `volume`, once it is ready; killed when the block ends before it."""
    name = f"gatehouse-{uuid.uuid4().hex[:12]}"
    folder = volume.parent / name
    folder.mkdir()
    configured = _configuration(image, volume, options, arguments or image.command)
    (folder / "config.json").write_text(json.dumps(configured), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(*_runtime(folder), "run", "--bundle", str(folder)),
        *("--pid-file", str(folder / "pid"), name),
        # The runtime gives it to the container's user: of `/dev/null` that would be the machine's.
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    program = Program(process)
    readers = (
        asyncio.create_task(program.read(process.stdout, program.out), name="stdout"),
        asyncio.create_task(program.read(process.stderr, program.err), name="stderr"),
    )
    try:
        await program.url()
        yield Container(program, name, folder, int((folder / "pid").read_text("ascii")))
    finally:
        removed = await asyncio.create_subprocess_exec(
            *(*_runtime(folder), "delete", "--force", name),
            stderr=asyncio.subprocess.DEVNULL,
        )
        await removed.wait()
        await process.wait()
        await asyncio.gather(*readers)


def _runtime(folder: Path) -> tuple[str, ...]:
    return (*RUNTIME, "--root", str(folder / "state"))


def _configuration(
    image: Image, volume: Path, options: Options, arguments: tuple[str, ...]
) -> dict[str, Any]:
    """The container as the runtime reads it (OCI runtime specification 1.0)."""
    uid, gid = image.ids
    refused = security(options.security)
    own = ("pid", "ipc", "uts", "mount", *(() if options.host_network else ("network",)))
    mounts = [
        {"destination": place, "type": kind, "source": kind, "options": list(how)}
        for place, kind, how in (
            *MOUNTS,
            *((place, "tmpfs", TEMPORARY) for place in options.tmpfs),
        )
    ]
    (place,) = image.volumes
    mounts.append({"destination": place, "source": str(volume), "options": ["rbind", "rw"]})
    return {
        "ociVersion": "1.0.2",
        "hostname": "gatehouse",
        "root": {"path": str(image.root), "readonly": True},
        "process": {
            "terminal": False,
            "user": {"uid": uid, "gid": gid},
            "args": [*image.entrypoint, *arguments],
            "env": [*image.env, *(f"{name}={value}" for name, value in options.env.items())],
            "cwd": image.folder,
            "capabilities": {kind: [] for kind in CAPABILITIES},
            "noNewPrivileges": True,
        },
        "mounts": mounts,
        "linux": {
            "namespaces": [{"type": kind} for kind in own],
            "maskedPaths": refused.masked,
            "readonlyPaths": refused.read_only,
            **({} if refused.seccomp is None else {"seccomp": refused.seccomp}),
        },
    }
