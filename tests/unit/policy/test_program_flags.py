"""Arguments by a list of harmless flags: what is taken, and what is refused in which words."""

import pytest

from runtime.policy.program_flags import Given, Program
from runtime.policy.shell_syntax import SimpleCommand, simple_commands

pytestmark = pytest.mark.requirement("TOOL-7")

seen: list[Given] = []
PROGRAM = Program(
    "ab",
    valued="k",
    attached="I",
    words=frozenset({"--all", "--color"}),
    valued_words=frozenset({"--key"}),
    check=lambda given: seen.append(given),
)
SAFE = Program("a", valued="k", safe=True, number=True, check=lambda given: seen.append(given))


def arguments(text: str) -> SimpleCommand:
    (only,) = simple_commands(f"x {text}")
    return only


def given(program: Program, text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The flags and the operands as the last look gets them."""
    seen.clear()
    assert program.refuses(arguments(text).words[1:]) is None
    (one,) = seen
    return list(one.flags), [word.text for word in one.operands]


@pytest.mark.parametrize(
    ("text", "flags", "operands"),
    [
        ("-ab f", [("-a", ""), ("-b", "")], ["f"]),
        ("-ak1 f", [("-a", ""), ("-k", "1")], ["f"]),
        ("-k 1 f", [("-k", "1")], ["f"]),
        ("-aIx f", [("-a", ""), ("-I", "x")], ["f"]),
        ("-I f", [("-I", "")], ["f"]),
        ("--all --key 1 f", [("--all", ""), ("--key", "1")], ["f"]),
        ("--key=1 --color=x", [("--key", "1"), ("--color", "x")], []),
        ("f -a -- g", [("-a", "")], ["f", "g"]),
        ("- f", [], ["-", "f"]),
        ("-- - f*", [], ["-", "f*"]),
    ],
)
def test_arguments_are_read_as_the_program_reads_them(
    text: str, flags: list[tuple[str, str]], operands: list[str]
) -> None:
    assert given(PROGRAM, text) == (flags, operands)


def test_a_number_is_a_flag_where_the_program_takes_one() -> None:
    assert given(SAFE, "-5 -a f") == ([("-5", ""), ("-a", "")], ["f"])
    assert given(SAFE, "-a -- -5 -x * -*") == ([("-a", "")], ["-5", "-x", "*", "-*"])
    assert given(SAFE, "-k -x f") == ([("-k", "-x")], ["f"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-c", "-c"),
        ("-ac", "-c"),
        ("-5", "-5"),
        ("--none=1", "--none"),
        ("--al", "--al"),
        ("* f", "* could match a file that is named like a flag"),
        ("-*", "-* could match a file that is named like a flag"),
        ("-- -x", "-x behind --"),
        ("-- --all", "--all behind --"),
        ("-k", "-k without a plain value"),
        ("-k -a", "-k without a plain value"),
        ("-k f*", "-k without a plain value"),
        ("--key", "--key without a plain value"),
        ("--key --all", "--key without a plain value"),
    ],
)
def test_what_is_refused_is_named(text: str, why: str) -> None:
    assert PROGRAM.refuses(arguments(text).words[1:]) == why


@pytest.mark.parametrize(
    ("most", "text", "why"),
    [
        (0, "f", "any operand"),
        (0, "f*", "any operand"),
        (1, "f g", "more than 1 operands"),
        (1, "f*", "more than 1 operands"),
        (2, "f g", None),
        (1, "f", None),
        (0, "", None),
    ],
)
def test_more_operands_than_it_takes_are_refused(most: int, text: str, why: str | None) -> None:
    assert Program(operands=most).refuses(arguments(text).words[1:]) == why
