"""The table of known places, and what a path means in a workspace."""

from pathlib import Path

import pytest

from runtime.workspace.content import IDENTITY_FILES
from runtime.workspace.layout import FILES, PLACES, Layout, ResolvedLayout

HOME = Path("/srv/agent")
LAYOUT = Layout.of(HOME)
TREE = Layout(HOME, HOME / ".gatehouse/worktrees/ses_1", (PLACES[-2], PLACES[-1]))


def test_every_file_of_the_prompt_instructs() -> None:
    places = {place.name: place for place in PLACES}
    found = [places[name] for name in IDENTITY_FILES]
    assert all(place.instructs and not place.folder for place in found)
    assert FILES not in places


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        (".", "files"),
        ("", "files"),
        ("notes/a.md", "files/notes/a.md"),
        ("AGENTS.md", "AGENTS.md"),
        ("./AGENTS.md", "AGENTS.md"),
        ("agents.md", "files/agents.md"),
        ("memory/2026-11-22.md", "memory/2026-11-22.md"),
        (".gatehouse/outputs/x", ".gatehouse/outputs/x"),
        ("files", "files"),
        ("files/AGENTS.md", "files/AGENTS.md"),
        ("files/files/x", "files/files/x"),
        ("../AGENTS.md", "files/../AGENTS.md"),
        ("AGENTS.md.bak-1", "files/AGENTS.md.bak-1"),
    ],
)
def test_where_a_relative_path_begins(text: str, path: str) -> None:
    assert str(LAYOUT.locate(text)) == f"{HOME}/{path}"


def test_an_absolute_path_stays_as_it_is() -> None:
    assert str(LAYOUT.locate("/etc/hosts")) == "/etc/hosts"


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("files", "."),
        ("files/notes/a.md", "notes/a.md"),
        ("files/AGENTS.md", "files/AGENTS.md"),
        ("files/files/x", "files/files/x"),
        ("files/files", "files/files"),
        ("AGENTS.md", "AGENTS.md"),
        ("memory/x.md", "memory/x.md"),
        ("stray.txt", f"{HOME}/stray.txt"),
    ],
)
def test_a_name_leads_back_to_its_path(path: str, name: str) -> None:
    assert ResolvedLayout(LAYOUT).name(HOME / path) == name
    assert Path(LAYOUT.locate(name)) == HOME / path


def test_a_worktree_has_identity_files_of_its_own() -> None:
    assert str(TREE.locate("AGENTS.md")) == f"{TREE.files}/AGENTS.md"
    assert ResolvedLayout(TREE).name(TREE.files / "AGENTS.md") == "AGENTS.md"
    assert str(TREE.locate("uploads/x")) == f"{HOME}/uploads/x"
    assert ResolvedLayout(TREE).name(TREE.files / "uploads/x") == "files/uploads/x"


def test_landmarks_tell_what_a_path_is(tmp_path: Path) -> None:
    marks = ResolvedLayout(Layout.of(tmp_path)).landmarks
    assert marks.instructs(tmp_path / "skills/a/SKILL.md")
    assert marks.instructs(tmp_path / "AGENTS.MD")
    assert marks.private(tmp_path / "memory/MEMORY.md")
    assert not marks.instructs(tmp_path / "memory/MEMORY.md")
    assert marks.kept(tmp_path / ".gatehouse/outputs")
    assert not marks.places(tmp_path / "files/AGENTS.md")
    assert not marks.places(tmp_path / "AGENTS.md.bak-1")
    assert not marks.places(tmp_path)


def test_a_landmark_is_also_where_its_link_leads(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "memory").mkdir()
    for name in ("AGENTS.md", "USER.md"):
        (tmp_path / name).symlink_to("files/both.md")
    (tmp_path / "TOOLS.md").symlink_to("memory/tools.md")
    marks = ResolvedLayout(Layout.of(tmp_path)).landmarks
    assert marks.private(tmp_path / "files/both.md")
    assert marks.instructs(tmp_path / "files/both.md")
    assert marks.private(tmp_path / "memory/tools.md")
    assert marks.instructs(tmp_path / "memory/tools.md")
