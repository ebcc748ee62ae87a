"""What `make test` leaves out can at least be loaded: nothing else notices when it cannot."""

import tomllib
from importlib import import_module

import pytest

from tests.architecture.source import ROOT

LEFT_OUT = ("benchmarks", "image")
MODULES = [
    f"tests.{folder}.{path.stem}"
    for folder in LEFT_OUT
    for path in sorted((ROOT / "tests" / folder).glob("*.py"))
    if path.stem != "__init__"
]


def test_these_folders_are_the_ones_that_are_left_out() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    passed_over = pyproject["tool"]["pytest"]["ini_options"]["norecursedirs"]
    ours = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert ours & set(passed_over) == set(LEFT_OUT)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_is_left_out_can_be_loaded(name: str) -> None:
    assert import_module(name)
