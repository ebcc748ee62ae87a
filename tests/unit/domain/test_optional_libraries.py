"""A library that another one would load can be kept out."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from runtime.domain.optional_libraries import without


def test_a_library_is_not_installed_in_the_block_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made_up_library.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with without("made_up_library"), pytest.raises(ModuleNotFoundError):
        import_module("made_up_library")
    found = import_module("made_up_library")
    with without("made_up_library"):
        assert import_module("made_up_library") is found
    assert sys.modules.pop("made_up_library") is found


def test_of_two_blocks_at_once_the_first_end_lets_it_in() -> None:
    first, second = without("made_up_library"), without("made_up_library")
    with first:
        with second:
            pass
        assert "made_up_library" in sys.modules
    assert "made_up_library" not in sys.modules
