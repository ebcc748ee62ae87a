"""The call filter, run by an interpreter of its few instructions (TOOL-5)."""

import errno
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.sandbox.seccomp import AF_INET, AF_UNIX, Filter, program, supported

ALLOW, KILL, ASK = 0x7FFF0000, 0x80000000, 0x7FC00000
REFUSED = {number: 0x00050000 | number for number in (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)}
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
O_CREAT, CLONE_NEWUSER, CLONE_THREAD = 0o100, 0x10000000, 0x10000


def verdict(code: bytes, *, arch: int, number: int, args: tuple[int, ...] = ()) -> int:
    """What the kernel would answer."""
    padded = (*args, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number, arch, 0, *(each % 2**64 for each in padded))
    at, accumulator = 0, 0
    while True:
        op, if_true, if_false, operand = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        if op == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif op == 0x06:
            return int(operand)
        else:
            test = {
                0x15: accumulator == operand,
                0x35: accumulator >= operand,
                0x45: bool(accumulator & operand),
            }
            at += if_true if test[op] else if_false


def ask(number: int, *args: int, machine: str = "x86_64", rules: Filter | None = None) -> int:
    code = program(machine, rules or Filter((AF_UNIX, AF_INET)))
    return verdict(code, arch=AUDIT[machine], number=number, args=args)


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    ("machine", "numbers"),
    [
        ("x86_64", {"ptrace": 101, "mount": 165, "kexec_load": 246, "bpf": 321, "keyctl": 250}),
        ("aarch64", {"ptrace": 117, "mount": 40, "kexec_load": 104, "bpf": 280, "keyctl": 219}),
    ],
)
def test_ways_out_are_refused(machine: str, numbers: dict[str, int]) -> None:
    answers = {name: ask(number, machine=machine) for name, number in numbers.items()}
    assert answers == dict.fromkeys(numbers, REFUSED[errno.EPERM])


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(("machine", "clone"), [("x86_64", 56), ("aarch64", 220)])
def test_threads_may_be_made_and_namespaces_may_not(machine: str, clone: int) -> None:
    assert ask(clone, CLONE_THREAD, machine=machine) == ALLOW
    assert ask(clone, CLONE_NEWUSER | 17, machine=machine) == REFUSED[errno.EPERM]
    assert ask(435, machine=machine) == REFUSED[errno.ENOSYS]


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(("machine", "socket"), [("x86_64", 41), ("aarch64", 198)])
def test_only_granted_address_families_make_sockets(machine: str, socket: int) -> None:
    local = Filter((AF_UNIX,))
    assert ask(socket, AF_UNIX, machine=machine, rules=local) == ALLOW
    assert ask(socket, AF_INET, machine=machine, rules=local) == REFUSED[errno.EPERM]
    assert ask(socket, AF_UNIX, machine=machine, rules=Filter(())) == REFUSED[errno.EPERM]
    # io_uring would make one without asking.
    assert ask(425, machine=machine, rules=local) == REFUSED[errno.ENOSYS]


@pytest.mark.requirement("TOOL-5")
def test_set_id_bits_are_refused_wherever_a_mode_is_given() -> None:
    chmod, fchmodat, creat, open_, openat = 90, 268, 85, 2, 257
    for bits in (0o4755, 0o2755):
        assert ask(chmod, 0, bits) == REFUSED[errno.EPERM]
        assert ask(fchmodat, 0, 0, bits) == REFUSED[errno.EPERM]
        assert ask(creat, 0, bits) == REFUSED[errno.EPERM]
        assert ask(open_, 0, O_CREAT, bits) == REFUSED[errno.EPERM]
        assert ask(openat, 0, 0, O_CREAT, bits) == REFUSED[errno.EPERM]
    assert ask(chmod, 0, 0o755) == ALLOW
    # Without O_CREAT the register holds what it happened to hold.
    assert ask(openat, 0, 0, 0, 0o4755) == ALLOW


@pytest.mark.requirement("TOOL-5")
def test_modes_are_asked_about_where_the_file_system_is_not_seen() -> None:
    rules = Filter((), broker_modes=True)
    assert ask(90, 0, 0o755, rules=rules) == ASK
    assert ask(452, 0, 0, 0o755, rules=rules) == ASK
    assert ask(90, 0, 0o4755, rules=rules) == REFUSED[errno.EPERM]
    assert ask(188, rules=rules) == REFUSED[errno.EOPNOTSUPP]


@pytest.mark.requirement("TOOL-5")
def test_the_other_ways_to_call_the_kernel_are_shut() -> None:
    code = program("x86_64", Filter((AF_UNIX,)))
    i386, x32 = 0x40000003, 0x40000000
    assert verdict(code, arch=i386, number=26) == KILL
    assert verdict(code, arch=AUDIT["x86_64"], number=x32 | 101) == KILL
    assert supported("aarch64")
    assert not supported("sparc64")
    with pytest.raises(KeyError):
        program("sparc64", Filter(()))


@pytest.mark.requirement("TOOL-5")
@settings(max_examples=150, deadline=None)
@given(
    machine=st.sampled_from(sorted(AUDIT)),
    number=st.integers(0, 600),
    args=st.lists(st.integers(0, 2**64 - 1), max_size=6),
    families=st.lists(st.integers(0, 45), max_size=4),
    broker=st.booleans(),
)
def test_every_call_gets_a_verdict(
    machine: str, number: int, args: list[int], families: list[int], broker: bool
) -> None:
    code = program(machine, Filter(tuple(families), broker_modes=broker))
    found = verdict(code, arch=AUDIT[machine], number=number, args=tuple(args))
    assert found in {ALLOW, ASK, *REFUSED.values()}
    assert found != ASK or broker
