"""What a child that begins anew must know: what it was told, and what it had done (SUB-22)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, exists, func, or_, select

from runtime.domain.runs import RunKind
from runtime.domain.tools import Effect, ToolResult
from runtime.features.subagents.rows.agents import change
from runtime.features.subagents.tables import agents
from runtime.sessions.inputs import PENDING, PERSON, Input, input_of
from runtime.sessions.tables import inputs, runs, tool_calls
from runtime.store.payloads import kept
from runtime.store.statements import hot

HANDOFF: Final = "handoff:"
"""How the identities of inputs begin that tell of a child's end."""


@dataclass(frozen=True, slots=True)
class Done:
    """A call that had begun and cannot be repeated blindly, with what came of it."""

    name: str
    arguments: str
    status: str
    content: str


def count(conn: Connection, session_id: str) -> None:
    """One more try of an agent."""
    change(conn, session_id, retries=agents.c.retries + 1)


def heard(conn: Connection, session_id: str, *, transcript: int) -> Sequence[Input]:
    """All inputs that entered one transcript of a session, in order."""
    rows = conn.execute(
        select(inputs)
        .join(runs, runs.c.id == inputs.c.run_id)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.state == "taken",
            runs.c.transcript == transcript,
        )
        .order_by(inputs.c.seq)
    )
    return [input_of(row) for row in rows]


def unheard_runs(conn: Connection, session_id: str) -> Sequence[str]:
    """Runs of a session that have inputs which nobody took: those of a run that ended unbegun."""
    rows = conn.execute(
        select(inputs.c.run_id)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.state == PENDING,
            inputs.c.run_id.is_not(None),
        )
        .distinct()
    )
    return list(rows.scalars())


def only_handoffs(conn: Connection, session_id: str, run_id: str) -> bool:
    """Whether a run answers nothing but what the session's own children handed over."""
    rows = conn.execute(
        select(inputs.c.identity).where(
            inputs.c.session_id == session_id, inputs.c.run_id == run_id
        )
    )
    found = list(rows.scalars())
    return bool(found) and all(one.startswith(HANDOFF) for one in found)


_SAID = (inputs.c.session_id == bindparam("the_session")) & (inputs.c.origin == PERSON)
_BEGUN_MS = hot(
    select(func.max(runs.c.created_ms)).join(inputs, inputs.c.run_id == runs.c.id).where(_SAID)
)
_HEARD_MS = hot(select(func.max(inputs.c.received_ms)).where(_SAID))
_HANDED = hot(
    select(func.count()).where(
        runs.c.session_id == bindparam("the_session"),
        or_(runs.c.kind == RunKind.HANDOFF.value, runs.c.kind == RunKind.INPUT.value),
        runs.c.created_ms > bindparam("since_ms"),
        ~exists().where(inputs.c.run_id == runs.c.id, inputs.c.origin == PERSON),
    )
)


def spoken_ms(conn: Connection, session_id: str) -> int:
    """When a person last spoke to a session: by a run, or by a word that one heard; else 0."""
    found = (one.rows(conn, the_session=session_id)[0][0] for one in (_BEGUN_MS, _HEARD_MS))
    return max(one or 0 for one in found)


def handed(conn: Connection, session_id: str, *, since_ms: int) -> int:
    """Runs of a session since a moment that its own children began, and nobody spoke to: those of
    handoffs, and those that follow a run which ended before it heard of one."""
    return _HANDED.rows(conn, the_session=session_id, since_ms=since_ms)[0][0]


def outcomes(conn: Connection, session_id: str, run_id: str) -> Sequence[str]:
    """Tasks and results of the children of a session whose ends one run of it was told, in a fixed
    order. What waits for the run is passed on to the next one where this one does not hear it."""
    told = select(inputs.c.identity).where(
        inputs.c.session_id == session_id,
        inputs.c.run_id == run_id,
        inputs.c.state != PENDING,
        inputs.c.identity.startswith(HANDOFF),
    )
    sessions = {one.split(":")[1] for one in conn.execute(told).scalars()}
    found = select(agents.c.task, agents.c.result, agents.c.result_digest).where(
        agents.c.session_id.in_(sorted(sessions))
    )
    rows = conn.execute(found) if sessions else ()
    return sorted(json.dumps([row.task, row.result, row.result_digest]) for row in rows)


def done(conn: Connection, session_id: str) -> Sequence[Done]:
    """Calls of effect ``once`` in all runs of a session that had begun, in order."""
    rows = conn.execute(
        select(tool_calls.c.name, tool_calls.c.arguments, tool_calls.c.result)
        .join(runs, runs.c.id == tool_calls.c.run_id)
        .where(
            runs.c.session_id == session_id,
            tool_calls.c.effect == Effect.ONCE.value,
            tool_calls.c.started_ms.is_not(None),
            tool_calls.c.result.is_not(None),
        )
        .order_by(runs.c.seq, tool_calls.c.step, tool_calls.c.place)
    )
    found = [(row.name, row.arguments, kept(ToolResult, row.result)) for row in rows]
    return [Done(name, given, result.status, result.content) for name, given, result in found]
