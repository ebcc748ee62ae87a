"""The system call filter of a command, as a classic BPF program; pure.

It refuses what no build or script needs and what leads out of a sandbox: new namespaces, mounts,
kernel modules, key rings, tracing, io_uring (which makes sockets behind a filter's back), set-id
bits, and address families that were not granted. It is no allow-list: files are confined by the
mount namespace or by Landlock.
"""

import errno
import struct
from collections.abc import Iterable
from dataclasses import dataclass

AF_UNIX = 1
AF_INET = 2
AF_INET6 = 10
AF_NETLINK = 16

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000
_ASK_SUPERVISOR = 0x7FC00000
# BPF_LD|BPF_W|BPF_ABS, BPF_JMP with JEQ/JGE/JSET and a constant, BPF_RET with a constant.
_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR_OFFSET, _ARCH_OFFSET, _ARGS_OFFSET = 0, 4, 16
_X32_BIT = 0x40000000

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
_NEW_NAMESPACES = 0x7E020000
_SET_ID_BITS = 0o6000
# O_CREAT and O_TMPFILE: the mode of open(2) means something only with one of them.
_CREATES = 0o100 | 0o20000000

# name -> (x86_64, aarch64); None where the architecture has no such call.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
# Callers fall back to the older call when they hear that these do not exist. Their arguments lie
# behind a pointer, which a filter cannot follow.
_MISSING: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "openat2": (437, 437),
}
# Landlock does not see these at all, and builds do without them.
_ATTRIBUTES: dict[str, tuple[int | None, int | None]] = {
    "fremovexattr": (199, 16),
    "fsetxattr": (190, 7),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
}
# (x86_64, aarch64, index of the mode argument)
_CHANGES_OF_MODE: tuple[tuple[int | None, int | None, int], ...] = (
    (90, None, 1),  # chmod
    (91, 52, 1),  # fchmod
    (268, 53, 2),  # fchmodat
    (452, 452, 2),  # fchmodat2
)
# The same, and the index of the flags that make the mode count.
_CREATIONS: tuple[tuple[int | None, int | None, int, int | None], ...] = (
    (85, None, 1, None),  # creat
    (133, None, 1, None),  # mknod
    (259, 33, 2, None),  # mknodat
    (2, None, 2, 1),  # open
    (257, 56, 3, 2),  # openat
)
_CLONE = (56, 220)
_SOCKET = (41, 198)
# (audit architecture, column of the tables)
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


@dataclass(frozen=True, slots=True)
class Filter:
    """`families` are the address families that socket(2) may have.

    `broker_modes` turns each change of a mode into a question to the supervisor (see `modes`), and
    refuses extended attributes, for a backend that cannot see either.
    """

    families: tuple[int, ...]
    broker_modes: bool = False


def supported(machine: str) -> bool:
    """Whether `program` knows the system calls of this `uname` machine."""
    return machine in _MACHINES


def program(machine: str, rules: Filter) -> bytes:
    """The filter as an array of `struct sock_filter`, 8 bytes each, as bwrap's --seccomp reads it.

    Raises `KeyError` for a machine that is not `supported`.
    """
    audit, column = _MACHINES[machine]
    out = [
        _op(_LOAD, _ARCH_OFFSET),
        _op(_JEQ, audit, 1, 0),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD, _NR_OFFSET),
    ]
    if column == 0:
        out += [_op(_JGE, _X32_BIT, 0, 1), _op(_RETURN, _KILL_PROCESS)]
    out += _answers((pair[column] for pair in _NUMBERS.values()), errno.EPERM)
    if rules.broker_modes:
        # As on a file system without them: `cp -p` then makes do with the mode.
        out += _answers((pair[column] for pair in _ATTRIBUTES.values()), errno.EOPNOTSUPP)
    out += _answers((pair[column] for pair in _MISSING.values()), errno.ENOSYS)
    out += _when(_CLONE[column], _refuse_bits(0, _NEW_NAMESPACES))
    out += _when(_SOCKET[column], _only(0, rules.families))
    verdict = _ASK_SUPERVISOR if rules.broker_modes else _ALLOW
    for change in _CHANGES_OF_MODE:
        out += _when(change[column], _refuse_bits(change[2], _SET_ID_BITS, otherwise=verdict))
    for creation in _CREATIONS:
        out += _when(creation[column], _mode_check(mode=creation[2], flags=creation[3]))
    return b"".join([*out, _op(_RETURN, _ALLOW)])


def _op(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, operand)


def _answers(numbers: Iterable[int | None], error: int) -> list[bytes]:
    out: list[bytes] = []
    for number in numbers:
        if number is not None:
            out += [_op(_JEQ, number, 0, 1), _op(_RETURN, _ERRNO | error)]
    return out


def _when(number: int | None, block: list[bytes]) -> list[bytes]:
    """`block` loses the number from the accumulator, so it ends with a verdict on every path."""
    if number is None:
        return []
    return [_op(_JEQ, number, 0, len(block)), *block]


def _load_argument(index: int) -> bytes:
    # The low half of a little-endian 64-bit argument: the kernel ignores the rest of an int.
    return _op(_LOAD, _ARGS_OFFSET + 8 * index)


def _refuse_bits(index: int, bits: int, *, otherwise: int = _ALLOW) -> list[bytes]:
    return [
        _load_argument(index),
        _op(_JSET, bits, 0, 1),
        _op(_RETURN, _ERRNO | errno.EPERM),
        _op(_RETURN, otherwise),
    ]


def _mode_check(*, mode: int, flags: int | None) -> list[bytes]:
    check = _refuse_bits(mode, _SET_ID_BITS)
    if flags is None:
        return check
    return [_load_argument(flags), _op(_JSET, _CREATES, 1, 0), _op(_RETURN, _ALLOW), *check]


def _only(index: int, values: tuple[int, ...]) -> list[bytes]:
    out = [_load_argument(index)]
    for value in values:
        out += [_op(_JEQ, value, 0, 1), _op(_RETURN, _ALLOW)]
    return [*out, _op(_RETURN, _ERRNO | errno.EPERM)]
