"""The frame of the command line: options anywhere, quick help, nothing heavy loaded."""

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.common import cell
from gateway.cli.main import hoist

ROOT = Path(__file__).parents[3]
HEAVY = (
    "aiohttp",
    "alembic",
    "pydantic",
    "pydantic_ai",
    "rich",
    "slack_bolt",
    "sqlalchemy",
    "telegram",
    "textual",
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["serve", "--config", "a.toml"], ["--config", "a.toml", "serve"]),
        (["serve", "--config=a.toml"], ["--config=a.toml", "serve"]),
        (["chat", "-m", "--config"], ["chat", "-m", "--config"]),
        (["runs", "show", "--", "--config", "x"], ["runs", "show", "--", "--config", "x"]),
        (["status", "--config"], ["status", "--config"]),
    ],
)
@pytest.mark.requirement("OPS-1")
def test_the_configuration_may_be_named_anywhere(typed: list[str], meant: list[str]) -> None:
    assert hoist(typed) == meant


def test_the_frame_loads_nothing_heavy() -> None:
    """What `--help` loads: the rest is loaded by the command that needs it."""
    code = "import sys, gateway.cli.main; print(*sorted(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True
    )
    assert not set(HEAVY) & set(ran.stdout.split())


def test_a_cell_is_one_line_that_steers_nothing() -> None:
    assert cell("a\n\x1b[31mred\x1b[0m\tb") == "a red b"
    assert cell(None) == cell("") == "-"
