"""How a server is named: for its driver, for people, and where the name is no name."""

import asyncpg
import pytest

from runtime.bus.nats import NatsBus
from runtime.bus.postgres import PostgresBus, driver_url
from runtime.domain.errors import InvalidInput
from tests.fakes.clock import FakeClock


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql+asyncpg://u:p%40ss@db:5433/gw", "postgresql://u:p%40ss@db:5433/gw"),
        ("postgresql://db/gw", "postgresql://db/gw"),
        ("postgresql+asyncpg://db/gw?ssl=require", "postgresql://db/gw?sslmode=require"),
        (
            "postgresql+asyncpg://db/gw?prepared_statement_cache_size=0&sslmode=verify-full",
            "postgresql://db/gw?sslmode=verify-full",
        ),
    ],
)
def test_the_driver_gets_the_url_that_it_understands(url: str, expected: str) -> None:
    assert driver_url(url) == expected


@pytest.mark.parametrize(
    ("make", "url", "expected"),
    [
        (PostgresBus, "postgresql+asyncpg://gw:made-up@db:5433/gw", "db:5433/gw"),
        (PostgresBus, "postgresql://gw:made-up@a:1,b:2/gw", "a:1,b:2/gw"),
        (NatsBus, "nats://gw:made-up@one:4222, made-up@two:4223", "one:4222, two:4223"),
    ],
)
async def test_a_server_is_named_without_its_password(
    make: type[PostgresBus] | type[NatsBus],
    url: str,
    expected: str,
) -> None:
    assert make(url, FakeClock()).server == expected


@pytest.mark.parametrize("prefix", ["", "a b", "a.*", "a.>", ".a", "a..b", "a\r\nPUB"])
async def test_a_prefix_that_is_no_subject_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidInput, match="prefix"):
        NatsBus("nats://127.0.0.1:4222", FakeClock(), prefix=prefix)


async def test_a_prefix_may_have_several_words() -> None:
    assert not NatsBus("nats://db", FakeClock(), prefix="team-a.gatehouse_1").connected


@pytest.mark.requirement("MSG-21")
@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InternalClientError("cannot switch to state 12; another operation is in progress"),
        asyncpg.InterfaceError("the connection is closed"),
        asyncpg.exceptions.AdminShutdownError("terminating connection"),
        ConnectionResetError("reset by peer"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_the_driver_says_of_a_lost_server_is_trouble_that_was_foreseen(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the bus connects again at once, without a traceback and without a supervisor's pause."""

    async def connect(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(asyncpg, "connect", connect)
    bus = PostgresBus("postgresql+asyncpg://gw@db/gw", FakeClock())
    await bus.start()
    assert not bus.connected
    await bus.close()
