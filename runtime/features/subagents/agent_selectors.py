"""Which agent of a tree somebody means, who is below whom, and where each stands in one word. Pure.

A selector is an id, the id of the session, a label, `last`, or the beginning of an id that no other
begins with, looked for in that order. What fits several is an error that lists them (SUB-4).
"""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from runtime.domain.errors import InvalidInput
from runtime.domain.printable import quoted
from runtime.domain.runs import RunState
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.features.subagents.rows.agents import HELD, Agent

LAST: Final = "last"
"""The agent below the caller that was spawned last."""
_SHOWN: Final = 10
_AT_WORK: Final = {
    RunState.RUNNING: "running",
    RunState.WAITING_FOR_APPROVAL: "waiting_for_approval",
    RunState.WAITING_FOR_USER_QUESTION: "waiting_for_user_input",
}
_COMPARED: Final = 200


def select(everybody: Sequence[Agent], selector: str, *, caller: str) -> Agent:
    """The one agent that `selector` names for the session `caller`; `everybody` is its tree in the
    order of spawning. Raises `InvalidInput` where it names none, or several."""
    wanted = selector.strip()
    if not wanted:
        raise InvalidInput("agent", "say which agent: its id, a label, or last")
    steps = (
        [one for one in everybody if wanted in (one.name, one.session_id)],
        [one for one in everybody if one.label == wanted],
        list(below(everybody, caller))[-1:] if wanted == LAST else [],
        [one for one in everybody if one.name.startswith(wanted)],
    )
    found = next(filter(None, steps), [])
    if len(found) == 1:
        return found[0]
    if found:
        listed = _listed(found, caller)
        raise InvalidInput("agent", f"{quoted(wanted)} fits {listed}: give the whole id")
    # Comparing costs up to a millisecond each, and the whole process waits.
    names = [one.name for one in everybody[-_COMPARED:]]
    near = get_close_matches(wanted, names, n=3, cutoff=0.5)
    hint = f"near it: {', '.join(near)}" if near else f"there are {_listed(everybody, caller)}"
    raise InvalidInput("agent", f"no agent of this tree is {quoted(wanted)}; {hint}")


def below(everybody: Sequence[Agent], session_id: str) -> Sequence[Agent]:
    """The descendants of a session, in the order of spawning."""
    family, found = {session_id}, []
    for one in everybody:
        # A parent is spawned before its children.
        if one.parent_id in family:
            family.add(one.session_id)
            found.append(one)
    return found


def standing(row: AgentRow) -> str:
    """Where an agent stands, for people and models: how it settled; else `waiting` (for others),
    `queued` (for a slot), `running`, `awaiting` (its own children), `waiting_for_approval` and
    `waiting_for_user_input` (a person, or its parent's answer, AGT-4), `stopping`."""
    if row.agent.settled_ms is not None:
        return row.agent.status or "settled"
    if row.agent.stop is not None:
        return "stopping"
    if row.asks:
        return "waiting_for_user_input"
    if row.run is not None:
        return _AT_WORK.get(row.run, "awaiting")
    if row.gate == HELD:
        return "waiting"
    return "queued" if row.due else "awaiting"


def in_words(status: str) -> str:
    """How an agent stands or ended, as people read it."""
    return status.replace("_", " ")


def _listed(found: Sequence[Agent], caller: str) -> str:
    """Names, with the labels that the caller itself gave: those of others are no words of ours."""
    if not found:
        return "none"
    names = [
        f"{one.name} ({one.label})" if one.label and one.parent_id == caller else one.name
        for one in found[:_SHOWN]
    ]
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(names) + more
