"""The walk over the folders of the system: a process of its own, begun early, and never trusted
where it did not come to its end."""

import os
import sys
from pathlib import Path

import pytest

from adapters.sandbox import folder_walk
from adapters.sandbox.closed_folders import ClosedPaths

AWKWARD = os.fsdecode(b"new\nline \xff")


@pytest.fixture
def closed_file(tmp_path: Path) -> Path:
    """What only root may read, in a folder of its own, by a name that is no text."""
    if os.geteuid() != 0:
        pytest.skip("only root has something to find: run the tests as root")
    path = tmp_path / AWKWARD
    path.touch(mode=0o600)
    tmp_path.chmod(0o755)
    return path


@pytest.mark.requirement("SEC-6")
def test_a_walk_that_was_begun_is_the_first_one(closed_file: Path) -> None:
    closed = ClosedPaths((str(closed_file.parent),))
    closed.begin()
    closed.begin()
    assert not closed.walked
    assert closed.paths() == (str(closed_file),)
    (closed_file.parent / "later").touch(mode=0o600)
    closed.begin()
    assert closed.paths() == (str(closed_file),)
    closed.walk(601.0)
    assert set(closed.paths()) == {str(closed_file), str(closed_file.parent / "later")}


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("python", ["/bin/true", "/bin/false", "/nonexistent"])
def test_without_the_process_the_walk_is_made_here(
    python: str, closed_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    closed = ClosedPaths((str(closed_file.parent),))
    closed.begin()
    assert closed.paths() == (str(closed_file),)


@pytest.mark.parametrize(
    ("written", "paths"),
    [
        (b"\0", ()),
        (b"/a\0/b\0\0", ("/a", "/b")),
        (b"", None),
        (b"/a", None),
        (b"/a\0", None),
        (b"/a\0/b", None),
    ],
)
def test_what_did_not_come_to_its_end_is_no_answer(
    written: bytes, paths: tuple[str, ...] | None
) -> None:
    assert folder_walk.read(written) == paths
