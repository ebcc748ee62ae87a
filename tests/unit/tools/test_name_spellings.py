"""A file is found by every spelling of its name, and no twin of it is made (TOOL-2, TOOL-3)."""

import os
from pathlib import Path

import pytest

from runtime.domain.errors import ToolError
from runtime.policy.rules import Rule
from tests.unit.tools.support import Desk

OF_A_MAC = "Abscha\u0308tzung.md"
TYPED = "Absch\u00e4tzung.md"
SPELLINGS = [
    pytest.param(OF_A_MAC, TYPED, id="two characters for a letter"),
    pytest.param(TYPED, OF_A_MAC, id="one character for a letter"),
    pytest.param("Shot at 9.22.20\u202fPM.txt", "Shot at 9.22.20 PM.txt", id="a narrow blank"),
    pytest.param("a\u00a0b.txt", "a b.txt", id="a blank that does not break"),
    pytest.param("a b.txt", "a\u2009b.txt", id="an odd blank where it is a plain one"),
    pytest.param("o\u0302\u0323.md", "\u1ed9.md", id="marks in another order"),
    pytest.param("\u1112\u1161\u11ab.md", "\ud55c.md", id="a syllable in its letters"),
    pytest.param(f"{OF_A_MAC}/a\u00a0b.txt", f"{TYPED}/a b.txt", id="in a folder"),
]


def names(folder: Path) -> list[str]:
    """All that is below a folder."""
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


def put(desk: Desk, name: str, text: str) -> Path:
    """A file of the working folder."""
    path = desk.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.requirement("TOOL-2", "TOOL-3")
@pytest.mark.parametrize(("there", "asked"), SPELLINGS)
async def test_the_one_file_is_read_edited_written_patched_and_sent(
    desk: Desk, there: str, asked: str
) -> None:
    path = put(desk, there, "first line\n")
    assert "first line" in (await desk.run("read_file", path=asked)).content
    assert desk.touches("read_file", path=asked).reads == (str(path),)
    assert "first line" in (await desk.run("grep", pattern="line", path=asked)).content
    await desk.run("edit_file", path=asked, old_text="first", new_text="second")
    assert path.read_text() == "second line\n"
    assert desk.touches("write_file", path=asked, content="x").writes == (str(path),)
    await desk.run("write_file", path=asked, content="third line\n")
    patch = (
        f"*** Begin Patch\n*** Update File: {asked}\n@@\n-third line\n+fourth line\n*** End Patch"
    )
    await desk.run("apply_patch", patch=patch)
    assert path.read_text() == "fourth line\n"
    output = await desk.run("send_file", path=asked)
    assert output.sends is not None
    assert names(desk.folder) == [there]


@pytest.mark.requirement("TOOL-2")
async def test_exact_characters_come_first_and_doubt_is_named(desk: Desk) -> None:
    put(desk, OF_A_MAC, "of a Mac")
    put(desk, TYPED, "typed")
    assert "of a Mac" in (await desk.run("read_file", path=OF_A_MAC)).content
    assert "typed" in (await desk.run("read_file", path=TYPED)).content
    put(desk, "a\u00a0b.txt", "1")
    put(desk, "a\u202fb.txt", "2")
    for tool, more in (("read_file", {}), ("write_file", {"content": "3"})):
        with pytest.raises(ToolError) as raised:
            await desk.run(tool, path="a b.txt", **more)
        assert "2 names there look like it" in str(raised.value)
        assert r"'a\xa0b.txt' and 'a\u202fb.txt'" in str(raised.value)
    assert names(desk.folder) == sorted([OF_A_MAC, TYPED, "a\u00a0b.txt", "a\u202fb.txt"])


@pytest.mark.requirement("TOOL-2")
async def test_a_new_file_is_named_as_it_was_asked_for(desk: Desk) -> None:
    await desk.run("write_file", path=OF_A_MAC, content="x")
    put(desk, "Abschatzung.md", "another name")
    put(desk, "a-b.txt", "another name")
    await desk.run("write_file", path="a b.txt", content="x")
    assert names(desk.folder) == sorted([OF_A_MAC, "Abschatzung.md", "a-b.txt", "a b.txt"])


@pytest.mark.requirement("TOOL-2", "CTX-6")
async def test_what_is_hidden_is_found_by_no_spelling(desk: Desk) -> None:
    note = desk.workspace / "memory" / TYPED
    note.parent.mkdir(exist_ok=True)
    note.write_text("the-safe")
    shut = Desk(desk.workspace, notes=False)
    with pytest.raises(ToolError, match="does not exist"):
        await shut.run("read_file", path=f"../memory/{OF_A_MAC}")
    assert "the-safe" in (await desk.run("read_file", path=f"../memory/{OF_A_MAC}")).content


@pytest.mark.requirement("TOOL-2")
async def test_a_link_in_another_spelling_leads_nowhere_else(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    (desk.folder / OF_A_MAC).symlink_to(outside)
    with pytest.raises(ToolError, match="outside"):
        await desk.run("read_file", path=TYPED)
    with pytest.raises(ToolError, match="symbolic link"):
        await desk.run("write_file", path=TYPED, content="x")
    assert outside.read_text() == "secret"


@pytest.mark.requirement("TOOL-2")
async def test_a_folder_that_cannot_be_listed_has_exact_names_only(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(desk, TYPED, "typed")

    def refuse(_directory: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    assert "typed" in (await desk.run("read_file", path=TYPED)).content
    with pytest.raises(ToolError, match="does not exist"):
        await desk.run("read_file", path=OF_A_MAC)


@pytest.mark.requirement("TOOL-2")
@pytest.mark.parametrize(
    "pattern", [TYPED, OF_A_MAC, "Absch?tzung.md", "*{\u00e4,x}*", "*[\u00e4x]*"]
)
@pytest.mark.parametrize("there", [TYPED, OF_A_MAC])
async def test_a_search_by_name_finds_every_spelling(desk: Desk, there: str, pattern: str) -> None:
    put(desk, there, "line\n")
    assert there in (await desk.run("glob", pattern=pattern)).content
    assert "line" in (await desk.run("grep", pattern="line", include=pattern)).content


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize("written", [TYPED, OF_A_MAC])
@pytest.mark.parametrize("called", [TYPED, OF_A_MAC])
def test_a_rule_that_denies_binds_every_spelling(written: str, called: str) -> None:
    assert Rule.parse(f"write_file({written})").touches("write_file", called)
    assert Rule.parse(f"write_file(notes/{written}/**)").touches("write_file", f"notes/{called}/a")
    assert Rule.parse(f"exec(cat {written})").touches("exec", f"cat {called}")
    assert Rule.parse(f"exec(cat {written}:*)").touches("exec", f"cat {called} b")
    assert Rule.parse(f"grep({written}/a.md)").touches("grep", called)
    assert Rule.parse(f"write_file(=a/{written})").touches("write_file", f"a/{called}")


@pytest.mark.requirement("POL-3")
def test_a_rule_that_denies_binds_every_blank() -> None:
    assert Rule.parse("read_file(my keys/**)").touches("read_file", "my\u00a0keys/a")
    assert Rule.parse("read_file(my\u202fkeys/**)").touches("read_file", "my keys/a")
    assert Rule.parse("exec(git push:*)").touches("exec", "git\u00a0push")


@pytest.mark.requirement("POL-3")
def test_a_rule_that_allows_covers_its_exact_characters() -> None:
    assert Rule.parse(f"write_file({TYPED})").allows("write_file", TYPED)
    assert not Rule.parse(f"write_file({TYPED})").allows("write_file", OF_A_MAC)
    assert not Rule.parse("exec(git status:*)").allows("exec", "git\u00a0status")
