"""Clients that go away, at whatever moment: it is ordinary, so no error is logged."""

import asyncio
import json
import logging
import socket
import struct
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from gateway.http.problems import GONE
from tests.conftest import FailAfter
from tests.fakes.model import Gate, Said
from tests.scenario.harness import ADMIN, Site
from tests.scenario.http.conftest import Sites

LINGER = struct.pack("ii", 1, 0)
"""Closing sends a reset instead of a goodbye (socket(7), SO_LINGER)."""
HEADERS = f"Host: 127.0.0.1\r\nAuthorization: Bearer {ADMIN}\r\n"
BODY = json.dumps({"content": "a" * 150_000})


def resets(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
    writer.transport.abort()


def closes(writer: asyncio.StreamWriter) -> None:
    writer.close()


def ends(writer: asyncio.StreamWriter) -> None:
    writer.write_eof()


def requests(session: str) -> list[bytes]:
    """What a client had sent by the moment when it went away: in part, and as a whole."""
    submit = f"POST /v1/sessions/{session}/runs HTTP/1.1\r\n{HEADERS}"
    submit += "Content-Type: application/json\r\n"
    texts = [
        "GET /v1/sess",
        f"{submit}Content-Length: 1000\r\n\r\n{{",
        f"{submit}Transfer-Encoding: chunked\r\n\r\n10\r\n{{",
        f"{submit}Content-Length: {len(BODY)}\r\n\r\n{BODY}",
        f"GET /v1/sessions/{session}/messages HTTP/1.1\r\n{HEADERS}\r\n" * 20,
        f"GET /v1/events HTTP/1.1\r\n{HEADERS}\r\n",
        f"GET /v1/events?last_event_id=0 HTTP/1.1\r\n{HEADERS}\r\n",
        "GET /static/chat.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20,
    ]
    return [text.encode() for text in texts]


async def sends(gateway: Site, raw: bytes, *, reads: bool) -> asyncio.StreamWriter:
    """A connection on which so much was sent; `reads` waits for the answer to begin."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(raw)
    await writer.drain()
    if reads and raw.startswith(b"GET") and raw.endswith(b"\r\n\r\n"):
        assert await reader.read(1)
    return writer


async def abandoned(gateway: Site, amount: int) -> None:
    """Return once the server has noticed of so many requests that their senders went away."""
    found = 0
    while found < amount:
        _, metrics = await gateway.ask("GET", "/metrics")
        lines = str(metrics["text"]).splitlines()
        found = sum(int(float(line.split()[-1])) for line in lines if f'status="{GONE}"' in line)


@pytest.mark.requirement("API-4")
@pytest.mark.parametrize("leaves", [resets, closes, ends])
async def test_a_client_that_goes_away_is_no_error(
    sites: Sites,
    caplog: pytest.LogCaptureFixture,
    fail_after: FailAfter,
    leaves: Callable[[asyncio.StreamWriter], None],
) -> None:
    gate = Gate()
    with capture_logs() as logged:
        async with fail_after(), sites(Said("slow", before=gate), *["ok"] * 9) as gateway:
            session = await gateway.session()
            run = await gateway.says(session, "one")
            await gate.reached.wait()
            left = []
            for raw in requests(session):
                for reads in (False, True):
                    left.append(await sends(gateway, raw, reads=reads))
                    leaves(left[-1])
            # Two that had sent a part of a body, each with and without waiting.
            await abandoned(gateway, 4)
            gate.open.set()
            # What happens now is written to the streams whose readers are gone.
            await gateway.state(run, "completed")
            for writer in left:
                writer.close()
    assert [line for line in logged if line["log_level"] in ("error", "critical")] == []
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.requirement("API-3")
async def test_a_connection_of_ours_that_breaks_is_an_error_all_the_same(sites: Sites) -> None:
    async with sites() as gateway:
        with capture_logs() as logged:

            async def broken(*_: object, **__: object) -> None:
                raise ConnectionResetError("the other side of ours")

            gateway.services.views.sessions = broken  # type: ignore[method-assign]  # a defect
            status, _ = await gateway.ask("GET", "/v1/sessions")
        assert status == 500
        assert [line["event"] for line in logged if line["log_level"] == "error"] == [
            "request_failed"
        ]
