"""Addresses as hosters hand them out, on a real server (MDL-8)."""

from typing import NoReturn

import asyncpg
import pytest
from sqlalchemy import Connection, make_url, text

from adapters.system.clock import SystemClock
from runtime.bus.postgres import driver_url
from runtime.domain.errors import InvalidInput
from runtime.store import StoreUnavailable, open_database, postgres

pytestmark = pytest.mark.requirement("MDL-8")


@pytest.fixture
def dialect() -> str:
    return "postgresql"


ADDED = (
    "sslmode=prefer&channel_binding=prefer&gssencmode=disable&target_session_attrs=read-write"
    "&connect_timeout=9&application_name=of-a-hoster&options=-c%20lock_timeout%3D1234"
)
SHOWN = ("application_name", "lock_timeout", "jit")


def shown(conn: Connection) -> list[str]:
    """What the session's settings are."""
    return [str(conn.execute(text(f"SHOW {name}")).scalar_one()) for name in SHOWN]


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
async def test_its_parameters_reach_the_server(database_url: str, scheme: str) -> None:
    url = f"{scheme}://{database_url.partition('://')[2]}?{ADDED}"
    database = open_database(url, clock=SystemClock())
    await database.start()
    try:
        assert await database.write(shown, name="shown") == ["of-a-hoster", "1234ms", "off"]
        assert await database.read(shown) == ["of-a-hoster", "1234ms", "off"]
    finally:
        await database.close()
    connection = await asyncpg.connect(driver_url(url))
    await connection.close()


async def test_a_server_of_the_wrong_kind_is_not_used(database_url: str) -> None:
    """A parameter that the driver follows: this server takes writes, so it is no standby."""
    database = open_database(f"{database_url}?target_session_attrs=standby", clock=SystemClock())
    with pytest.raises(StoreUnavailable, match="target_session_attrs"):
        await database.start()
    await database.close()


def test_its_time_to_connect_is_the_drivers(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, object]] = []

    def noted(*_: object, connect_args: dict[str, object], **__: object) -> NoReturn:
        given.append(connect_args)
        raise LookupError

    monkeypatch.setattr(postgres, "create_async_engine", noted)
    for query in ("?connect_timeout=9", ""):
        with pytest.raises(LookupError):
            postgres.postgres_engine(make_url(f"postgresql+asyncpg://db/gate{query}"), size=1)
    assert [one["timeout"] for one in given] == [9.0, 10.0]


async def test_a_place_that_is_named_twice_is_asked_in_turn(database_url: str) -> None:
    before, at, rest = database_url.partition("://")[2].rpartition("@")
    server, slash, name = rest.partition("/")
    host, _, port = server.partition(":")
    url = f"postgresql://{before}{at}{slash}{name}?host=127.0.0.1:1&host={host}:{port or 5432}"
    database = open_database(url, clock=SystemClock())
    await database.start()
    try:
        assert (await database.read(shown))[0] == "gatehouse"
    finally:
        await database.close()
    nowhere = open_database(url.partition("&")[0], clock=SystemClock())
    with pytest.raises(StoreUnavailable):
        await nowhere.start()
    await nowhere.close()


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("channel_binding=require", "channel_binding"),
        ("pgbouncer=true", "pgbouncer"),
        ("sslrootcert=/nowhere/made-up.pem", "sslrootcert"),
        ("connect_timeout=soon", "connect_timeout"),
    ],
)
def test_what_cannot_be_followed_is_named(database_url: str, query: str, named: str) -> None:
    with pytest.raises(InvalidInput, match=named) as raised:
        open_database(f"{database_url}?{query}", clock=SystemClock())
    assert "made-up" not in str(raised.value)
