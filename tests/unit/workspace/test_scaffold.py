"""Scaffolding: what a person finds in a new workspace, and that nobody's file is lost (CTX-1)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.domain.errors import Unavailable
from runtime.workspace import scaffold as module
from runtime.workspace.content import IDENTITY_FILES, MEMORY_FILE
from runtime.workspace.scaffold import FOLDERS, find_template, scaffold
from tests.unit.workspace.support import Folder


@pytest.fixture
def template(tmp_path: Path) -> Folder:
    template = Folder(tmp_path / "template")
    template.write("AGENTS.md", "new agents")
    template.write("SOUL.md", "new soul")
    template.write("memory/MEMORY.md", "new memory")
    template.skill("built-in")
    return template


@pytest.mark.requirement("CTX-1")
def test_a_workspace_that_is_missing_is_made(tmp_path: Path, template: Folder) -> None:
    root = tmp_path / "deep" / "workspace"
    report = scaffold(root, template.root)
    assert report.made == ["AGENTS.md", "SOUL.md", "memory/MEMORY.md"]
    assert (report.kept, report.overwritten) == ([], [])
    assert Folder(root).tree() == {
        "AGENTS.md": b"new agents",
        "SOUL.md": b"new soul",
        "memory/MEMORY.md": b"new memory",
    }
    assert all((root / name).is_dir() for name in FOLDERS)


@pytest.mark.requirement("TOOL-5")
def test_a_new_workspace_gets_an_empty_working_folder(tmp_path: Path, template: Folder) -> None:
    scaffold(tmp_path / "workspace", template.root)
    files = tmp_path / "workspace" / "files"
    assert list(files.iterdir()) == []
    assert files.stat().st_mode & 0o777 == 0o700


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("name", [".gatehouse", "files"])
def test_something_in_the_place_of_a_folder_is_told(
    folder: Folder, template: Folder, name: str
) -> None:
    folder.link(name, folder.root / "nowhere")
    with pytest.raises(Unavailable, match="cannot get its working folder"):
        scaffold(folder.root, template.root)


@pytest.mark.requirement("TOOL-5")
def test_the_working_folder_may_be_a_link_of_its_owners(
    folder: Folder, outside: Folder, template: Folder
) -> None:
    folder.link("files", outside.root)
    scaffold(folder.root, template.root)
    assert outside.tree() == {}


@pytest.mark.requirement("CTX-1")
def test_a_file_that_is_there_is_never_touched(folder: Folder, template: Folder) -> None:
    mine = folder.write("AGENTS.md", "mine")
    before = mine.stat()
    report = scaffold(folder.root, template.root)
    assert report.made == ["SOUL.md", "memory/MEMORY.md"]
    assert report.kept == ["AGENTS.md"]
    after = mine.stat()
    assert mine.read_text() == "mine"
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    again = scaffold(folder.root, template.root)
    assert again.made == []


@pytest.mark.requirement("CTX-1")
def test_force_says_what_it_overwrites_and_keeps_backups(folder: Folder, template: Folder) -> None:
    folder.write("AGENTS.md", "mine").chmod(0o640)
    folder.write("AGENTS.md.bak-1", "an older backup")
    folder.write("SOUL.md", "new soul")
    folder.write("memory/MEMORY.md", "my memory")
    expected = [("AGENTS.md", "AGENTS.md.bak-2"), ("memory/MEMORY.md", "memory/MEMORY.md.bak-1")]
    plan = scaffold(folder.root, template.root, force=True, dry_run=True)
    assert plan.overwritten == expected
    assert folder.tree()["AGENTS.md"] == b"mine"
    report = scaffold(folder.root, template.root, force=True)
    assert report == plan
    assert report.kept == ["SOUL.md"]
    assert folder.tree() == {
        "AGENTS.md": b"new agents",
        "AGENTS.md.bak-1": b"an older backup",
        "AGENTS.md.bak-2": b"mine",
        "SOUL.md": b"new soul",
        "memory/MEMORY.md": b"new memory",
        "memory/MEMORY.md.bak-1": b"my memory",
    }
    assert (folder.root / "AGENTS.md").stat().st_mode & 0o777 == 0o640


def test_a_dry_run_makes_nothing(tmp_path: Path, template: Folder) -> None:
    report = scaffold(tmp_path / "ws", template.root, dry_run=True)
    assert report.made == ["AGENTS.md", "SOUL.md", "memory/MEMORY.md"]
    assert not (tmp_path / "ws").exists()


@pytest.mark.requirement("CTX-1")
@pytest.mark.parametrize("force", [False, True])
def test_links_and_folders_in_the_way_are_left_alone(
    folder: Folder, outside: Folder, template: Folder, force: bool
) -> None:
    theirs = outside.write("mine.md", "somewhere else")
    folder.link("AGENTS.md", theirs)
    folder.link("SOUL.md", outside.root / "nowhere.md")
    folder.link("memory", outside.root)
    report = scaffold(folder.root, template.root, force=force)
    assert report.kept == ["AGENTS.md", "SOUL.md", "memory/MEMORY.md"]
    assert outside.tree() == {"mine.md": b"somewhere else"}


def test_a_file_that_appears_meanwhile_is_not_overwritten(
    folder: Folder, template: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes SOUL.md between the look and the making."""
    made = module._temporary

    def slow(source: Path, target: Path) -> Path:
        if target.name == "SOUL.md":
            folder.write("SOUL.md", "quicker")
        return made(source, target)

    monkeypatch.setattr(module, "_temporary", slow)
    report = scaffold(folder.root, template.root)
    assert report.kept == ["SOUL.md"]
    assert folder.tree()["SOUL.md"] == b"quicker"
    assert not [name for name in folder.tree() if name.endswith(".tmp")]


def test_a_file_system_without_hard_links_will_do(
    folder: Folder, template: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    assert scaffold(folder.root, template.root).made == ["AGENTS.md", "SOUL.md", "memory/MEMORY.md"]
    assert set(folder.tree()) == {"AGENTS.md", "SOUL.md", "memory/MEMORY.md"}
    assert folder.tree()["SOUL.md"] == b"new soul"


@pytest.mark.parametrize("place", ["file/workspace", "file"])
def test_a_workspace_that_cannot_be_written_says_what_to_do(
    tmp_path: Path, template: Folder, place: str
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable) as raised:
        scaffold(tmp_path / place, template.root)
    assert str(tmp_path / place) in str(raised.value)
    assert "Make the folder writable" in raised.value.hint


def test_a_full_disk_leaves_the_old_file_in_place(
    folder: Folder, template: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("AGENTS.md", "mine")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Unavailable, match="No space left on device"):
        scaffold(folder.root, template.root, force=True)
    assert folder.tree()["AGENTS.md"] == b"mine"
    assert not [name for name in folder.tree() if name.endswith(".tmp")]


@pytest.mark.requirement("CTX-1")
def test_the_real_template_makes_every_identity_file(tmp_path: Path) -> None:
    report = scaffold(tmp_path / "ws", find_template())
    assert set(report.made) == {*IDENTITY_FILES, MEMORY_FILE}


def test_the_template_is_found_in_a_checkout() -> None:
    assert find_template() == Path(__file__).parents[3] / "workspace_template"


def test_the_template_is_found_where_a_wheel_puts_it(tmp_path: Path) -> None:
    """The layout of a wheel (pyproject.toml, force-include), asked from outside of a checkout."""
    shutil.copytree(find_template(), tmp_path / "gateway" / "workspace_template")
    shutil.copytree(
        Path(module.__file__).parents[1],
        tmp_path / "runtime",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    code = "from runtime.workspace.scaffold import find_template; print(find_template())"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert run.stdout.strip() == str(tmp_path / "gateway" / "workspace_template")


def test_a_missing_template_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Install the gateway again"):
        find_template(tmp_path)
