"""`Views`: everything that HTTP, the command line and the pages read, page by page.

Each method is one read of one snapshot. They raise `NotFound` for an id that names nothing,
`InvalidInput` for a cursor that is none, and `StoreUnavailable`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.domain import cursors
from runtime.domain.cursors import Page
from runtime.domain.events import Event
from runtime.domain.messages import FilePart
from runtime.domain.people import Speaker
from runtime.domain.runs import TERMINAL, RunState
from runtime.sessions import events, inputs, listings, open_calls, outbox, totals
from runtime.sessions import people as people_store
from runtime.sessions import runs as run_store
from runtime.sessions import sessions as session_store
from runtime.sessions.listings import RunFilter, SessionFilter, SessionLine
from runtime.sessions.open_calls import OpenCall
from runtime.sessions.unit import NO_KINDS, Kinds
from runtime.store import Connection, Database, leases
from runtime.views import conversation
from runtime.views.files import sent_file
from runtime.views.models import (
    DeliveryProblemView,
    LeaseView,
    LoadView,
    OpenCallView,
    PairingView,
    RunView,
    SessionView,
    StatusView,
    TranscriptView,
)
from runtime.views.shapes import (
    open_call_view,
    pairing_view,
    problem_view,
    run_view,
    session_view,
    unsent,
)


@dataclass
class Views:
    """The read side of the engine."""

    database: Database
    kinds: Kinds = NO_KINDS

    async def load(self) -> LoadView:
        """What is open now, for each scrape of the metrics: a long past costs nothing."""
        return await self.database.read(_load)

    async def sent_file(self, outbox_id: str, place: int) -> FilePart:
        """A file that was sent, by its message and its place there."""
        return await self.database.read(lambda conn: sent_file(conn, outbox_id, place))

    async def sessions(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        children: bool = True,
        title: str = "",
        key: str = "",
        archived: bool | None = None,
    ) -> Page[SessionView]:
        """Newest activity first; those of subagents where `children` are wanted. `title` is a part
        of the title in letters of either case, `archived` None wants all. `key` asks for the one
        session with this key, whatever the rest says."""
        wanted = SessionFilter(children, title, key, archived, self.kinds.unlisted)
        before = None
        if cursor is not None:
            last, seen = cursors.decode(cursor, int, str)
            before = (int(last), str(seen))

        def work(conn: Connection) -> Page[SessionView]:
            found = listings.session_lines(conn, limit=limit + 1, before=before, wanted=wanted)
            end = found[limit - 1] if len(found) > limit else None
            return Page(
                items=tuple(_session(conn, line) for line in found[:limit]),
                next_cursor=cursors.encode(end.last_ms, end.id) if end else None,
                total_count=listings.count_sessions(conn, wanted),
            )

        return await self.database.read(work)

    async def session(self, session_id: str) -> SessionView:
        """One session with what it does now."""
        return await self.database.read(lambda conn: one_session(conn, session_id))

    async def transcript(
        self,
        session_id: str,
        *,
        transcript: int | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> TranscriptView:
        """A page of a conversation; `transcript` counts from 1, None is the present one."""
        return await self.database.read(
            lambda conn: conversation.read(
                conn,
                self.kinds,
                session_id,
                transcript=transcript,
                before=before,
                limit=limit,
            )
        )

    async def runs(
        self,
        *,
        session_id: str | None = None,
        status: RunState | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[RunView]:
        """Newest first."""
        before = None if cursor is None else str(cursors.decode(cursor, str)[0])
        wanted = RunFilter(session_id, None if status is None else status.value)

        def work(conn: Connection) -> Page[RunView]:
            found = listings.run_ids(conn, wanted, limit=limit + 1, before=before)
            return Page(
                items=tuple(one_run(conn, run_id) for run_id in found[:limit]),
                next_cursor=cursors.encode(found[limit - 1]) if len(found) > limit else None,
                total_count=listings.count_runs(conn, wanted),
            )

        return await self.database.read(work)

    async def run(self, run_id: str) -> RunView:
        """One run."""
        return await self.database.read(lambda conn: one_run(conn, run_id))

    async def run_events(
        self, run_id: str, *, limit: int = 200, cursor: str | None = None
    ) -> Page[Event]:
        """A run's history, oldest first."""
        position = 0 if cursor is None else cursors.number(cursor)

        def work(conn: Connection) -> Page[Event]:
            run_store.get(conn, run_id)
            found = events.after(conn, position, run_id=run_id, limit=limit + 1)
            more = len(found) > limit
            return Page(
                items=tuple(found[:limit]),
                next_cursor=cursors.encode(found[limit - 1].position) if more else None,
            )

        return await self.database.read(work)

    async def events_after(
        self,
        position: int,
        *,
        session_id: str | None = None,
        run_id: str | None = None,
        limit: int = 500,
    ) -> Sequence[Event]:
        """The feed past a position, oldest first; it never skips a late commit."""
        return await self.database.read(
            lambda conn: events.after(
                conn, position, session_id=session_id, run_id=run_id, limit=limit
            )
        )

    async def last_position(self) -> int:
        """Where the feed ends now."""
        return await self.database.read(events.last_position)

    async def open_calls(
        self,
        kind: str,
        *,
        session_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[OpenCallView]:
        """Approvals or questions that wait for a person, oldest first."""
        after = None if cursor is None else cursors.decode(cursor, int, str, int, int)
        every = await self.database.read(
            lambda conn: open_calls.open_ones(conn, session_id=session_id, kind=kind)
        )
        found = sorted(every, key=_card_order)
        if after is not None:
            found = [one for one in found if _card_order(one) > after]
        more = len(found) > limit
        return Page(
            items=tuple(open_call_view(one) for one in found[:limit]),
            next_cursor=cursors.encode(*_card_order(found[limit - 1])) if more else None,
            total_count=len(every),
        )

    async def status(self) -> StatusView:
        """The engine in numbers, for /v1/status."""

        def work(conn: Connection) -> StatusView:
            counts, figures = outbox.counts(conn), listings.lane_figures(conn)
            return StatusView(
                leases=_leases(conn),
                runs=dict(totals.runs_by_state(conn)),
                outbox=unsent(counts),
                outbox_oldest_ms=counts["oldest_ms"],
                sessions=figures.lanes,
                lanes_active=figures.active,
                lanes_ready=figures.ready,
                inputs=figures.inputs,
                open_calls=len(open_calls.open_ones(conn)),
                last_position=events.last_position(conn),
            )

        return await self.database.read(work)

    async def pairings(self) -> Page[PairingView]:
        """Strangers who wait, oldest first; there are never many (ACC-1)."""
        found = await self.database.read(people_store.pairings_pending)
        items = tuple(pairing_view(one) for one in found)
        return Page(items=items, total_count=len(items))

    async def people(self) -> Page[Speaker]:
        """Known accounts, oldest first."""
        found = await self.database.read(people_store.listing)
        items = tuple(one.speaker for one in found)
        return Page(items=items, total_count=len(items))

    async def delivery_problems(
        self, *, limit: int = 50, cursor: str | None = None
    ) -> Page[DeliveryProblemView]:
        """What was given up or is unknown, newest first (I7)."""
        before = None if cursor is None else cursors.number(cursor)

        def work(conn: Connection) -> Page[DeliveryProblemView]:
            found = listings.problems(conn, limit=limit + 1, before=before)
            end = found[limit - 1].position if len(found) > limit else None
            return Page(
                items=tuple(problem_view(one) for one in found[:limit]),
                next_cursor=None if end is None else cursors.encode(end),
            )

        return await self.database.read(work)


def _card_order(call: OpenCall) -> tuple[int, str, int, int]:
    """Oldest first, those of one step in the order of its calls: ids of one moment have none."""
    return call.created_ms, call.run_id, call.step, call.place


def one_session(conn: Connection, session_id: str) -> SessionView:
    """A session as it is shown, as part of another unit. Raises `NotFound`."""
    session = session_store.get(conn, session_id)
    line = listings.session_line(conn, session_id)
    return _session(conn, line or SessionLine(session.id, session.updated_ms, None))


def one_run(conn: Connection, run_id: str) -> RunView:
    """A run as it is shown, as part of another unit. Raises `NotFound`."""
    run = run_store.get(conn, run_id)
    passed_on_to = inputs.passed_on_to(conn, run_id) if run.state in TERMINAL else None
    waiting_for = [one.id for one in open_calls.of_run(conn, run_id, state="open")]
    return run_view(run, waiting_for, passed_on_to)


def _session(conn: Connection, line: SessionLine) -> SessionView:
    session = session_store.get(conn, line.id)
    active = None if line.active_run is None else run_store.get(conn, line.active_run)
    return session_view(session, line, active=active, queued=run_store.queued(conn, session.id))


def _load(conn: Connection) -> LoadView:
    counts, load = outbox.counts(conn), totals.load(conn)
    return LoadView(
        leases=_leases(conn),
        runs=dict(load.runs),
        outbox=unsent(counts),
        outbox_oldest_ms=counts["oldest_ms"],
        lanes_ready=load.ready,
        lane_deepest=load.deepest,
        open_calls=load.open_calls,
    )


def _leases(conn: Connection) -> tuple[LeaseView, ...]:
    """Who holds what, as it is shown."""
    return tuple(
        LeaseView(name=one.name, holder=one.holder, fence=one.fence, expires_at_ms=one.expires_ms)
        for one in leases.listing(conn)
    )
