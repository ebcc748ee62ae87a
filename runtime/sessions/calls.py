"""Tool call rows: proposed, decided, started, ended; the ground on which a crash is judged.

States: ``proposed`` (the model asked), ``waiting`` (a person is asked), ``approved`` (a person
said yes), ``started``, ``ended`` (there is a result). A call that is ``started`` without a result
after a crash may have had its effect (MSG-8).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from runtime.domain.decisions import Decision
from runtime.domain.tools import Effect, ResultStatus, ToolCall, ToolResult
from runtime.sessions.tables import tool_calls
from runtime.store.payloads import kept
from runtime.store.row_values import from_row
from runtime.store.statements import hot


@dataclass(frozen=True, slots=True)
class CallRow:
    """One call of one step. `place` is its index in the step's response."""

    run_id: str
    step: int
    place: int
    call: ToolCall
    effect: Effect
    state: str
    digest: str
    decision: Decision | None = None
    result: ToolResult | None = None

    def ended(
        self,
        status: ResultStatus,
        content: str,
        *,
        untrusted: bool = False,
        outside: bool = False,
    ) -> ToolResult:
        """A result of it that no tool gave."""
        return ToolResult(
            call_id=self.call.id,
            name=self.call.name,
            status=status,
            content=content,
            untrusted=untrusted,
            outside=outside,
        )


UNKNOWN: Final = (
    "The gateway stopped while this ran, so its outcome is unknown: it may have taken effect, "
    "fully or in part. "
    "Check before you do it again."
)


def settle_crashed(rows: Sequence[CallRow]) -> tuple[CallRow, ...]:
    """The rows of a step whose process died: calls that must not run again get a result (MSG-8)."""
    return tuple(_settle(row) for row in rows)


def _settle(row: CallRow) -> CallRow:
    if row.state != "started" or row.effect is not Effect.ONCE or row.result is not None:
        return row
    return replace(row, result=row.ended("unknown", UNKNOWN))


_INSERT = hot(insert(tool_calls))
_KEY = (
    (tool_calls.c.run_id == bindparam("of_run"))
    & (tool_calls.c.step == bindparam("of_step"))
    & (tool_calls.c.place == bindparam("of_place"))
)
_WAIT = hot(update(tool_calls).where(_KEY).values(state="waiting", digest=bindparam("new_digest")))
_STATE = hot(update(tool_calls).where(_KEY).values(state=bindparam("new_state")))
_START = hot(
    update(tool_calls)
    .where(_KEY)
    .values(state="started", started_ms=bindparam("at"), decision=bindparam("why"))
)
_END = hot(
    update(tool_calls)
    .where(_KEY)
    .values(
        state="ended",
        result=bindparam("outcome"),
        ended_ms=bindparam("at"),
        decision=bindparam("why"),
    )
)
_OF_STEP = hot(
    select(tool_calls)
    .where(tool_calls.c.run_id == bindparam("of_run"), tool_calls.c.step == bindparam("of_step"))
    .order_by(tool_calls.c.place)
)


def add(conn: Connection, rows: Sequence[CallRow], *, now: int) -> None:
    """Keep a step's calls."""
    for row in rows:
        _INSERT.change(
            conn,
            run_id=row.run_id,
            step=row.step,
            place=row.place,
            call_id=row.call.id,
            name=row.call.name,
            arguments=row.call.arguments,
            effect=row.effect.value,
            state=row.state,
            decision=_dump(row.decision),
            digest=row.digest,
            result=None if row.result is None else row.result.model_dump_json(),
            started_ms=now if row.state == "started" else None,
            ended_ms=now if row.state == "ended" else None,
        )


def of_step(conn: Connection, run_id: str, step: int) -> Sequence[CallRow]:
    """A step's calls in the order in which the model made them."""
    return [_row(row) for row in _OF_STEP.rows(conn, of_run=run_id, of_step=step)]


def of_run(conn: Connection, run_id: str) -> Sequence[CallRow]:
    """All calls of a run, in order."""
    rows = conn.execute(
        select(tool_calls)
        .where(tool_calls.c.run_id == run_id)
        .order_by(tool_calls.c.step, tool_calls.c.place)
    )
    return [_row(row) for row in rows]


def start(conn: Connection, row: CallRow, decision: Decision, *, now: int) -> None:
    """Record that a call begins now, under this decision (I5)."""
    _START.change(conn, **_key(row), at=now, why=_dump(decision))


def end(
    conn: Connection, row: CallRow, result: ToolResult, decision: Decision | None, *, now: int
) -> None:
    """Record a call's result."""
    _END.change(
        conn,
        **_key(row),
        at=now,
        outcome=result.model_dump_json(),
        why=_dump(decision or row.decision),
    )


def wait(conn: Connection, row: CallRow) -> None:
    """Let a call wait for a person, as the action that it is now: what it runs may have changed
    since it was planned."""
    _WAIT.change(conn, **_key(row), new_digest=row.digest)


def set_state(conn: Connection, row: CallRow, state: str) -> None:
    """Move a call that has neither begun nor ended."""
    _STATE.change(conn, **_key(row), new_state=state)


def _key(row: CallRow) -> dict[str, object]:
    return {"of_run": row.run_id, "of_step": row.step, "of_place": row.place}


def _dump(decision: Decision | None) -> str | None:
    return None if decision is None else decision.model_dump_json(exclude_defaults=True)


def _row(row: Row[tuple[object, ...]]) -> CallRow:
    found = row._mapping
    return from_row(
        CallRow,
        found,
        call=ToolCall(id=found["call_id"], name=found["name"], arguments=found["arguments"]),
        effect=Effect(found["effect"]),
        decision=None if found["decision"] is None else kept(Decision, found["decision"]),
        result=None if found["result"] is None else kept(ToolResult, found["result"]),
    )
