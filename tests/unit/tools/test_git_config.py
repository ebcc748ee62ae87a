"""Git's configuration files, read as git itself reads them (POL-9)."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runtime.tools.git_config import BadConfig, entries

pytestmark = [
    pytest.mark.requirement("POL-9"),
    pytest.mark.skipif(
        shutil.which("git") is None, reason="git is not installed (apt install git)"
    ),
]
PIECES = (
    *("[core]", '[filter "x"]', "[filter.OLD]", '[a "q\\"\\\\"]', "[ core]", "[core ", "]", "["),
    *(
        "\n",
        "\r\n",
        "\t",
        " ",
        "\\\n",
        "\\",
        "\\n",
        "\\x",
        '"',
        "=",
        " = ",
        "#",
        ";",
        "//",
        "-",
        ".",
    ),
    *("fsmonitor", "Clean", "path", "1x", "é", "value with  blanks", "a=b", "\ufeff", "\v"),
)


def by_git(path: Path) -> list[tuple[str, str | None]] | None:
    """Every variable as git says it; None where git refuses the file."""
    done = subprocess.run(
        ["git", "config", "--file", str(path), "--no-includes", "--list", "--null"],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        return None
    found = []
    for line in done.stdout.decode().split("\0")[:-1]:
        key, broken, value = line.partition("\n")
        found.append((key, value if broken else None))
    return found


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=14))
@example(pieces=["[core]", "fsmonitor", " = ", "a=b", " ", "#", '"', "\n"])
@example(pieces=["[core]", "fsmonitor", "\\\n", "=", '"', "#", "\\n", '"', "  ", "1x", "\r\n"])
@example(pieces=['[filter "x"]', "Clean", "=", "a=b", "\\\n", "1x"])
def test_what_is_read_is_what_git_reads(tmp_path: Path, pieces: list[str]) -> None:
    path = tmp_path / "config"
    path.write_bytes("".join(pieces).encode())
    expected = by_git(path)
    try:
        found = [(entry.key, entry.value) for entry in entries(path.read_bytes())]
    except BadConfig:
        # Stricter than git is safe: then git does not start.
        return
    # Where git refuses the file it starts nothing.
    assert expected is None or found == expected


def test_plain_files_are_read_and_broken_ones_are_refused() -> None:
    text = b'[core]\n\tbare = false ; no\n[remote "o.x"]\n\turl = "a b"\\\n c\n\tprune\n'
    found = [(entry.key, entry.value) for entry in entries(text)]
    assert found == [
        ("core.bare", "false"),
        ("remote.o.x.url", "a b c"),
        ("remote.o.x.prune", None),
    ]
    for broken in (b"name = 1", b"[core", b"[core]\n= 1", b"[core]\nx = \xff", b'[a]\nx = "1\n'):
        with pytest.raises(BadConfig):
            entries(broken)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('a "b  c" d', "a b  c d"),
        ('a"b"c', "abc"),
        ('"a"  "b"', "a  b"),
        ("a\\tb", "a\tb"),
        ('a\\\\b\\"c', 'a\\b"c'),
        ('"x#y" # z', "x#y"),
        ("a ; b", "a"),
        ('"a \\\n b"', "a  b"),
        ('""', ""),
        ('"a" ', "a"),
        ("\\n\\n", "\n\n"),
        ('  "x"', "x"),
        ('a "" b', "a  b"),
    ],
)
def test_quotes_and_escapes_are_read_as_git_reads_them(text: str, value: str) -> None:
    read = entries(f"[core]\n\tx = {text}\n\ty = 2\n".encode())
    assert [(one.section, one.name, one.value) for one in read] == [
        ("core", "x", value),
        ("core", "y", "2"),
    ]


@pytest.mark.parametrize(
    ("text", "line"), [('"', 2), ("a\\q", 2), ('"a', 2), ('"a"\tb', 2), ("a\n\tb c", 3)]
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, line: int) -> None:
    with pytest.raises(BadConfig, match=f"^line {line} cannot be read$"):
        entries(f"[core]\n\tx = {text}\n\ty = 2\n".encode())
