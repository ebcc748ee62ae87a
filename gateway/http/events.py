"""`GET /v1/events`: the durable feed and the live events as server-sent events (API-4).

The database is the truth: a signal of the bus only says when to read on, and a slow tick reads
also without one. A reader comes back with ``Last-Event-ID`` and goes on where it was.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Final

from aiohttp import web

from gateway.http import stream
from gateway.http.auth import PRINCIPAL, STREAM, Guard
from gateway.http.catch_up import Turns
from gateway.http.connections import most_streams
from gateway.http.operations import LAST_EVENT, Operation, query
from gateway.http.problems import HttpProblem
from gateway.http.query_models import EventsQuery
from gateway.http.recent_events import BATCH, RecentEvents
from gateway.http.services import HttpServices
from gateway.http.stream import Filter, Prose, Texts
from runtime.domain.errors import InvalidInput, Unavailable
from runtime.domain.events import Event
from runtime.domain.runs import RunState
from runtime.domain.value import JsonObject
from runtime.ports.bus import EVENTS, LIVE, Signal
from runtime.process.wakeup import Wake
from runtime.sessions.live_text import SNAPSHOT

TICK_S: Final = 1.0
"""How old what a stream knows may be that nothing woke."""
HEARTBEAT_S: Final = 15.0
WAITING: Final = 2_048
"""Signals that may wait for one slow reader; beyond that the oldest are dropped, and it is said."""
FULL_RETRY_AFTER_S: Final = 10
MAX_SNAPSHOTS: Final = 50
_ENDS: Final = frozenset(
    {"step.model", "run.completed", "run.failed", "run.interrupted", "run.cancelled"}
)
"""What ends a step's text: the text comes first."""
_RUN_ENDS: Final = _ENDS - {"step.model"}
MOST_OVER: Final = 256
"""Ended runs that a stream remembers: a signal that is later than so many ends is rare."""
_RENDERED: Final = 32
"""Texts whose HTML is remembered, for several readers of one conversation."""
_HEADERS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "X-Accel-Buffering": "no",
}


class EventRoutes:
    """Serves readers until they go or the server ends."""

    def __init__(self, services: HttpServices, guard: Guard) -> None:
        self._services = services
        self._guard = guard
        self._most = services.settings.streams_per_credential
        self._recent = RecentEvents(services.views, services.clock)
        self._turns = Turns(services.clock)
        self._places: list[_Place] = []
        self._whole = lru_cache(maxsize=_RENDERED)(services.render)
        self._growing = lru_cache(maxsize=_RENDERED)(services.render_growing)

    def operations(self) -> list[Operation]:
        return [
            Operation(
                *("GET", "/v1/events", "Follow events", self._events),
                query=EventsQuery,
                media_types=("text/event-stream",),
                errors=(404,),
                resumes=True,
                name=STREAM,
            )
        ]

    async def close(self, _app: web.Application) -> None:
        """End every stream, so that the server can end; readers come back to the next one."""
        for place in self._places:
            place.give_up()

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: those of the database carry an id, the live ones carry none."""
        wanted, position = _filter(query(request, EventsQuery)), _last_event_id(request)
        place = self._take_place(request[PRINCIPAL].credential.token)
        try:
            return await self._stream(request, wanted, position, place)
        finally:
            if place in self._places:
                self._places.remove(place)

    def _take_place(self, holder: str) -> "_Place":
        """A place for one more stream of a credential. Raises `HttpProblem` where there is none.

        Each stream holds a connection that a request may need. A page or program that finds no
        place is told when to come back. Where all are taken, whoever holds most of them gives one
        up to somebody who holds at least two less.
        """
        most_in_all = most_streams(self._services.settings.streams)
        held = Counter(place.holder for place in self._places)
        if held[holder] >= self._most:
            raise _full(f"This token has {self._most} event streams open already")
        if len(self._places) >= most_in_all:
            largest, most = held.most_common(1)[0]
            if most < held[holder] + 2:
                raise _full(f"{most_in_all} event streams are open already")
            oldest = next(place for place in self._places if place.holder == largest)
            self._places.remove(oldest)
            oldest.give_up()
        place = _Place(holder)
        self._places.append(place)
        return place

    async def _stream(
        self, request: web.Request, wanted: Filter, position: int, place: "_Place"
    ) -> web.StreamResponse:
        views = self._services.views
        if wanted.session_id is not None:
            address = (await views.session(wanted.session_id)).address
            wanted = replace(wanted, chat=address.model_dump(mode="json"))
        if wanted.run_id is not None:
            await views.run(wanted.run_id)
        # In front of the first read: what is committed in between is signalled, not missed.
        async with self._services.bus.subscribe(EVENTS, LIVE, limit=WAITING) as signals:
            end = await views.last_position()
            response = web.StreamResponse(headers=_HEADERS)
            try:
                await response.prepare(request)
            except ConnectionError:
                # The reader went away before the stream began.
                return response
            allowed = partial(self._allowed, request)
            reads = _Reads(self._recent, self._turns)
            reader = _Reader(self._services, reads, response, wanted, min(position, end), allowed)
            if wanted.html:
                reader.page = _Page(reader, Prose(self._growing, self._whole))
            if position > end:
                reader.greeting = reader.gap("the position belongs to another database")
            elif position < 0:
                reader.position = end
                reader.greeting = stream.live("ready", {"position": end}, position=end)
            await self._serve(reader, signals, place)
        return response

    async def _allowed(self, request: web.Request) -> bool:
        """Whether the credential of a stream still holds: a stream may live for days."""
        try:
            return await self._guard.principal(request) is not None
        except HttpProblem:
            return False
        except Unavailable:
            return True

    async def _serve(
        self, reader: "_Reader", signals: AsyncIterator[Signal], place: "_Place"
    ) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(reader.listen(signals), name="event stream signals")
                task = group.create_task(reader.run(), name="event stream")
                place.serve(task)
                await asyncio.wait([task])
                raise _Ended
        except* (ConnectionError, _Ended):
            # The reader went away, or the server ends: both are how a stream ends.
            pass


@dataclass(eq=False, slots=True)
class _Place:
    """One of the streams that there may be. `holder` is the fingerprint of a token."""

    holder: str
    _given_up: bool = False
    _task: asyncio.Task[None] | None = None

    def serve(self, task: asyncio.Task[None]) -> None:
        """This task is the stream."""
        self._task = task
        if self._given_up:
            task.cancel()

    def give_up(self) -> None:
        """End the stream, now or as soon as it begins."""
        self._given_up = True
        if self._task is not None:
            self._task.cancel()


class _Ended(Exception):
    """The stream is over; takes its other task along."""


@dataclass(frozen=True, slots=True)
class _Reads:
    """What the streams of a process share: what was `recent`, and the `turns` of those to whom
    that is not enough."""

    recent: RecentEvents
    turns: Turns


@dataclass(slots=True)
class _Reader:
    """One connection: writes what it wants, remembers how far it came.

    `waiting` are live events. `behind`: something was committed since the database was last read.
    `current`: it shares what the others read. Without it, it is behind and reads for itself. `over`
    are the runs whose end it told last.
    """

    services: HttpServices
    reads: _Reads
    response: web.StreamResponse
    wanted: Filter
    position: int
    allowed: Callable[[], Awaitable[bool]]
    greeting: bytes = b""
    texts: Texts = field(default_factory=Texts)
    page: "_Page | None" = None
    waiting: deque[Signal] = field(default_factory=partial(deque[Signal], maxlen=WAITING))
    over: deque[str] = field(default_factory=partial(deque[str], maxlen=MOST_OVER))
    behind: bool = False
    current: bool = True
    dropped: bool = False
    written: float = 0.0
    checked: float = 0.0
    wake: Wake = field(init=False)

    def __post_init__(self) -> None:
        self.wake = Wake(self.services.clock)
        self.written = self.checked = self.services.clock.monotonic()

    async def listen(self, signals: AsyncIterator[Signal]) -> None:
        """Take signals off the bus at once, whatever the reader's speed."""
        async for signal in signals:
            self.dropped |= signal.gap
            if signal.topic == EVENTS:
                self.behind = True
            elif self.wanted.wants_live(signal.data):
                self.dropped |= len(self.waiting) == WAITING
                self.waiting.append(signal)
            else:
                continue
            self.wake.set()

    async def run(self) -> None:
        """Write until the connection breaks or its credential ends. Raises `ConnectionError`."""
        await self.write(stream.RETRY + self.greeting)
        await self._durable()
        await self._ask_running()
        while await self._still_allowed():
            if self.dropped:
                self.dropped = False
                await self._lost()
            if self.behind:
                # One read tells of all that was committed before it began.
                await self._durable()
            await self._take_waiting()
            if self.behind or self.waiting:
                continue
            pause_s = TICK_S if self.page is None else await self.page.show()
            if not await self.wake.wait(pause_s) and pause_s == TICK_S:
                await self._durable(max_age_s=TICK_S)
                await self._beat()

    def gap(self, reason: str) -> bytes:
        """Says that something is missing, and where the stream goes on."""
        data: JsonObject = {"reason": reason, "position": self.position}
        return stream.live("gap", data, position=self.position)

    async def _lost(self) -> None:
        """Live events were dropped; the durable ones are all in the database."""
        self.texts.lost()
        if self.page is not None:
            self.page.prose.texts.clear()
        await self._durable()
        await self.write(self.gap("live events were dropped"))
        await self._ask_running()

    async def _take_waiting(self) -> None:
        """Pass on as many live events as wait now: what comes meanwhile waits for the next read."""
        for _ in range(len(self.waiting)):
            # A read may have passed them on.
            if self.waiting:
                await self._take(self.waiting[0])

    async def _take(self, signal: Signal) -> None:
        """Pass on the first live event that waits."""
        if signal.data.get("type") == "activity" and signal.data.get("state") == "thinking":
            # A run began: its durable event comes first. The signal waits on meanwhile, since the
            # read may also find the run's end, which every live event comes before.
            await self._durable()
            if not self.waiting or self.waiting[0] is not signal:
                return
        self.waiting.popleft()
        await self._pass_on(signal.data)

    async def _pass_on(self, data: JsonObject) -> None:
        kind, run = str(data.get("type")), str(data.get("run_id"))
        if kind == "delta" and not self.texts.take(data):
            if self.texts.missing(run):
                self.services.bus.publish(SNAPSHOT, {"run_id": run})
            return
        if kind == "delta" and self.page is not None:
            self.page.prose.take(data)
            return
        if kind == "activity" and data.get("state") != "done" and run in self.over:
            # It was on its way for longer than the run lasted, as from another replica.
            return
        if kind == "activity" and data.get("state") == "done":
            self.texts.ended(run)
            if self.page is not None:
                await self.page.end(run)
        await self.write(stream.live(kind, data))

    async def _overtaken(self) -> None:
        """Pass on the live events that were signalled before a step's end was committed."""
        live = list(self.waiting)
        self.waiting.clear()
        for signal in live:
            await self._pass_on(signal.data)

    async def _durable(self, *, max_age_s: float = 0.0) -> None:
        """Tell of all that was committed before this call, or so many seconds ago."""
        self.behind = False
        if self.current:
            news = await self.reads.recent.after(self.position, self.wanted, max_age_s=max_age_s)
            if news is not None:
                for one in news.told:
                    await self._tell(one.event, one.data)
                self.position = news.position
                return
        self.current = False
        while not self.current:
            async with self.reads.turns.turn(self._beat):
                found = await self._read()
                page = [(event, stream.durable(event)) for event in found or ()]
            for event, data in page:
                await self._tell(event, data)
            if found is None:
                return
            self.current = len(page) < BATCH

    async def _tell(self, event: Event, data: bytes) -> None:
        self.position = event.position
        if event.kind in _ENDS:
            await self._overtaken()
            if self.page is not None:
                await self.page.end(event.run_id or "")
        if event.kind in _RUN_ENDS:
            self.over.append(event.run_id or "")
        if self.wanted.wants_kind(event.kind):
            await self.write(data)

    async def _read(self) -> Sequence[Event] | None:
        """What comes next in the database; None while that is away, and a later tick reads on."""
        try:
            return await self.services.views.events_after(
                self.position,
                session_id=self.wanted.session_id,
                run_id=self.wanted.run_id,
                limit=BATCH,
            )
        except Unavailable:
            return None

    async def _ask_running(self) -> None:
        """Have the running steps' text said once more, for a reader who was not there."""
        if not self.wanted.wants_kind("delta"):
            return
        for run in await self._running():
            if self.texts.missing(run):
                self.services.bus.publish(SNAPSHOT, {"run_id": run})

    async def _running(self) -> list[str]:
        if self.wanted.run_id is not None:
            return [self.wanted.run_id]
        try:
            page = await self.services.views.runs(
                session_id=self.wanted.session_id, status=RunState.RUNNING, limit=MAX_SNAPSHOTS
            )
        except Unavailable:
            return []
        return [run.id for run in page.items]

    async def _still_allowed(self) -> bool:
        now = self.services.clock.monotonic()
        if now - self.checked < HEARTBEAT_S:
            return True
        self.checked = now
        return await self.allowed()

    async def _beat(self) -> None:
        if self.services.clock.monotonic() - self.written >= HEARTBEAT_S:
            await self.write(stream.HEARTBEAT)

    async def write(self, data: bytes) -> None:
        """Send it. Raises `ConnectionError`."""
        await self.response.write(data)
        self.written = self.services.clock.monotonic()


@dataclass(slots=True)
class _Page:
    """A reader that shows the growing text as HTML. `told` is when it last was told of news."""

    reader: _Reader
    prose: Prose
    told: float = 0.0

    async def show(self) -> float:
        """Tell of texts that grew, when it is time; how long to wait for what comes next."""
        pause_s = self.prose.pause_s()
        if pause_s is None:
            return TICK_S
        now = self.reader.services.clock.monotonic()
        if now - self.told < pause_s:
            return min(TICK_S, pause_s - (now - self.told))
        self.told = now
        for event in self.prose.news():
            await self.reader.write(stream.live("prose", event))
        return TICK_S

    async def end(self, run: str) -> None:
        """A run's text is complete: tell what of it was not told."""
        event = self.prose.end(run)
        if event is not None:
            await self.reader.write(stream.live("prose", event))


def _full(why: str) -> HttpProblem:
    return HttpProblem(
        429,
        "queue_full",
        f"{why}; close one, or try again later.",
        {"Retry-After": str(FULL_RETRY_AFTER_S)},
    )


def _filter(asked: EventsQuery) -> Filter:
    kinds = asked.kinds.split(",")
    return Filter(
        session_id=asked.session_id,
        run_id=asked.run_id,
        kinds=frozenset(one.strip() for one in kinds if one.strip()),
        html=asked.html,
    )


def _last_event_id(request: web.Request) -> int:
    """Where to go on; -1 to begin now. A header beats the query, which a first request uses."""
    found = request.headers.get(LAST_EVENT) or query(request, EventsQuery).last_event_id
    if not found:
        return -1
    if not (found.isascii() and found.isdigit() and len(found) <= 18):
        raise InvalidInput(LAST_EVENT, "must be the id of an earlier event")
    return int(found)
