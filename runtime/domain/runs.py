"""Runs: one turn of an agent over one or more inputs, and the states it may pass through."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from runtime.domain.errors import IllegalTransition
from runtime.domain.value import Value


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes for a run or a message: a process under the fence of its lease."""

    worker: str
    fence: int


class RunState(StrEnum):
    """MSG-6. ``interrupted`` is replaced by newer input, ``cancelled`` is stopped by someone."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    WAITING_FOR_USER_QUESTION = "waiting_for_user_question"
    WAITING_FOR_CHILDREN = "waiting_for_children"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"


class RunKind(StrEnum):
    """What a run answers (RUN-2)."""

    INPUT = "input"
    SCHEDULED_INPUT = "scheduled_input"
    MAILBOX_DELIVERY = "mailbox_delivery"
    HANDOFF = "handoff"
    CHANNEL_DELIVERY = "channel_delivery"


WAITING: Final = frozenset(
    {
        RunState.WAITING_FOR_APPROVAL,
        RunState.WAITING_FOR_USER_QUESTION,
        RunState.WAITING_FOR_CHILDREN,
    }
)
ACTIVE: Final = WAITING | {RunState.RUNNING}
TERMINAL: Final = frozenset(
    {RunState.COMPLETED, RunState.FAILED, RunState.INTERRUPTED, RunState.CANCELLED}
)
_NEXT: Final[dict[RunState, frozenset[RunState]]] = {
    RunState.QUEUED: frozenset(
        {RunState.RUNNING, RunState.CANCELLED, RunState.INTERRUPTED, RunState.FAILED}
    ),
    RunState.RUNNING: WAITING | TERMINAL | {RunState.QUEUED},
    **{
        state: frozenset(
            {RunState.QUEUED, RunState.CANCELLED, RunState.INTERRUPTED, RunState.FAILED}
        )
        for state in WAITING
    },
    **{state: frozenset() for state in TERMINAL},
}


def check_transition(run_id: str, old: RunState, new: RunState) -> None:
    """Raise `IllegalTransition` unless a run may go from `old` to `new`.

    ``running -> queued`` is a take-over: the worker that held the run died.
    """
    if new not in _NEXT[old]:
        raise IllegalTransition(run_id=run_id, old=old.value, new=new.value)


class Usage(Value):
    """Tokens of one or more model calls; ``cost_usd`` is None where the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
