"""Fixtures of the tools' tests."""

from pathlib import Path

import pytest

from tests.unit.tools.support import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Desk(workspace)
