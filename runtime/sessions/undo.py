"""Taking a turn back: the newest that answered a person, in one unit with the command (MSG-22).

Every row stays. The runs and what they took are marked, so no later prompt holds their words. What
was posted and what the turn did remain; both people and the model are told so. It is no erasure,
and it changes no budget, grant, mode or file.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runtime.domain.call_paths import paths_of
from runtime.domain.counts import counted
from runtime.domain.errors import Conflict, Forbidden
from runtime.domain.events import EventKind
from runtime.domain.fence import fence
from runtime.domain.people import Speaker, Trust
from runtime.domain.printable import printable
from runtime.domain.results import plain
from runtime.domain.runs import RunState
from runtime.domain.transcript import NoticeMessage
from runtime.domain.value import JsonObject
from runtime.sessions import audit, runs
from runtime.sessions import undo_rows as store
from runtime.sessions.inputs import PERSON, Input
from runtime.sessions.lanes import CONVERSATION, Lane
from runtime.sessions.runs import Run
from runtime.sessions.unit import Delegation, Unit
from runtime.store import Connection

QUOTED: Final = 80
"""Characters of a message, of a reply and of what a call was about that are quoted."""
MOST_LISTED: Final = 100
"""Calls that are listed; of more, their number is told."""
NOTICE: Final = (
    "A turn was taken back here, and its words are no longer in this conversation. What it did "
    "remains. Do not do it again unless somebody asks for it anew:"
)
STAYS: Final = "What was posted stays as it is: I neither delete nor edit it."
_SUBJECTS: Final[dict[str, tuple[str, ...]]] = {
    "exec": ("command",),
    "send_message": ("to",),
    "subagents": ("action", "agent"),
}
"""The arguments that say what a call was about; of all other tools, the paths are told."""

_DOING: Final = {
    RunState.RUNNING: "I am at work",
    RunState.WAITING_FOR_APPROVAL: "I wait for an answer",
    RunState.WAITING_FOR_USER_QUESTION: "I wait for an answer",
    RunState.WAITING_FOR_CHILDREN: "a subagent is at work",
}


@dataclass(frozen=True, slots=True)
class Turn:
    """A run that answered a person, `run_ids` with those of the handoffs that it caused, and what
    all of them `took`. Behind it is what they gave others to do, `given`, and `work`: its runs and
    those of sessions that they gave work, or let go on."""

    run: Run
    run_ids: tuple[str, ...]
    took: tuple[Input, ...]
    given: tuple[Delegation, ...]
    work: tuple[str, ...]

    @property
    def said(self) -> Sequence[Input]:
        """What people said that it answered."""
        return [one for one in self.took if one.origin == PERSON]


def take_back(unit: Unit, lane: Lane, *, by: Speaker, said_ms: int) -> str:
    """Take back the newest turn of a locked lane that answered a person; what the person is told.

    `said_ms` is when that was asked for: a turn that began later is never taken. Raises `Conflict`
    where it cannot be done now and `Forbidden` where it is not this person's to do, before anything
    is changed.
    """
    conn = unit.conn
    there = unit.kinds.delegations(conn, lane.session_id)
    _check_lane(conn, lane, there)
    run = store.newest(conn, lane.session_id, transcript=lane.transcript)
    if run is None:
        raise Conflict("there is nothing to take back in this conversation", "empty")
    if (run.started_ms or 0) > said_ms:
        raise Conflict(
            "another turn began after you wrote that, so I took nothing back: ask again if you "
            "mean that one",
            "newer",
        )
    turn = _turn(unit, lane, run, there)
    _check_speaker(turn, by)
    if store.unsettled(conn, turn.work):
        raise Conflict(
            "something of the last turn is still on its way to the chat: ask again in a moment",
            "unsettled",
        )
    remaining = _remaining(conn, turn)
    told = _told(conn, turn, remaining)
    _mark(conn, lane, turn, remaining, by=by)
    return told


def _check_lane(conn: Connection, lane: Lane, there: Sequence[Delegation]) -> None:
    if lane.kind != CONVERSATION or lane.parent_id is not None:
        raise Conflict("only turns of a conversation with people can be taken back", lane.kind)
    doing = ""
    if lane.active_run is not None:
        doing = _DOING[runs.get(conn, lane.active_run).state]
    elif not lane.is_idle:
        doing = "messages wait for their turn"
    elif any(one.live for one in there):
        doing = _DOING[RunState.WAITING_FOR_CHILDREN]
    if doing:
        raise Conflict(
            f"I cannot take a turn back while {doing}: wait for the end, or stop me and ask again",
            "busy",
        )


def _check_speaker(turn: Turn, by: Speaker) -> None:
    """A guest is kept nowhere and has no lasting id, so the platform's account counts."""
    mine = all(_account(one.speaker) == _account(by) for one in turn.said)
    if by.trust is not Trust.OWNER and not mine:
        raise Forbidden(
            "the last turn answers somebody else too: only whoever said all of it may take it "
            "back, or my owner"
        )


def _account(speaker: Speaker) -> tuple[str, str, str]:
    return speaker.channel, speaker.account, speaker.user_id


def _turn(unit: Unit, lane: Lane, run: Run, there: Sequence[Delegation]) -> Turn:
    """The run with those that its delegated work caused later, which may have caused others."""
    conn = unit.conn
    run_ids = [run.id]
    for later in store.after(conn, run):
        heard = store.inputs_of(conn, lane.session_id, [later])
        senders = {unit.kinds.sender_of(conn, one) for one in heard}
        if any(one.session_id in senders and one.caused_by(run_ids) for one in there):
            run_ids.append(later)
    since = run.started_ms or 0
    busy = list[Delegation]()
    for one in there:
        above = {other.session_id for other in busy}
        if one.caused_by(run_ids) or one.parent_id in above:
            busy.append(one)
    below = store.runs_of(conn, [one.session_id for one in busy], since_ms=since)
    given = tuple(one for one in busy if one.created_ms >= since)
    took = store.inputs_of(conn, lane.session_id, run_ids)
    return Turn(run, tuple(run_ids), tuple(took), given, (*run_ids, *below))


def _remaining(conn: Connection, turn: Turn) -> Sequence[str]:
    """What the turn did, a line each; the same line once."""
    done = [
        _line(f"{name} {_subject(name, given)}") for name, given in store.begun(conn, turn.work)
    ]
    there = [_line(f"subagent {one.name}") for one in turn.given]
    found = list(dict.fromkeys([*done, *there]))
    more = len(found) - MOST_LISTED
    return [*found[:MOST_LISTED], f"and {more:,} more"] if more > 0 else found


def _subject(name: str, arguments: str) -> str:
    """What a call was about, without the words that it carries: a path, a command, a chat."""
    if name not in _SUBJECTS:
        return ", ".join(paths_of(arguments))
    try:
        given = json.loads(arguments)
    except ValueError:
        return ""
    fields = _SUBJECTS[name] if isinstance(given, dict) else ()
    return " ".join(str(given.get(field, "")) for field in fields)


def _line(text: str) -> str:
    """The beginning of a text as one line that can stand in Markdown's backticks."""
    words = " ".join(plain(text).split())
    shown = printable(words[:QUOTED], newlines=False).replace("`", "'")
    return f"{shown}..." if len(words) > QUOTED else shown


def _told(conn: Connection, turn: Turn, remaining: Sequence[str]) -> str:
    last = _line(turn.said[-1].message.text) or "(no text)"
    count = len(turn.said)
    what = f"`{last}`" if count == 1 else f"{counted(count, 'message')}, the last `{last}`"
    lines = [f"Taken back: {what}. From now on I know nothing of it and of what I answered."]
    reply = _line(store.replied(conn, turn.run_ids))
    lines.append(f"{STAYS} It begins: `{reply}`" if reply else STAYS)
    if remaining:
        listed = "\n".join(f"- `{one}`" for one in remaining)
        lines.append(f"What I did remains too:\n\n{listed}")
    return "\n\n".join(lines)


def _mark(
    conn: Connection, lane: Lane, turn: Turn, remaining: Sequence[str], *, by: Speaker
) -> None:
    store.mark(conn, lane.session_id, turn.took, turn.run_ids, now=lane.now_ms)
    lane.undone += 1
    for run_id in turn.run_ids:
        taken = [one for one in turn.took if one.run_id == run_id]
        lane.record(EventKind.RUN_UNDONE, run_id, {"input_ids": [one.id for one in taken]})
    data: JsonObject = {
        "runs": [*turn.run_ids],
        "inputs": [one.id for one in turn.took],
        "remaining": len(remaining),
    }
    audit.append(
        conn,
        actor=by.person_id,
        action="run.undone",
        session_id=lane.session_id,
        run_id=turn.run.id,
        data=data,
    )
    if remaining:
        # The lines are what a model wrote, so they are data, and as little trusted as it was.
        words = "\n".join(f"- {one}" for one in remaining)
        text = f"{NOTICE}\n{fence(words, 'turn that was taken back')}"
        outside = store.any_tainted(conn, turn.run)
        lane.say(NoticeMessage(text=text, untrusted=outside), run_id=None, step=0)
