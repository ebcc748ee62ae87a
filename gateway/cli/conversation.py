"""One session over HTTP, kept up to date: what the terminal chat and `chat -m` stand on.

The list of messages is the truth; events only say when to read it again. So a lost connection or a
dropped event costs a moment and never a message. It shows nothing.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.terminal.conversation import Call, Card, Decision, Entry
from gateway.cli.answers import Refused, Unreachable
from gateway.cli.client import GatewayClient, JsonObject, ServerEvent
from gateway.cli.common import escaped, pause
from runtime.domain.json_fields import number_of, object_of, objects_of, text_of

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
        step = number_of(data, "step")
        of = (text_of(data, "run_id"), -1 if step is None else step)
        if data.get("offset") == 0 or of != self._of:
            self._text, self._of = "", of
        self._text += text_of(data, "text")

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
        self._over: set[str] = set()

    def take(self, data: JsonObject) -> None:
        """News of a run. Of what a tool printed, the last line with words in it is told.

        A live event may come late: of a run that is over nothing is told any more.
        """
        run, state = text_of(data, "run_id"), text_of(data, "state")
        if run in self._over:
            return
        if state == "done":
            # It waits, or it gave an answer and goes on; what ends it is a durable event.
            self._pause(run)
            return
        lines = [line.strip() for line in text_of(data, "detail").splitlines() if line.strip()]
        if lines or state != "output":
            self.text = " ".join((state, *lines[-1:]))
        self._run = run

    def end(self, run_id: str) -> None:
        """A run is over. Its end may come behind the beginning of the next one, which goes on."""
        self._over.add(run_id)
        self._pause(run_id)

    def _pause(self, run_id: str) -> None:
        if run_id == self._run:
            self.text = ""


class Conversation:
    """Follows one session. `entries` are the oldest first."""

    def __init__(self, client: GatewayClient, session: JsonObject) -> None:
        self._client = client
        self._page = client.url
        self.session_id = text_of(session, "id")
        self.title = text_of(session, "title") or text_of(session, "key")
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
        read = (_entry(one, self._page) for one in objects_of(page, "items"))
        fresh = tuple(
            one for one in read if one.text or one.calls or one.card or one.kind == "user"
        )
        keys = {one.key for one in fresh}
        older = [one for one in self.entries if one.key not in keys and not one.waiting]
        # What a newer page does not hold is older than it, unless the page is the whole story.
        more = "next_cursor" in object_of(page, "pagination")
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
            await pause(RETRY_S)

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
                self._live.end(text_of(data, "run_id"))
                self._doing.end(text_of(data, "run_id"))
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
                await pause(RETRY_S)
            else:
                return Submitted(text_of(done, "disposition"), text_of(done, "run_id"))
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


def _entry(one: JsonObject, server: str) -> Entry:
    card, step = object_of(one, "card"), number_of(one, "step")
    return Entry(
        key=text_of(one, "key"),
        kind=text_of(one, "kind"),
        name=text_of(one, "name"),
        text=_said(one, server),
        run_id=text_of(one, "run_id"),
        step=-1 if step is None else step,
        calls=tuple(_call(call) for call in objects_of(one, "calls")),
        card=_card(card) if card else None,
        waiting=one.get("waiting") is True,
        undone=one.get("undone") is True,
    )


def _said(one: JsonObject, server: str) -> str:
    """The words of an entry; a file that was sent is a line that says where to get it. A terminal
    has no buttons, so those about the one thing that a notice tells of are lines that say what to
    write; a list of several says it in its own words."""
    buttons = objects_of(one, "buttons")
    if len({text_of(button, "about") for button in buttons}) > 1:
        buttons = []
    written = [
        f"{escaped(text_of(button, 'label'))}: `{escaped(text_of(button, 'command'))}`"
        for button in buttons
    ]
    files = [
        f"File `{escaped(text_of(file, 'name'))}`: `{server}{text_of(file, 'url')}`"
        for file in objects_of(one, "files")
    ]
    return "\n\n".join(part for part in (text_of(one, "text"), *files, *written) if part)


def _call(one: JsonObject) -> Call:
    return Call(
        text_of(one, "name"),
        escaped(text_of(one, "arguments")),
        text_of(one, "status") or text_of(one, "state"),
    )


def _card(one: JsonObject) -> Card:
    return Card(
        request_id=text_of(one, "request_id"),
        run_id=text_of(one, "run_id"),
        code=text_of(one, "code"),
        kind=text_of(one, "kind"),
        open=one.get("state") == "open",
        tool=text_of(one, "tool"),
        # What is allowed is what is shown: a terminal would drop or obey some characters.
        arguments=escaped(text_of(one, "arguments")),
        reason=text_of(one, "reason"),
        risk=text_of(object_of(one, "risk"), "words"),
        question=text_of(one, "question"),
        options=_texts(one, "options"),
        choices=_texts(one, "choices"),
        outcome=text_of(one, "outcome"),
    )


def _texts(one: JsonObject, name: str) -> tuple[str, ...]:
    value = one.get(name)
    return tuple(str(text) for text in value) if isinstance(value, list) else ()
