"""The page and the terminal as platforms: a person at the gateway's own server.

What they say goes in by the API, over a real socket, into a real database; what they read comes by
the event stream, and what is too long for it from the conversation, as the page reads it.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final

import aiohttp
from pydantic import SecretStr
from rich.console import Console, RenderableType

from adapters.rendering.terminal import TerminalMarkdown
from adapters.system.clock import SystemClock
from adapters.terminal import entry_views
from adapters.web.adapter import WebAdapter
from gateway.cli.client import GatewayClient, JsonObject
from gateway.http.app import build_app
from gateway.http.server import serve
from gateway.http.services import HttpServices, HttpSettings
from runtime.bus.memory import MemoryBus
from runtime.domain.json_fields import objects_of
from runtime.domain.messages import ChatAddress, OutboundMessage
from runtime.intake.control import Control, ControlServices, ControlSettings
from runtime.intake.logins import Logins
from runtime.ports.chat import ChatAdapter
from runtime.sessions import outbox
from runtime.sessions.outbox import NewRow
from runtime.sessions.unit import Units
from runtime.store import Database, open_database
from runtime.views.reader import Views
from tests.fakes.gatehouse import FakeGatehouse
from tests.support.kinds import KINDS
from tests.support.templates import make_database

TOKEN: Final = "token-of-the-page"
BEARER: Final = {"Authorization": f"Bearer {TOKEN}"}
WIDE: Final = 10_000
"""Columns of a terminal that breaks no line."""
NO_POST = "nothing is called that could answer so: what is sent is published to whoever looks"
LACKS: Final[Mapping[str, str]] = {
    "edits": "what was said stands; a person says it anew",
    "deletes": "what was said stands; a person says it anew",
    "limit": NO_POST,
    "refuse": NO_POST,
    "lose": NO_POST,
    "absent": "the outbox itself is what is read, so what is in it is there",
    "presses": "a decision is a request of its own (tests/scenario/http/test_open_calls.py)",
    "strangers": "nobody but the gateway's owner is there",
    "streams": "the page follows the growing text itself (tests/scenario/http/test_events.py)",
    "long": "a message of any length is one post",
}
"""What a page and a terminal have not, and why."""


class LocalPlatform:
    """A person at the page or the terminal; the gateway behind it keeps messages in a fake."""

    def __init__(self, channel: str, place: "_Place", client: GatewayClient) -> None:
        self.adapter: ChatAdapter = WebAdapter(place.bus, channel=channel)
        self.gatehouse = place.gatehouse
        self.target = ChatAddress(channel=channel, account="local", chat_id="c1")
        self.session_id = ""
        self._place, self._client = place, client
        self._said: dict[str, JsonObject] = {}
        self._shown: dict[str, str] = {}
        self._links: dict[str, tuple[str, str]] = {}

    async def opens(self) -> None:
        """The person opens a conversation."""
        asked: JsonObject = {"channel": self.target.channel, "key": self.target.chat_id}
        self.session_id = str((await self._client.post("/v1/sessions", asked))["id"])
        await self.adapter.connect()

    async def says(self, text: str) -> str:
        return await self._sends({"content": text})

    async def _sends(self, body: JsonObject) -> str:
        """As the page and the terminal send it: with a key that stays the same when repeated."""
        key = f"k{len(self._said)}"
        self._said[key] = body
        status = await self._asks(key)
        assert status == (202 if self.gatehouse.messages else 503)
        return f"key-{key}"

    async def _asks(self, key: str) -> int:
        url = f"{self._client.url}/v1/sessions/{self.session_id}/runs"
        headers = {"Idempotency-Key": key}
        async with self._place.http.post(url, json=self._said[key], headers=headers) as answer:
            return answer.status

    async def redelivers(self) -> None:
        for key in self._said:
            assert await self._asks(key) == 202

    async def repeats(self, message_id: str) -> None:
        assert await self._asks(message_id.removeprefix("key-")) == 202

    async def wrote(self, message: OutboundMessage) -> None:
        """The page reads it from here where it is long or a file."""
        row = NewRow("notice", message.model_copy(update={"session_id": self.session_id}))
        await self._place.database.write(lambda conn: outbox.add(conn, row), name="test")

    async def shares(self, name: str, content: bytes) -> None:
        asset: JsonObject = {"type": "inline_asset", "name": name, "data": _base64(content)}
        words: JsonObject = {"type": "text", "text": "read this"}
        await self._sends({"input_items": [words, asset]})

    def brought(self, path: str) -> bytes:
        return (self._place.workspace / path).read_bytes()

    async def files(self) -> list[tuple[str, bytes]]:
        found = []
        for name, url in self._links.values():
            async with self._place.http.get(f"{self._client.url}{url}") as answer:
                if answer.status == 200:
                    found.append((name, await answer.read()))
        return found

    def seen(self) -> list[str]:
        return list(self._shown.values())

    async def looks(self, begun: asyncio.Event) -> None:
        """Follow the event stream as the page does."""
        async for event in self._client.events({}, after=None):
            begun.set()
            if event.kind == "message":
                await self._reads(event.data)

    async def _reads(self, event: JsonObject) -> None:
        key = str(event["outbox_id"])
        if event["complete"]:
            parts = objects_of(event, "parts")
            self._links |= {
                str(one["url"]): (str(one["name"]), str(one["url"]))
                for one in parts
                if one["kind"] == "file"
            }
            self._shown[key] = "\n".join(_shown(one, self.target.channel) for one in parts)
            return
        page = await self._client.get(f"/v1/sessions/{self.session_id}/messages")
        (text,) = [str(one["text"]) for one in objects_of(page, "items") if one["key"] == key]
        part: JsonObject = {"kind": "text", "markdown": text}
        self._shown[key] = _shown(part, self.target.channel)


@dataclass(frozen=True, slots=True)
class Card:
    """An approval, as the terminal is given it."""

    code: str
    tool: str
    arguments: str
    reason: str
    outcome: str
    risk: str
    kind: str = "approval"
    request_id: str = "apr_01"
    question: str = ""
    options: tuple[str, ...] = ()
    choices: tuple[str, ...] = ("once", "deny")

    @property
    def open(self) -> bool:
        return not self.outcome


@dataclass(frozen=True, slots=True)
class _Place:
    """What stands behind the server."""

    bus: MemoryBus
    database: Database
    gatehouse: FakeGatehouse
    workspace: Path
    http: aiohttp.ClientSession

    def services(self) -> HttpServices:
        """A server that hands what is said to the fake."""
        clock = SystemClock()
        control = ControlSettings(workspace=self.workspace)
        services = ControlServices(
            Units(self.database, self.bus, KINDS), clock, self.gatehouse, lambda: control
        )
        return HttpServices(
            settings=HttpSettings(admin_tokens=lambda: (TOKEN,), port=0),
            views=Views(self.database, KINDS),
            control=Control(services),
            logins=Logins(self.database, clock),
            bus=self.bus,
            clock=clock,
            render=lambda text: [text],
            render_growing=lambda text: [text],
            workspace=self.workspace,
        )


@asynccontextmanager
async def local(channel: str, path: Path) -> AsyncIterator[LocalPlatform]:
    """A person who looks at the page, or at the terminal."""
    workspace = path / "workspace"
    workspace.mkdir()
    url = f"sqlite:///{path}/gatehouse.db"
    await make_database(url)
    database = open_database(url, clock=SystemClock())
    await database.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(database.close)
        http = await stack.enter_async_context(aiohttp.ClientSession(headers=BEARER))
        place = _Place(MemoryBus(), database, FakeGatehouse(), workspace, http)
        services = place.services()
        port = await stack.enter_async_context(serve(build_app(services), services.settings))
        client = GatewayClient(f"http://127.0.0.1:{port}", SecretStr(TOKEN))
        await stack.enter_async_context(client)
        person, begun = LocalPlatform(channel, place, client), asyncio.Event()
        await person.opens()
        task = asyncio.create_task(person.looks(begun), name="page")
        await begun.wait()
        try:
            yield person
        finally:
            task.cancel()
            await asyncio.wait([task])


def _shown(part: JsonObject, channel: str) -> str:
    """A part as the person reads it; the terminal's own rendering makes the terminal's."""
    if part["kind"] == "file":
        return str(part["name"])
    if part["kind"] == "text":
        text = str(part["markdown"])
        return _printed(TerminalMarkdown(text)) if channel == "terminal" else text
    names = ("code", "tool", "arguments", "reason", "outcome")
    risk = part["risk"]["words"] if isinstance(part["risk"], dict) else ""
    card = Card(**{name: str(part[name]) for name in names}, risk=str(risk))
    if channel == "terminal":
        return _printed(entry_views.card(card))
    return " ".join((card.tool, card.arguments, card.reason, card.risk, card.outcome))


def _printed(what: RenderableType) -> str:
    output = StringIO()
    Console(file=output, width=WIDE, color_system=None).print(what)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()).strip()


def _base64(content: bytes) -> str:
    return b64encode(content).decode()
