"""A chat that stays open: it streams, and misses nothing when the gateway goes and comes back."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from gateway.cli.client import GatewayClient
from gateway.cli.conversation import Conversation
from tests.conftest import FailAfter
from tests.scenario.process.program import ADMIN, Place, gateway
from tests.scenario.process.talk import conversation, finished


class Watcher:
    """Somebody who looks at a conversation; `until` waits for what they see."""

    def __init__(self, talk: Conversation) -> None:
        self.talk = talk
        self._changed = asyncio.Event()

    def changed(self) -> None:
        self._changed.set()

    async def until(self, text: str) -> None:
        """Wait until a message holds `text`."""
        while not any(text in entry.text for entry in self.talk.entries):
            self._changed.clear()
            await self._changed.wait()

    async def until_streamed(self, text: str) -> None:
        """Wait until the running step has written `text`."""
        while self.talk.live != text:
            self._changed.clear()
            await self._changed.wait()


@pytest.mark.requirement("TTY-1")
async def test_an_open_chat_misses_nothing_over_a_restart(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(90):
        async with gateway(place) as program:
            url = await program.url()
            place.variables["GATEHOUSE_HTTP__PORT"] = url.rpartition(":")[2]
            client = await GatewayClient(url, ADMIN).__aenter__()
            watcher = Watcher(await Conversation.open(client, "main"))
            task = asyncio.create_task(watcher.talk.follow(watcher.changed), name="follow")
            async with conversation(url) as other:
                await other.submit("hello")
            await watcher.until("offline model")
            program.signal(signal.SIGKILL)
            await program.ended()
        async with gateway(place) as program, conversation(await program.url()) as other:
            sent = await other.submit("list files")
            await finished(other, sent.run_id)
            await watcher.until("empty folder")
            asked = [one.text for one in watcher.talk.entries if one.kind == "user"]
            assert asked == ["hello", "list files"]
            assert watcher.talk.live == ""
            await cancelled(task)
            await client.__aexit__(None, None, None)


@pytest.mark.requirement("TTY-1")
async def test_a_reply_arrives_piece_by_piece(place: Place, fail_after: FailAfter) -> None:
    async with fail_after(90), slow_model() as model:
        place.variables |= {
            "GATEHOUSE_MODELS__DEFAULT": "openai:slow",
            "OPENAI_API_KEY": "sk-test-key",
            "OPENAI_BASE_URL": model.url,
        }
        async with gateway(place) as program, conversation(await program.url()) as talk:
            watcher = Watcher(talk)
            task = asyncio.create_task(talk.follow(watcher.changed), name="follow")
            sent = await talk.submit("hello")
            await watcher.until_streamed("One two")
            assert talk.activity
            model.go.set()
            assert await finished(talk, sent.run_id) == "completed"
            await watcher.until("One two three.")
            assert talk.live == ""
            await cancelled(task)


class SlowModel:
    """A server of the OpenAI chat protocol that stops in the middle until `go` is set."""

    def __init__(self) -> None:
        self.url = ""
        self.go = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request: a chat with a stream of three pieces, anything else with 404."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines()
        if head[0].startswith("post "):
            length = next(line for line in head if line.startswith("content-length:"))
            await reader.readexactly(int(length.partition(":")[2]))
            await self._stream(writer)
        else:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        writer.write(b"Connection: close\r\n\r\n")
        for piece in ("One ", "two", " three."):
            if piece == " three.":
                await self.go.wait()
            writer.write(_chunk({"content": piece}, None))
            await writer.drain()
        writer.write(_chunk({}, "stop") + b"data: [DONE]\n\n")


def _chunk(delta: dict[str, str], finish: str | None) -> bytes:
    body = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "slow",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return f"data: {json.dumps(body)}\n\n".encode()


@asynccontextmanager
async def slow_model() -> AsyncIterator[SlowModel]:
    """The server, as long as the block lasts."""
    model = SlowModel()
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        yield model


async def cancelled(task: "asyncio.Task[None]") -> None:
    """End a task that never ends by itself."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
