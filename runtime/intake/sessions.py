"""What the owner does with a whole conversation: names it, puts it aside, deletes it (RUN-6)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.domain.errors import Conflict
from runtime.domain.events import EventKind
from runtime.domain.value import JsonObject
from runtime.sessions import assets, audit, erasure, lanes, sessions
from runtime.sessions.unit import Unit, Units
from runtime.tools import asset_files
from runtime.tools.erasure import erase_files
from runtime.views.models import SessionView
from runtime.views.reader import one_session


@dataclass(frozen=True, slots=True)
class Revision:
    """What is to be another one; None leaves it as it is."""

    title: str | None = None
    archived: bool | None = None


@dataclass(frozen=True, slots=True)
class SessionControl:
    """Keeps conversations for the owner; `workspace` is asked each time, `actor` is who does it."""

    units: Units
    workspace: Callable[[], Path]
    actor: str

    async def revise(self, session_id: str, revision: Revision) -> SessionView:
        """Name a session anew, or put it aside until something happens in it. Raises `NotFound`."""

        def work(unit: Unit) -> SessionView:
            conn, lane = unit.conn, unit.lane(session_id)
            view = one_session(conn, session_id)
            archived = view.archived if revision.archived is None else revision.archived
            data: JsonObject = {"archived": archived}
            if revision.title is not None:
                data["title"] = " ".join(revision.title.split())
                sessions.change(conn, session_id, {"title": data["title"]})
            sessions.archive(conn, session_id, archived)
            lane.record(EventKind.SESSION_CHANGED, None, data)
            audit.append(
                conn,
                actor=self.actor,
                action="session.changed",
                session_id=session_id,
                data={"archived": archived, "renamed": revision.title is not None},
            )
            unit.changed(session_id)
            unit.save()
            return one_session(conn, session_id)

        return await self.units.run(work, name="session-revise")

    async def delete(self, session_id: str) -> None:
        """Delete a session with its subagents: what was said and done, and the files that were kept
        for it. The ledger and the audit log keep ids.

        Raises `NotFound`, and `Conflict` unless the session is idle and nothing is on its way. The
        session ends first, so that it takes nothing more, and then its files go: where the process
        dies in between, it is still there and can be deleted once more. Files are looked for again
        at the end, because a message that came too late may have kept one meanwhile.
        """
        closed = await self.units.run(lambda unit: _close(unit, session_id), name="session-close")
        await asyncio.to_thread(erase_files, self.workspace(), closed.session_ids, closed.copies)

        def work(unit: Unit) -> tuple[str, ...]:
            found = _close(unit, session_id)
            # What the lanes still have to say goes with them.
            unit.save()
            unit.kinds.delegations.erase(unit.conn, found.session_ids)
            uploads = assets.release(unit.conn, found.session_ids)
            erasure.erase(unit.conn, found.session_ids)
            unit.changed(session_id)
            audit.append(
                unit.conn,
                actor=self.actor,
                action="session.deleted",
                session_id=session_id,
                data={"sessions": list(found.session_ids)},
            )
            return tuple(uploads)

        uploads = await self.units.run(work, name="session-delete")
        await asyncio.to_thread(asset_files.remove, self.workspace(), uploads)
        await asyncio.to_thread(erase_files, self.workspace(), closed.session_ids, ())


@dataclass(frozen=True, slots=True)
class _Closed:
    """A session that takes nothing more, with its subagents, and the copies of what they sent."""

    session_ids: Sequence[str]
    copies: Sequence[str]


def _close(unit: Unit, session_id: str) -> _Closed:
    """End a session that may be deleted, with the lanes of its whole tree held."""
    conn = unit.conn
    if lanes.parent_of(conn, session_id) is not None:
        raise Conflict("a subagent is deleted with its conversation", "subagent")
    known = unit.kinds.delegations.below(conn, session_id)
    ids = (*(one.session_id for one in known), session_id)
    held = unit.lanes(ids)
    view, tree = one_session(conn, session_id), unit.kinds.delegations.below(conn, session_id)
    # Who was given work before the lanes were held is at it as well, or was until just now.
    grown = len(tree) > len(known)
    if view.state != "idle" or grown or any(one.live for one in tree):
        raise Conflict("the session must be idle before it is deleted", view.state)
    for one in tree:
        if one.unfinished:
            raise Conflict(one.unfinished, "unfinished")
    if erasure.on_the_way(conn, ids):
        raise Conflict("a message of the session is still on its way", "sending")
    if view.status == "open" or view.key != erasure.key_of(session_id):
        held[-1].record(EventKind.SESSION_CHANGED, None, {"status": "ended"})
        # Its key goes with it, so that the next message of its chat begins another session.
        sessions.change(conn, session_id, {"status": "ended", "key": erasure.key_of(session_id)})
    return _Closed(ids, tuple(erasure.copies_of(conn, ids)))
