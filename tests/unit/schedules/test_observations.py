"""What a look at a watched path reads, what it leaves out, and how it names the files (SCH-1)."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from runtime.features.schedules import observations
from runtime.features.schedules.observations import (
    NOT_ALL,
    Terms,
    Watched,
    changes_in,
    look_under,
)
from runtime.tools.base import ToolContext
from runtime.tools.seen_versions import SeenFiles
from runtime.workspace.layout import Layout

pytestmark = pytest.mark.requirement("SCH-1")


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "files" / "inbox"
    folder.mkdir(parents=True)
    return folder


def look(inbox: Path, before: Mapping[str, str], *, later_ms: int = 60_000) -> Watched:
    """A look that long after the last change of a file."""
    layout = Layout.of(inbox.parent.parent)
    context = ToolContext(
        *("ses_1", "run_1", "c1"),
        layout=layout,
        roots=(),
        files=SeenFiles(),
        emit=lambda text: None,
    )
    newest = max((one.stat().st_ctime_ns for one in inbox.iterdir()), default=0)
    return look_under("inbox", before, context, Terms(now_ms=newest // 1_000_000 + later_ms))


def news(before: Watched, now: Watched) -> str:
    found = changes_in("inbox", before.files, now, most=5_000)
    return "" if found is None else found.text


def test_files_that_did_not_change_are_not_read_again(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for one of both files in each look."""
    monkeypatch.setattr(observations, "MOST_READ_BYTES", 10)
    (inbox / "a.txt").write_text("8 bytes.")
    first = look(inbox, {})
    (inbox / "b.txt").write_text("8 again.")
    second = look(inbox, first.files)
    assert second.texts == {"b.txt": "8 again."}
    assert second.unread == 0
    assert look(inbox, second.files).files == second.files


def test_a_file_that_only_has_another_time_is_nothing_new(inbox: Path) -> None:
    (inbox / "a.txt").write_text("the same")
    first = look(inbox, {})
    os.utime(inbox / "a.txt", (1, 1))
    second = look(inbox, first.files)
    assert first.files != second.files
    assert news(first, second) == ""
    assert second.texts == {}


def test_a_change_is_seen_behind_a_time_that_was_set_back(inbox: Path) -> None:
    (inbox / "a.txt").write_text("one way")
    first, was = look(inbox, {}), (inbox / "a.txt").stat()
    (inbox / "a.txt").write_text("another"[:7])
    os.utime(inbox / "a.txt", ns=(was.st_atime_ns, was.st_mtime_ns))
    assert news(first, look(inbox, first.files)).startswith("- changed: a.txt")


@pytest.mark.parametrize(("later_ms", "kept"), [(1_000, False), (3_000, True)])
def test_what_changed_just_now_is_read_again(inbox: Path, *, later_ms: int, kept: bool) -> None:
    """Two changes within one tick of the clock of files have the same time."""
    (inbox / "a.txt").write_text("x")
    first = look(inbox, {}, later_ms=later_ms)
    assert (";" in first.files["a.txt"]) is kept
    assert news(first, look(inbox, first.files)) == ""


def test_what_is_too_much_to_be_read_is_compared_by_size_and_time(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observations, "MOST_READ_BYTES", 10)
    empty = look(inbox, {})
    for name in ("a", "b", "c"):
        (inbox / name).write_text("8 bytes.")
    first = look(inbox, empty.files)
    assert first.texts == {"a": "8 bytes."}
    assert "[2 files compared by size and time alone]" in news(empty, first)
    second = look(inbox, first.files)
    assert (second.files, second.unread) == (first.files, 0)
    assert news(first, second) == ""
    (inbox / "c").write_text("9 bytes..")
    third = look(inbox, second.files)
    assert news(second, third).startswith("- changed: c\n")
    assert "by size and time" not in news(second, third)


def test_what_is_too_deep_is_said_and_is_not_taken_for_removed(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inbox / "a").mkdir()
    (inbox / "a" / "known.txt").write_text("there")
    first = look(inbox, {})
    assert not first.truncated
    monkeypatch.setattr("runtime.tools.tree._DEPTH", 0)
    (inbox / "b.txt").write_text("new")
    second = look(inbox, first.files)
    assert second.truncated
    said = news(first, second)
    assert said.startswith(f"- new: b.txt\n[{NOT_ALL}]\n")
    assert "removed" not in said
    monkeypatch.undo()
    third = look(inbox, second.files)
    assert news(second, third) == "", "it was there all the time"


def test_names_show_what_hides_in_them(inbox: Path) -> None:
    empty = look(inbox, {})
    (inbox / "a\u202etxt.exe").write_text("x")
    (inbox / "b\n- removed: c").write_text("y")
    (inbox / os.fsdecode(b"d\xff")).write_text("z")
    now = look(inbox, empty.files)
    said = news(empty, now)
    assert "- new: a\\u{202e}txt.exe\n" in said
    assert "\n- removed: c" not in said
    assert "- new: d\\xff\n" in said
    assert "".join(now.files).encode(), "they can be kept"


def test_secrets_in_names_are_masked_before_they_are_cut(inbox: Path) -> None:
    empty = look(inbox, {})
    (inbox / ("x" * 240 + "secret")).write_text("x")
    found = changes_in(
        "inbox",
        empty.files,
        look(inbox, empty.files),
        most=5_000,
        clean=lambda text: text.replace("secret", "[masked]"),
    )
    assert found is not None
    assert "secret" not in found.text
    assert found.text.count("[masked]") == 2
