"""What an agent is told after it was spawned: at its next step, or by a run of its own (SUB-4).

The lane of the agent is locked first, as by its end; those above it only where it had settled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from runtime.domain.errors import Conflict
from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.runs import RunKind
from runtime.features.subagents import agent_rights
from runtime.features.subagents.notices import Told, notice, queue_run
from runtime.features.subagents.rows import agents, retries
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.settings import Limits
from runtime.features.subagents.spawn import agent_reopening
from runtime.features.subagents.waits import clarifications
from runtime.ports.bus import CHILDREN, EVENTS, RUNS
from runtime.sessions import inputs, lanes, open_calls, runs, steering
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run
from runtime.sessions.unit import Unit
from runtime.store import Connection

SAYS: Final = "The agent {by}, which you work for, says:\n\n{text}"

USUAL: Final = Limits()

How = Literal["steered", "joined", "queued", "continued", "repeated", "answered"]


@dataclass(frozen=True, slots=True)
class Word:
    """What the call `call_id` of the run `run_id` says to the agent of `session_id`. `by` is what
    the speaker is called in the tree. With `steer` a run that is at work hears it; with `declines`
    an agent that waits for an answer gets none."""

    session_id: str
    run_id: str
    call_id: str
    by: str
    text: str
    steer: bool = False
    declines: bool = False


def tell(unit: Unit, word: Word, *, limits: Limits = USUAL) -> How:
    """Put a word into an agent's lane, once; how it gets there. `limits` are for one that settled.

    ``steered``: its run hears it at the next step. ``joined``: a run that waits begins with it.
    ``queued``: a run of its own follows. ``continued``: the agent had settled and runs again.
    ``answered``: it waited for this. ``repeated``: the call said so before. Raises `Conflict` where
    the agent is to end, or had settled and may not go on (`agent_reopening`), and where one that
    asks nothing is to get no answer. Raises `Forbidden` where the speaker is trusted less than whom
    the agent was started for.
    """
    conn, lane = unit.conn, unit.lane(word.session_id)
    unit.say(CHILDREN)
    unit.say(RUNS)
    unit.say(EVENTS, {"session_id": word.session_id})
    identity = f"word:{word.run_id}:{word.call_id}"
    known = inputs.known(conn, identity) is not None
    if known or open_calls.answered_by(conn, word.session_id, identity):
        return "repeated"
    agent, speaker = agents.get(conn, word.session_id), runs.get(conn, word.run_id)
    settled = agent.settled
    agent_rights.check_tell(conn, agent, speaker.speaker)
    if not settled and agent.stop is not None:
        raise Conflict(f"{agent.name} is being stopped", "stopping")
    if _answered(conn, lane, word, speaker, identity):
        return "answered"
    if word.declines:
        raise Conflict(f"{agent.name} waits for no answer of yours", agent.status or "live")
    run, how = _hearer(conn, lane, speaker, steer=word.steer)
    run_id = run.id if run else new_id(IdPrefix.RUN, lane.now_ms)
    said = Told(SAYS.format(by=word.by, text=word.text), speaker.tainted)
    if settled:
        agent_reopening.reopen(unit, lane, agent, speaker, limits)
        for earlier in _unheard(conn, agent, speaker):
            inputs.hand_over(conn, earlier, to=run_id)
        how = "continued"
    new = notice(lane, speaker, said, identity, run_id=run_id)
    inputs.add(conn, new)
    if run is None:
        queue_run(conn, lane, speaker, RunKind.MAILBOX_DELIVERY, about=said.text, run_id=run_id)
        lanes.settle(conn, lane)
    elif how == "steered":
        runs.change(conn, run_id, {"steered": True})
    if speaker.tainted:
        runs.change(conn, run_id, {"tainted": True})
    lane.record(EventKind.INPUT_ACCEPTED, run_id, {"input_id": new.id, "said_by": word.by})
    return how


def _unheard(conn: Connection, agent: Agent, speaker: Run) -> Sequence[str]:
    """The runs that ended unbegun and whose words the next run hears as well: the agent's task, and
    what the same person said. What somebody else said stays with the run that had their rights."""
    found = [runs.get(conn, one) for one in retries.unheard_runs(conn, agent.session_id)]
    return [one.id for one in found if one.seq == 1 or one.speaker.has_rights_of(speaker.speaker)]


def _answered(conn: Connection, lane: Lane, word: Word, speaker: Run, identity: str) -> bool:
    """Whether the agent waited for this: it hears an answer from the person for whom it asks."""
    call = clarifications.waiting(conn, lane)
    if call is None or not runs.get(conn, call.run_id).speaker.has_rights_of(speaker.speaker):
        return False
    said = Told(word.text, speaker.tainted)
    clarifications.answer(
        conn, lane, call, said, by=word.by, identity=identity, declines=word.declines
    )
    return True


def _hearer(conn: Connection, lane: Lane, speaker: Run, *, steer: bool) -> tuple[Run | None, How]:
    """The run that is to hear it; None where one of its own must follow.

    Only a run of the same person with the same trust: a guest's words get no owner's rights, and
    no member's words get those of another member, who may write to others and pays for it.
    """
    begun, who = steering.begun(conn, lane), speaker.speaker
    hears = begun is not None and begun.cancel is None and begun.transcript == lane.transcript
    if steer and hears and begun is not None and begun.speaker.has_rights_of(who):
        return begun, "steered"
    last = runs.last_queued(conn, lane.session_id)
    if last is not None and last.started_ms is None and last.speaker.has_rights_of(who):
        return last, "joined"
    return None, "queued"
