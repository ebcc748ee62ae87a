"""What a turn does for a child alone: it judges its steps, and lets it begin anew (SUB-20, SUB-22).

The judgement is a fold over the child's transcript. A turn reads that once, where it takes up what
another began, and then adds each step; what the child is told stands in the unit that keeps the
step, so a crash neither loses nor doubles it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from typing_extensions import override

from runtime.agent.guest import TurnGuest
from runtime.agent.settings import AgentSettings
from runtime.agent.turn_ends import TurnState
from runtime.domain.errors import ModelError, ModelRetry
from runtime.domain.runs import RunState, Usage
from runtime.domain.tools import ToolCall
from runtime.domain.transcript import AssistantMessage, ToolMessage
from runtime.features.subagents.files.work_places import WorkPlaces
from runtime.features.subagents.loop_detection import WORDS, Signatures, Stage, Watch, signatures
from runtime.features.subagents.rows import agents, retries
from runtime.features.subagents.settings import ChildSettings
from runtime.sessions import transcripts
from runtime.sessions.calls import CallRow
from runtime.sessions.claims import Claimed
from runtime.sessions.run_steps import Finish
from runtime.sessions.runs import Retry, Run
from runtime.sessions.transcripts import Line
from runtime.store import Connection, Database

STUCK: Final = "stuck"
"""Why a child ended that went in circles."""


@dataclass(frozen=True, slots=True)
class ChildGuests:
    """Makes the guests of subagents' turns."""

    database: Database
    settings: AgentSettings
    children: ChildSettings
    places: WorkPlaces

    def of(self, claimed: Claimed) -> TurnGuest:
        """The guest of one turn."""
        return ChildGuest(self, claimed)


class ChildGuest(TurnGuest):
    """Accompanies one turn of a child."""

    def __init__(self, services: ChildGuests, claimed: Claimed) -> None:
        self.idle_s = services.children.idle_s
        self._services = services
        self._session = claimed.session
        self._run = claimed.run
        self._watch = Watch()
        self._done = 0

    @override
    async def enter(self, state: TurnState) -> None:
        database, run = self._services.database, self._run
        if run.step > 0 or run.seq > 1:
            self._watch = await database.read(lambda conn: kept_watch(conn, run))
        if run.seq > 1 and self._session.spend.steps is not None:
            used = await database.read(lambda conn: agents.totals(conn, run.session_id))
            self._done = used.steps - run.step
        await self._services.places.enter(self._session.id)

    @override
    def max_steps(self, most: int) -> int:
        """`most` in one run, and in all of its runs what its budget leaves."""
        bound = self._session.spend.steps
        return most if bound is None else min(most, max(0, bound - self._done))

    @override
    def counted_from(self, state: TurnState) -> int:
        return 0

    @override
    def hears(self, step: int) -> bool:
        # Behind its last step nothing is asked, so nobody would answer what it heard there.
        return step < self._services.settings.steps_of(self._session.scope.max_steps)

    @override
    def after_step(self, rows: Sequence[CallRow]) -> tuple[str, ...]:
        done = [(row.call, row.result) for row in rows if row.result is not None]
        found = signatures([call for call, _ in done], [result for _, result in done])
        return self._advance(found)

    @override
    def cut(self, state: TurnState) -> Finish | None:
        """After two warnings a child that goes in circles ends with its work as it stands."""
        if not self._is_stuck:
            return None
        so_far = state.texts[-1] if state.texts else "There is no result yet."
        text = f"{so_far}\n\n(It was ended here: it kept repeating itself.)"
        return Finish(
            RunState.COMPLETED,
            Usage(),
            state.window_from,
            AssistantMessage(text=text),
            reason=STUCK,
            cut_short=True,
            over=True,
        )

    @override
    def retry(self, error: ModelError, jitter: float) -> Retry | None:
        """Another try, where it failed by what may pass: nothing that a repeat cannot mend."""
        if not isinstance(error, ModelRetry):
            return None
        children = self._services.children
        return Retry(children.max_retries, children.retry_ms, jitter)

    @override
    async def before_end(self, end: Finish) -> Finish:
        """An end by the child's own words is a step without tools, and judged as one."""
        if end.state is RunState.COMPLETED:
            await self._services.places.leave(self._session.id)
        if end.state is not RunState.COMPLETED or end.reason:
            return end
        run, text = self._run, end.message.text if end.message else ""
        answers = await self._services.database.read(
            lambda conn: retries.outcomes(conn, run.session_id, run.id)
        )
        notice = "".join(self._advance(signatures([], [], text, answers)))
        stuck = self._is_stuck
        return replace(
            end, notice=notice, reason=STUCK if stuck else "", cut_short=stuck, over=stuck
        )

    @property
    def _is_stuck(self) -> bool:
        return self._watch.stage is Stage.FORCED

    def _advance(self, step: Signatures) -> tuple[str, ...]:
        """What the child is told behind a step."""
        before = self._watch
        self._watch = before.after(step)
        words = WORDS.get(self._watch.stage)
        return (words,) if words is not None and self._watch.stage is not before.stage else ()


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
    while first > 0 and retries.only_handoffs(conn, run.session_id, order[first]):
        first -= 1
    answers: dict[str | None, Sequence[str]] = {
        one: retries.outcomes(conn, run.session_id, one) for one in order[first:]
    }
    return Watch.over(_steps((line for line in lines if line.run_id in answers), answers))


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
