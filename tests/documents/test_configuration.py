"""The defaults that docs/configuration.md names are those of the settings."""

import re
from pathlib import Path

import pytest

from gateway.config import load

PAGE = Path(__file__).parents[2] / "docs/configuration.md"
PART = re.compile(r"^#+ `\[([a-z_.]+)\]`$(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(\w+)` \| `([\w.]+)` \|", re.MULTILINE)
NAMED = [
    (section, key, default)
    for section, part in PART.findall(PAGE.read_text())
    for key, default in ROW.findall(part)
]


def test_the_page_names_defaults() -> None:
    assert len(NAMED) > 40


@pytest.mark.parametrize(("section", "key", "default"), NAMED)
def test_a_default_is_the_one_that_holds(
    section: str, key: str, default: str, tmp_path: Path
) -> None:
    found: object = load(environment={"GATEHOUSE_HOME": str(tmp_path)}).settings
    for name in (*section.split("."), key):
        found = getattr(found, name)
    said = str(found).lower() if isinstance(found, bool) else str(found)
    assert said == default
