"""A SQLite file that is damaged: each command says so and what to do, and leaves the file alone."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway import wiring
from gateway.config import load
from gateway.logs import Redactor
from gateway.service import CannotStart, Start, Started, serve
from runtime.domain.errors import StoreCorrupt
from tests.conftest import FailAfter
from tests.scenario.process.program import Ended, Place, command
from tests.support.templates import sqlite_schema

PAGE = 4096
COMMANDS = (("serve",), ("migrate",), ("doctor",), ("backup", "create"))


@pytest.fixture
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> bytes:
    """A database of this version with one kind of damage."""
    whole = sqlite_schema()
    match request.param:
        case "header":
            return b"\xa5" * 100 + whole[100:]
        case "format":
            return whole[:47] + b"\xff" + whole[48:]
        case "truncated":
            return whole[: len(whole) // 2 + 1_000]
        case table:
            (tmp_path / "scratch.db").write_bytes(whole)
            with closing(sqlite3.connect(tmp_path / "scratch.db")) as conn:
                query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
                place = (int(conn.execute(query, (table,)).fetchone()[0]) - 1) * PAGE
            return whole[:place] + b"\xa5" * PAGE + whole[place + PAGE :]


def put(home: Path, content: bytes) -> Path:
    file = home / "gatehouse.db"
    file.write_bytes(content)
    return file


def read(file: Path) -> bytes:
    return file.read_bytes()


def backups(folder: Path) -> list[Path]:
    return list(folder.glob("*/home/backups/*.tar.gz"))


@pytest.mark.requirement("OPS-3", "API-3")
@pytest.mark.parametrize("damaged", ["leases"], indirect=True)
async def test_every_command_says_that_a_database_is_damaged_and_what_to_do(
    tmp_path: Path, fail_after: FailAfter, damaged: bytes
) -> None:
    async def tried(number: int, arguments: tuple[str, ...]) -> tuple[Ended, bytes]:
        place = Place(tmp_path / str(number))
        place.path.mkdir()
        place.configure('[tools]\nsandbox = "none"\n')
        file = put(place.home, damaged)
        return await command(place, *arguments), read(file)

    async with fail_after(60):
        ended = await asyncio.gather(*(tried(*one) for one in enumerate(COMMANDS)))
    for arguments, (one, left) in zip(COMMANDS, ended, strict=True):
        # Lines are as wide as a terminal.
        said = " ".join((one.out + one.err).split())
        assert one.code == 1, arguments
        assert "gatehouse.db is damaged" in said, arguments
        assert "gatehouse backup restore" in said, arguments
        assert "docs/backup.md" in said, arguments
        assert "Traceback" not in said, arguments
        assert "exception" not in said, arguments
        assert left == damaged, arguments
    assert backups(tmp_path) == [], "a damaged backup is none"


@pytest.mark.requirement("OPS-3")
@pytest.mark.parametrize("damaged", ["header", "format", "leases", "truncated"], indirect=True)
async def test_each_kind_of_damage_is_found_before_anything_is_changed(
    tmp_path: Path, damaged: bytes
) -> None:
    file = put(tmp_path, damaged)
    config = load(None, environment={"GATEHOUSE_HOME": str(tmp_path)})
    with pytest.raises(StoreCorrupt, match=r"gatehouse.db is damaged.*gatehouse backup restore"):
        await wiring.prepare_database(config)
    assert read(file) == damaged


@pytest.mark.requirement("OPS-3")
@pytest.mark.parametrize("damaged", ["lanes"], indirect=True)
async def test_damage_that_a_start_does_not_look_for_is_told_where_it_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail_after: FailAfter, damaged: bytes
) -> None:
    """As in a file that is too large to be read whole at each start."""
    monkeypatch.setattr(wiring, "AT_START", 0)
    variables = {
        "GATEHOUSE_HOME": str(tmp_path),
        "GATEHOUSE_HTTP__PORT": "0",
        "GATEHOUSE_TOOLS__SANDBOX": "none",
    }
    put(tmp_path, damaged)
    config = load(None, environment=variables)

    async def announce(started: Started) -> None:
        raise AssertionError(f"it started at {started.url}")

    async with fail_after():
        with pytest.raises(CannotStart, match=r"damaged.*gatehouse backup restore"):
            await serve(Start(config, lambda: config, Redactor(())), announce)
