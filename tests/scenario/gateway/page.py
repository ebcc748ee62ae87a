"""A person at the web page, and the operator's view of the event feed, over HTTP and SSE."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.cli.answers import Refused, Unreachable
from gateway.cli.client import GatewayClient, JsonObject, ServerEvent
from runtime.domain.json_fields import objects_of

ENDS = frozenset({"run.completed", "run.failed", "run.interrupted", "run.cancelled"})


@dataclass
class Feed:
    """Every durable event since the database was made, and the live ones since it was opened."""

    events: list[ServerEvent] = field(default_factory=list)
    live: list[ServerEvent] = field(default_factory=list)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _over: bool = False

    async def follow(self, client: GatewayClient) -> None:
        """Read until the gateway is gone or this is cancelled."""
        try:
            async for event in client.events({}, after="0"):
                async with self._news:
                    (self.events if "kind" in event.data else self.live).append(event)
                    self._news.notify_all()
        except (Unreachable, Refused):
            pass
        finally:
            async with self._news:
                self._over = True
                self._news.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Until the condition holds; it is looked at after each event."""
        async with self._news:
            await self._news.wait_for(lambda: condition() or self._over)
        assert condition(), f"the feed ended first: {self.kinds()}"

    async def next(self) -> None:
        """Until there was a further event."""
        async with self._news:
            await self._news.wait()
        assert not self._over, f"the feed ended first: {self.kinds()}"

    def kinds(self, run_id: str | None = None) -> list[str]:
        """The kinds of the durable events, of one run or of all."""
        return [one.kind for one in self.of(run_id)]

    def of(self, run_id: str | None) -> list[ServerEvent]:
        """The durable events of a run, or all."""
        return [one for one in self.events if run_id in (None, one.data.get("run_id"))]

    def runs(self) -> list[str]:
        """The runs that there were, in order."""
        found = (str(one.data.get("run_id")) for one in self.events if one.kind == "run.queued")
        return list(dict.fromkeys(found))

    async def run(self, number: int) -> str:
        """The id of the run with this number (from 0), once it is there."""
        await self.until(lambda: len(self.runs()) > number)
        return self.runs()[number]

    async def ended(self, run_id: str) -> str:
        """The kind of event with which a run ended."""
        await self.until(lambda: bool(ENDS & set(self.kinds(run_id))))
        return next(kind for kind in self.kinds(run_id) if kind in ENDS)

    async def settled(self, count: int) -> None:
        """Until there were `count` runs, each has ended, and what each said is delivered."""

        def done() -> bool:
            runs = self.runs()
            return len(runs) >= count and all(self._is_settled(one) for one in runs)

        await self.until(done)
        assert len(self.runs()) == count, self.kinds()

    def _is_settled(self, run_id: str) -> bool:
        kinds = self.kinds(run_id)
        if not ENDS & set(kinds):
            return False
        tail = kinds[max(place for place, kind in enumerate(kinds) if kind in ENDS) :]
        return any(kind.startswith("delivery.") for kind in tail)

    def text(self, run_id: str) -> str:
        """What the page shows of the last step of a run, put together from the live pieces."""
        shown = ""
        for event in self.live:
            if event.kind == "delta" and event.data.get("run_id") == run_id:
                piece = str(event.data["text"])
                shown = piece if event.data.get("offset") == 0 else shown + piece
        return shown


@dataclass
class Page:
    """One conversation on the web page."""

    client: GatewayClient
    session_id: str

    @classmethod
    async def open(cls, client: GatewayClient, key: str = "desk") -> "Page":
        """The conversation of this name, made if need be."""
        made = await client.post("/v1/sessions", {"channel": "web", "key": key})
        return cls(client, str(made["id"]))

    async def says(self, text: str, *, key: str | None = None) -> str:
        """The person sends a message; the id of its run."""
        return await self.sends({"content": text}, key=key)

    async def sends(self, body: JsonObject, *, key: str | None = None) -> str:
        """A request of the page as it is; the id of its run."""
        path = f"/v1/sessions/{self.session_id}/runs"
        done = await self.client.post(path, body, key=key)
        return str(done.get("run_id"))

    async def messages(self) -> list[JsonObject]:
        """What the page shows."""
        path = f"/v1/sessions/{self.session_id}/messages"
        return objects_of(await self.client.get(path, {"limit": "200"}), "items")

    async def texts(self, kind: str = "assistant") -> list[str]:
        """The texts of one kind that the page shows, oldest first."""
        found = await self.messages()
        return [str(one["text"]) for one in found if one["kind"] == kind and one["text"]]

    async def approve(self, run_id: str, behavior: str = "allow") -> None:
        """The person presses the button of the one card that waits there."""
        listed = await self.client.get("/v1/approvals", {"session_id": self.session_id})
        (card,) = objects_of(listed, "items")
        said: JsonObject = {"request_id": card["request_id"], "behavior": behavior}
        await self.client.post(f"/v1/runs/{run_id}/approvals", {"resolutions": [said]})
