"""Which agent of a tree somebody means, and who is below whom. Pure.

A selector is an id, the id of the session, a label, `last`, or the beginning of an id that no other
begins with, looked for in that order. What fits several is an error that lists them (SUB-4).
"""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from runtime.domain.errors import InvalidInput
from runtime.domain.printable import quoted
from runtime.features.subagents.rows.agents import Agent

LAST: Final = "last"
"""The agent below the caller that was spawned last."""
_SHOWN: Final = 10
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
