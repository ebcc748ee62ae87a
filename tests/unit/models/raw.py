"""A server that writes given bytes, for what no honest server does: hang, or end too early."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

SSE: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def openai_chunk(text: str, finish: str | None = None) -> bytes:
    """One event of a chat completion's stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    event = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    return f"data: {json.dumps(event | {'choices': [choice]})}\n\n".encode()


@dataclass(slots=True)
class Raw:
    """The server: its address, how often it was asked, and whether a client has hung up."""

    url: str = ""
    asked: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def answering(content: bytes, *, hold: bool = False) -> AsyncIterator[Raw]:
    """Write `content` to each request; then end, or with `hold` wait until the client leaves."""
    raw = Raw()
    served: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            served.add(task)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        length = int(next(lines, b":0").split(b":")[1])
        await reader.readexactly(length)
        raw.asked += 1
        writer.write(content)
        await writer.drain()
        if hold:
            await reader.read()
            raw.left.set()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield raw
    await asyncio.gather(*served)
