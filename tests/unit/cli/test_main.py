"""The frame of the command line: options anywhere, quick help, nothing heavy loaded."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.common import cell
from gateway.cli.explain import TRUST
from gateway.cli.main import app, hoist
from gateway.cli.runs import STATES
from runtime.domain.people import Trust
from runtime.domain.runs import RunState

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
UNUSED = {
    *("adapters.slack", "adapters.telegram", "adapters.transcription"),
    *("aiosqlite", "alembic", "asyncpg", "nats", "pydantic_ai", "slack_sdk", "telegram", "textual"),
    *("pygments", "rich"),
    *("sqlalchemy.dialects.postgresql", "sqlalchemy.ext.asyncio", "sqlalchemy.orm"),
}
"""By a gateway on SQLite without a platform and a provider; some of it once took 13 MB."""


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


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("policy explain s exec {} --trust boss", "'--trust': must be one of owner, member, guest"),
        ("runs list --status boss", "'--status': must be one of queued, running, waiting_for"),
        ("runs list --limit x", "'--limit': must be a whole number from 1 to 10,000, not 'x'"),
        ("sessions list --limit 0", "must be a whole number from 1 to 10,000, not '0'"),
        ("sessions show s --limit 201", "must be a whole number from 1 to 200, not '201'"),
        ("sessions export s --transcript 0", "must be a whole number of at least 1, not '0'"),
        ("slack manifest --http x", "--http: must be an https address such as"),
    ],
)
def test_a_wrong_value_is_a_usage_error_that_names_the_right_ones(
    typed: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GATEHOUSE_HOME", str(tmp_path))
    ended = CliRunner().invoke(app, shlex.split(typed))
    assert (ended.exit_code, told in ended.output) == (2, True), ended.output
    assert "Input should" not in ended.output


def test_what_options_take_is_what_the_gateway_knows() -> None:
    assert list(TRUST) == list(Trust)
    assert list(STATES) == list(RunState)


def test_a_gateway_loads_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    """Up to the refusal of roles that SQLite does not have: everything is loaded by then, and
    nothing made. What a platform needs is loaded once one is configured."""
    code = (
        "import sys, gateway.cli.main\n"
        "try:\n"
        "    gateway.cli.main.main()\n"
        "except SystemExit as end:\n"
        "    assert end.code == 1\n"
        "from gateway.config_chats import Slack, Telegram\n"
        "from gateway.wiring_chats import slack_adapters, telegram_adapters\n"
        "assert slack_adapters(Slack(), None) == telegram_adapters(Telegram(), None) == []\n"
        "print(*sorted(sys.modules))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "serve", "--roles", "http"],
        cwd=tmp_path,
        env={
            "PYTHONPATH": str(ROOT),
            "GATEHOUSE_HOME": str(tmp_path / "home"),
            "GATEHOUSE_TOOLS__SANDBOX": "none",
        },
        capture_output=True,
        check=True,
        text=True,
    )
    assert "cannot be split" in ran.stderr
    loaded = set(ran.stdout.split())
    assert "gateway.service" in loaded
    assert not UNUSED & loaded


def test_a_cell_is_one_line_that_steers_nothing() -> None:
    assert cell("a\n\x1b[31mred\x1b[0m\tb") == "a red b"
    assert cell("ses_1\u2066\u200b\u3164\U000e0041") == "ses_1"
    assert cell(None) == cell("") == cell("\u3164") == "-"
