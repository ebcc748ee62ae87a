"""A hard link gives a note another name, and shows nothing of it where notes are hidden (CTX-6)."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from runtime.domain.errors import ToolError
from tests.unit.tools.support import Desk

pytestmark = pytest.mark.requirement("CTX-6", "TOOL-2")

SECRET = "the-safe-is-behind-the-painting"
NOTES = ("USER.md", "memory/deep/note.md", "personas/kind/USER.md")
CALLS: tuple[tuple[str, dict[str, JsonValue]], ...] = (
    ("read_file", {"path": "linked.md"}),
    ("grep", {"pattern": "painting", "path": "linked.md"}),
    ("grep", {"pattern": "painting"}),
    ("edit_file", {"path": "linked.md", "old_text": "the-safe", "new_text": "x"}),
    ("edit_file", {"path": "linked.md", "old_text": "the-safe-is-beside", "new_text": "x"}),
    ("send_file", {"path": "linked.md"}),
)


@pytest.mark.parametrize("note", NOTES)
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_a_hard_link_to_a_note_shows_nothing_of_it(
    desk: Desk, note: str, tool: str, arguments: dict[str, JsonValue]
) -> None:
    path = desk.workspace / note
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SECRET)
    (desk.workspace / "files/linked.md").hardlink_to(path)
    (desk.workspace / "files/plain.md").write_text("nothing of note")
    assert SECRET not in await told(Desk(desk.workspace, notes=False), tool, arguments)
    assert path.read_text() == SECRET


async def test_files_with_several_names_are_read_where_none_of_them_is_a_note(desk: Desk) -> None:
    first = desk.workspace / "files/first.md"
    first.write_text(SECRET)
    (desk.workspace / "files/second.md").hardlink_to(first)
    shut = Desk(desk.workspace, notes=False)
    assert SECRET in await told(shut, "read_file", {"path": "second.md"})
    assert "second.md" in await told(shut, "grep", {"pattern": "painting"})


async def test_the_owner_reads_a_note_by_any_name(desk: Desk, tmp_path: Path) -> None:
    note = desk.workspace / "USER.md"
    note.write_text(SECRET)
    (desk.workspace / "files/linked.md").hardlink_to(note)
    assert SECRET in await told(desk, "read_file", {"path": "linked.md"})


async def told(desk: Desk, tool: str, arguments: dict[str, JsonValue]) -> str:
    """What the model hears, a refusal included."""
    try:
        return (await desk.run(tool, **arguments)).content
    except ToolError as error:
        return str(error)
