"""Hostile programs, run inside of a sandbox as `python -I -S -c SOURCE TARGETS`.

Each attempt runs in a process of its own and reports how it ended. What it says is not believed:
the proof that it failed is taken outside, in `gateway_under_attack`. Standard library only.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
NUMBERS = {
    name: pair[0 if X86 else 1]
    for name, pair in {
        "acct": (163, 89),
        "add_key": (248, 217),
        "bpf": (321, 280),
        "fanotify_init": (300, 262),
        "fchmodat2": (452, 452),
        "init_module": (175, 105),
        "inotify_add_watch": (254, 27),
        "inotify_init1": (294, 26),
        "io_uring_setup": (425, 425),
        "ioprio_set": (251, 30),
        "kcmp": (312, 272),
        "kexec_load": (246, 104),
        "keyctl": (250, 219),
        "linkat": (265, 37),
        "mount": (165, 40),
        "mq_open": (240, 180),
        "msgget": (68, 186),
        "name_to_handle_at": (303, 264),
        "open_tree": (428, 428),
        "perf_event_open": (298, 241),
        "pidfd_getfd": (438, 438),
        "pidfd_open": (434, 434),
        "pidfd_send_signal": (424, 424),
        "process_madvise": (440, 440),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "ptrace": (101, 117),
        "quotactl": (179, 60),
        "renameat2": (316, 276),
        "rt_sigqueueinfo": (129, 138),
        "sched_setattr": (314, 274),
        "sched_setscheduler": (144, 119),
        "semget": (64, 190),
        "setns": (308, 268),
        "sethostname": (170, 161),
        "shmget": (29, 194),
        "swapon": (167, 224),
        "tgkill": (234, 131),
        "tkill": (200, 130),
        "unshare": (272, 97),
        "userfaultfd": (323, 282),
    }.items()
}
LAST_CALL = 470
CHUNK = 24
Attempts = Iterator[tuple[str, Callable[[], object]]]


def call(number: str | int, *arguments: int | bytes | None) -> int:
    """A system call by name or number; raises `OSError`."""
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    found: int = LIBC.syscall(
        ctypes.c_long(NUMBERS[number] if isinstance(number, str) else number), *values
    )
    if found < 0:
        raise OSError(ctypes.get_errno(), str(number))
    return found


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(200).decode("latin-1")


def group_of(victim: int) -> int:
    """Its process group, or what the group of a leader would be if it cannot be seen."""
    try:
        return os.getpgid(victim)
    except OSError:
        return victim


def signals(victim: int) -> Attempts:
    """Ending the gateway or stopping it."""
    group = group_of(victim)
    for number in (0, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        yield f"kill {number}", lambda number=number: os.kill(victim, number)
        yield f"killpg {number}", lambda number=number: os.killpg(group, number)
        yield f"tgkill {number}", lambda number=number: call("tgkill", victim, victim, number)
        yield f"tkill {number}", lambda number=number: call("tkill", victim, number)
    info = struct.pack("<iiii", signal.SIGKILL, 0, -1, 0).ljust(128, b"\0")
    yield "sigqueue", lambda: call("rt_sigqueueinfo", victim, signal.SIGKILL, info)
    yield "pidfd_open", lambda: call("pidfd_open", victim, 0)

    def by_handle() -> None:
        handle = os.open(f"/proc/{victim}", os.O_RDONLY)
        call("pidfd_send_signal", handle, signal.SIGKILL, None, 0)

    yield "pidfd_send_signal", by_handle

    def by_descriptor() -> None:
        # The kernel signals the owner of a descriptor when something can be read from it.
        ours, theirs = socket.socketpair()
        fcntl.fcntl(ours, fcntl.F_SETOWN, victim)
        fcntl.fcntl(ours, 10, signal.SIGKILL)
        fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        theirs.send(b"x")

    yield "F_SETOWN", by_descriptor

    def by_request() -> None:
        ours, theirs = socket.socketpair()
        fcntl.ioctl(ours, 0x8901, struct.pack("i", victim))
        fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        theirs.send(b"x")

    yield "FIOSETOWN", by_request


def limits(victim: int) -> Attempts:
    """Limiting and slowing it."""
    for name in ("CPU", "AS", "NOFILE", "NPROC", "FSIZE"):
        kind = getattr(resource, f"RLIMIT_{name}")
        yield f"prlimit {name}", lambda kind=kind: resource.prlimit(victim, kind, (1, 1))
    yield "setpriority", lambda: os.setpriority(os.PRIO_PROCESS, victim, 19)
    group, user = group_of(victim), os.getuid()
    yield "setpriority group", lambda: os.setpriority(os.PRIO_PGRP, group, 19)
    yield "setpriority user", lambda: os.setpriority(os.PRIO_USER, user, 19)
    yield "ioprio_set", lambda: call("ioprio_set", 1, victim, 3 << 13)
    yield "ioprio_set group", lambda: call("ioprio_set", 2, group, 3 << 13)
    yield "ioprio_set user", lambda: call("ioprio_set", 3, user, 3 << 13)
    yield "sched_setaffinity", lambda: os.sched_setaffinity(victim, {0})
    yield "sched_setscheduler", lambda: call("sched_setscheduler", victim, 5, struct.pack("i", 0))
    idle = struct.pack("<IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0)
    yield "sched_setattr", lambda: call("sched_setattr", victim, idle, 0)
    yield "autogroup", lambda: write(f"/proc/{victim}/autogroup", "19")
    yield "oom_score_adj", lambda: write(f"/proc/{victim}/oom_score_adj", "1000")
    yield "timerslack", lambda: write(f"/proc/{victim}/timerslack_ns", "999999999")
    yield "RLIMIT_NICE", lambda: os.nice(-5)


def inspection(victim: int) -> Attempts:
    """Tracing it and looking into it."""
    for request in (0x10, 0x4206):
        yield f"ptrace {request:#x}", lambda request=request: call("ptrace", request, victim, 0, 0)
    room = ctypes.create_string_buffer(64)
    vector = struct.pack("QQ", ctypes.addressof(room), 64)
    for name in ("process_vm_readv", "process_vm_writev"):
        yield name, lambda name=name: call(name, victim, vector, 1, vector, 1, 0)
    for name in ("mem", "environ", "maps", "io", "auxv", "syscall", "pagemap"):
        yield f"/proc {name}", lambda name=name: read(f"/proc/{victim}/{name}")
    for name in ("cwd", "root", "map_files", "fd"):
        yield f"/proc {name}", lambda name=name: os.listdir(f"/proc/{victim}/{name}")
    yield "kcmp", lambda: call("kcmp", os.getpid(), victim, 1, 0, 0)
    yield "perf_event_open", lambda: call("perf_event_open", bytes(128), victim, -1, -1, 0)
    yield "pidfd_getfd", lambda: call("pidfd_getfd", call("pidfd_open", victim, 0), 0, 0)
    yield "setns", lambda: call("setns", call("pidfd_open", victim, 0), 0x10000000)
    yield "process_madvise", lambda: call("process_madvise", 3, vector, 1, 21, 0)
    yield "prlimit look", lambda: resource.prlimit(victim, resource.RLIMIT_CPU)
    yield "affinity look", lambda: os.sched_getaffinity(victim)


def communication(key: int) -> Attempts:
    """Leaving something to other sessions."""
    yield "shmget", lambda: call("shmget", key, 4096, 0o1666)
    yield "msgget", lambda: call("msgget", key, 0o1666)
    yield "semget", lambda: call("semget", key, 1, 0o1666)
    yield "mq_open", lambda: call("mq_open", b"hostile", os.O_CREAT | os.O_RDWR, 0o666, None)
    yield "shm_open", lambda: write(f"/dev/shm/hostile-{key}", "x")
    yield "datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    yield "tmp", lambda: write(f"/tmp/hostile-{key}", "x")
    yield "var tmp", lambda: write(f"/var/tmp/hostile-{key}", "x")


def exchange(name: bytes) -> None:
    """Put a file of our own in its place, and it in ours."""
    write("hostile-exchange", "hostile")
    call("renameat2", -100, b"hostile-exchange", -100, name, 2)


def files(canaries: list[str], hidden: str) -> Attempts:
    """Changing what lies outside, and watching it."""

    def watch(name: bytes) -> None:
        call("inotify_add_watch", call("inotify_init1", 0), name, 0xFFF)

    for path in canaries:
        name = path.encode()

        def opened(path: str = path) -> int:
            return os.open(path, os.O_RDONLY)

        yield f"chown {path}", lambda path=path: os.chown(path, -1, -1)
        yield f"chown own {path}", lambda path=path: os.chown(path, os.getuid(), os.getgid())
        yield f"lchown {path}", lambda path=path: os.lchown(path, -1, -1)
        yield f"fchown {path}", lambda: os.fchown(opened(), -1, -1)
        yield f"fchown path {path}", lambda path=path: os.fchown(os.open(path, os.O_PATH), -1, -1)
        yield f"chmod {path}", lambda path=path: os.chmod(path, 0o777)
        yield f"fchmod {path}", lambda: os.fchmod(opened(), 0o777)
        yield f"fchmodat2 {path}", lambda name=name: call("fchmodat2", -100, name, 0o777, 0)
        yield f"utime {path}", lambda path=path: os.utime(path, (1, 1))
        yield f"futimens {path}", lambda: os.utime(opened(), (1, 1))
        yield f"touch {path}", lambda path=path: os.utime(path)
        yield f"setxattr {path}", lambda path=path: os.setxattr(path, "user.hostile", b"x")
        yield f"flags {path}", lambda: fcntl.ioctl(opened(), 0x40086602, struct.pack("l", 0x40))
        yield f"truncate {path}", lambda path=path: os.truncate(path, 0)
        yield f"write {path}", lambda path=path: write(path, "hostile")
        yield f"unlink {path}", lambda path=path: os.unlink(path)
        yield f"rename {path}", lambda path=path: os.rename(path, path + "-hostile")
        yield f"link {path}", lambda path=path: os.link(path, "hostile-link")
        yield (
            f"link opened {path}",
            lambda name=name: call(
                "linkat", os.open(name, os.O_PATH), b"", -100, b"hostile-e", 0x1000
            ),
        )
        yield (
            f"link by proc {path}",
            lambda path=path: os.link(
                f"/proc/self/fd/{os.open(path, os.O_PATH)}", "hostile-l", follow_symlinks=True
            ),
        )
        yield f"rename in {path}", lambda path=path: os.rename(path, "hostile-rename")
        yield f"exchange {path}", lambda name=name: exchange(name)
        yield f"handle {path}", lambda name=name: call("name_to_handle_at", -100, name, 0, 0, 0)
    yield f"watch {hidden}", lambda: watch(hidden.encode())
    yield "fanotify", lambda: call("fanotify_init", 0, 0)


def network(port: int, path: str, abstract: str) -> Attempts:
    """Reaching the gateway."""
    yield "tcp", lambda: socket.create_connection(("127.0.0.1", port), 5).close()
    yield "unix", lambda: socket.socket(socket.AF_UNIX).connect(path)
    yield "abstract", lambda: socket.socket(socket.AF_UNIX).connect(f"\0{abstract}")


def kernel() -> Attempts:
    """Ways out."""
    yield "unshare", lambda: call("unshare", 0x10000000)
    yield "mount", lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None)
    yield "open_tree", lambda: call("open_tree", -100, b"/", 1)
    yield "bpf", lambda: call("bpf", 0, bytes(128), 128)
    yield "lease", lambda: fcntl.fcntl(os.open("leased", os.O_CREAT | os.O_RDWR), 1024, 1)
    yield "io_uring", lambda: call("io_uring_setup", 4, bytes(256))
    yield "add_key", lambda: call("add_key", b"user", b"hostile", b"x", 1, -4)
    yield "keyctl", lambda: call("keyctl", 0, -4, 0)
    yield "userfaultfd", lambda: call("userfaultfd", 1)
    yield "quotactl", lambda: call("quotactl", 0x800001, None, 0, None)
    yield "swapon", lambda: call("swapon", b"/hostile", 0)
    yield "acct", lambda: call("acct", None)
    yield "kexec", lambda: call("kexec_load", 0, 0, None, 0)
    yield "module", lambda: call("init_module", b"x", 1, b"")
    yield "hostname", lambda: call("sethostname", b"hostile", 7)
    yield "core_pattern", lambda: write("/proc/sys/kernel/core_pattern", "|/bin/true")
    yield "sysrq", lambda: write("/proc/sysrq-trigger", "h")
    yield "suid", lambda: os.chmod(".", 0o4755)


def one(attempt: Callable[[], object]) -> str:
    """Run it in a process of its own; how it ended."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        try:
            attempt()
            said = "done"
        except OSError as error:
            said = errno.errorcode.get(error.errno or 0, "OSError")
        except BaseException as error:
            said = type(error).__name__
        os.write(into, said.encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    return said or f"ended by {status}"


WAIT_FOR_DISKS = (162, 306) if X86 else (81, 267)
"""sync(2) and syncfs(2): no signal ends the wait for what all programs wrote."""


def fuzz(victim: int, canary: str) -> int:
    """Every system call with the victim and the canary where arguments may name them."""
    path = ctypes.create_string_buffer(canary.encode())
    place = ctypes.addressof(path)
    patterns = (
        (victim,) * 6,
        (victim, signal.SIGKILL, 0, 0, 0, 0),
        (victim, victim, signal.SIGKILL, 0, 0, 0),
        (0, victim, 19, 0, 0, 0),
        (place, -1, -1, 0, 0, 0),
        (-100, place, -1, -1, 0, 0),
    )
    progress = mmap.mmap(-1, 4096)
    tried = 0
    for pattern in patterns:
        number = 0
        while number <= LAST_CALL:
            child = os.fork()
            if child == 0:
                null = os.open(os.devnull, os.O_RDWR)
                for descriptor in (0, 1, 2):
                    os.dup2(null, descriptor)
                for each in range(number, min(number + CHUNK, LAST_CALL + 1)):
                    progress[:4] = struct.pack("<I", each + 1)
                    if each in WAIT_FOR_DISKS:
                        continue
                    signal.setitimer(signal.ITIMER_REAL, 0.05)
                    LIBC.syscall(ctypes.c_long(each), *(ctypes.c_long(value) for value in pattern))
                    if os.getppid() != parent:
                        # It was a kind of fork.
                        os._exit(0)
                os._exit(0)
            os.waitpid(child, 0)
            (reached,) = struct.unpack("<I", progress[:4])
            tried += reached - number
            number = max(reached, number + 1)
    return tried


parent = os.getpid()


def main(given: dict) -> None:
    told: dict[str, object] = {}
    for attempts in (
        signals(given["victim"]),
        limits(given["victim"]),
        inspection(given["victim"]),
        communication(given["key"]),
        files(given["canaries"], given["hidden"]),
        network(given["port"], given["socket"], given["abstract"]),
        kernel(),
        (
            (f"read {path}", lambda path=path: print(read(path), flush=True))
            for path in given["secrets"]
        ),
    ):
        for name, attempt in attempts:
            told[name] = one(attempt)
    if given["fuzz"]:
        told["fuzz"] = fuzz(given["victim"], given["canaries"][0])
    print("\n" + json.dumps(told))


main(json.loads(sys.argv[1]))
