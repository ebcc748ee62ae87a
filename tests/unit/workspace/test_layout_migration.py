"""A workspace of the older layout gets its working folder: once, whole, whatever happens."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime.domain.errors import Unavailable
from runtime.workspace import layout_migration
from runtime.workspace.layout_migration import make_layout, to_be_moved

pytestmark = pytest.mark.requirement("TOOL-5")
KNOWN = ("AGENTS.md", "USER.md", "memory/MEMORY.md", "skills/a/SKILL.md", "uploads/ses_1/x")
OTHERS = (".git/HEAD", "notes/a.md", "report.md", "files/report.md", "empty/", ".hidden")
STAYS = ("USER.md.bak-1", ".gatehouse-00ff.tmp", "lost+found/")


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace as it was, with a link."""
    home = tmp_path / "workspace"
    for name in (*KNOWN, *OTHERS, *STAYS):
        path = home / name
        if name.endswith("/"):
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (home / "link").symlink_to("notes")
    return home


def assert_moved(home: Path) -> None:
    assert {path.name for path in home.iterdir()} == {
        *("AGENTS.md", "USER.md", "memory", "skills", "uploads", "files", ".gatehouse"),
        *(name.rstrip("/") for name in STAYS),
    }
    for name in KNOWN:
        assert (home / name).read_text() == name
    for name in OTHERS:
        path = home / "files" / name
        assert path.is_dir() if name.endswith("/") else path.read_text() == name
    assert (home / "files/link").readlink() == Path("notes")
    assert not (home / ".gatehouse/moving").exists()


def test_what_is_no_known_place_moves_and_keeps_its_shape(home: Path) -> None:
    expected = (".git", ".hidden", "empty", "files", "link", "notes", "report.md")
    assert to_be_moved(home) == expected
    assert make_layout(home) == expected
    assert_moved(home)


def test_it_is_done_once(home: Path) -> None:
    make_layout(home)
    (home / "later.md").write_text("put there by a person")
    assert (to_be_moved(home), make_layout(home)) == ((), ())
    assert (home / "later.md").exists()
    (home / "files").rename(home / "elsewhere")
    make_layout(home)
    assert list((home / "files").iterdir()) == []


def test_a_new_workspace_gets_an_empty_folder(tmp_path: Path) -> None:
    assert make_layout(tmp_path) == ()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [".gatehouse", "files"]
    assert (tmp_path / "files").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("linked", [False, True])
def test_a_workspace_that_lost_its_mark_keeps_its_folder(tmp_path: Path, linked: bool) -> None:
    home, disk = tmp_path / "home", tmp_path / "disk"
    home.mkdir()
    (disk if linked else home / "files").mkdir()
    if linked:
        (home / "files").symlink_to(disk)
    (home / "files/a").touch()
    assert (to_be_moved(home), make_layout(home)) == ((), ())
    assert (home / "files/a").exists()


def test_a_file_that_is_called_like_the_folder_moves_into_it(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("mine")
    assert make_layout(tmp_path) == ("files",)
    assert (tmp_path / "files/files").read_text() == "mine"


def calls(monkeypatch: pytest.MonkeyPatch) -> tuple[Callable[[int], None], Callable[[], int]]:
    """Kills the process before the n-th change of the disk; and how many there were."""
    count, limit = 0, 0

    def counted(name: str) -> Callable[..., object]:
        real: Callable[..., object] = getattr(os, name)

        def change(*args: object, **keywords: object) -> object:
            nonlocal count
            count += 1
            if limit and count == limit:
                raise Killed
            return real(*args, **keywords)

        return change

    for name in ("rename", "mkdir", "write"):
        monkeypatch.setattr(os, name, counted(name))

    def kill_at(number: int) -> None:
        nonlocal count, limit
        count, limit = 0, number

    return kill_at, lambda: count


def test_a_kill_at_any_moment_loses_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at, _ = calls(monkeypatch)
    killed = 0
    for number in range(1, 100):
        kill_at(number)
        try:
            make_layout(home)
        except Killed:
            killed += 1
            continue
        break
    # Each start got one change further than the one before, or was killed at the same again.
    assert killed > 5
    kill_at(0)
    make_layout(home)
    assert_moved(home)


def test_gateways_that_start_together_do_not_disturb_each_other(home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        moved = list(pool.map(lambda _: make_layout(home), range(16)))
    assert_moved(home)
    assert sorted(map(bool, moved)) == [False] * 15 + [True]


def test_gateways_on_a_disk_without_locks_do_not_disturb_each_other(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_handle: int, _operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(layout_migration.fcntl, "flock", refused)
    # The second one begins, and finishes, between two renames of the first one.
    rename, done = os.rename, []

    def other_first(old: str, new: str, **handles: int) -> None:
        if old == "notes" and not done:
            done.append(1)
            make_layout(home)
        rename(old, new, **handles)

    monkeypatch.setattr(os, "rename", other_first)
    make_layout(home)
    assert done
    assert_moved(home)


@pytest.fixture
def stuck(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names that cannot be moved, as a mount cannot."""
    names = ["notes", ".hidden"]
    rename = os.rename

    def refuse(old: str, new: str, **handles: int) -> None:
        if old in names:
            raise OSError(16, "Device or resource busy")
        rename(old, new, **handles)

    monkeypatch.setattr(os, "rename", refuse)
    return names


def test_what_cannot_be_moved_is_named_all_at_once(home: Path, stuck: list[str]) -> None:
    with pytest.raises(Unavailable) as caught:
        make_layout(home)
    said = str(caught.value)
    assert ".hidden (Device or resource busy), notes (Device or resource busy)" in said
    assert "files" in said
    assert (home / "notes/a.md").exists()
    stuck.clear()
    make_layout(home)
    assert_moved(home)


def test_nothing_is_overwritten_by_what_came_meanwhile(home: Path, stuck: list[str]) -> None:
    with pytest.raises(Unavailable):
        make_layout(home)
    (home / "report.md").write_text("newer")
    stuck.clear()
    with pytest.raises(Unavailable, match=r"report\.md \(something of this name was moved before"):
        make_layout(home)
    assert (home / "report.md").read_text() == "newer"
    assert (home / ".gatehouse/moving/report.md").read_text() == "report.md"
    (home / "report.md").rename(home / "report-2.md")
    make_layout(home)
    assert (home / "files/report.md").read_text() == "report.md"
    assert (home / "files/report-2.md").read_text() == "newer"


@pytest.mark.parametrize("name", [".gatehouse", "files"])
def test_something_in_the_place_of_a_folder_is_told(tmp_path: Path, name: str) -> None:
    make_layout(tmp_path)
    if name == "files":
        (tmp_path / name).rmdir()
    else:
        (tmp_path / name).rename(tmp_path / "was")
    (tmp_path / name).symlink_to("nowhere")
    with pytest.raises(Unavailable, match="cannot get its working folder"):
        make_layout(tmp_path)


def test_worktrees_find_their_repository_again(home: Path) -> None:
    tree = home / ".gatehouse/worktrees/ses_1"
    tree.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {home}/.git/worktrees/ses_1\n")
    other = home / ".gatehouse/worktrees/ses_2"
    other.mkdir()
    (other / ".git").symlink_to(home / "AGENTS.md")
    make_layout(home)
    assert (tree / ".git").read_text() == f"gitdir: {home}/files/.git/worktrees/ses_1\n"
    assert (home / "AGENTS.md").read_text() == "AGENTS.md"
