"""A model server that a test plays: OpenAI's chat completions, streamed, and held on command.

It speaks what compatible servers speak and decides nothing: the test's script answers each request.
An answer can wait at a gate in the middle of its stream, so that a test knows where the program is
when it stops it. It has no clock, and it refuses a request that asks for no stream. An answer may
also be given byte by byte, see `raw_answers`; `model_rows` has the oddities of real servers.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias

from aiohttp import web

from tests.wire.raw_answers import Gate, Playing, Raw, play

Json: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class Use:
    """A tool call: the arguments as the text that the model writes, valid or not."""

    name: str
    arguments: str


def use(name: str, **arguments: object) -> Use:
    """A tool call with well-formed arguments."""
    return Use(name, json.dumps(arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model does next.

    `pieces` are streamed one by one, then the stream waits at the gate `hold`, then come `ending`
    and the calls. `cut` ends the connection after the pieces. `status` other than 200 refuses.
    """

    pieces: tuple[str, ...] = ()
    hold: str = ""
    ending: str = ""
    uses: tuple[Use, ...] = ()
    cut: bool = False
    status: int = 200


def says(*pieces: str, hold: str = "", ending: str = "") -> Answer:
    """An answer in words."""
    return Answer(pieces=pieces, hold=hold, ending=ending)


def calls(*uses: Use) -> Answer:
    """An answer that calls tools."""
    return Answer(uses=uses)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request: the whole body, the last words of the person, what tools said since, the
    headers by their names in small letters, and the query."""

    body: Json
    asked: str
    results: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""

    @property
    def text(self) -> str:
        """Everything that the model was sent, as JSON."""
        return json.dumps(self.body, ensure_ascii=False)


Script: TypeAlias = Callable[[Prompt], Answer | Raw]


class ModelServer:
    """Listens on a port of the loopback interface, a free one if none is given. `prompts` are the
    requests that came, and `played` the raw answers that were given."""

    def __init__(self, port: int = 0) -> None:
        self.url = ""
        self._port = port
        self.prompts: list[Prompt] = []
        self.played: list[Playing] = []
        self.models: list[str] | None = None
        """What it lists; None where it has no list."""
        self.plays: Script = lambda prompt: says("Hello from the scripted model.")
        self._gates: dict[str, Gate] = {}

    def gate(self, name: str) -> Gate:
        """The gate of this name."""
        return self._gates.setdefault(name, Gate())

    def about(self, words: str) -> list[Prompt]:
        """The requests whose last words of the person hold these."""
        return [prompt for prompt in self.prompts if words in prompt.asked]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Serve until the block ends; what still waits is let go."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._list)
        runner = web.AppRunner(app, shutdown_timeout=1.0, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self._port).start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        try:
            yield self
        finally:
            for gate in self._gates.values():
                gate.opened.set()
            await runner.cleanup()

    async def _list(self, _: web.Request) -> web.Response:
        if self.models is None:
            raise web.HTTPNotFound
        return web.json_response({"object": "list", "data": [{"id": one} for one in self.models]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body.get("stream") is not True:
            return web.json_response({"error": {"message": "only streams here"}}, status=400)
        headers = {name.lower(): value for name, value in request.headers.items()}
        prompt = replace(_prompt(body), headers=headers, query=request.query_string)
        self.prompts.append(prompt)
        answer = self.plays(prompt)
        if isinstance(answer, Raw):
            self.played.append(Playing(answer))
            return await play(request, self.played[-1], self.gate)
        if answer.status != 200:
            problem = {"error": {"message": "refused by the script", "type": "test"}}
            return web.json_response(problem, status=answer.status)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await self._stream(request, response, answer)
        except ConnectionError:
            # The client is gone; that is its right, and often the point of the test.
            return response
        return response

    async def _stream(
        self, request: web.Request, response: web.StreamResponse, answer: Answer
    ) -> None:
        for piece in answer.pieces:
            await response.write(_chunk({"content": piece}))
        if answer.hold:
            gate = self.gate(answer.hold)
            gate.entered.set()
            await gate.opened.wait()
        if answer.cut:
            if request.transport is not None:
                request.transport.abort()
            return
        if answer.ending:
            await response.write(_chunk({"content": answer.ending}))
        for index, one in enumerate(answer.uses):
            named = {"name": one.name, "arguments": one.arguments}
            name = f"call_{len(self.prompts)}_{index}"
            call = {"index": index, "id": name, "type": "function", "function": named}
            await response.write(_chunk({"tool_calls": [call]}))
        await response.write(_chunk({}, "tool_calls" if answer.uses else "stop"))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()


def _chunk(delta: Json, finish_reason: str | None = None) -> bytes:
    body = {
        "id": "chatcmpl-test",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "scripted",
        "choices": [
            {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish_reason}
        ],
    }
    return f"data: {json.dumps(body)}\n\n".encode()


def _prompt(body: Json) -> Prompt:
    messages = body["messages"]
    assert isinstance(messages, list)
    asked = ""
    results: list[str] = []
    for message in messages:
        if message["role"] == "user":
            asked, results = _words(message["content"]), []
        elif message["role"] == "tool":
            results.append(_words(message["content"]))
    return Prompt(body, asked, tuple(results))


def _words(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content)
