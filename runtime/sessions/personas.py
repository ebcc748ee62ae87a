"""Giving a session a persona, and taking it away: between its runs only (CTX-11)."""

from runtime.domain.errors import Conflict
from runtime.domain.events import EventKind
from runtime.domain.personas import Persona
from runtime.domain.value import JsonObject
from runtime.sessions import audit, persona_rows, runs, sessions
from runtime.sessions.lanes import Lane
from runtime.store import Connection


def bind(conn: Connection, lane: Lane, persona: Persona | None, *, by: str) -> None:
    """Give the session of a held lane the persona as it is, or with None the live workspace again.

    The caller saves the lane. Raises `Conflict` while a run is at work or waits: a run keeps the
    identity with which it began.
    """
    state = _state(conn, lane)
    if state != "idle":
        doing = state.replace("_", " ")
        text = f"the persona changes only while the session is idle, and it is {doing}: wait until "
        raise Conflict(f"{text}that is over or stop it, then ask again", state)
    name = persona.name if persona else None
    digest = persona.digest if persona else None
    if persona is not None:
        persona_rows.keep(conn, persona.digest, persona.files)
    sessions.change(conn, lane.session_id, {"persona": name, "persona_digest": digest})
    data: JsonObject = {"persona": name, "persona_digest": digest}
    lane.record(EventKind.SESSION_CHANGED, None, data)
    audit.append(conn, actor=by, action="session.changed", session_id=lane.session_id, data=data)


def _state(conn: Connection, lane: Lane) -> str:
    if lane.active_run is not None:
        return runs.get(conn, lane.active_run).state.value
    return "queued" if runs.queued(conn, lane.session_id) else "idle"
