"""A fresh machine for each attack."""

from pathlib import Path

import pytest

from tests.scenario.process.program import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
