"""The bus over NATS: core publish and subscribe, nothing that a server would have to keep.

One subject carries every topic, so that a publisher's signals arrive in their order. Several
deployments share a server by different prefixes. The client's own reconnecting is off: it tells
nobody what was lost.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import structlog

from runtime.bus.replicated import ReplicatedBus
from runtime.bus.signal_queue import MAX_WAITING
from runtime.domain.errors import InvalidInput, Unavailable
from runtime.ports.clock import Clock
from runtime.process.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nats.aio.client import Client
    from nats.aio.msg import Msg

log = structlog.get_logger(__name__)

PREFIX: Final = "gatehouse"
TIMEOUT_S: Final = 10
MAX_PENDING: Final = 65_536
MAX_PENDING_BYTES: Final = 32 * 1024 * 1024
"""Payloads that came and were not read yet. The client drops what comes beyond; the numbering
shows it to every reader as a gap."""
_PREFIX: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


class NatsBus(ReplicatedBus):
    """`url` is ``nats://[user:password@]host:port``, several with commas between them.

    Raises `InvalidInput` on a `prefix` that is no subject.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        prefix: str = PREFIX,
        waiting: int = MAX_WAITING,
        supervisor: Supervisor | None = None,
    ) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise InvalidInput("prefix", "must be words of letters, digits, - and _ with dots")
        linker = _NatsLinker(url, f"{prefix}.signals")
        super().__init__(linker, clock, waiting=waiting, supervisor=supervisor)


class _NatsLinker:
    def __init__(self, url: str, subject: str) -> None:
        self._urls = [one.strip() for one in url.split(",") if one.strip()]
        self._subject = subject
        self.server = ", ".join(_server_name(one) for one in self._urls)

    async def open(self, received: Callable[[str], None], lost: Callable[[], None]) -> "_NatsLink":
        # An extra: only this bus needs the client.
        from nats.aio.client import Client

        link = _NatsLink(Client(), self._subject)
        try:
            with _server_errors():
                await link.connect(self._urls, received, lost)
        except BaseException:
            await link.close()
            raise
        return link


class _NatsLink:
    def __init__(self, client: "Client", subject: str) -> None:
        self._client = client
        self._subject = subject
        self._gone = asyncio.Event()

    @property
    def max_bytes(self) -> int:
        return self._client.max_payload

    @property
    def lost(self) -> bool:
        return self._gone.is_set()

    async def connect(
        self, urls: list[str], received: Callable[[str], None], lost: Callable[[], None]
    ) -> None:
        async def arrived(message: "Msg") -> None:
            received(message.data.decode(errors="replace"))

        async def closed() -> None:
            self._gone.set()
            lost()

        await self._client.connect(
            servers=urls,
            name="gatehouse bus",
            closed_cb=closed,
            error_cb=_note,
            connect_timeout=TIMEOUT_S,
            allow_reconnect=False,
            # Zero would try a server that refuses for ever, without a pause.
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            no_echo=True,
        )
        await self._client.subscribe(
            self._subject,
            cb=arrived,
            pending_msgs_limit=MAX_PENDING,
            pending_bytes_limit=MAX_PENDING_BYTES,
        )
        await self._client.flush(TIMEOUT_S)

    async def send(self, payloads: Sequence[str]) -> None:
        with _server_errors():
            for payload in payloads:
                await self._client.publish(self._subject, payload.encode())
        await self._round_trip()

    async def _round_trip(self) -> None:
        """Flush; the client would wait for the answer of a connection that is gone."""
        flush = asyncio.create_task(self._client.flush(TIMEOUT_S), name="bus flush")
        gone = asyncio.create_task(self._gone.wait(), name="bus connection")
        try:
            await asyncio.wait({flush, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            flush.cancel()
            gone.cancel()
            await asyncio.wait({flush, gone})
        if flush.cancelled():
            raise Unavailable("The connection was closed.")
        with _server_errors():
            flush.result()

    async def close(self) -> None:
        try:
            with _server_errors():
                async with asyncio.timeout(TIMEOUT_S):
                    await self._client.close()
        except Unavailable as error:
            log.debug("bus_close_failed", reason=str(error))


async def _note(error: Exception) -> None:
    """What the client reports besides raising it; what it loses shows in the numbering."""
    log.debug("bus_client_error", reason=f"{type(error).__name__}: {error}")


def _server_name(url: str) -> str:
    return urlsplit(url if "://" in url else f"nats://{url}").netloc.rpartition("@")[2]


@contextmanager
def _server_errors() -> "Iterator[None]":
    # An extra: only this bus needs the client.
    import nats.errors

    try:
        yield
    except (nats.errors.Error, OSError) as error:
        raise Unavailable(f"{type(error).__name__}: {error}") from error
