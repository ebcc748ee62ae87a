"""A home folder of its own, and a working directory without a gatehouse.toml."""

from pathlib import Path

import pytest

from tests.unit.config.support import Read, reader


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return tmp_path / "home"


@pytest.fixture
def read(home: Path) -> Read:
    return reader(home)
