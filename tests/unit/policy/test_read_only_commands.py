"""Which commands only read: by the grammar, by the list of programs, by what they do (TOOL-7)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

from runtime.policy.read_only_programs import not_read_only
from runtime.policy.shell_syntax import LONGEST, MOST, NotRead, simple_commands
from tests.unit.policy.shell_cases import CHANGING, READING, dressed, scraps

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="bash is not installed (apt install bash)")


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/a/b/ f",
        "find . -delete",
        "xargs rm",
        "env rm f",
        '"rm" f',
        "\\rm f",
        'echo "$(rm f)"',
        "sh -c ls",
        "curl -o f http://example.org",
        "git -C . commit",
        "FOO=1 rm f",
        "ls | sh",
        "ls; rm f",
    ],
)
def test_what_the_contract_refuses_is_refused(command: str) -> None:
    assert not_read_only(command) is not None


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize("command", ['grep "a|b" f', "ls 2>/dev/null", "git log --oneline | head"])
def test_what_the_contract_lets_through_passes(command: str) -> None:
    assert not_read_only(command) is None


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize("command", CHANGING)
def test_doubt_means_no_and_says_why(command: str) -> None:
    assert not_read_only(command)


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize("command", READING)
def test_everyday_reading_passes(command: str) -> None:
    assert not_read_only(command) is None


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("rm f", "rm is not among the programs that only read"),
        ("l* f", "l* is no name of a program"),
        ("printf *", "printf with a pattern as its format, or none"),
        ("printf %n a", "printf with a conversion that is not plain"),
        ("printf -v a b", "printf with -v"),
        ("sed -n * f", "sed with * could match a file that is named like a flag"),
        ("sed -n 1* f", "sed with a pattern in the script's place"),
        ("sed -n", "sed with no script"),
        ("sed -n 1w f", "sed with the script 1w, which may do more than print"),
        ("jq --rawfile a", "jq with --rawfile without two plain values"),
        ("cd a b", "cd with anything but the name of one folder"),
        ("command ls", "command with running a program"),
        ("date 01010101", "date with the operand 01010101, which sets the clock"),
        ("find . -size", "find with -size without a plain value; quote it"),
        ("find -d* .", "find with -d* could match a file that is named like an action"),
        (
            "git log '--format=%G?'",
            "git with log and a format with %G, which starts another program",
        ),
        ("git", "git with no subcommand"),
        ("git -C s* log", "git with -C without the name of one folder"),
        ("git -C '' log", "git with -C without the name of one folder"),
        ("git worktree", "git with worktree and anything but list"),
        ("git worktree add x", "git with worktree and anything but list"),
        ("git stash drop", "git with stash and anything but list and show"),
        ("git reflog expire --all", "git with reflog and anything but show"),
        ("git reflog show --output=new", "git with reflog and --output"),
        ("git config a.b c", "git with config and anything but --get and --list"),
    ],
)
def test_the_refusal_names_what_was_in_the_way(command: str, why: str) -> None:
    assert not_read_only(command) == why


@pytest.mark.requirement("TOOL-7", "POL-9")
@pytest.mark.parametrize(
    "command", ["cd -P sub && git log", "cd -L sub", "cd s* && git diff", "cd", "cd a b", "cd ''"]
)
def test_a_step_that_hides_where_git_runs_is_refused(command: str) -> None:
    assert "cd with" in str(not_read_only(command))


@pytest.mark.requirement("TOOL-7")
@given(dressed())
def test_no_dress_hides_a_command_that_changes_something(command: str) -> None:
    assert not_read_only(command) is not None


@pytest.mark.requirement("TOOL-7")
def test_words_are_what_the_program_gets() -> None:
    (only,) = simple_commands(
        """git log 'a b'c"d\\"e\\f" g\\ h \\* "*" i*j[k] HEAD~1 a#b --x="y z" """
    )
    assert [word.text for word in only.words] == [
        *("git", "log", 'a bcd"e\\f', "g h", "*", "*", "i*j[k]", "HEAD~1", "a#b", "--x=y z")
    ]
    assert [word.known for word in only.words if word.pattern] == ["i"]


@pytest.mark.requirement("TOOL-7")
def test_commands_know_what_joins_them_and_which_files_they_read() -> None:
    found = simple_commands("cat < f 2>/dev/null && wc -l <'g h' |\n sort; ls\nls || pwd < f <k")
    assert [(one.words[0].text, one.joint, one.inputs) for one in found] == [
        ("cat", ";", ("f",)),
        ("wc", "&&", ("g h",)),
        ("sort", "|", ()),
        ("ls", ";", ()),
        ("ls", ";", ()),
        ("pwd", "||", ("f", "k")),
    ]


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("cat < /dev/tcp/x/1", "^reading '/dev/tcp/x/1' by < is not read$"),
        ("cat < f*", r"^reading 'f\*' by < is not read$"),
        ("cat < | wc", "^the name of a file is missing behind <$"),
        ("ls; >/dev/null", "^a redirection without a command is not read$"),
        ('echo "a$(b)"', "is not read$"),
        (" # no", "^there is no command in it$"),
        ("FOO=1 ls", "variable_assignment"),
        ("! ls", "negated_command"),
        ("[ f ]", "test_command"),
        ("ls >/dev/null x", "more than one way"),
    ],
)
def test_what_the_grammar_knows_otherwise_is_not_read(command: str, why: str) -> None:
    with pytest.raises(NotRead, match=why):
        simple_commands(command)


@pytest.mark.requirement("TOOL-7")
def test_what_is_longer_than_anybody_reads_is_not_read() -> None:
    padded = "ls " + "a" * (LONGEST - 3)
    assert not_read_only(padded) is None
    with pytest.raises(NotRead, match="characters are not read"):
        simple_commands(padded + "a")


@pytest.mark.requirement("TOOL-7")
def test_no_text_of_the_longest_kind_takes_long_to_refuse() -> None:
    # Each of these takes a backtracking reader a time that doubles with every character.
    for text in (
        "a" * 4000 + "$",
        "'a'" * 1300 + "$",
        '"a\\\\"' * 700 + "`",
        "ls " + "a\\ " * 1300 + "(",
    ):
        assert not_read_only(text) is not None


@pytest.mark.requirement("TOOL-7")
def test_more_commands_than_anybody_reads_are_not_read() -> None:
    assert not_read_only("; ".join(["ls"] * MOST)) is None
    assert not_read_only("; ".join(["ls"] * (MOST + 1))) is not None


@pytest.mark.requirement("TOOL-7")
def test_a_gateway_without_such_a_mode_does_not_load_the_grammar() -> None:
    judged = "from runtime.policy.decide import not_read_only; not_read_only('ls')"
    for code, loaded in (("import runtime.policy.decide", "0"), (judged, "1")):
        whole = f"import sys; {code}; print(int('tree_sitter' in sys.modules))"
        ended = subprocess.run(
            [sys.executable, "-c", whole], capture_output=True, check=True, text=True
        )
        assert ended.stdout == f"{loaded}\n", ended.stderr


@needs_bash
@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize("command", READING)
def test_what_is_called_reading_leaves_a_folder_as_it_was(tmp_path: Path, command: str) -> None:
    folder = _folder(tmp_path)
    before = _seen(folder)
    _bash(command, folder)
    assert _seen(folder) == before


@needs_bash
@pytest.mark.requirement("TOOL-7")
def test_scraps_that_are_called_reading_leave_a_folder_as_it_was(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    before = _seen(folder)
    ran: set[str] = set()

    @settings(max_examples=300, derandomize=True, database=None, deadline=None)
    @given(scraps())
    def try_one(command: str) -> None:
        if command in ran or not_read_only(command) is not None:
            return
        ran.add(command)
        _bash(command, folder)
        assert _seen(folder) == before

    try_one()
    assert len(ran) >= 25, "the scraps reach the shell"


def _folder(tmp_path: Path) -> Path:
    """A folder with something to lose, and with files that are named like flags."""
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    for name in ("f", "g", "a", "x.txt", "sub/h", "-o", "-delete", "-n", "-i"):
        (folder / name).write_text(f"{name},1\nb,2\n")
    return folder


def _seen(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file with its mode, its time and what is in it."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        facts = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (facts.st_mode, facts.st_mtime_ns, content)
    return found


def _bash(command: str, folder: Path) -> None:
    subprocess.run(
        [str(BASH), "-c", command],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
