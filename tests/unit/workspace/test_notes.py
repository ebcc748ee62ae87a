"""A private note stays private under every name that a link can give it (CTX-6)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.domain.errors import InvalidInput
from runtime.workspace.personas import read_persona
from runtime.workspace.snapshot import Workspace
from runtime.workspace.text_files import Skipped, read_text

pytestmark = pytest.mark.requirement("CTX-6")

SECRET = "The owner's pin is 4711."
NOTES = ("USER.md", "memory/MEMORY.md", "memory/2026-11-22.md", "personas/work/USER.md")
NAMES = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "skills/x/SKILL.md", "agents/x.md")


def symbolic(note: Path, name: Path) -> None:
    name.symlink_to(os.path.relpath(note, name.parent))


def hard(note: Path, name: Path) -> None:
    name.hardlink_to(note)


def through_a_folder(note: Path, name: Path) -> None:
    """A link to a folder of notes, and another through it."""
    way = name.parent / "way"
    way.symlink_to(note.parent)
    name.symlink_to(way / note.name)


LINKS = (symbolic, hard, through_a_folder)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in (*NOTES, "skills/x/_", "agents/_"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    return tmp_path


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("note", NOTES)
def test_a_link_to_a_note_is_not_read(
    home: Path, note: str, name: str, link: Callable[[Path, Path], None]
) -> None:
    link(home / note, home / name)
    with pytest.raises(Skipped, match="a private note under another name"):
        read_text(home, name)


@pytest.mark.parametrize("link", LINKS)
async def test_no_part_of_the_prompt_is_a_note_by_another_name(
    home: Path, link: Callable[[Path, Path], None]
) -> None:
    link(home / "USER.md", home / "TOOLS.md")
    (home / "AGENTS.md").write_text("Work.")
    hard(home / "memory/MEMORY.md", home / "skills/x/SKILL.md")
    workspace = Workspace(home)
    snapshot = await workspace.snapshot()
    assert dict(snapshot.identity) == {"AGENTS.md": "Work.", "USER.md": SECRET}
    assert snapshot.memory == SECRET
    assert not any(skill.available for skill in snapshot.skills)
    assert workspace.skills.read("x") is None
    assert any(one.startswith("TOOLS.md is skipped: it is a private") for one in snapshot.warnings)


async def test_a_file_that_becomes_a_note_later_leaves_the_prompt(home: Path) -> None:
    (home / "TOOLS.md").write_text("Local tools.")
    workspace = Workspace(home)
    assert (await workspace.snapshot()).identity["TOOLS.md"] == "Local tools."
    hard(home / "TOOLS.md", home / "memory" / "tools.md")
    assert "TOOLS.md" not in (await workspace.snapshot()).identity


def test_a_persona_takes_no_note_under_another_name(home: Path) -> None:
    for note in ("USER.md", "memory/MEMORY.md", "personas/work/USER.md"):
        (home / "personas/work/SOUL.md").unlink(missing_ok=True)
        hard(home / note, home / "personas/work/SOUL.md")
        with pytest.raises(InvalidInput, match="a private note under another name"):
            read_persona(home, "work")


def test_links_between_files_that_are_no_notes_are_read(home: Path) -> None:
    (home / "AGENTS.md").write_text("Work.")
    hard(home / "AGENTS.md", home / "SOUL.md")
    symbolic(home / "AGENTS.md", home / "TOOLS.md")
    assert [read_text(home, name) for name in ("SOUL.md", "TOOLS.md")] == ["Work."] * 2
    hard(home / "AGENTS.md", home / "personas/work/AGENTS.md")
    (home / "personas/work/TOOLS.md").write_text("Other.")
    hard(home / "personas/work/TOOLS.md", home / "personas/work/SOUL.md")
    assert set(read_persona(home, "work").files) == {"AGENTS.md", "SOUL.md", "TOOLS.md", "USER.md"}


def test_what_the_owners_notes_lead_to_is_a_note(home: Path) -> None:
    (home / "USER.md").unlink()
    (home / "profile.md").write_text(SECRET)
    symbolic(home / "profile.md", home / "USER.md")
    symbolic(home / "profile.md", home / "TOOLS.md")
    assert read_text(home, "USER.md") == SECRET
    with pytest.raises(Skipped):
        read_text(home, "TOOLS.md")
