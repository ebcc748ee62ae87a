"""The system calls by which a process gives up power, for itself and for all it starts.

They are called in the supervisor's child, between fork and exec, and cannot be taken back. Standard
library only, and little of it, as in `launch_spec`. Linux only; importing it elsewhere does no
harm.
"""

import contextlib
import ctypes
import errno
import os
import resource
import stat

from adapters.sandbox.launch_spec import LandlockSpec, LaunchSpec

_LIBC = ctypes.CDLL(None, use_errno=True)
# These three numbers are the same on every architecture.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_CREATE_RULESET_VERSION = 1
_LANDLOCK_RULE_PATH_BENEATH = 1
# What landlock(7) allows on something that is no directory.
WRITE_FILE, READ_FILE = 0x2, 0x4
_FILE_RIGHTS = 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
_SECCOMP_SET_MODE_FILTER, _SECCOMP_NEW_LISTENER = 1, 8
# Since Linux 5.19. Once the supervisor took a question, only a fatal signal interrupts the call:
# it would fail with EINTR, although it is carried out.
_SECCOMP_WAIT_KILLABLE = 32
_CAPABILITY_VERSION_3 = 0x20080522
_SIGKILL = 9
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_RDONLY, _MS_NOSUID, _MS_NOEXEC, _MS_REMOUNT = 0x1, 0x2, 0x8, 0x20
_MS_BIND, _MS_REC, _MS_SLAVE = 0x1000, 0x4000, 0x80000
_FIRST_TO_GO = 500


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_fs", ctypes.c_uint64),
        ("handled_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def landlock_abi() -> int:
    """The kernel's Landlock version, 0 when it has none or has it switched off."""
    if not hasattr(_LIBC, "prctl"):
        return 0
    version: int = _LIBC.syscall(
        _LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _LANDLOCK_CREATE_RULESET_VERSION
    )
    return max(version, 0)


def become_subreaper() -> None:
    """Inherit every orphan below this process, so that no descendant can slip away."""
    if hasattr(_LIBC, "prctl"):
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """SIGKILL this process when the one that forked it ends."""
    if hasattr(_LIBC, "prctl"):
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def hide_from_others() -> None:
    """Give what lies in this process's folder under /proc to root, so that no other process of the
    same ordinary user lists its open files or reads its environment. It leaves no core dump then.

    What it starts is a program of its own and is not hidden.
    """
    if hasattr(_LIBC, "prctl"):
        _prctl(_PR_SET_DUMPABLE, 0)


def apply(spec: LaunchSpec) -> int | None:
    """Everything that `spec` asks for, in the order in which each still works.

    Returns the descriptor on which the filter's questions arrive, if it asks any.
    Raises `OSError` or `ValueError` when the system refuses a part: then nothing may be run.
    """
    limits = spec.limits
    if limits.nice:
        os.nice(limits.nice)
    # Where memory runs out for the whole machine, the kernel ends a command and not the gateway.
    with contextlib.suppress(OSError):
        _write("/proc/self/oom_score_adj", str(_FIRST_TO_GO))
    for directory in limits.cgroups:
        _write(f"{directory}/cgroup.procs", "0")
    for number, value in limits.rlimits:
        _lower(number, value)
    if limits.processes is not None:
        _lower(resource.RLIMIT_NPROC, _tasks_of_user() + limits.processes)
    if spec.fixed_devices:
        _fix_devices(spec.fixed_devices)
    if spec.drop_capabilities:
        _drop_capabilities()
    if spec.landlock is not None or spec.seccomp is not None:
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if spec.landlock is not None:
        _restrict(spec.landlock)
    if spec.seccomp is None:
        return None
    return _filter(spec.seccomp, asks=spec.asks_supervisor)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, first: int, second: int = 0) -> None:
    arguments = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    _checked(_LIBC.prctl(ctypes.c_int(option), *arguments), f"prctl {option}")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _lower(number: int, value: int) -> None:
    _, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(number, (value, value))


def _tasks_of_user() -> int:
    """Threads of this user: RLIMIT_NPROC counts them all, not only the command's."""
    own, total = os.getuid(), 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                # Not the owner of what lies in the folder, which is root where a process hides.
                if _user_of(name) == own:
                    total += len(os.listdir(f"/proc/{name}/task"))
    return total


def _user_of(pid: str) -> int:
    with open(f"/proc/{pid}/status", "rb") as file:
        return int(file.read().partition(b"\nUid:")[2].split(None, 1)[0])


def _fix_devices(devices: tuple[str, ...]) -> None:
    """Mount each over itself, read-only: that lets a device be written to, but not be changed."""
    if _LIBC.unshare(_CLONE_NEWNS) < 0:
        # Without the capability, as bwrap itself does it.
        user, group = os.geteuid(), os.getegid()
        _checked(_LIBC.unshare(_CLONE_NEWNS | _CLONE_NEWUSER), "unshare")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _mount(None, "/", _MS_REC | _MS_SLAVE)
    for device in devices:
        _mount(device, device, _MS_BIND)
        _mount(None, device, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NOEXEC)
    if stat.S_ISCHR(os.fstat(0).st_mode):
        # The gateway's came through the host's own mount.
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)


def _mount(source: str | None, target: str, flags: int) -> None:
    given = None if source is None else source.encode()
    result = _LIBC.mount(given, target.encode(), None, ctypes.c_ulong(flags), None)
    _checked(result, f"mount {target}")


def _drop_capabilities() -> None:
    with open("/proc/sys/kernel/cap_last_cap", "rb") as file:
        last = int(file.read())
    if os.geteuid() == 0:
        # With an empty bounding set, not even exec as root gives one back.
        for capability in range(last + 1):
            _prctl(_PR_CAPBSET_DROP, capability)
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _checked(_LIBC.capset(ctypes.byref(header), nothing), "capset")


def _restrict(spec: LandlockSpec) -> None:
    attributes = _Ruleset(spec.handled_fs, spec.handled_net, spec.scoped)
    ruleset = _checked(
        _LIBC.syscall(
            _LANDLOCK_CREATE_RULESET,
            ctypes.byref(attributes),
            ctypes.c_size_t(ctypes.sizeof(attributes)),
            0,
        ),
        "landlock_create_ruleset",
    )
    for path, rights in spec.rules:
        _allow(ruleset, path, rights)
    _checked(_LIBC.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    # O_NOFOLLOW: the gateway resolved the path, so a link here was put in its place since.
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        # Gone since it was listed: nothing is granted, which is right.
        return
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= _FILE_RIGHTS
        rule = _PathBeneath(rights, parent)
        added = _LIBC.syscall(
            _LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, ctypes.byref(rule), 0
        )
        _checked(added, f"landlock_add_rule {path}")
    finally:
        os.close(parent)


def _filter(program: bytes, *, asks: bool) -> int | None:
    buffer = ctypes.create_string_buffer(program, len(program))
    head = _Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    number = _SECCOMP_CALL[os.uname().machine]

    def install(flags: int) -> int:
        result: int = _LIBC.syscall(number, _SECCOMP_SET_MODE_FILTER, flags, ctypes.byref(head))
        return result

    if not asks:
        _checked(install(0), "seccomp")
        return None
    listener = install(_SECCOMP_NEW_LISTENER | _SECCOMP_WAIT_KILLABLE)
    if listener < 0 and ctypes.get_errno() == errno.EINVAL:
        listener = install(_SECCOMP_NEW_LISTENER)
    return _checked(listener, "seccomp")
