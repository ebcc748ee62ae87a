"""Fixtures of the workspace's tests."""

from pathlib import Path

import pytest

from tests.unit.workspace.support import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "workspace"
    root.mkdir()
    return Folder(root)


@pytest.fixture
def outside(tmp_path: Path) -> Folder:
    """A folder beside the workspace, which is none of its business."""
    root = tmp_path / "outside"
    root.mkdir()
    return Folder(root)
