"""The chat platform, in a process that nobody kills: what was posted stays posted."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.scenario.engine import OWNER

CHAT = f"D-{OWNER}"
GROUP = "G-1"
Kept = tuple[int, str]
"""(which message of the gateway, or which edit of a card; point): what the platform did, before
its sender hears of it."""
OUTSIDE = frozenset(f"{done}:kept" for done in ("post", "grow", "draft", "close", "edit"))
"""The points of the platform."""


@dataclass(frozen=True)
class Post:
    """What a person sees."""

    id: str
    outbox_id: str
    text: str


@dataclass
class Platform:
    """Delivers until it is acknowledged, keeps posts, and hears the gateway's crash points.

    `on_kept` is called when a request was carried out and before its sender is told; True hangs up
    instead. `kept` are these moments. A draft is a text that is shown and leaves no post.
    """

    posts: list[Post] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    edits: list[str] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    points: list[tuple[int, str]] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    on_kept: Callable[[Kept], bool] = lambda _kept: False
    port: int = 0

    def __post_init__(self) -> None:
        self._inbound: dict[str, dict[str, Any]] = {}
        self._listeners: list[asyncio.StreamWriter] = []
        self._open: set[asyncio.StreamWriter] = set()
        self._numbers: dict[str, int] = {}
        self.changed = asyncio.Event()
        self.worked = asyncio.Event()
        """Set by each point that a gateway passes."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen on a port of this machine."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for writer in tuple(self._open):
                writer.close()
            await server.wait_closed()

    @property
    def listeners(self) -> int:
        """How many gateways listen."""
        return len(self._listeners)

    def says(self, message_id: str, text: str, chat: str = CHAT) -> None:
        """A person writes a message; a chat is a group where its id begins with a G."""
        group = chat.startswith("G")
        message = {
            "channel": "test",
            "account": "A1",
            "chat_id": chat,
            "chat_kind": "group" if group else "direct",
            "mentions_bot": group,
            "message_id": message_id,
            "sender": {"id": OWNER, "name": "Ada"},
            "text": text,
            "received_at_ms": 1,
        }
        self._deliver({"id": message_id, "message": message})

    def presses(self, open_call_id: str, choice: str) -> None:
        """A person presses a button of a card."""
        press = {
            "channel": "test",
            "account": "A1",
            "chat_id": CHAT,
            "sender": {"id": OWNER, "name": "Ada"},
            "open_call_id": open_call_id,
            "choice": choice,
            "press_id": f"p-{open_call_id}",
            "received_at_ms": 1,
        }
        self._deliver({"id": f"p-{open_call_id}", "press": press})

    def _deliver(self, item: dict[str, Any]) -> None:
        self._inbound[item["id"]] = item
        for writer in self._listeners:
            _write(writer, item)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            first = await reader.readline()
            if not first:
                # It died before it said who it is.
                return
            role = json.loads(first)["role"]
            if role == "listen":
                self._listeners.append(writer)
                for item in self._inbound.values():
                    if item["id"] not in self.acknowledged:
                        _write(writer, item)
            while line := await reader.readline():
                self._heard(role, json.loads(line), writer)
                self.changed.set()
        except ConnectionError:
            # The gateway was killed; what it had asked for is done or not, as on any platform.
            return
        finally:
            self._open.discard(writer)
            if writer in self._listeners:
                self._listeners.remove(writer)
            writer.close()
            self.changed.set()

    def _heard(self, role: str, said: Any, writer: asyncio.StreamWriter) -> None:
        if role == "points":
            self.points.append((said[0], said[1]))
            self.worked.set()
        elif role == "listen":
            self.acknowledged.add(said["acknowledged"])
        else:
            self._request(said, writer)

    def _request(self, said: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if said["op"] == "lookup":
            found = [post.id for post in self.posts if post.outbox_id == said["outbox_id"]]
            _write(writer, {"id": found[0] if found else None})
            return
        answer = self._done(said)
        number = len(self.edits)
        if said["op"] != "edit":
            number = self._numbers.setdefault(said["outbox_id"], len(self._numbers) + 1)
        kept = (number, f"{said['op']}:kept")
        self.kept.append(kept)
        if self.on_kept(kept):
            writer.close()
        else:
            _write(writer, answer)

    def _done(self, said: dict[str, Any]) -> dict[str, Any]:
        """Carry a request out: a post is made or changed, a draft shown, a card edited."""
        match said["op"]:
            case "post":
                post = Post(f"post-{len(self.posts) + 1}", said["outbox_id"], said["text"])
                self.posts.append(post)
                return {"id": post.id}
            case "grow" | "close":
                place = [post.id for post in self.posts].index(said["of"])
                self.posts[place] = replace(self.posts[place], text=said["text"])
            case "draft":
                self.drafts.append(said["text"])
            case _:
                self.edits.append(said["text"])
        return {}


def _write(writer: asyncio.StreamWriter, item: dict[str, Any]) -> None:
    writer.write(json.dumps(item).encode() + b"\n")
