"""Heartbeats: runs with a fresh, small prompt that speak only by a structured result (SCH-9).

Each begins a transcript of its own, so that it costs the same at each time. Its prompt has the
team's `AGENTS.md`, a few tools that read, and what it is asked. What it gives by its tool is said
in the place of its schedule once its run is over; whatever else it writes goes nowhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pydantic import Field, ValidationError, model_validator
from typing_extensions import override

from runtime.agent.guest import TurnGuest
from runtime.agent.turn_ends import TurnState
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import OutboundMessage, TextPart
from runtime.domain.runs import RunState, Usage
from runtime.domain.tools import Effect, Touches
from runtime.features.schedules.kind import SPEAK
from runtime.features.schedules.rows import Schedule
from runtime.policy.decide import Bounds
from runtime.ports.bus import OUTBOX
from runtime.sessions import calls, outbox
from runtime.sessions.calls import CallRow
from runtime.sessions.lanes import Lane
from runtime.sessions.outbox import NewRow
from runtime.sessions.run_steps import Finish
from runtime.sessions.unit import Unit
from runtime.store import Connection
from runtime.store.database import now_ms
from runtime.tools.base import Arguments, Face, Tool, ToolContext, ToolOutput
from runtime.workspace.content import WorkspaceSnapshot

MOST_SAID: Final = 4_000
"""Characters that a heartbeat may say."""
_SHOWN: Final = "AGENTS.md"
_BRIEF: Final = ":heartbeat"
_TAKEN: Final = "Taken. You are done: this heartbeat ends here."


class HeartbeatResult(Arguments):
    speak: bool = Field(description="false: there is nothing that anybody needs to hear now")
    text: str = Field(default="", max_length=MOST_SAID, description="what is said, if you speak")

    @model_validator(mode="after")
    def _words_if_it_speaks(self) -> "HeartbeatResult":
        if self.speak and not self.text.strip():
            raise ValueError("text: is required where speak is true")
        return self


class GiveResult(Tool[HeartbeatResult]):
    """It has no effect of its own: its arguments are the result, which its schedule reads."""

    name = SPEAK
    description = "End this heartbeat with its result. Only this is heard, never what you write."
    arguments = HeartbeatResult
    effect = Effect.READ
    own_words = True
    example = '{"speak": false}'

    @override
    def offered(self, bounds: Bounds) -> bool:
        # Only the kind of a heartbeat's session names it. A subagent has each tool that reads.
        return bounds.tools is not None and self.name in bounds.tools and not bounds.child

    @override
    def touches(self, arguments: HeartbeatResult, context: ToolContext) -> Touches:
        return Touches()

    @override
    async def run(self, arguments: HeartbeatResult, context: ToolContext) -> ToolOutput:
        return ToolOutput(_TAKEN, outside=False)


FACE: Final = Face(GiveResult.name, GiveResult.effect)


class HeartbeatGuest(TurnGuest):
    """Accompanies the turn of a heartbeat: keeps its prompt small, and ends it with its result,
    before the model is asked again."""

    def __init__(self) -> None:
        self._given = False

    @override
    def shown(self, snapshot: WorkspaceSnapshot) -> WorkspaceSnapshot:
        kept = {name: text for name, text in snapshot.identity.items() if name == _SHOWN}
        digest = f"{snapshot.digest}{_BRIEF}"
        return replace(snapshot, identity=kept, memory=None, skills=(), digest=digest)

    @override
    def after_step(self, rows: Sequence[CallRow]) -> tuple[str, ...]:
        self._given = self._given or any(_is_result(row) for row in rows)
        return ()

    @override
    def cut(self, state: TurnState) -> Finish | None:
        if not self._given:
            return None
        return Finish(RunState.COMPLETED, Usage(), state.window_from, cut_short=True, over=True)


def begin_anew(lane: Lane) -> None:
    """Let the next run of a lane see nothing of those before it."""
    lane.transcript += 1
    lane.transcript_from = lane.window_from = lane.message_seq + 1


def _is_result(row: CallRow) -> bool:
    ended = row.result is not None and row.result.status == "ok"
    return row.call.name == SPEAK and ended


def result_of(conn: Connection, run_id: str) -> HeartbeatResult | None:
    """The result that a run gave last; None where it gave none."""
    given = [row for row in calls.of_run(conn, run_id) if _is_result(row)]
    try:
        return HeartbeatResult.model_validate_json(given[-1].call.arguments) if given else None
    except ValidationError:
        return None


def deliver(
    unit: Unit, schedule: Schedule, result: HeartbeatResult | None, redact: Callable[[str], str]
) -> dict[str, object]:
    """Say in the place of a schedule what its heartbeat gave; what its time keeps of that."""
    if result is None or not result.speak:
        return {"spoke": False}
    now = now_ms(unit.conn)
    message = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, now),
        target=schedule.place,
        parts=(TextPart(markdown=redact(result.text)),),
        session_id=schedule.run_session_id,
    )
    outbox.add(unit.conn, NewRow(kind="notice", message=message), now=now)
    unit.say(OUTBOX, {"channel": schedule.channel, "account": schedule.account})
    return {"spoke": True, "outbox_id": message.outbox_id}
