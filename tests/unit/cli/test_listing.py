"""Lists that are watched, drawn on a terminal, or completed by a shell."""

import asyncio
import io
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from gateway.cli.answers import Refused, Unreachable
from gateway.cli.client import JsonObject, ServerEvent
from gateway.cli.common import picture
from gateway.cli.listing import Listing, changes, watch_events
from gateway.cli.main import app
from gateway.cli.sessions import state_of

ROOT = Path(__file__).parents[3]
COLUMNS = {"ID": "id", "STATE": "state", "TITLE": "title"}


async def nothing(_gateway: object) -> list[JsonObject]:
    return []


LISTING = Listing(nothing, lambda row: row, COLUMNS, "There is nothing.", ())


def row(name: str, state: str = "running", title: str | None = None) -> JsonObject:
    return {"id": name, "state": state, "title": title, "hidden": "x"}


def drawn(rows: list[JsonObject], width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as shown:
        console.print(picture(rows, COLUMNS))
    return shown.get().splitlines()


@pytest.mark.requirement("OPS-2")
def test_a_change_is_a_line_and_what_nobody_sees_is_none() -> None:
    before = [row("a"), row("b"), row("c")]
    after = [row("a", "completed"), row("b") | {"hidden": "y"}, row("d", title="new\x1b[2J")]
    assert changes(before, before, LISTING) == []
    assert changes(before, after, LISTING) == [
        "a  completed  -",
        "d  running  new",
        "c is not listed any more",
    ]


@pytest.mark.requirement("OPS-2")
def test_a_terminal_gets_a_table_of_its_width_in_which_no_id_is_cut() -> None:
    name = "ses_01m8btygxceng85aj1q3b69tqq"
    rows = [row(name, title="a long title that goes on for quite a while"), row("short")]
    wide, narrow = drawn(rows, 120), drawn(rows, 52)
    assert len(wide) == 3
    assert wide[0].split() == ["ID", "STATE", "TITLE"]
    assert all(len(line) <= 52 for line in narrow)
    assert any(line.startswith(name) for line in narrow)
    assert "".join(line[41:] for line in narrow).count("while") == 1


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize("what", ["runs", "sessions", "approvals"])
def test_a_list_is_watched_by_people_and_not_by_programs(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GATEHOUSE_HOME", str(tmp_path))
    ended = CliRunner().invoke(app, [what, "list", "--watch", "--json"])
    assert (ended.exit_code, "--watch is for people" in ended.output) == (2, True), ended.output


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [("gatehouse se", {"serve", "sessions"}), ("gatehouse runs ", {"list", "show", "cancel"})],
)
def test_a_shell_completes_the_commands(typed: str, offered: set[str]) -> None:
    words = shlex.split(typed)
    place = len(words) - (not typed.endswith(" "))
    ran = subprocess.run(
        [sys.executable, "-m", "gateway"],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "_GATEHOUSE_COMPLETE": "complete_bash",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(place),
        },
        capture_output=True,
        check=True,
        text=True,
    )
    assert set(ran.stdout.split()) == offered


@pytest.mark.requirement("OPS-2")
def test_what_a_shell_is_told_completes_the_name_that_is_typed() -> None:
    code = 'eval "$("$PYTHON" -m gateway --show-completion)" && complete -p gatehouse'
    ran = subprocess.run(
        ["bash", "--norc", "-c", f"{code}; exit"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHON": sys.executable},
        capture_output=True,
        check=False,
        text=True,
    )
    assert "gatehouse" in ran.stdout, ran.stderr


class Away:
    """A gateway whose stream ends when it goes."""

    def __init__(self) -> None:
        self.goes = asyncio.Event()

    async def events(self, query: Mapping[str, str]) -> AsyncIterator[ServerEvent]:
        await self.goes.wait()
        self.goes.clear()
        for kind in ():
            yield ServerEvent("", kind, {})


@pytest.mark.requirement("OPS-2")
async def test_a_gateway_that_is_away_is_said_once_and_looked_for_less_and_less(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers: list[Exception | str] = ["goes", Unreachable("it is away."), "is stopping"]
    answers += [Unreachable("it is away.")] * 3
    answers += [Refused(503, "it starts"), "is back", "goes"]
    answers += [Unreachable("it is away."), Refused(401, "no.")]
    waited: list[float] = []
    gateway = Away()

    async def look() -> float | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if answer == "is back":
            return 0.0
        gateway.goes.set()
        return None

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    with pytest.raises(Refused, match="no"):
        await watch_events(gateway, (), look, wait=wait)  # type: ignore[arg-type]  # all of it that is asked
    assert waited == [1, 2, 4, 5, 5, 5, 5, 1, 2]
    said = [line for line in capsys.readouterr().err.splitlines() if line]
    assert said == ["the gateway stopped. Trying again until it is back."] * 2


@pytest.mark.requirement("OPS-2")
async def test_a_gateway_that_was_never_there_is_an_error() -> None:
    async def look() -> float | None:
        raise Unreachable("it is away")

    with pytest.raises(Unreachable):
        await watch_events(Away(), (), look)  # type: ignore[arg-type]  # as above


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize(
    ("status", "state", "shown"),
    [
        ("open", "idle", "idle"),
        ("open", "running", "running"),
        ("ended", "idle", "ended"),
        ("ended", "running", "running"),
    ],
)
def test_a_session_that_ended_is_not_called_idle(status: str, state: str, shown: str) -> None:
    assert state_of({"status": status, "state": state}) == shown
