"""Open calls: what a parked run waits for. An approval, a question; later children and delays."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import (
    Connection,
    Row,
    bindparam,
    func,
    insert,
    literal_column,
    or_,
    select,
    text,
    union_all,
    update,
)

from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress
from runtime.domain.runs import RunState
from runtime.domain.value import JsonObject
from runtime.sessions import calls, lanes, runs
from runtime.sessions.calls import CallRow
from runtime.sessions.lanes import Lane
from runtime.sessions.tables import lanes as lanes_table
from runtime.sessions.tables import open_calls, outbox, sessions
from runtime.store.database import now_ms
from runtime.store.row_values import from_row
from runtime.store.statements import hot

APPROVAL = "approval"
QUESTION = "question"
CHILDREN = "children"
CLARIFICATION = "clarification"
AGENTS = "agents"
FOR_PEOPLE = (APPROVAL, QUESTION)
"""Kinds that have a card; the others wait for agents."""
_PREFIXES: Final = {
    APPROVAL: IdPrefix.APPROVAL,
    QUESTION: IdPrefix.QUESTION,
    CLARIFICATION: IdPrefix.QUESTION,
    CHILDREN: IdPrefix.AGENT,
    AGENTS: IdPrefix.AGENT,
}


@dataclass(frozen=True, slots=True)
class OpenCall:
    """`state`: open, answered, expired or withdrawn. `payload` is what the card showed."""

    id: str
    session_id: str
    run_id: str
    step: int
    place: int
    kind: str
    digest: str
    payload: JsonObject
    created_ms: int
    expires_ms: int | None
    state: str = "open"
    answer: JsonObject | None = None
    answered_by: str | None = None
    answered_ms: int | None = None


_ADD = hot(insert(open_calls))
# Ids of one millisecond are in no order of their own.
_IN_ORDER = (open_calls.c.created_ms, open_calls.c.run_id, open_calls.c.step, open_calls.c.place)
_ALL_OF_RUN = (
    select(open_calls)
    .where(open_calls.c.run_id == bindparam("the_run"))
    .order_by(open_calls.c.step, open_calls.c.place)
)
_OF_RUN = hot(_ALL_OF_RUN)
# Every message that comes while a run is at work asks whether that run waits for somebody.
_OF_RUN_IN = hot(_ALL_OF_RUN.where(open_calls.c.state == bindparam("the_state")))


def add(conn: Connection, call: OpenCall) -> None:
    """Keep a new one."""
    _ADD.change(
        conn,
        id=call.id,
        session_id=call.session_id,
        run_id=call.run_id,
        step=call.step,
        place=call.place,
        kind=call.kind,
        digest=call.digest,
        payload=json.dumps(call.payload, ensure_ascii=False),
        state=call.state,
        created_ms=call.created_ms,
        expires_ms=call.expires_ms,
    )


def begin(
    conn: Connection, lane: Lane, row: CallRow, kind: str, payload: JsonObject, *, lasts_ms: int
) -> OpenCall:
    """Let a call of the locked lane wait, for so long at most."""
    call = OpenCall(
        id=new_id(_PREFIXES[kind], lane.now_ms),
        session_id=lane.session_id,
        run_id=row.run_id,
        step=row.step,
        place=row.place,
        kind=kind,
        digest=row.digest,
        payload=payload,
        created_ms=lane.now_ms,
        expires_ms=lane.now_ms + lasts_ms,
    )
    add(conn, call)
    calls.wait(conn, row)
    return call


def row_of(conn: Connection, call: OpenCall) -> CallRow:
    """The row of the call that waits."""
    rows = calls.of_step(conn, call.run_id, call.step)
    return next(row for row in rows if row.place == call.place)


def get(conn: Connection, open_call_id: str) -> OpenCall | None:
    """By its whole id."""
    row = conn.execute(select(open_calls).where(open_calls.c.id == open_call_id)).first()
    return None if row is None else _open_call(row)


def of_run(conn: Connection, run_id: str, *, state: str | None = None) -> Sequence[OpenCall]:
    """A run's, in the order of their calls."""
    if state is None:
        rows = _OF_RUN.rows(conn, the_run=run_id)
    else:
        rows = _OF_RUN_IN.rows(conn, the_run=run_id, the_state=state)
    return [_open_call(row) for row in rows]


def open_ones(
    conn: Connection, *, session_id: str | None = None, kind: str | None = None
) -> Sequence[OpenCall]:
    """Those that wait for an answer, oldest first."""
    query = select(open_calls).where(open_calls.c.state == "open")
    if session_id is not None:
        query = query.where(open_calls.c.session_id == session_id)
    if kind is not None:
        query = query.where(open_calls.c.kind == kind)
    return [_open_call(row) for row in conn.execute(query.order_by(*_IN_ORDER))]


# The keeper of children asks at each look. Each has its time, and is found by it.
_FOR_AGENTS = hot(
    select(open_calls)
    .where(
        text("open_calls.state = 'open'"),
        open_calls.c.expires_ms > 0,
        open_calls.c.kind == AGENTS,
    )
    .order_by(*_IN_ORDER)
)


def for_agents(conn: Connection) -> Sequence[OpenCall]:
    """Those in which an agent waits for others by `subagents`, oldest first."""
    return [_open_call(row) for row in _FOR_AGENTS.rows(conn)]


def of_tree(conn: Connection, session_id: str, *, kind: str | None = None) -> Sequence[OpenCall]:
    """Cards that wait for an answer, of a session and of all subagents below it, oldest first."""
    query = select(open_calls).where(
        open_calls.c.state == "open",
        open_calls.c.kind.in_(FOR_PEOPLE if kind is None else (kind,)),
        open_calls.c.session_id.in_(lanes.tree(session_id)),
    )
    return [_open_call(row) for row in conn.execute(query.order_by(*_IN_ORDER))]


_KEYED = select(sessions.c.id).where(sessions.c.key == bindparam("the_key"))
_BELOW = select(lanes_table.c.session_id).where(
    lanes_table.c.root_id == _KEYED.scalar_subquery(), lanes_table.c.parent_id.is_not(None)
)
# The limit keeps PostgreSQL from joining the two, which could begin with all cards of the chat.
_CARD = (
    select(outbox.c.position)
    .where(
        outbox.c.open_call_id == open_calls.c.id,
        outbox.c.kind == literal_column("'card'"),
        outbox.c.channel == bindparam("of_channel"),
        outbox.c.account == bindparam("of_account"),
        outbox.c.chat == bindparam("of_chat"),
    )
    .limit(literal_column("1"))
    .scalar_subquery()
)
_ASKED = hot(
    select(open_calls.c.id)
    .where(
        text("open_calls.state = 'open'"),
        open_calls.c.kind == QUESTION,
        or_(open_calls.c.session_id.in_(union_all(_KEYED, _BELOW)), _CARD.is_not(None)),
    )
    .limit(literal_column("1"))
)


def any_asked(conn: Connection, key: str, chat: ChatAddress) -> bool:
    """Whether a question is open in the tree of the session `key`, or its card stands in `chat`.

    Every message of a direct chat asks; where there is one, the caller looks which.
    """
    found = _ASKED.first(
        conn,
        the_key=key,
        of_channel=chat.channel,
        of_account=chat.account,
        of_chat=chat.chat_id,
    )
    return found is not None


def answered_by(conn: Connection, session_id: str, by: str) -> bool:
    """Whether something that a session waited for was answered by this."""
    query = select(open_calls.c.id).where(
        open_calls.c.session_id == session_id, open_calls.c.answered_by == by
    )
    return conn.execute(query.limit(1)).first() is not None


def by_code(conn: Connection, code: str) -> Sequence[OpenCall]:
    """Those whose id is, or ends in, `code`; more than one means that it is ambiguous."""
    escaped = code.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows = conn.execute(
        select(open_calls)
        .where(func.lower(open_calls.c.id).like(f"%{escaped.lower()}", escape="\\"))
        .order_by(open_calls.c.id.desc())
        .limit(5)
    )
    return [_open_call(row) for row in rows]


def expired(conn: Connection, *, limit: int = 50) -> Sequence[OpenCall]:
    """Open ones whose time is over."""
    rows = conn.execute(
        select(open_calls)
        .where(open_calls.c.state == "open", open_calls.c.expires_ms <= now_ms(conn))
        .order_by(open_calls.c.expires_ms)
        .limit(limit)
    )
    return [_open_call(row) for row in rows]


def settle(
    conn: Connection, call: OpenCall, *, state: str, answer: JsonObject, by: str | None
) -> bool:
    """Answer, expire or withdraw once; False when it is not open any more (APR-4)."""
    changed = conn.execute(
        update(open_calls)
        .where(open_calls.c.id == call.id, open_calls.c.state == "open")
        .values(
            state=state,
            answer=json.dumps(answer, ensure_ascii=False),
            answered_by=by,
            answered_ms=now_ms(conn),
        )
    )
    return changed.rowcount == 1


def _last_settled(conn: Connection, run_id: str) -> JsonObject:
    """The call whose end lets a run go on: its kind, its id, and how it ended."""
    settled = [one for one in of_run(conn, run_id) if one.answered_ms is not None]
    if not settled:
        return {}
    last = max(settled, key=lambda one: (one.answered_ms or 0, one.id))
    return {"kind": last.kind, "request_id": last.id, "state": last.state}


def resume(conn: Connection, lane: Lane, run_id: str) -> None:
    """Queue a parked run at the head of its lane, unless an open call of it is left.

    The caller saves the lane.
    """
    if of_run(conn, run_id, state="open"):
        return
    run = runs.get(conn, run_id)
    runs.move(conn, run, RunState.QUEUED, {"ready_ms": lane.now_ms})
    lane.active_run = None
    lane.record(
        EventKind.RUN_QUEUED,
        run.id,
        {
            "kind": run.kind.value,
            "attempt": run.attempt,
            "summary": run.summary,
            "resumed_by": _last_settled(conn, run_id),
        },
    )
    lanes.settle(conn, lane)


def _open_call(row: Row[tuple[object, ...]]) -> OpenCall:
    found = row._mapping
    return from_row(
        OpenCall,
        found,
        payload=json.loads(found["payload"]),
        answer=None if found["answer"] is None else json.loads(found["answer"]),
    )
