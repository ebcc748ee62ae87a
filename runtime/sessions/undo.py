"""Taking a turn back: the newest that answered a person, in one unit with the command (MSG-22).

Every row stays. The runs and what they took are marked, so no later prompt holds their words. What
was posted and what the turn did remain; both people and the model are told so. It is no erasure,
and it changes no budget, grant, mode or file.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, exists, select, text, update

from runtime.domain.call_paths import paths_of
from runtime.domain.counts import counted
from runtime.domain.errors import Conflict, Forbidden
from runtime.domain.events import EventKind
from runtime.domain.fence import fence
from runtime.domain.messages import OutboundMessage, TextPart
from runtime.domain.people import Speaker, Trust
from runtime.domain.printable import printable
from runtime.domain.results import plain
from runtime.domain.runs import RunState
from runtime.domain.tools import Effect
from runtime.domain.transcript import NoticeMessage
from runtime.domain.value import JsonObject
from runtime.sessions import audit, message_edits, runs
from runtime.sessions.inputs import PERSON, Input, input_of
from runtime.sessions.lanes import CONVERSATION, Lane
from runtime.sessions.outbox import OPEN
from runtime.sessions.runs import Run
from runtime.sessions.tables import inputs, outbox, tool_calls
from runtime.sessions.tables import runs as runs_table
from runtime.sessions.unit import Delegation, Unit
from runtime.store.payloads import kept

UNDONE: Final = "undone"
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
    there = unit.kinds.delegations.below(conn, lane.session_id)
    _check_lane(conn, lane, there)
    run = _newest(conn, lane.session_id, transcript=lane.transcript)
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
    if _unsettled(conn, turn.work):
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
    mine = all(one.speaker.platform_account == by.platform_account for one in turn.said)
    if by.trust is not Trust.OWNER and not mine:
        raise Forbidden(
            "the last turn answers somebody else too: only whoever said all of it may take it "
            "back, or my owner"
        )


def _turn(unit: Unit, lane: Lane, run: Run, there: Sequence[Delegation]) -> Turn:
    """The run with those that its delegated work caused later, which may have caused others."""
    conn = unit.conn
    run_ids = [run.id]
    for later in _after(conn, run):
        heard = _inputs_of(conn, lane.session_id, [later])
        senders = {unit.kinds.delegations.sender_of(conn, one) for one in heard}
        if any(one.session_id in senders and one.caused_by(run_ids) for one in there):
            run_ids.append(later)
    since = run.started_ms or 0
    busy = list[Delegation]()
    for one in there:
        above = {other.session_id for other in busy}
        if one.caused_by(run_ids) or one.parent_id in above:
            busy.append(one)
    below = _runs_of(conn, [one.session_id for one in busy], since_ms=since)
    given = tuple(one for one in busy if one.created_ms >= since)
    took = _inputs_of(conn, lane.session_id, run_ids)
    return Turn(run, tuple(run_ids), tuple(took), given, (*run_ids, *below))


def _remaining(conn: Connection, turn: Turn) -> Sequence[str]:
    """What the turn did, a line each; the same line once."""
    done = [_line(f"{name} {_subject(name, given)}") for name, given in _begun(conn, turn.work)]
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
    reply = _line(_replied(conn, turn.run_ids))
    lines.append(f"{STAYS} It begins: `{reply}`" if reply else STAYS)
    if remaining:
        listed = "\n".join(f"- `{one}`" for one in remaining)
        lines.append(f"What I did remains too:\n\n{listed}")
    return "\n\n".join(lines)


def _mark(
    conn: Connection, lane: Lane, turn: Turn, remaining: Sequence[str], *, by: Speaker
) -> None:
    _mark_rows(conn, lane.session_id, turn.took, turn.run_ids, now=lane.now_ms)
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
        outside = _any_tainted(conn, turn.run)
        lane.say(NoticeMessage(text=text, untrusted=outside), run_id=None, step=0)


def _newest(conn: Connection, session_id: str, *, transcript: int) -> Run | None:
    """The newest run of a transcript that answered a person and still stands."""
    found = conn.execute(
        select(runs_table.c.id)
        .join(inputs, inputs.c.run_id == runs_table.c.id)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.origin == PERSON,
            inputs.c.state == "taken",
            runs_table.c.transcript == transcript,
        )
        .order_by(runs_table.c.seq.desc())
        .limit(1)
    ).scalar()
    return None if found is None else runs.get(conn, found)


def _after(conn: Connection, run: Run) -> Sequence[str]:
    """The runs of a run's transcript that began behind it and still stand, in order."""
    rows = conn.execute(
        select(runs_table.c.id)
        .where(
            runs_table.c.session_id == run.session_id,
            runs_table.c.transcript == run.transcript,
            runs_table.c.seq > run.seq,
            runs_table.c.undone_ms.is_(None),
        )
        .order_by(runs_table.c.seq)
    )
    return list(rows.scalars())


def _runs_of(conn: Connection, session_ids: Collection[str], *, since_ms: int) -> Sequence[str]:
    """The runs of some sessions that were made since a moment."""
    query = select(runs_table.c.id).where(
        runs_table.c.session_id.in_(session_ids), runs_table.c.created_ms >= since_ms
    )
    return list(conn.execute(query).scalars())


def _any_tainted(conn: Connection, run: Run) -> bool:
    """Whether a run of a run's transcript read what is untrusted, also one that was taken back."""
    tainted = exists().where(
        runs_table.c.session_id == run.session_id,
        runs_table.c.transcript == run.transcript,
        runs_table.c.tainted,
    )
    return bool(conn.execute(select(tainted)).scalar())


def _unsettled(conn: Connection, run_ids: Collection[str]) -> bool:
    """Whether something of these runs is still to be sent, or grows."""
    found = select(outbox.c.id).where(outbox.c.run_id.in_(run_ids), text(OPEN)).limit(1)
    return conn.execute(found).first() is not None


def _replied(conn: Connection, run_ids: Collection[str]) -> str:
    """The last text that these runs posted; empty where there is none."""
    rows = conn.execute(
        select(outbox.c.message)
        .where(
            outbox.c.run_id.in_(run_ids),
            outbox.c.kind.in_(("final", "said")),
            outbox.c.state != "dead",
        )
        .order_by(outbox.c.position.desc())
    )
    parts = (part for found in rows.scalars() for part in kept(OutboundMessage, found).parts)
    return next((part.markdown for part in parts if isinstance(part, TextPart)), "")


def _begun(conn: Connection, run_ids: Collection[str]) -> Iterable[tuple[str, str]]:
    """Names and arguments of the calls of these runs that began and do more than read, in order."""
    rows = conn.execute(
        select(tool_calls.c.name, tool_calls.c.arguments)
        .where(
            tool_calls.c.run_id.in_(run_ids),
            tool_calls.c.effect != Effect.READ.value,
            tool_calls.c.started_ms.is_not(None),
        )
        .order_by(tool_calls.c.started_ms, tool_calls.c.step, tool_calls.c.place)
    )
    return [(row.name, row.arguments) for row in rows]


def _mark_rows(
    conn: Connection, session_id: str, taken: Sequence[Input], run_ids: Collection[str], *, now: int
) -> None:
    """Mark runs and what they took. Notes about what still stands wait for the next run again;
    those about what does not are dropped, also where they wait already."""
    conn.execute(update(runs_table).where(runs_table.c.id.in_(run_ids)).values(undone_ms=now))
    notes = (message_edits.NOTE, message_edits.LINE)
    gone = [one for one in taken if one.origin not in notes]
    conn.execute(
        update(inputs).where(inputs.c.id.in_([one.id for one in gone])).values(state=UNDONE)
    )
    waiting = message_edits.notes_of(session_id)
    again = [one for one in taken if one.origin in notes]
    conn.execute(
        update(inputs)
        .where(inputs.c.id.in_([one.id for one in again]))
        .values(state="pending", run_id=waiting)
    )
    said = {_place(one) for one in gone if one.origin == PERSON}
    for note in _inputs_of(conn, session_id, [waiting], state="pending"):
        if _place(note) in said:
            message_edits.withdraw(conn, note.id)


def _place(one: Input) -> tuple[str, str, str, str]:
    """Where a message stands, also one that was edited since."""
    message = one.message
    return message.channel, message.account, message.chat_id, message.message_id


def _inputs_of(
    conn: Connection, session_id: str, run_ids: Collection[str], *, state: str = "taken"
) -> Sequence[Input]:
    """What runs of a session took into its transcript, or what waits for them, in order."""
    rows = conn.execute(
        select(inputs)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.run_id.in_(run_ids),
            inputs.c.state == state,
        )
        .order_by(inputs.c.seq)
    )
    return [input_of(row) for row in rows]
