"""A child whose model could not be reached begins anew, after a while (SUB-22).

The new try is a run of a new transcript, queued for later: until then its lane wants no slot, a
restart finds it, and whoever stops the child ends it. It is told all that the child was told, and
what was done already that must not be done twice.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from runtime.domain.events import EventKind
from runtime.domain.fence import fence
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.people import trusted_less
from runtime.domain.runs import RunKind
from runtime.features.subagents.notices import Told, new_run, notice
from runtime.features.subagents.rows import agents, retries
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.rows.retries import Done
from runtime.sessions import inputs, runs, steering
from runtime.sessions.inputs import Input
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Retry, Run
from runtime.store import Connection

BEGUN_ANEW: Final = (
    "An earlier attempt at this was cut off, because the model could not be reached. "
    "You start again. You know only this about that attempt."
)
DONE: Final = (
    "These calls of earlier attempts had begun and may have taken effect. "
    "Check before you repeat any of them:"
)
STARTED: Final = (
    "You started these subagents before, so their ids are taken: {names}. Look at them first."
)
PREVIEW: Final = 400
MOST_TOLD: Final = 16_000
"""Characters of what was done, the newest of it."""
_TRY: Final = "try:"


def again(conn: Connection, lane: Lane, agent: Agent, retry: Retry) -> bool:
    """Queue another try of a child in front of all that waits in its locked lane; False where it
    had as many as it may. The caller settles and saves the lane."""
    if agent.retries >= retry.most:
        return False
    number = agent.retries + 1
    heard = retries.heard(conn, agent.session_id, transcript=lane.transcript)
    said = [one for one in heard if not one.identity.startswith(_TRY)]
    if not said:
        return False
    retries.count(conn, agent.session_id)
    lane.transcript += 1
    lane.transcript_from = lane.window_from = lane.message_seq + 1
    run = replace(_new_run(conn, lane, said), ready_ms=lane.now_ms + retry.wait_ms(agent.retries))
    runs.add(conn, run)
    tainted = agents.totals(conn, agent.session_id).tainted
    if tainted:
        runs.change(conn, run.id, {"tainted": True})
    for one in said:
        lane.input_seq += 1
        copy = replace(
            one,
            id=new_id(IdPrefix.INPUT, lane.now_ms),
            seq=lane.input_seq,
            identity=f"{one.identity}:{number}",
            run_id=run.id,
            state="pending",
        )
        inputs.add(conn, copy)
    identity = f"{_TRY}{agent.session_id}:{number}"
    told = Told(_told(conn, agent), tainted)
    inputs.add(conn, notice(lane, run, told, identity, run_id=run.id))
    lane.record(
        EventKind.RUN_QUEUED,
        run.id,
        {
            "kind": run.kind.value,
            "retry": number,
            "ready_ms": run.ready_ms,
            "summary": run.summary,
        },
    )
    return True


def _new_run(conn: Connection, lane: Lane, said: Sequence[Input]) -> Run:
    """The run of a new try. It has the rights of whoever is trusted least of those it answers; of
    several, of who spoke last."""
    before = runs.get(conn, said[-1].run_id or "")
    speaker = said[-1].speaker
    for one in reversed(said[:-1]):
        speaker = one.speaker if trusted_less(one.speaker.trust, speaker.trust) else speaker
    seq = steering.make_way(conn, lane)
    return new_run(
        lane,
        replace(before, speaker=speaker),
        RunKind.MAILBOX_DELIVERY,
        seq=seq,
        about=before.summary,
    )


def _told(conn: Connection, agent: Agent) -> str:
    """What a new try is told of those before it, after the child's own words."""
    parts = [BEGUN_ANEW]
    done = retries.done(conn, agent.session_id)
    if done:
        # What a tool gave may be from outside, so all of it is data.
        parts.append(f"{DONE}\n{fence(_listed(done), 'earlier tries')}")
    there = agents.of_tree(conn, agent.tree_id)
    names = [one.name for one in there if one.parent_id == agent.session_id]
    if names:
        parts.append(STARTED.format(names=", ".join(names)))
    return "\n\n".join(parts)


def _listed(done: Sequence[Done]) -> str:
    lines, left = list[str](), MOST_TOLD
    for one in reversed(done):
        line = f"- {one.name} {one.arguments[:PREVIEW]}\n  {one.status}: {one.content[:PREVIEW]}"
        left -= len(line)
        if left < 0:
            lines.append("- (and more before these)")
            break
        lines.append(line)
    return "\n".join(reversed(lines))
