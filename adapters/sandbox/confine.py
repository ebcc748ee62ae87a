"""The system calls by which a process gives up power, for itself and for all it starts.

They are called in the supervisor's child, between fork and exec, and cannot be taken back.
Standard library only, as in `spec`. Linux only; importing it elsewhere does no harm.
"""

import contextlib
import ctypes
import os
import platform
import resource
from pathlib import Path

from adapters.sandbox.spec import LandlockSpec, LaunchSpec

_LIBC = ctypes.CDLL(None, use_errno=True)
# These three numbers are the same on every architecture.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_CREATE_RULESET_VERSION = 1
_LANDLOCK_RULE_PATH_BENEATH = 1
# What landlock(7) allows on something that is no directory.
WRITE_FILE = 0x2
_FILE_RIGHTS = 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP = 1, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
_SECCOMP_SET_MODE_FILTER, _SECCOMP_NEW_LISTENER = 1, 8
_CAPABILITY_VERSION_3 = 0x20080522
_SIGKILL = 9


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


def apply(spec: LaunchSpec) -> int | None:
    """Everything that `spec` asks for, in the order in which each still works.

    Returns the descriptor on which the filter's questions arrive, if it asks any.
    Raises `OSError` or `ValueError` when the system refuses a part: then nothing may be run.
    """
    for directory in spec.cgroups:
        Path(directory, "cgroup.procs").write_text("0")
    for number, value in spec.rlimits:
        _lower(number, value)
    if spec.processes is not None:
        _lower(resource.RLIMIT_NPROC, _tasks_of_user() + spec.processes)
    if spec.drop_capabilities:
        _drop_capabilities()
    if spec.landlock is not None or spec.seccomp is not None:
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if spec.landlock is not None:
        _restrict(spec.landlock)
    if spec.seccomp is None:
        return None
    return _filter(bytes.fromhex(spec.seccomp), asks=spec.broker_modes)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, first: int, second: int = 0) -> None:
    arguments = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    _checked(_LIBC.prctl(ctypes.c_int(option), *arguments), f"prctl {option}")


def _lower(number: int, value: int) -> None:
    _, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(number, (value, value))


def _tasks_of_user() -> int:
    """Threads of this user: RLIMIT_NPROC counts them all, not only the command's."""
    own, total = os.getuid(), 0
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                if process.stat().st_uid == own:
                    total += len(list((process / "task").iterdir()))
    return total


def _drop_capabilities() -> None:
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
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
        if not Path(f"/proc/self/fd/{parent}").is_dir():
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
    flags = _SECCOMP_NEW_LISTENER if asks else 0
    number = _SECCOMP_CALL[platform.machine()]
    result = _LIBC.syscall(number, _SECCOMP_SET_MODE_FILTER, flags, ctypes.byref(head))
    listener = _checked(result, "seccomp")
    return listener if asks else None
