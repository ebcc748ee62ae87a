"""One socket: what it takes at once is bounded, and the rest is left to Slack to send again."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import WSMessage, WSMsgType

from adapters.slack import socket_mode
from adapters.slack.socket_mode import Ack, Envelope, Link
from tests.fakes.clock import FakeClock, settle


class Frames:
    """A socket that brings envelopes, one after the other, and keeps what was answered."""

    def __init__(self, *ids: str) -> None:
        self.answered: list[str] = []
        self.open = asyncio.Event()
        self._ids = ids

    async def __aiter__(self) -> AsyncIterator[WSMessage]:
        for identifier in self._ids:
            envelope = {"type": "events_api", "envelope_id": identifier, "payload": {}}
            yield WSMessage(WSMsgType.TEXT, json.dumps(envelope), None)
            await settle()
        self.open.set()
        await settle()

    async def send_str(self, text: str) -> None:
        self.answered.append(str(json.loads(text)["envelope_id"]))

    async def ping(self) -> None:
        """Nobody listens."""

    async def close(self) -> None:
        """Nothing to close."""


@pytest.mark.requirement("SCALE-5", "MSG-1")
async def test_an_envelope_too_many_is_neither_handled_nor_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket_mode, "MOST_AT_WORK", 2)
    frames, handled = Frames("one", "two", "three"), list[str]()

    async def handle(envelope: Envelope) -> Ack:
        handled.append(envelope.id)
        await frames.open.wait()
        return Ack()

    socket: Any = frames
    await Link(socket, handle, FakeClock(), lambda number: None).run()
    assert handled == frames.answered == ["one", "two"]
