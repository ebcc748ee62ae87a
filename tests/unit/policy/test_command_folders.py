"""Where the parts of a command run: what its text says is held to what shells do (APR-9, POL-9)."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from runtime.policy.code_files import code_files
from runtime.policy.command_folders import Folders, command_folders, folders_begun, spellings
from runtime.policy.read_only_programs import not_read_only
from runtime.policy.shell_syntax import NotRead, simple_commands

pytestmark = pytest.mark.requirement("APR-9", "POL-9")
SHELLS = [name for name in ("bash", "dash") if shutil.which(name)]
TEXTS = (
    "pwd -P",
    "cd a && pwd -P",
    "cd a &&\npwd -P",
    "cd nope; pwd -P",
    "cd a\npwd -P",
    "cd a | true; pwd -P",
    "true | cd a; pwd -P",
    "cd a | true && pwd -P",
    "cd a && false || pwd -P",
    "cd nope || cd a && pwd -P",
    "cd nope && true; pwd -P",
    "cd nope; cd a; cd b; pwd -P",
    "cd l && pwd -P && cd .. && pwd -P",
    "cd l/../a && pwd -P",
    "cd l/../only && pwd -P",
    "cd -P l/.. && pwd -P",
    "cd -P l && cd ../only && pwd -P",
    "cd -- a && pwd -P",
    "cd a && cd - && pwd -P",
    "cd a; cd ../a; cd -; pwd -P",
    "cd '' && pwd -P",
    "cd a b && pwd -P",
    "cd && pwd -P",
    "cd [a] && pwd -P",
    "command cd a && pwd -P",
    "chdir a; pwd -P",
    "pushd a >/dev/null && pwd -P",
    "pushd a >/dev/null && popd >/dev/null && pwd -P",
    "eval 'cd a' && pwd -P",
    "command eval 'cd a' && pwd -P",
    "time cd a && pwd -P",
    "command export CDPATH=x; cd only && pwd -P",
    "cd a; command export OLDPWD=x; cd - && pwd -P",
    "cd /usr/../usr && pwd -P",
)


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a link `l` that leads two folders down, beside a folder `only`."""
    top = tmp_path_factory.mktemp("folders")
    for name in ("a/b", "b", "x/y", "x/only"):
        (top / name).mkdir(parents=True)
    (top / "l").symlink_to("x/y")
    return top


@pytest.mark.parametrize("shell", SHELLS)
def test_wherever_a_shell_goes_is_among_what_its_text_says(top: Path, shell: str) -> None:
    for text in TEXTS:
        ended = subprocess.run(
            [shell, "-c", text],
            cwd=top,
            env={"PATH": os.defpath, "HOME": "/"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
        )
        simple = simple_commands(text)
        found = zip(simple, command_folders(simple), strict=True)
        printing = [here for one, here in found if one.words[0].text == "pwd"]
        if not all(here.told for here in printing):
            continue
        told = {os.path.realpath(top / path) for here in printing for path in here.spellings}
        assert set(ended.stdout.split()) <= told, text


@pytest.mark.parametrize(
    ("text", "spellings"),
    [
        ("cd sub && make", ("sub",)),
        ("cd sub && cd deeper && make", ("sub/deeper",)),
        ("cd ./sub/ && make", ("sub",)),
        ("cd sub && ls | make", ("sub",)),
        ("ls; cd sub && make", ("sub",)),
        ("cd .. && make", ("..",)),
        ("cd a && cd ../b && make", ("b", "a/../b")),
    ],
)
def test_a_step_on_which_all_that_follows_depends_is_sure(
    text: str, spellings: tuple[str, ...]
) -> None:
    here = command_folders(simple_commands(text))[-1]
    assert here.sure
    assert here.spellings == spellings


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("cd nope; make", {"nope", "."}),
        ("cd sub\nmake", {"sub", "."}),
        ("cd sub | true; make", {"sub", "."}),
        ("cd sub | false || make", {"sub", "."}),
        ("cd sub && false || make", {"sub", "."}),
        ("cd a; cd b; make", {"a/b", "b", "a", "."}),
    ],
)
def test_a_step_that_may_have_failed_leaves_both_folders(text: str, places: set[str]) -> None:
    here = command_folders(simple_commands(text))[-1]
    assert not here.sure
    assert set(here.spellings) == places


@pytest.mark.parametrize(
    "text",
    ["cd && git log", "cd s* && git log", "cd - && git log", "cd a b && git log",
     "pushd && git log", "popd; git log", "eval 'cd x'; git log", "command eval 'cd x' && git log",
     "builtin popd; git log", "time eval 'cd x'; git log", 'cd "$X" && git log',
     "for d in *; do git -C $d log; done", "git -C s* log", "(cd; git log)",
     "GIT_DIR=$X git log", "sh -c 'cd $X && git log'", "cd `x`; git log",
     "CDPATH=.git; cd deep && git log", "OLDPWD=.git/deep; cd - && git log",
     "command export CDPATH=.git; cd deep && git log",
     "for x in 1 2 3; do cd d; done; git diff", "while true; do cd d; done; git diff",
     "f() { cd d; }; f; f; git diff", "x='cd d'; $x; $x; git diff", "eval 'cd d'; git diff $(x)",
     "; ".join(f"cd {n}" for n in range(9)) + "; git log"],
)  # fmt: skip
def test_a_step_that_leads_nobody_knows_where_is_said_to(text: str) -> None:
    assert folders_begun(text).told is False


def test_a_step_that_leads_nobody_knows_where_leaves_the_folders_before() -> None:
    here = command_folders(simple_commands("cd a && cd && git log"))[-1]
    assert (here.spellings, here.told) == (("a",), False)
    assert folders_begun("(cd)").spellings == (".",)
    assert set(folders_begun("(GIT_DIR=a=b git log)").spellings) == {".", "a=b"}


@pytest.mark.parametrize(
    ("text", "places", "told"),
    [
        ("cd -- a && x", ("a",), True),
        ("cd -P a && x", ("a",), True),
        ("cd -L a && x", ("a",), True),
        ("cd -e a && x", ("a",), True),
        ("chdir a && x", ("a",), True),
        ("pushd a && x", ("a",), True),
        ("pushd +1 && x", (".",), False),
        ("cd +1 && x", ("+1",), True),
        ("cd -x && x", (".",), False),
        ("cd a b && x", (".",), False),
        ("cd && x", (".",), False),
        ("cd '' && x", (".",), False),
        ("cd - && x", (".",), False),
        ("cd a && cd - && x", ("a", "."), True),
        ("command cd a && x", ("a", "."), True),
        ("builtin cd a && x", ("a", "."), True),
        ("time cd a && x", ("a", "."), True),
        ("command ls && x", (".",), True),
        ("popd && x", (".",), False),
        ("cd '~' && x", (".",), False),
        ("cd a && command popd && x", ("a", "."), False),
        ("cd a || x", (".",), True),
        ("cd a && x || x", (".", "a"), True),
        ("cd a && cd b && cd c && popd && x", ("a/b/c", ".", "a", "a/b"), False),
        ("cd /a && cd /b && cd - && x", ("/b", ".", "/a"), True),
        ("cd a && popd && x", ("a", "."), False),
        ("eval x && x", (".",), False),
        ("cd a | x", (".",), True),
        ("x | cd a && x", (".", "a"), True),
        ("cd a | cd b; x", (".", "a", "b"), True),
        ("cd a | cd b || x", (".", "a", "b"), True),
        ("cd a || cd b && x", ("a", "b"), True),
        ("cd a && cd b || x", (".", "a"), True),
        ("cd a && x || cd b; x", ("a", "b", "a/b", "."), True),
        ("cd a && cd b; x", ("a/b", ".", "a"), True),
        ("cd a; cd b; cd c; x", ("a/b/c", "b/c", "a/c", "c", "a/b", "b", "a", "."), True),
        ("ls CDPATH; x", (".",), False),
        ("cd a* && x", (".",), False),
        ("cd /a && cd /b && x", ("/b",), True),
    ],
)
def test_each_way_to_a_folder_is_followed(text: str, places: tuple[str, ...], told: bool) -> None:
    here = command_folders(simple_commands(text))[-1]
    assert (here.spellings, here.told) == (places, told)


def test_of_many_places_the_first_are_kept_and_the_others_are_not_told() -> None:
    some = Folders(tuple((f"a{number}",) for number in range(11)))
    whole = some | Folders((("b",),))
    assert (len(whole.places), whole.told) == (12, True)
    more = some | Folders((("b", "c"),))
    assert (more.places, more.told) == (some.places, False)
    assert (some | some) == some
    assert (some | Folders((("b",),), told=False)).told is False
    assert (some.lost() | Folders((("b",),))).told is False


@pytest.mark.parametrize(
    ("target", "places"),
    [("a" * 512, 1), ("a" * 513, 0), ("a/" * 32 + "b", 1), ("a/" * 33 + "b", 0)],
)
def test_a_place_of_so_many_letters_or_steps_is_kept(target: str, places: int) -> None:
    found = Folders().entered(target)
    assert (len(found.places), found.told) == (places, places == 1)
    both = Folders((("x",), (target,))) | Folders((("y",),))
    assert (len(both.places), both.told) == (2 + places, places == 1)


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        ("", (".",)),
        ("/", ("/",)),
        ("//a/./b/", ("/a/b",)),
        ("./a//b", ("a/b",)),
        ("l/../p", ("l/../p", "p")),
        ("../p", ("../p",)),
    ],
)
def test_a_path_has_the_spellings_of_the_kernel_and_of_programs(
    path: str, spelled: tuple[str, ...]
) -> None:
    assert spellings(path) == spelled
    assert Folders().entered(path).spellings == tuple(reversed(spelled))
    assert Folders((("/r",),)).entered("../s").spellings == ("/s", "/r/../s")


def test_one_place_is_sure_where_it_is_told() -> None:
    one = Folders((("a", "b"),))
    assert (one.sure, one.lost().sure, (one | Folders()).sure) == (True, False, False)


def test_so_many_words_of_a_text_that_is_not_read_are_looked_at() -> None:
    assert folders_begun("(cd a; git log" + " x" * 60 + ")").told is True
    assert folders_begun("(cd a; git log" + " x" * 61 + ")").told is False


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("git -C a -C b log", {".", "a", "a/b"}),
        ("git --git-dir x/.git log", {".", "x/.git"}),
        ("cd a; git log", {"a", "."}),
        ("cd a && sh -c 'cd b && git log'", {"a", "a/b"}),
        ("env GIT_DIR=x git log", {".", "x"}),
        ("(cd a && cd b && git log)", {".", "a", "b", "a/b"}),
        ("X=1 git -C a log", {".", "a"}),
        ("make -C a", {".", "a"}),
        ("cd a && ls -C 3", set()),
        ("make -C a; cd b && make", {".", "a", "b"}),
        ("env --chdir=a git -C b log", {".", "a", "b"}),
        ("sh -Cc 'cd b && git log'", {".", "b"}),
        ("make -C", {"."}),
    ],
)
def test_every_folder_in_which_git_may_run_is_named(text: str, places: set[str]) -> None:
    found = folders_begun(text)
    assert set(found.spellings) == places
    assert found.told


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize(
    "text",
    [
        "cd a || >/dev/null\nmake -s",
        "cd a && < x || make -s",
        "cd a && >/dev/null | make",
        "cd nope && >/dev/null\nmake -s",
        "cd nope || < Makefile && make -s",
        "cd a || 2>&1\ngit status --short",
        ">/dev/null",
        "< x; sh run.sh",
        "ls; >/dev/null && make",
    ],
)
def test_a_redirection_without_a_command_is_not_read(text: str) -> None:
    """It ends like a command, so whether what follows runs, and where, depends on it."""
    with pytest.raises(NotRead, match="a redirection without a command"):
        simple_commands(text)
    assert not code_files(text).known
    assert not_read_only(text) is not None


def test_a_line_break_behind_a_joint_says_nothing() -> None:
    here = command_folders(simple_commands("cd sub &&\nmake >/dev/null 2>&1"))[-1]
    assert (here.sure, here.spellings) == (True, ("sub",))
