"""The call filter, run by an interpreter of its few instructions (TOOL-5, SEC-6)."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.sandbox.seccomp import AF_INET, AF_UNIX, Filter, forks, program, supported
from tests.support.profiles import examples

ALLOW, ASK = 0x7FFF0000, 0x7FC00000
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
        elif op == 0x54:
            accumulator &= operand
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
@pytest.mark.parametrize(("machine", "numbers"), [("x86_64", (56, 57, 58)), ("aarch64", (220,))])
def test_each_new_task_is_a_question_where_the_supervisor_counts(
    machine: str, numbers: tuple[int, ...]
) -> None:
    counted = Filter((), namespaces=False, asks_forks=True)
    for number in numbers:
        assert ask(number, 17, machine=machine) == ALLOW
        assert ask(number, 17, machine=machine, rules=counted) == ASK
        assert verdict(forks(machine), arch=AUDIT[machine], number=number, args=(17,)) == ASK
    namespace = ask(numbers[0], CLONE_NEWUSER, machine=machine, rules=counted)
    assert namespace == REFUSED[errno.EPERM]
    for number, answer in ((435, REFUSED[errno.ENOSYS]), (1, ALLOW)):
        assert verdict(forks(machine), arch=AUDIT[machine], number=number) == answer
    other = AUDIT["aarch64" if machine == "x86_64" else "x86_64"]
    assert verdict(forks(machine), arch=other, number=1) == REFUSED[errno.ENOSYS]


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(("machine", "memfd"), [("x86_64", 319), ("aarch64", 279)])
def test_no_file_is_made_in_memory_that_no_limit_counts(machine: str, memfd: int) -> None:
    for number in (memfd, 447):
        assert ask(number, machine=machine) == REFUSED[errno.ENOSYS]


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_no_rule_of_landlock_keeps_a_deleted_file(machine: str) -> None:
    for number in (444, 445, 446):
        assert ask(number, machine=machine) == REFUSED[errno.ENOSYS]


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(("machine", "socket"), [("x86_64", 41), ("aarch64", 198)])
def test_only_granted_address_families_make_sockets(machine: str, socket: int) -> None:
    local = Filter((AF_UNIX,))
    assert ask(socket, AF_UNIX, machine=machine, rules=local) == ALLOW
    assert ask(socket, AF_INET, machine=machine, rules=local) == REFUSED[errno.EPERM]
    assert ask(socket, AF_UNIX, machine=machine, rules=Filter(())) == REFUSED[errno.EPERM]
    # io_uring would make one without asking.
    assert ask(425, machine=machine, rules=local) == REFUSED[errno.ENOSYS]


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize(("machine", "pair", "fcntl"), [("x86_64", 53, 72), ("aarch64", 199, 25)])
def test_no_pair_sends_to_names_and_no_lease_is_held(
    machine: str, pair: int, fcntl: int, *, namespaces: bool
) -> None:
    stream, datagram, packets, cloexec = 1, 2, 5, 0o2000000
    rules = Filter((AF_INET,), namespaces=namespaces)

    def answer(number: int, *args: int) -> int:
        return ask(number, *args, machine=machine, rules=rules)

    for kind in (stream, packets, stream | cloexec):
        assert answer(pair, AF_UNIX, kind) == ALLOW
    for family, kind in ((AF_UNIX, datagram), (AF_UNIX, datagram | cloexec), (AF_INET, stream)):
        assert answer(pair, family, kind) == REFUSED[errno.EPERM]
    for command in (1024, 1026, 1040):
        assert answer(fcntl, 3, command) == REFUSED[errno.EPERM]
    assert answer(fcntl, 3, 1) == ALLOW


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
    rules = Filter((), namespaces=False)
    assert ask(90, 0, 0o755, rules=rules) == ASK
    assert ask(452, 0, 0, 0o755, rules=rules) == ASK
    assert ask(90, 0, 0o4755, rules=rules) == REFUSED[errno.EPERM]
    assert ask(188, rules=rules) == REFUSED[errno.EOPNOTSUPP]


@pytest.mark.requirement("SEC-6")
def test_what_is_not_on_the_list_does_not_exist() -> None:
    create_module, lsm_set_self_attr, of_the_future = 174, 460, 600
    for rules in (Filter((AF_UNIX,)), Filter((), namespaces=False)):
        for number in (create_module, lsm_set_self_attr, of_the_future):
            assert ask(number, rules=rules) == REFUSED[errno.ENOSYS]
        assert ask(0, rules=rules) == ALLOW


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize(
    ("name", "number", "own", "other"),
    [
        ("prlimit64", 302, (0, 0), (1234, 0)),
        ("sched_setaffinity", 203, (0,), (1234,)),
        ("setpriority", 141, (0, 0), (0, 1234)),
        ("ioprio_set", 251, (1, 0), (1, 1234)),
        ("pidfd_open", 434, None, (1234,)),
        ("chown", 92, None, (0, 2**32 - 1, 2**32 - 1)),
        ("utimensat", 280, None, (0, 0)),
        ("inotify_add_watch", 254, None, (0, 0)),
    ],
)
def test_without_namespaces_the_supervisor_is_asked_whose_it_is(
    name: str, number: int, own: tuple[int, ...] | None, other: tuple[int, ...]
) -> None:
    rules = Filter((), namespaces=False)
    assert ask(number, *other, rules=rules) == ASK, name
    assert ask(number, *other) == ALLOW, name
    if own is not None:
        assert ask(number, *own, rules=rules) == ALLOW, name


@pytest.mark.requirement("SEC-6")
def test_priorities_of_a_whole_user_are_refused_everywhere() -> None:
    for rules in (Filter(()), Filter((), namespaces=False)):
        assert ask(141, 2, 0, rules=rules) == REFUSED[errno.EPERM]
        assert ask(251, 3, 0, rules=rules) == REFUSED[errno.EPERM]


@pytest.mark.requirement("SEC-6")
def test_signals_are_asked_about_where_the_kernel_does_not_hold_them() -> None:
    kill, tgkill, f_setown = 62, 234, 8
    old = Filter((), namespaces=False, signals_scoped=False)
    assert ask(kill, 1234, 9, rules=old) == ask(tgkill, 1, 1, 9, rules=old) == ASK
    assert ask(kill, 1234, 9, rules=Filter((), namespaces=False)) == ALLOW
    # A descriptor can be told to signal somebody, later and unasked.
    assert ask(72, 0, f_setown, 1234, rules=old) == REFUSED[errno.EPERM]


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize(("machine", "shmget"), [("x86_64", 29), ("aarch64", 194)])
def test_ipc_needs_a_namespace_of_its_own(machine: str, shmget: int) -> None:
    assert ask(shmget, machine=machine) == ALLOW
    shared = Filter((), namespaces=False)
    assert ask(shmget, machine=machine, rules=shared) == REFUSED[errno.EPERM]


@pytest.mark.requirement("TOOL-5")
def test_the_other_ways_to_call_the_kernel_are_shut() -> None:
    code = program("x86_64", Filter((AF_UNIX,)))
    i386, x32 = 0x40000003, 0x40000000
    assert verdict(code, arch=i386, number=26) == REFUSED[errno.ENOSYS]
    assert verdict(code, arch=AUDIT["x86_64"], number=x32 | 101) == REFUSED[errno.ENOSYS]
    assert supported("aarch64")
    assert not supported("sparc64")
    with pytest.raises(KeyError):
        program("sparc64", Filter(()))


@pytest.mark.requirement("TOOL-5")
@examples(37)
@given(
    machine=st.sampled_from(sorted(AUDIT)),
    number=st.integers(0, 600),
    args=st.lists(st.integers(0, 2**64 - 1), max_size=6),
    families=st.lists(st.integers(0, 45), max_size=4),
    broker=st.booleans(),
    scoped=st.booleans(),
)
def test_every_call_gets_a_verdict(
    machine: str, number: int, args: list[int], families: list[int], broker: bool, scoped: bool
) -> None:
    code = program(machine, Filter(tuple(families), namespaces=not broker, signals_scoped=scoped))
    found = verdict(code, arch=AUDIT[machine], number=number, args=tuple(args))
    assert found in {ALLOW, ASK, *REFUSED.values()}
    assert found != ASK or broker
