"""The lanes of schedules: where the runs of those that were made in a chat are, beside its own.

Such a run speaks in the place of its schedule. What it may do is what its conversation may do at
that moment, and no permission that somebody gave there for the session holds here (SCH-9).
"""

from dataclasses import replace
from typing import Final

from typing_extensions import override

from runtime.domain.capabilities import Capabilities, Need, allows
from runtime.domain.decisions import PermissionMode, narrower
from runtime.domain.errors import NotFound
from runtime.features.schedules import rows
from runtime.sessions import audit, erasure, run_stop, sessions
from runtime.sessions.sessions import Scope, Session
from runtime.sessions.unit import SessionKind, Unit
from runtime.store import Connection

SCHEDULE: Final = "schedule"
"""The kind of such a session."""
HEARTBEAT: Final = "heartbeat"
"""The kind of the session of a heartbeat, which says nothing but by its tool."""
SPEAK: Final = "heartbeat_result"
"""The tool by which a heartbeat gives its result."""
_LOOKS: Final = frozenset({"read_file", "list_dir", "glob", "grep", "web_fetch"})
"""What a heartbeat may do besides. All of it only reads, and its schemas are small."""


class ScheduleKind(SessionKind):
    """A conversation of a schedule with itself, in its place."""

    name: str = SCHEDULE

    @override
    def standing(self, conn: Connection, session: Session) -> Session:
        conversation = rows.conversation_of(conn, session.id)
        if conversation is None:
            return session
        try:
            origin = sessions.get(conn, conversation)
        except NotFound:
            return session
        return replace(
            session,
            mode=origin.mode,
            permission_mode=origin.permission_mode,
            model=session.model or origin.model,
            scope=sessions.narrowed(origin.scope, session.capability_scope),
            persona=origin.persona,
        )


class HeartbeatKind(ScheduleKind):
    """The same for a heartbeat: its runs look, change nothing and ask nobody. What they say as
    text goes nowhere; only what they give by their tool is said."""

    name: str = HEARTBEAT
    speaks: bool = False

    @override
    def standing(self, conn: Connection, session: Session) -> Session:
        found = super().standing(conn, session)
        return replace(
            found,
            permission_mode=narrower(PermissionMode.DONT_ASK, found.permission_mode),
            scope=_looking(found.scope),
        )


def _looking(scope: Scope) -> Scope:
    """What is left of a scope for a heartbeat. Its tools are all named, because the one by which it
    speaks is its voice and is not bounded by what its conversation may do."""
    held = scope.capabilities or Capabilities()
    tools = {
        name
        for name in _LOOKS
        if (scope.tools is None or name in scope.tools) and allows(held, Need(tool=name))
    }
    bare = held.model_copy(update={"tools": None, "denied_tools": ()})
    return replace(scope, tools=frozenset(tools | {SPEAK}), capabilities=bare)


def erase(unit: Unit, session_id: str) -> bool:
    """Stop what the lane does, and delete it once it is idle and has nothing on the way; whether it
    is gone."""
    conn = unit.conn
    try:
        lane = unit.lane(session_id)
    except NotFound:
        rows.forget_lane(conn, session_id)
        return True
    if not lane.is_idle:
        reason = "its conversation was deleted"
        run_stop.stop_session(unit, session_id, by="system", reason=reason)
        return False
    if erasure.on_the_way(conn, [session_id]):
        return False
    unit.save()
    erasure.erase(conn, [session_id])
    rows.forget_lane(conn, session_id)
    audit.append(
        conn,
        actor="system",
        action="session.deleted",
        session_id=session_id,
        data={"sessions": [session_id]},
    )
    unit.changed(session_id)
    return True
