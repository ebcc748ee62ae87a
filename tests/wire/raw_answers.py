"""Answers of model servers byte by byte, for what an answer in words cannot say.

A `Raw` has a status, headers and steps: bytes, the same bytes many times, a wait at a gate, an end
of the connection. The functions below make the bytes of OpenAI's format in the shapes that servers
send; nothing here looks at what is asked.
"""

import asyncio
import gzip
import json
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from aiohttp import web

DONE: Final = b"data: [DONE]\n\n"
MODEL: Final = "scripted"


@dataclass(slots=True)
class Gate:
    """Where a stream waits: `entered` when it is there, `opened` lets it and all others through."""

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Wait:
    """The stream goes on when the gate of this name is opened."""

    gate: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """A piece that is written many times, without being held as often."""

    piece: bytes
    times: int


@dataclass(frozen=True, slots=True)
class End:
    """The connection ends in the middle: by a reset, or closed as if all had been sent."""

    how: Literal["reset", "close"] = "reset"


Step: TypeAlias = bytes | Wait | Repeat | End


@dataclass(frozen=True, slots=True)
class Raw:
    """One answer. A `Wait` as the first step comes before the head."""

    steps: tuple[Step, ...] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Playing:
    """How far an answer came: `written` bytes of its body, `left` if the client hung up."""

    raw: Raw
    written: int = 0
    left: bool = False


async def play(
    request: web.Request, playing: Playing, gate: Callable[[str], Gate]
) -> web.StreamResponse:
    """Answer the request, step by step."""
    raw = playing.raw
    steps = list(raw.steps)
    headers = {"Content-Type": raw.content_type, **raw.headers}
    response = web.StreamResponse(status=raw.status, headers=headers)
    while steps and isinstance(first := steps[0], Wait):
        await _pass(gate(first.gate))
        steps.pop(0)
    try:
        await response.prepare(request)
        for step in steps:
            match step:
                case bytes():
                    await response.write(step)
                    playing.written += len(step)
                case Repeat(piece=piece, times=times):
                    for _ in range(times):
                        await response.write(piece)
                        playing.written += len(piece)
                case Wait(gate=name):
                    await _pass(gate(name))
                case End(how=how):
                    _end(request.transport, how)
                    return response
        await response.write_eof()
    except ConnectionError:
        playing.left = True
    return response


def _end(transport: asyncio.Transport | None, how: Literal["reset", "close"]) -> None:
    if transport is None:
        return
    if how == "close":
        transport.close()
        return
    # Without a linger time, the close of a socket is a reset.
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def _pass(gate: Gate) -> None:
    gate.entered.set()
    await gate.opened.wait()


def event(**fields: object) -> bytes:
    """One event of a stream, with the fields that every chunk has."""
    whole = {
        "id": "chatcmpl-7f3a",
        "object": "chat.completion.chunk",
        "created": 1_764_300_000,
        "model": MODEL,
        "system_fingerprint": "fp_made_up",
        **fields,
    }
    return b"data: " + json.dumps(whole).encode() + b"\n\n"


def choice(delta: object, finish: object = None, **fields: object) -> bytes:
    """A chunk with one choice."""
    one = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return event(choices=[one], **fields)


def words(*texts: str, finish: object = None) -> bytes:
    """The texts, a chunk each; `finish` stands in all of them."""
    return b"".join(choice({"content": text}, finish) for text in texts)


def fragment(
    arguments: object = "",
    *,
    name: str | None = None,
    index: int | None = 0,
    identifier: object = "",
) -> bytes:
    """A fragment of a tool call; what is empty or None is left out."""
    function: dict[str, object] = {"arguments": arguments} | ({"name": name} if name else {})
    call: dict[str, object] = {"type": "function", "function": function}
    if index is not None:
        call["index"] = index
    if identifier != "":
        call["id"] = identifier
    return choice({"tool_calls": [call]})


def stop(reason: object = "stop") -> bytes:
    """The last chunk, with its reason and without words, and the end."""
    return choice({}, reason) + DONE


def usage(prompt: int, completion: int) -> dict[str, int]:
    """What was counted."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def sse(*steps: Step) -> Raw:
    """A stream of events."""
    return Raw(steps)


def answer(*texts: str) -> Raw:
    """A stream as OpenAI sends it."""
    role = choice({"role": "assistant", "content": "", "refusal": None})
    return sse(role + words(*texts) + stop())


def whole(body: object, status: int = 200, **headers: str) -> Raw:
    """An answer in JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Raw((json.dumps(body).encode(),), status, "application/json", named)


def refusal(message: str, status: int = 400, **fields: object) -> Raw:
    """An error as OpenAI words it."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return whole({"error": error | fields}, status)


def page(text: str, status: int = 200) -> Raw:
    """A web page where an answer should be."""
    return Raw((text.encode(),), status, "text/html; charset=utf-8")


def completion(message: Mapping[str, object], finish: str = "stop") -> dict[str, object]:
    """A whole completion, as it is where no stream was asked for."""
    return {
        "id": "chatcmpl-7f3a",
        "object": "chat.completion",
        "created": 1_764_300_000,
        "model": MODEL,
        "choices": [
            {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        ],
        "usage": usage(20, 5),
    }


def changed(raw: Raw, change: Callable[[bytes], bytes], **headers: str) -> Raw:
    """The answer with its bytes changed, all of them at once."""
    body = b"".join(step for step in raw.steps if isinstance(step, bytes))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return replace(raw, steps=(change(body),), headers={**raw.headers, **named})


def gzipped(raw: Raw) -> Raw:
    """The answer, compressed."""
    return changed(raw, gzip.compress, Content_Encoding="gzip")


def bytewise(raw: Raw, size: int = 1) -> Raw:
    """The answer in writes of `size` bytes."""
    body = b"".join(step for step in raw.steps if isinstance(step, bytes))
    cut = (body[at : at + size] for at in range(0, len(body), size))
    return replace(raw, steps=tuple(cut))
