"""The bus over PostgreSQL: LISTEN and NOTIFY on a connection of its own.

For replicas that share a database anyway: no other server is needed. PostgreSQL takes payloads of
less than 8,000 bytes, delivers them in the order of commit and keeps none for who is not there.
The connection must reach the server itself: a pooler that shares sessions drops LISTEN.
"""

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from runtime.bus.replicated import ReplicatedBus
from runtime.bus.signal_queue import MAX_WAITING
from runtime.domain.errors import Unavailable
from runtime.ports.clock import Clock
from runtime.process.supervisor import Supervisor
from runtime.store.postgres_address import PostgresParameters, read_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    import asyncpg

CHANNEL: Final = "gatehouse"
MAX_BYTES: Final = 7_999
TIMEOUT_S: Final = 10.0
APPLICATION: Final = "gatehouse bus"
"""How the connection is called in ``pg_stat_activity``."""
_NOTIFY: Final = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload"


class PostgresBus(ReplicatedBus):
    """`url` is the database's, as in the configuration (``postgresql+asyncpg://...``)."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        channel: str = CHANNEL,
        waiting: int = MAX_WAITING,
        supervisor: Supervisor | None = None,
    ) -> None:
        linker = _PostgresLinker(url, channel)
        super().__init__(linker, clock, waiting=waiting, supervisor=supervisor)


class _PostgresLinker:
    def __init__(self, url: str, channel: str) -> None:
        self._dsn = driver_url(url)
        told = _parameters(url)
        self._timeout_s = told.timeout_s or TIMEOUT_S
        name = told.server.get("application_name")
        self._session = {**told.server, "application_name": f"{name} bus" if name else APPLICATION}
        self._channel = channel
        parts = urlsplit(self._dsn)
        self.server = f"{parts.netloc.rpartition('@')[2] or 'localhost'}{parts.path}"

    async def open(
        self, received: Callable[[str], None], lost: Callable[[], None]
    ) -> "_PostgresLink":
        # An extra: a gateway on SQLite runs without it.
        import asyncpg

        with _server_errors():
            connection = await asyncpg.connect(
                self._dsn,
                timeout=self._timeout_s,
                command_timeout=TIMEOUT_S,
                server_settings=self._session,
            )
            link = _PostgresLink(connection, self._channel)
            try:
                await link.listen(received, lost)
            except BaseException:
                await link.close()
                raise
        return link


class _PostgresLink:
    max_bytes = MAX_BYTES

    def __init__(self, connection: "asyncpg.Connection", channel: str) -> None:
        self._connection = connection
        self._channel = channel

    @property
    def lost(self) -> bool:
        return bool(self._connection.is_closed())

    async def listen(self, received: Callable[[str], None], lost: Callable[[], None]) -> None:
        def notified(_connection: object, _pid: int, _channel: str, payload: str) -> None:
            received(payload)

        def terminated(_connection: object) -> None:
            lost()

        self._connection.add_termination_listener(terminated)
        await self._connection.add_listener(self._channel, notified)

    async def send(self, payloads: Sequence[str]) -> None:
        """All in one statement: one round trip, one transaction."""
        with _server_errors():
            await self._connection.execute(_NOTIFY, self._channel, list(payloads))

    async def close(self) -> None:
        try:
            with _server_errors():
                await self._connection.close(timeout=TIMEOUT_S)
        except Unavailable:
            # The driver has dropped a connection that did not say goodbye in time.
            self._connection.terminate()


def driver_url(url: str) -> str:
    """The URL as asyncpg reads it: its scheme, libpq's names, nothing of SQLAlchemy's."""
    parts = urlsplit(url)
    told = _parameters(url)
    query = urlencode([*told.place, *told.driver.items()])
    return urlunsplit(parts._replace(scheme="postgresql", query=query))


def _parameters(url: str) -> PostgresParameters:
    return read_parameters(parse_qsl(urlsplit(url).query, keep_blank_values=True))


@contextmanager
def _server_errors() -> "Iterator[None]":
    # Imported already by whoever holds a connection; an extra for the others.
    import asyncpg

    # A line that is cut in the middle of a word leaves the driver confused about its own state.
    lost = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
    try:
        yield
    except lost as error:
        raise Unavailable(f"{type(error).__name__}: {error}") from error
