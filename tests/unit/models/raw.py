"""A server that writes given bytes, for what no honest server does: hang, or end too early."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

SSE: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def openai_chunk(text: str, finish: str | None = None) -> bytes:
    """One event of a chat completion's stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    event = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    return f"data: {json.dumps(event | {'choices': [choice]})}\n\n".encode()


Body = dict[str, Any]
"""A request's body in OpenAI's format."""
Answer = Callable[[Body], bytes]


def refusal(status: int, error: object, *, kind: str = "application/json") -> bytes:
    """An answer that is no stream: `error` as JSON, or text of another `kind`."""
    body = (error if isinstance(error, str) else json.dumps(error)).encode()
    head = f"HTTP/1.1 {status} No\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


@dataclass(slots=True)
class Raw:
    """The server: its address, how often and what it was asked, whether a client has hung up."""

    url: str = ""
    asked: int = 0
    bodies: list[Body] = field(default_factory=list[Body])
    left: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def answering(content: bytes | Answer, *, hold: bool = False) -> AsyncIterator[Raw]:
    """Write `content`, or what it answers, to each request; then end, or with `hold` wait until
    the client leaves."""
    raw = Raw()
    served: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            served.add(task)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        length = int(next(lines, b":0").split(b":")[1])
        body = await reader.readexactly(length)
        raw.asked += 1
        if body.startswith(b"{"):
            raw.bodies.append(json.loads(body))
        writer.write(content if isinstance(content, bytes) else content(raw.bodies[-1]))
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
