"""The system call filter of a command, as a classic BPF program; pure.

It is an allow-list. A call that is not on it does not exist (ENOSYS), so that programs fall back to
what they did on an older kernel; what leads out of a sandbox is refused by name (EPERM). Calls that
name a process, a mode, an owner or an address family are judged by their arguments. Where the
kernel cannot tell whose process or file is meant, the supervisor is asked (`broker`).
"""

import errno
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from adapters.sandbox import system_calls

AF_UNIX = 1
AF_INET = 2
AF_INET6 = 10
AF_NETLINK = 16

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_ASK_SUPERVISOR = 0x7FC00000
_REFUSE = _ERRNO | errno.EPERM
_MISSING = _ERRNO | errno.ENOSYS
# BPF_LD|BPF_W|BPF_ABS, BPF_JMP with JEQ/JGE/JSET and a constant, BPF_RET with a constant, BPF_AND.
_LOAD, _JEQ, _JGE, _JSET, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_NR_OFFSET, _ARCH_OFFSET, _ARGS_OFFSET = 0, 4, 16
_X32_BIT = 0x40000000

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
_NEW_NAMESPACES = 0x7E020000
_SET_ID_BITS = 0o6000
# O_CREAT and O_TMPFILE: the mode of open(2) means something only with one of them.
_CREATES = 0o100 | 0o20000000
# name -> index of the mode argument
_CHANGES_OF_MODE = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
# The same, and the index of the flags that make the mode count.
_CREATIONS = {
    "creat": (1, None),
    "mknod": (1, None),
    "mknodat": (2, None),
    "open": (2, 1),
    "openat": (3, 2),
}
# Landlock does not see these at all.
_CHANGES_OF_FILES = (
    *("chown", "fchown", "lchown", "fchownat"),
    *("utimensat", "utime", "utimes"),
    "inotify_add_watch",
)
_SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
# (name, the `which` that means every process of a user)
_PRIORITIES = (("setpriority", 2), ("ioprio_set", 3), ("ioprio_get", 3))
# TIOCSTI and TIOCLINUX type on a terminal; FIOSETOWN and SIOCSPGRP choose whom the kernel signals.
_TERMINAL_REQUESTS = (0x5412, 0x541C, 0x8901, 0x8902)
# FS_IOC_SETFLAGS, SETVERSION, FSSETXATTR and ENABLE_VERITY change a file that was opened to read.
_FILE_REQUESTS = (0x40086602, 0x40087602, 0x401C5820, 0x40806685)
_PR_SET_DUMPABLE, _PR_SCHED_CORE = 4, 62
_F_SETOWN, _F_SETOWN_EX = 8, 15
# F_SETLEASE, F_NOTIFY, F_SETDELEG
_LEASES = (1024, 1026, 1040)
_FORKS = ("clone", "fork", "vfork")
_CLONE3 = 435
_SOCK_DGRAM, _SOCK_TYPES = 2, 0xF
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_Block = list[bytes]


@dataclass(frozen=True, slots=True)
class Filter:
    """`families` are the address families that socket(2) may have.

    `namespaces` says that the command has its own for processes, IPC and files, so that a process
    or a file that it can name is its own. Without them, changes of modes, owners and times and
    calls about other processes are questions to the supervisor (see `broker`), and System V and
    POSIX IPC and extended attributes are refused. `signals_scoped` says that the kernel keeps
    signals inside by itself. With `asks_forks` each new task is a question (see `forks`).
    """

    families: tuple[int, ...]
    namespaces: bool = True
    signals_scoped: bool = True
    asks_forks: bool = False


def supported(machine: str) -> bool:
    """Whether `program` knows the system calls of this ``uname`` machine."""
    return machine in _AUDIT


@cache
def program(machine: str, rules: Filter) -> bytes:
    """The filter as an array of `struct sock_filter`, 8 bytes each, as bwrap's --seccomp reads it.

    Raises `KeyError` for a machine that is not `supported`.
    """
    out = _number(machine)
    numbers = system_calls.number_of(system_calls.JUDGED, machine)
    for name, block in _judgements(rules).items():
        if name in numbers:
            # `block` loses the number from the accumulator, so it ends with a verdict everywhere.
            out += [_op(_JEQ, numbers[name], 0, len(block)), *block]
    for calls, verdict in _tables(rules):
        out += _answers(system_calls.number_of(calls, machine).values(), verdict)
    return b"".join([*out, _op(_RETURN, _MISSING)])


@cache
def forks(machine: str) -> bytes:
    """A filter that asks at each new task and lets everything else go on; as `program`."""
    numbers = system_calls.number_of(system_calls.JUDGED, machine)
    out = _number(machine)
    out += _answers((numbers[name] for name in _FORKS if name in numbers), _ASK_SUPERVISOR)
    # Its flags lie in memory, where nobody sees them; every C library goes on with clone.
    out += _answers((_CLONE3,), _MISSING)
    return b"".join([*out, _op(_RETURN, _ALLOW)])


def _number(machine: str) -> _Block:
    """Load the number of the call; one of another way to call, with other numbers, is missing."""
    out = [
        _op(_LOAD, _ARCH_OFFSET),
        _op(_JEQ, _AUDIT[machine], 1, 0),
        # The 32-bit calls.
        _op(_RETURN, _MISSING),
        _op(_LOAD, _NR_OFFSET),
    ]
    if machine == "x86_64":
        out += [_op(_JGE, _X32_BIT, 0, 1), _op(_RETURN, _MISSING)]
    return out


def _tables(rules: Filter) -> Iterable[tuple[dict[str, tuple[int | None, int | None]], int]]:
    yield system_calls.ORDINARY, _ALLOW
    yield system_calls.FORBIDDEN, _REFUSE
    if rules.namespaces:
        yield system_calls.INTERPROCESS, _ALLOW
        yield system_calls.ATTRIBUTES, _ALLOW
    else:
        yield system_calls.INTERPROCESS, _REFUSE
        # As on a file system without them: `cp -p` then makes do with the mode.
        yield system_calls.ATTRIBUTES, _ERRNO | errno.EOPNOTSUPP


def _judgements(rules: Filter) -> dict[str, _Block]:
    """A block for each call whose arguments decide."""
    ask = _ALLOW if rules.namespaces else _ASK_SUPERVISOR
    fork = _ASK_SUPERVISOR if rules.asks_forks else _ALLOW
    blocks = {
        "clone": _refuse_bits(0, _NEW_NAMESPACES, otherwise=fork),
        "fork": [_op(_RETURN, fork)],
        "vfork": [_op(_RETURN, fork)],
        "socket": _only(0, rules.families),
        "prctl": _none_of(0, (_PR_SCHED_CORE,)),
        # One end of a pair of datagram sockets could send to any name.
        "socketpair": _pairs(),
        # Whoever opens a file waits for the holder of its lease.
        "fcntl": _none_of(1, _LEASES),
        "ioctl": _none_of(1, _TERMINAL_REQUESTS),
        # A handle by which a process can be waited for and signalled.
        "pidfd_open": [_op(_RETURN, ask)],
    }
    if not rules.namespaces:
        # A process that hides its memory from the supervisor could not be asked about.
        blocks["prctl"] = _none_of(0, (_PR_SCHED_CORE, _PR_SET_DUMPABLE))
        blocks["fcntl"] = _none_of(1, (*_LEASES, _F_SETOWN, _F_SETOWN_EX))
        blocks["ioctl"] = _none_of(1, (*_TERMINAL_REQUESTS, *_FILE_REQUESTS))
    for name, mode in _CHANGES_OF_MODE.items():
        blocks[name] = _refuse_bits(mode, _SET_ID_BITS, otherwise=ask)
    for name, (mode, flags) in _CREATIONS.items():
        blocks[name] = _mode_check(mode=mode, flags=flags)
    signal = _ALLOW if rules.signals_scoped else ask
    blocks |= {name: [_op(_RETURN, ask)] for name in _CHANGES_OF_FILES}
    blocks |= {name: [_op(_RETURN, signal)] for name in _SIGNALS}
    blocks |= {name: _own_or(ask, 0) for name in system_calls.ON_A_PROCESS}
    for name, everyone in _PRIORITIES:
        head = [_load_argument(0), _op(_JEQ, everyone, 0, 1), _op(_RETURN, _REFUSE)]
        blocks[name] = [*head, *_own_or(ask, 1)]
    return blocks


def _op(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, operand)


def _answers(numbers: Iterable[int], verdict: int) -> _Block:
    out: _Block = []
    for number in numbers:
        out += [_op(_JEQ, number, 0, 1), _op(_RETURN, verdict)]
    return out


def _load_argument(index: int) -> bytes:
    # The low half of a little-endian 64-bit argument: the kernel ignores the rest of an int.
    return _op(_LOAD, _ARGS_OFFSET + 8 * index)


def _own_or(verdict: int, index: int) -> _Block:
    """Allow 0, which is the caller itself; anything else gets `verdict`."""
    return [
        _load_argument(index),
        _op(_JEQ, 0, 0, 1),
        _op(_RETURN, _ALLOW),
        _op(_RETURN, verdict),
    ]


def _refuse_bits(index: int, bits: int, *, otherwise: int = _ALLOW) -> _Block:
    return [
        _load_argument(index),
        _op(_JSET, bits, 0, 1),
        _op(_RETURN, _REFUSE),
        _op(_RETURN, otherwise),
    ]


def _mode_check(*, mode: int, flags: int | None) -> _Block:
    check = _refuse_bits(mode, _SET_ID_BITS)
    if flags is None:
        return check
    return [_load_argument(flags), _op(_JSET, _CREATES, 1, 0), _op(_RETURN, _ALLOW), *check]


def _only(index: int, values: tuple[int, ...]) -> _Block:
    return [_load_argument(index), *_answers(values, _ALLOW), _op(_RETURN, _REFUSE)]


def _pairs() -> _Block:
    return [
        _load_argument(0),
        _op(_JEQ, AF_UNIX, 1, 0),
        _op(_RETURN, _REFUSE),
        _load_argument(1),
        _op(_AND, _SOCK_TYPES),
        _op(_JEQ, _SOCK_DGRAM, 0, 1),
        _op(_RETURN, _REFUSE),
        _op(_RETURN, _ALLOW),
    ]


def _none_of(index: int, values: tuple[int, ...]) -> _Block:
    return [_load_argument(index), *_answers(values, _REFUSE), _op(_RETURN, _ALLOW)]
