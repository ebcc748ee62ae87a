"""One session over HTTP, kept up to date: what the terminal chat and `chat -m` stand on.

The list of messages is the truth; events only say when to read it again. So a lost connection or a
dropped event costs a moment and never a message. It shows nothing.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from adapters.terminal.conversation import Call, Card, Decision, Entry
from gateway.cli.answers import Refused, Unreachable
from gateway.cli.answers import objects as objects_of
from gateway.cli.client import GatewayClient, Json, JsonObject, ServerEvent
from gateway.cli.common import escaped

HISTORY: Final = 200
RETRY_S: Final = 1.0
SEND_TRIES: Final = 5
TERMINAL: Final = frozenset({"completed", "failed", "interrupted", "cancelled"})
RUN_ENDS: Final = frozenset(f"run.{state}" for state in TERMINAL)


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a message: a run, or a command that was obeyed at once."""

    disposition: str
    run_id: str


class LiveText:
    """What the running step has written so far, put together from events."""

    def __init__(self) -> None:
        self._text = ""
        self._of = ("", -1)
        self._over: set[str] = set()

    def write(self, data: JsonObject) -> None:
        """Take a piece; text at the beginning, or of another step, starts anew."""
        step, offset = data.get("step"), data.get("offset")
        of = (_text(data, "run_id"), step if isinstance(step, int) else -1)
        if offset == 0 or of != self._of:
            self._text, self._of = "", of
        self._text += _text(data, "text")

    def end(self, run_id: str) -> None:
        """Of a run that is over nothing is written any more."""
        self._over.add(run_id)

    def beside(self, entries: Sequence[Entry]) -> str:
        """The text; empty once its step is among the entries.

        Durable events may pass the text that came before them, so the entries decide.
        """
        over = self._of[0] in self._over
        kept = any((one.run_id, one.step) == self._of for one in reversed(entries))
        return "" if over or kept else self._text


class Doing:
    """What a session's run does now, on one line."""

    def __init__(self) -> None:
        self.text = ""
        self._run = ""

    def take(self, data: Mapping[str, Json]) -> None:
        """News of a run. Of what a tool printed, the last line with words in it is told."""
        run, state = _text(data, "run_id"), _text(data, "state")
        if state == "done":
            self.end(run)
            return
        lines = [line.strip() for line in _text(data, "detail").splitlines() if line.strip()]
        if lines or state != "output":
            self.text = " ".join((state, *lines[-1:]))
        self._run = run

    def end(self, run_id: str) -> None:
        """A run is over. Its end may come behind the beginning of the next one, which goes on."""
        if run_id == self._run:
            self.text = ""


class Conversation:
    """Follows one session. `entries` are the oldest first."""

    def __init__(self, client: GatewayClient, session: JsonObject) -> None:
        self._client = client
        self._page = client.url
        self.session_id = _text(session, "id")
        self.title = _text(session, "title") or _text(session, "key")
        self.entries: tuple[Entry, ...] = ()
        self.activity = ""
        self.trouble = ""
        self._live = LiveText()
        self._doing = Doing()
        self._position: str | None = None

    @classmethod
    async def open(cls, client: GatewayClient, name: str) -> "Conversation":
        """The terminal's session of this name, made if need be. Raises as the client."""
        asked: JsonObject = {"channel": "terminal", "key": name}
        found = cls(client, await client.post("/v1/sessions", asked))
        found._page = await client.page_url()
        await found.refresh()
        return found

    @property
    def live(self) -> str:
        """What the running step has written; empty once the step is among the entries."""
        return self._live.beside(self.entries)

    async def refresh(self) -> None:
        """Read the newest messages; what was read before and is older stays."""
        query = {"limit": str(HISTORY)}
        page = await self._client.get(f"/v1/sessions/{self.session_id}/messages", query)
        read = (_entry(one, self._page) for one in objects_of(page.get("items")))
        fresh = tuple(
            one for one in read if one.text or one.calls or one.card or one.kind == "user"
        )
        keys = {one.key for one in fresh}
        older = [one for one in self.entries if one.key not in keys and not one.waiting]
        # What a newer page does not hold is older than it, unless the page is the whole story.
        more = isinstance(page.get("pagination"), dict) and "next_cursor" in str(page["pagination"])
        self.entries = (*(older if more else ()), *fresh)
        if self._position is None and isinstance(page.get("position"), int):
            self._position = str(page["position"])

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep up until cancelled; connects again whenever the stream ends."""
        while True:
            try:
                await self.refresh()
                changed()
                await self._stream(changed)
                self.trouble = ""
            except (Unreachable, Refused) as error:
                self.trouble = f"Not connected: {error}"
                changed()
            await _pause(RETRY_S)

    async def _stream(self, changed: Callable[[], None]) -> None:
        query = {"session_id": self.session_id}
        async for event in self._client.events(query, after=self._position):
            self.trouble = ""
            self._position = event.id or self._position
            await self._take(event)
            changed()

    async def _take(self, event: ServerEvent) -> None:
        data = event.data
        if event.kind == "delta":
            self._live.write(data)
        elif event.kind == "activity":
            self._doing.take(data)
            self.activity = self._doing.text
        else:
            if event.kind in RUN_ENDS:
                self._live.end(_text(data, "run_id"))
                self._doing.end(_text(data, "run_id"))
                self.activity = self._doing.text
            await self.refresh()

    async def submit(self, text: str) -> Submitted:
        """Send a message; tried again under the same key, so it is taken once. Raises."""
        key = secrets.token_hex(16)
        path, body = f"/v1/sessions/{self.session_id}/runs", {"content": text}
        for attempt in range(SEND_TRIES):
            try:
                done = await self._client.post(path, dict(body), key=key)
            except Unreachable:
                if attempt == SEND_TRIES - 1:
                    raise
                await _pause(RETRY_S)
            else:
                return Submitted(_text(done, "disposition"), _text(done, "run_id"))
        raise Unreachable(self._client.url)

    async def run(self, run_id: str) -> JsonObject:
        """A run as it is now. Raises as the client."""
        return await self._client.get(f"/v1/runs/{run_id}")

    async def say(self, text: str) -> str:
        """Send a message; empty, or a sentence on why it was not taken."""
        try:
            await self.submit(text)
            await self.refresh()
        except (Unreachable, Refused) as error:
            return str(error)
        return ""

    async def stop(self) -> bool:
        """Stop what runs; False where nothing does, or where nobody could be asked."""
        try:
            done = await self._client.post(f"/v1/sessions/{self.session_id}/interrupt")
        except (Unreachable, Refused):
            return False
        return any(done.get(what) for what in ("stopping", "ended", "children"))

    async def decide(self, card: Card, decision: Decision) -> str:
        """Answer an approval; empty, or a sentence on why not."""
        allow = decision != "deny"
        said: JsonObject = {
            "request_id": card.request_id,
            "behavior": "allow" if allow else "deny",
        }
        if allow:
            said["scope"] = decision
        return await self._settle(card.request_id, "approvals", {"resolutions": [said]})

    async def answer(self, card: Card, text: str) -> str:
        """Answer a question; empty, or a sentence on why not."""
        said: JsonObject = {"request_id": card.request_id, "text": text}
        return await self._settle(card.request_id, "questions", {"answers": [said]})

    async def _settle(self, request_id: str, kind: str, body: JsonObject) -> str:
        card = next((c for c in self.cards() if c.request_id == request_id), None)
        if card is None:
            return "That is settled already."
        try:
            await self._client.post(f"/v1/runs/{card.run_id}/{kind}", body)
            await self.refresh()
        except (Unreachable, Refused) as error:
            return str(error)
        return ""

    def cards(self) -> tuple[Card, ...]:
        """The cards that are still open, oldest first."""
        return tuple(one.card for one in self.entries if one.card is not None and one.card.open)


async def _pause(seconds: float) -> None:
    """Wait; the command line has no Clock, and nothing here depends on the exact time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


def _entry(one: JsonObject, server: str) -> Entry:
    card, step = one.get("card"), one.get("step")
    return Entry(
        key=_text(one, "key"),
        kind=_text(one, "kind"),
        name=_text(one, "name"),
        text=_said(one, server),
        run_id=_text(one, "run_id"),
        step=step if isinstance(step, int) else -1,
        calls=tuple(_call(call) for call in objects_of(one.get("calls"))),
        card=_card(card) if isinstance(card, dict) else None,
        waiting=one.get("waiting") is True,
        undone=one.get("undone") is True,
    )


def _said(one: JsonObject, server: str) -> str:
    """The words of an entry; a file that was sent is a line that says where to get it."""
    files = [
        f"File `{escaped(_text(file, 'name'))}`: `{server}{_text(file, 'url')}`"
        for file in objects_of(one.get("files"))
    ]
    return "\n\n".join(part for part in (_text(one, "text"), *files) if part)


def _call(one: Mapping[str, Json]) -> Call:
    return Call(
        _text(one, "name"),
        escaped(_text(one, "arguments")),
        _text(one, "status") or _text(one, "state"),
    )


def _card(one: JsonObject) -> Card:
    return Card(
        request_id=_text(one, "request_id"),
        run_id=_text(one, "run_id"),
        code=_text(one, "code"),
        kind=_text(one, "kind"),
        open=one.get("state") == "open",
        tool=_text(one, "tool"),
        # What is allowed is what is shown: a terminal would drop or obey some characters.
        arguments=escaped(_text(one, "arguments")),
        reason=_text(one, "reason"),
        risk=_text(risk, "words") if isinstance(risk := one.get("risk"), dict) else "",
        question=_text(one, "question"),
        options=_texts(one, "options"),
        choices=_texts(one, "choices"),
        outcome=_text(one, "outcome"),
    )


def _text(one: Mapping[str, Json], name: str) -> str:
    value = one.get(name)
    return value if isinstance(value, str) else ""


def _texts(one: Mapping[str, Json], name: str) -> tuple[str, ...]:
    value = one.get(name)
    return tuple(str(text) for text in value) if isinstance(value, list) else ()
