"""Finding files and what is in them."""

import os
import re
from pathlib import Path

import pytest

from runtime.domain.errors import ToolError
from runtime.tools.builtin.grep import Grep
from runtime.tools.patterns import Glob
from runtime.tools.tree import Tree
from tests.unit.tools.support import Desk, StillClock


def plant(desk: Desk, **files: str) -> None:
    for name, content in files.items():
        path = desk.folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*.py", ["a.py"], ["a.pyc", "d/a.py", ".py/x"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["a.txt"]),
        ("d/**", ["d/a", "d/e/f"], ["e/d/a"]),
        ("d/**/f", ["d/f", "d/e/g/f"], ["f", "d/ef"]),
        ("*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.t", "a.tsxx"]),
        ("[a-c]?.md", ["b1.md"], ["d1.md", "b.md", "b/.md"]),
        ("[!a]*", ["b"], ["a", "a/b"]),
        ("a.b", ["a.b"], ["axb"]),
        ("a{b", ["a{b"], ["ab"]),
        ("[", ["["], ["a"]),
        ("./x", ["x"], ["y"]),
        ("[a&&b]", ["&"], ["c"]),
        ("[\\d]", ["d", "\\"], ["1"]),
        ("{a}b,c", ["ab,c"], ["c", "ab"]),
        ("{a,{b,c}}d", ["ad", "bd", "cd"], ["d", "abd"]),
        ("[]a]b", ["]b", "ab"], ["b"]),
        ("a[bc", ["a[bc"], ["ab"]),
        ("x[a][b]", ["xab"], ["xa", "xa][b"]),
        ("[X]b", ["Xb"], ["ab"]),
        ("[^X]b", ["ab"], ["Xb"]),
        ("[a]b", ["ab"], ["Xb"]),
    ],
)
def test_glob_patterns(pattern: str, matching: list[str], others: list[str]) -> None:
    glob = Glob(pattern)
    assert [path for path in matching if not glob.matches(path)] == []
    assert [path for path in others if glob.matches(path)] == []


def test_a_pattern_that_takes_too_long_is_an_error() -> None:
    with pytest.raises(ToolError, match="takes too long"):
        Glob("{a,aa}" * 40 + "{b,c}").matches("a" * 60)
    with pytest.raises(ToolError, match="the glob pattern is not right: bad character range"):
        Glob("[z-a]")
    for pattern in ("", "/etc/*", "../*", "x" * 400):
        with pytest.raises(ToolError):
            Glob(pattern)


async def test_glob_gives_paths_that_other_tools_take(desk: Desk) -> None:
    plant(desk, src__a_DOT_py="1", src__deep__b_DOT_py="2", _DOT_git__c_DOT_py="3", d_DOT_txt="4")
    (desk.folder / "src" / "out").symlink_to("/etc")
    found = (await desk.run("glob", pattern="**/*.py", path="src")).content
    assert found == "src/a.py\nsrc/deep/b.py"
    assert (await desk.run("read_file", path=found.splitlines()[1])).content == "2"
    assert (await desk.run("glob", pattern="**/*.py")).content == found
    assert (await desk.run("glob", pattern=".git/*")).content == ".git/c.py"
    assert (await desk.run("glob", pattern="*.rs")).content == "[no file matches]"


async def test_lists_are_capped_and_say_so(desk: Desk) -> None:
    for n in range(510):
        (desk.folder / f"{n:03d}").touch()
    assert (await desk.run("list_dir")).content.splitlines()[-1] == "[10 more; use glob]"
    lines = (await desk.run("glob", pattern="*")).content.splitlines()
    assert (len(lines), lines[-1]) == (501, "[more than 500; narrow the pattern]")


async def test_a_listing_shows_kinds_and_sizes_on_one_line_each(desk: Desk) -> None:
    plant(desk, b="12345", sub__c="")
    (desk.folder / "link").symlink_to("b")
    (desk.folder / "two\nlines").touch()
    listed = (await desk.run("list_dir", path=".")).content
    assert listed.splitlines() == ["b  5", "link -> b", "sub/", "two\\u{a}lines  0"]
    with pytest.raises(ToolError, match="is not a directory"):
        await desk.run("list_dir", path="b")
    with pytest.raises(ToolError, match="does not exist"):
        await desk.run("list_dir", path="none")


async def test_paths_of_a_kind_stay_in_their_folder(desk: Desk) -> None:
    base = desk.folder
    for kind, folder in (
        ("workspace", ""),
        ("memory", "memory"),
        ("skills", "skills"),
        ("outputs", ".gatehouse/outputs/ses_1"),
    ):
        found = (await desk.run("resolve_path", kind=kind, filename="a/b.md")).content
        assert found == str((base if kind == "workspace" else base.parent) / folder / "a/b.md")
    for filename in ("../x", "/etc/passwd", "a/../../x"):
        with pytest.raises(ToolError, match="outside of"):
            await desk.run("resolve_path", kind="memory", filename=filename)


async def test_grep_gives_lines_with_context(desk: Desk) -> None:
    plant(desk, a="one\ntwo\nthree\ntwo two\nfive\n", sub__b="Two\n", _DOT_git__c="two\n")
    (desk.folder / "binary").write_bytes(b"two\0")
    (desk.folder / "link").symlink_to("a")
    assert (await desk.run("grep", pattern="two")).content == "a:2:two\na:4:two two"
    found = (await desk.run("grep", pattern="^two$", ignore_case=True)).content
    assert found == "a:2:two\nsub/b:1:Two"
    found = (await desk.run("grep", pattern="two", path="a", context=1)).content
    assert found.splitlines() == ["a-1-one", "a:2:two", "a-3-three", "a:4:two two", "a-5-five"]
    assert (await desk.run("grep", pattern="wo", include="b")).content == "sub/b:1:Two"
    assert (await desk.run("grep", pattern="wo", include="sub/*")).content == "sub/b:1:Two"
    assert (await desk.run("grep", pattern="nothing")).content == "[no match]"
    assert (await desk.run("grep", pattern="x*", path="sub")).content == "sub/b:1:Two"


async def test_grep_finds_every_line_also_an_empty_one(desk: Desk) -> None:
    plant(desk, a="\nx\n\ny")
    assert (await desk.run("grep", pattern="^$")).content == "a:1:\na:3:"
    assert (await desk.run("grep", pattern="^")).content == "a:1:\na:2:x\na:3:\na:4:y"


async def test_grep_is_capped(desk: Desk) -> None:
    plant(desk, a="hit\n" * 500, b="hit\n", long="y" + "x" * 1000 + "hit")
    lines = (await desk.run("grep", pattern="hit")).content.splitlines()
    assert len(lines) == 201
    assert lines[-1] == "[cut here: narrow the pattern, path or include]"
    assert len((await desk.run("grep", pattern="yx", path="long")).content) < 320
    with (desk.folder / "huge").open("wb") as file:
        file.truncate(11 * 1024 * 1024)
    assert "[not searched: 1 file, over" in (await desk.run("grep", pattern="q")).content


async def test_a_pattern_that_never_ends_is_stopped(desk: Desk) -> None:
    plant(desk, a="a" * 5000 + "!")
    tool = Grep(StillClock(), time_s=0.2)
    prepared = tool.bind({"pattern": "(a|aa)+$"})
    with pytest.raises(ToolError, match=re.escape("took more than 0.2 s at a")):
        await prepared.run(desk.context())
    with pytest.raises(ToolError, match="is not a regular expression"):
        await desk.run("grep", pattern="f(")
    with pytest.raises(ToolError, match="does not exist"):
        await desk.run("grep", pattern="f", path="none")


@pytest.mark.parametrize(("folders", "truncated"), [(64, False), (65, True)])
def test_a_walk_ends_so_many_folders_down_and_says_so(
    tmp_path: Path, folders: int, truncated: bool
) -> None:
    deepest = tmp_path.joinpath(*["d"] * folders)
    deepest.mkdir(parents=True)
    (deepest / "f").write_text("x")
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        tree = Tree(handle)
        names = [entry.name for entry in tree]
    finally:
        os.close(handle)
    assert names == ["d"] * folders + ([] if truncated else ["f"])
    assert tree.truncated is truncated


@pytest.mark.parametrize(("most", "seen"), [(5, 5), (4, 4), (2, 2)])
def test_a_walk_ends_after_so_many_entries_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, seen: int
) -> None:
    monkeypatch.setattr("runtime.tools.tree._VISITS", most)
    for name in ("b/c", "b/d", "a", "e", ".git/x", "hidden/y"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        tree = Tree(
            handle, skipped=frozenset({"e"}), hides=lambda path: path.startswith((".", "h"))
        )
        paths = [entry.path for entry in tree]
    finally:
        os.close(handle)
    assert paths == ["a", "b", "b/c", "b/d", "e"][:seen]
    assert tree.truncated is (most < 5)


async def test_lines_are_shown_without_the_ends_of_windows_and_cut(desk: Desk) -> None:
    (desk.folder / "a").write_bytes(b"\rxy\r\n" + b"x" * 300 + b"\n" + b"x" * 301 + b"\n")
    found = (await desk.run("grep", pattern="x")).content.split("\n")
    shown = [line.rpartition(":")[2] for line in found[:3]]
    assert shown == ["\rxy", "x" * 300, "x" * 300 + "..."]
