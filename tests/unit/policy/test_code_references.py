"""How what parts of a command name becomes one value, and how much of it is looked at (APR-9)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from runtime.policy.code_files import code_files
from runtime.policy.code_references import MOST_NAMED, CodeFiles, run_in, together
from runtime.policy.command_folders import Folders

pytestmark = pytest.mark.requirement("APR-9", "POL-9")
LONG = "a/" * 33 + "b"
HERE = Folders()
IN_A = HERE.entered("a")
WHOLE = CodeFiles(("p",), folders=("f",), upward=((".", "u"),))


def many(amount: int, letter: str = "p") -> tuple[str, ...]:
    return tuple(f"{letter}{number}" for number in range(amount))


@pytest.mark.parametrize(
    "code",
    [
        replace(WHOLE, paths=("p", LONG)),
        replace(WHOLE, folders=("f", LONG)),
        replace(WHOLE, upward=((".", "u"), (LONG, "u"))),
        replace(WHOLE, scripts=("p", LONG)),
        replace(WHOLE, same=(("p", LONG),)),
    ],
)
def test_what_is_too_long_to_look_at_is_left_out_and_said_to_be(code: CodeFiles) -> None:
    assert run_in(HERE, code) == replace(WHOLE, known=False, read=False)


def test_so_many_are_looked_at_and_of_more_the_first_of_each_kind() -> None:
    fits = CodeFiles(many(509), folders=("f",), upward=((".", "u"),))
    assert fits.amount == MOST_NAMED - 1
    spelled = replace(fits, paths=many(508), same=(("a", "b"),))
    assert spelled.amount == MOST_NAMED
    for code in (fits, spelled):
        assert run_in(HERE, code) == together([code]) == code
    upward = tuple((".", name) for name in many(200, "u"))
    more = CodeFiles(many(300), scripts=("p0",), folders=many(200, "f"), upward=upward)
    cut = CodeFiles(many(256), known=False, folders=many(128, "f"), read=False, upward=upward[:128])
    assert run_in(HERE, more) == together([more]) == cut


def test_several_are_known_where_each_is_and_name_what_any_does() -> None:
    one = CodeFiles(("a", "b"), scripts=("a",), folders=("f",), same=(("x", "y"),))
    two = CodeFiles(("b", "c"), scripts=("c",), upward=((".", "u"),), same=(("z", "y"),))
    both = CodeFiles(
        ("a", "b", "c"),
        scripts=("a", "c"),
        folders=("f",),
        upward=((".", "u"),),
        same=(("x", "y"), ("z", "y")),
    )
    assert together([one, two]) == both
    assert together([one, replace(two, known=False)]) == replace(both, known=False)
    assert together([replace(one, known=False), two]) == replace(both, known=False)
    assert together([one, replace(two, read=False)]) == replace(both, read=False)
    assert together([replace(one, read=False), two]) == replace(both, read=False)
    assert together([]) == CodeFiles()


@pytest.mark.parametrize(
    "more",
    [
        CodeFiles(many(MOST_NAMED + 1)),
        CodeFiles(many(256), folders=many(257)),
        CodeFiles(many(256), upward=tuple((".", name) for name in many(257))),
        CodeFiles(many(256), same=(many(257),)),
    ],
)
def test_behind_too_much_nothing_more_is_counted(more: CodeFiles) -> None:
    def endless() -> Iterator[CodeFiles]:
        yield more
        pytest.fail("the first was too much already")

    cut = together(endless())
    assert (cut.known, cut.read, cut.same, cut.paths) == (False, False, (), many(256))


def test_what_is_named_is_where_the_program_runs() -> None:
    code = CodeFiles(
        ("p", "/q"),
        scripts=("p",),
        folders=("f",),
        upward=((".", "u"), ("w", "v")),
        same=(("x", "y"),),
    )
    assert run_in(IN_A, code) == CodeFiles(
        ("a/p", "/q"),
        scripts=("a/p",),
        folders=("a/f",),
        upward=(("a", "u"), ("a/w", "v")),
        same=(("a/x", "a/y"),),
    )
    either = run_in(HERE | IN_A, WHOLE)
    assert either == CodeFiles(
        ("p", "a/p"), known=False, folders=("f", "a/f"), upward=((".", "u"), ("a", "u"))
    )
    assert run_in(IN_A.lost(), WHOLE).known is False
    nothing = CodeFiles(scripts=("p",))
    assert run_in(HERE | IN_A, nothing) == nothing


def test_folders_are_left_out_where_each_would_name_too_much() -> None:
    code = CodeFiles(many(300), scripts=("p0",), same=(("x", "y"),))
    assert run_in(HERE | IN_A, code) == CodeFiles(many(300), known=False, read=False)
    twice = HERE.entered("l/..")
    assert twice.sure
    assert run_in(twice, code) == CodeFiles(many(300), known=False, read=False)
    half = CodeFiles(many(256))
    assert run_in(HERE | IN_A, half).read is True


def test_spellings_of_one_path_are_kept_together() -> None:
    assert run_in(HERE, CodeFiles(("l/../p", "q"))).same == (("l/../p", "p"),)
    there = HERE.entered("l/..")
    found = run_in(there, CodeFiles(("p",)))
    assert set(found.paths) == {"p", "l/../p"}
    assert [set(place) for place in found.same] == [{"p", "l/../p"}, {".", "l/.."}]


@pytest.mark.parametrize("top", ["/proc/x", "/dev/x", "/tmp/x", "/var/tmp/x"])
def test_below_these_a_path_is_another_file_for_each_process(top: str) -> None:
    assert run_in(HERE, CodeFiles((top,))) == CodeFiles((top,), known=False)
    assert run_in(HERE, CodeFiles((f"a{top}",))).known


def test_one_is_within_another_that_names_all_of_it() -> None:
    assert WHOLE.within(WHOLE)
    assert CodeFiles().within(WHOLE)
    for less in (
        replace(WHOLE, paths=()),
        replace(WHOLE, folders=()),
        replace(WHOLE, upward=()),
    ):
        assert less.within(WHOLE)
        assert not WHOLE.within(less)
    assert not replace(WHOLE, read=False).within(WHOLE)
    assert [code.names for code in (WHOLE, CodeFiles(scripts=("p",)))] == [True, False]
    for kind in ({"paths": ("p",)}, {"folders": ("p",)}, {"upward": ((".", "p"),)}):
        assert CodeFiles(**kind).names


@pytest.mark.parametrize(
    ("fits", "more"), [("a" * 512, "a"), ("a/" * 32 + "b", "/c"), ("../" * 31 + "a/b", "/c")]
)
def test_a_path_of_so_many_letters_or_steps_is_looked_at(fits: str, more: str) -> None:
    found = code_files(f"sh {fits}")
    assert (found.read, fits in found.paths) == (True, True)
    longer = code_files(f"sh {fits}{more}")
    assert (longer.known, longer.read, longer.paths) == (False, False, ())


def test_so_many_words_of_a_program_that_starts_another_are_read() -> None:
    assert code_files("xargs" + " x" * 64).read is True
    assert code_files("nice -n" + " x" * 63).read is True


MULTIPLYING = [
    "&&".join(["cd aaaaaaaaaaaaaaaaaaaaaa/../b && make"] * 25),
    ";".join(f"cd a{n}" for n in range(49)) + ";make",
    "cd a;cd b;cd c;cd d;cd e/..;pytest " + " ".join(f"a/b/c/d/e/f/../g{n}" for n in range(200)),
    "cd a;cd b;cd c/..;pytest " + "a/" * 1900,
    "$(x) cd a;cd b;cd c/..;" + "pytest " * 30 + " ".join(["a/" * 50] * 30),
    "nice -x " + "pytest a/b/c/d/e/f/g/h/i/j " * 90 + "a/" * 600,
]
NESTED = [
    *("time " * 800 + "make", "uv run " * 500 + "make", "nice -n 5 " * 400 + "make"),
    *("xargs '" + "time " * 800 + "make'", "git bisect run npx make", "python -m " + "a." * 33),
    *("xargs" + " x" * 65, "nice -n" + " x" * 64),
]


@pytest.mark.parametrize("command", MULTIPLYING)
def test_a_command_that_names_too_many_files_counts_as_one_that_is_not_read(command: str) -> None:
    found = code_files(command)
    assert 0 < found.amount <= MOST_NAMED
    assert found.known is False
    assert found.read is False
    assert not found.within(found)


@pytest.mark.parametrize("command", NESTED)
def test_behind_so_many_programs_that_start_others_nobody_looks(command: str) -> None:
    found = code_files(command)
    assert found.known is False
    assert found.read is False
