"""What a turn does for a child alone: it judges its steps, and lets it begin anew (SUB-20, SUB-22).

The judgement is a fold over the child's transcript. A turn reads that once, where it takes up what
another began, and then adds each step; what the child is told stands in the unit that keeps the
step, so a crash neither loses nor doubles it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from runtime.agent.endings import TurnState
from runtime.agent.settings import ChildSettings
from runtime.agent.stuck import WORDS, Signatures, Stage, Watch, signatures
from runtime.domain.errors import ModelError, ModelRetry
from runtime.domain.runs import RunState
from runtime.domain.tools import ToolCall
from runtime.domain.transcript import AssistantMessage, ToolMessage
from runtime.inbox.retrying import Retry
from runtime.inbox.steps import STUCK, Finish
from runtime.store import Connection, Database, agent_tries, agents, transcripts
from runtime.store.calls import CallRow
from runtime.store.runs import Run
from runtime.store.sessions import Session
from runtime.store.transcripts import Line


async def take_up(database: Database, session: Session, run: Run, state: TurnState) -> int:
    """Begin to watch a child's run, from what it did so far; the steps of its earlier runs, where
    its budget counts them."""
    if not session.is_child:
        return 0
    state.watch = Watch()
    if run.step > 0 or run.seq > 1:
        state.watch = await database.read(lambda conn: kept_watch(conn, run))
    if run.seq == 1 or session.spend.steps is None:
        return 0
    used = await database.read(lambda conn: agents.totals(conn, session.id))
    return used.steps - run.step


def steps_left(session: Session, done: int, most: int) -> int:
    """How far a run may count its steps: `most` in one run, and in all of a child's what its
    budget leaves behind the `done` ones of earlier runs."""
    bound = session.spend.steps
    return most if bound is None else min(most, max(0, bound - done))


def limit(session: Session, state: TurnState, most: int) -> int:
    """The step behind which a run ends that takes `most`. What people say to it gives it as many
    again; a child's are bounded by what it was given."""
    return most if session.is_child else state.heard + most


def judge(state: TurnState, rows: Sequence[CallRow]) -> tuple[str, ...]:
    """What a child is told about a step whose calls have all ended."""
    if state.watch is None:
        return ()
    done = [(row.call, row.result) for row in rows if row.result is not None]
    found = signatures([call for call, _ in done], [result for _, result in done])
    return _advance(state, state.watch, found)


def is_stuck(state: TurnState) -> bool:
    """Whether a child is to end here with the work that it has."""
    return state.watch is not None and state.watch.stage is Stage.FORCED


async def at_end(database: Database, run: Run, state: TurnState, end: Finish) -> Finish:
    """The end of a child's run by its own words, which are a step without tools."""
    if state.watch is None or end.state is not RunState.COMPLETED or end.reason:
        return end
    text = end.message.text if end.message else ""
    answers = await database.read(lambda conn: agent_tries.outcomes(conn, run.session_id, run.id))
    notice = "".join(_advance(state, state.watch, signatures([], [], text, answers)))
    return replace(end, notice=notice, reason=STUCK if is_stuck(state) else "")


def retry_of(
    session: Session, settings: ChildSettings, error: ModelError, jitter: float
) -> Retry | None:
    """Another try, where a child failed by what may pass: nothing that a repeat cannot mend."""
    if not session.is_child or not isinstance(error, ModelRetry):
        return None
    return Retry(settings.max_retries, settings.retry_ms, jitter)


def kept_watch(conn: Connection, run: Run) -> Watch:
    """The watch of a child's run from its durable steps.

    A run that only answers handoffs goes on with that of the run before it, because a child can go
    round by way of its own children; whatever else it is told lets it begin anew.
    """
    lines = transcripts.since(conn, run.session_id, transcript=run.transcript, first=1)
    order = list(dict.fromkeys(line.run_id for line in lines if line.run_id is not None))
    if run.id not in order:
        order.append(run.id)
    first = order.index(run.id)
    while first > 0 and agent_tries.only_handoffs(conn, run.session_id, order[first]):
        first -= 1
    answers: dict[str | None, Sequence[str]] = {
        one: agent_tries.outcomes(conn, run.session_id, one) for one in order[first:]
    }
    return Watch.over(_steps((line for line in lines if line.run_id in answers), answers))


def _advance(state: TurnState, watch: Watch, step: Signatures) -> tuple[str, ...]:
    state.watch = watch.after(step)
    words = WORDS.get(state.watch.stage)
    return (words,) if words is not None and state.watch.stage is not watch.stage else ()


def _steps(
    lines: Iterable[Line], answers: Mapping[str | None, Sequence[str]]
) -> Iterable[Signatures]:
    """The whole steps in lines of a transcript, where runs answer what their children gave."""
    asked: Mapping[str, ToolCall] = {}
    for line in lines:
        message = line.message
        if isinstance(message, AssistantMessage):
            asked = {call.id: call for call in message.tool_calls}
            if not asked and not message.partial:
                yield signatures([], [], message.text, answers[line.run_id])
        elif isinstance(message, ToolMessage):
            done = [(asked[one.call_id], one) for one in message.results if one.call_id in asked]
            yield signatures([call for call, _ in done], [result for _, result in done])
