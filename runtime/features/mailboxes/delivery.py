"""A message goes into the lane of the agent that it is for, and what becomes of it there (MBX-1 to
MBX-3).

Taking a message and queueing the run that reads it are one unit, so that after a crash there are
both or neither. The run is one of the lane like every other: its messages enter the transcript in
the unit that claims it, once, in the order in which they were taken. What was not read by then and
never will be becomes a dead letter, in a unit of its own.

A message has the rights of the run that it is from, and no more: whoever reads it is as bounded as
whoever wrote it. Its words are data for its reader, in a fence.
"""

import json
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from runtime.domain.counts import counted
from runtime.domain.errors import Conflict, Forbidden, InvalidInput, NotFound, QueueFull
from runtime.domain.events import EventKind
from runtime.domain.fence import fence
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import Attachment, ChatAddress, InboundMessage
from runtime.domain.people import Sender, Speaker, Trust, trusted_less
from runtime.domain.runs import TERMINAL, RunKind
from runtime.domain.value import JsonObject
from runtime.features.mailboxes import rows
from runtime.features.mailboxes.model import MOST_TEXT, KeptPayload
from runtime.features.mailboxes.rows import Letter, Waiting
from runtime.features.mailboxes.settings import MailboxSettings
from runtime.ports.bus import CHILDREN, MAIL, RUNS
from runtime.sessions import inputs, lanes, message_edits, run_close, runs, sessions
from runtime.sessions.inputs import NOTICE, Input
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run
from runtime.sessions.unit import DeadLetter, DeadLetters, Unit

ROOT: Final = "root"
"""What the agent of a conversation is called in its tree."""
EXPIRED: Final = "it expired before anybody read it"
ENDED: Final = "its agent ended before it read it"
WITHDRAWN: Final = "it was taken back before anybody read it"
STOPPED: Final = "the run that was to read it was ended"


@dataclass(frozen=True, slots=True)
class Author:
    """The run whose rights a message has, of the agent that sends it. `led_by` counts the messages
    that led to it."""

    run: Run
    tainted: bool = False
    led_by: int = 0

    @property
    def session_id(self) -> str:
        """The agent's session."""
        return self.run.session_id


@dataclass(frozen=True, slots=True)
class Posting:
    """A message that is to be taken, for the agent of the session `to`. `words` are its texts, and
    `files` are among the files of that session."""

    message_id: str
    to: str
    payload: KeptPayload
    words: str
    files: tuple[Attachment, ...] = ()
    subject: str = ""
    ttl_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Rights:
    """With whose rights a message is read, and where what its reader says goes."""

    speaker: Speaker
    target: ChatAddress
    reply_to: str | None


def post(unit: Unit, author: Author, posting: Posting, settings: MailboxSettings) -> bool:
    """Take a message; False where its sender sent one with this id before, which counts. Raises as
    `check`."""
    conn = unit.conn
    if not check(unit, author, posting.to, posting.message_id, settings):
        return False
    lane = unit.lane(posting.to)
    from_root = rows.root_of(conn, author.session_id) or author.session_id
    rights = _rights(unit, author, lane, from_root)
    run = _reader(unit, lane, rights)
    run_id = run.id if run else new_id(IdPrefix.RUN, lane.now_ms)
    name = _name_of(unit, author.session_id, from_root, lane)
    new = _input(lane, rights, posting, name, author, run_id)
    letter = Letter(
        session_id=lane.session_id,
        sender_id=author.session_id,
        message_id=posting.message_id,
        subject=posting.subject,
        payload=posting.payload.model_dump_json(exclude_defaults=True),
        input_id=new.id,
        hops=author.led_by + 1,
        sent_ms=lane.now_ms,
        expires_ms=None if posting.ttl_ms is None else lane.now_ms + posting.ttl_ms,
    )
    if not rows.add(conn, letter):
        # Another unit took it meanwhile, for another agent.
        lane.input_seq -= 1
        return False
    inputs.add(conn, new)
    if run is None:
        _queue(unit, lane, rights, run_id)
    if author.tainted:
        runs.change(conn, run_id, {"tainted": True})
    lane.record(EventKind.INPUT_ACCEPTED, run_id, {"input_id": new.id})
    _record(unit, lane, EventKind.MAIL_ACCEPTED, run_id, letter)
    for topic in (MAIL, RUNS, CHILDREN):
        unit.say(topic)
    return True


def check(unit: Unit, author: Author, to: str, message_id: str, settings: MailboxSettings) -> bool:
    """Whether a message would be taken; False where its sender sent one with this id before.

    Raises `InvalidInput` (an agent that writes to itself), `NotFound`, `Forbidden` (an agent of
    another tree), `Conflict` (an agent that takes no messages any more, or too many in a row) and
    `QueueFull`.
    """
    conn = unit.conn
    if to == author.session_id:
        raise InvalidInput("to", "must be another agent than the one that sends the message")
    if rows.root_of(conn, to) is None:
        raise NotFound("agent", to)
    lane = unit.lane(to)
    if rows.is_known(conn, author.session_id, message_id):
        return False
    from_root = rows.root_of(conn, author.session_id) or author.session_id
    _check_allowed(from_root, lane, settings)
    _check_open(unit, lane)
    if author.led_by >= settings.most_hops:
        raise Conflict(
            f"mailboxes.max_hops is {settings.most_hops}: so many messages between agents led to "
            "this one; say what there is so far, and go on when a person wants it",
            "max_hops",
        )
    waiting = inputs.mail_waiting(conn, [lane.session_id]).get(lane.session_id, 0)
    if waiting >= settings.most_waiting:
        raise QueueFull(f"{waiting} messages wait in this mailbox, and it holds no more.")
    return True


def _check_allowed(from_root: str, lane: Lane, settings: MailboxSettings) -> None:
    if from_root != lane.root_id and (from_root, lane.root_id) not in settings.allowed:
        raise Forbidden(
            "these agents belong to different conversations; an operator can let the first write "
            "to the second by mailboxes.allow"
        )


def _check_open(unit: Unit, lane: Lane) -> None:
    """Raise `Conflict` where an agent reads nothing any more."""
    status = sessions.get(unit.conn, lane.session_id).status
    if status != "open":
        raise Conflict("this agent's conversation has ended, so it takes no messages", status)
    if lane.parent_id is None:
        return
    for one in unit.kinds.delegations.below(unit.conn, lane.root_id):
        if one.session_id == lane.session_id and not one.live:
            detail = f"{one.name} has ended, so it takes no messages; `subagents` lets it go on"
            raise Conflict(detail, "ended")


def _rights(unit: Unit, author: Author, lane: Lane, from_root: str) -> _Rights:
    run = author.run
    if from_root == lane.root_id:
        return _Rights(run.speaker, run.target, run.reply_to)
    last = runs.newest(unit.conn, lane.session_id)
    target = last.target if last else sessions.get(unit.conn, lane.session_id).address
    # Who is known in one conversation is nobody in another: the message comes from an agent, which
    # causes as little as a guest does, has nothing of that person and answers nothing of theirs.
    # What is said stays where it is read.
    least = Trust.GUEST if trusted_less(Trust.GUEST, run.speaker.trust) else run.speaker.trust
    agent = f"agent:{author.session_id}"
    speaker = Speaker(
        person_id=agent,
        channel=target.channel,
        account=target.account,
        user_id=agent,
        name=author.session_id,
        trust=least,
    )
    return _Rights(speaker, target, None)


def _reader(unit: Unit, lane: Lane, rights: _Rights) -> Run | None:
    """The run that waits last, where it may read the message with those that it has."""
    last = runs.last_queued(unit.conn, lane.session_id)
    if last is None or last.started_ms is not None or last.cancel is not None:
        return None
    alike = (last.speaker, last.target) == (rights.speaker, rights.target)
    return last if alike and last.kind is RunKind.MAILBOX_DELIVERY else None


def _queue(unit: Unit, lane: Lane, rights: _Rights, run_id: str) -> None:
    lane.run_seq += 1
    run = Run(
        id=run_id,
        session_id=lane.session_id,
        seq=lane.run_seq,
        kind=RunKind.MAILBOX_DELIVERY,
        ready_ms=lane.now_ms,
        target=rights.target,
        reply_to=rights.reply_to,
        speaker=rights.speaker,
        created_ms=lane.now_ms,
    )
    runs.add(unit.conn, run)
    lane.record(EventKind.RUN_QUEUED, run.id, {"kind": run.kind.value})
    lanes.settle(unit.conn, lane)


def _name_of(unit: Unit, session_id: str, from_root: str, lane: Lane) -> str:
    """What the sender is called where its message is read: its name in the tree, or its id."""
    if from_root != lane.root_id:
        return session_id
    if session_id == from_root:
        return ROOT
    there = unit.kinds.delegations.below(unit.conn, from_root)
    return next((one.name for one in there if one.session_id == session_id), session_id)


def _input(
    lane: Lane, rights: _Rights, posting: Posting, name: str, author: Author, run_id: str
) -> Input:
    target = rights.target
    message = InboundMessage(
        channel=target.channel,
        account=target.account,
        chat_id=target.chat_id,
        chat_kind=target.chat_kind,
        thread_id=target.thread_id,
        joins_chat=target.joins_chat,
        message_id=rights.reply_to or "",
        sender=Sender(id="gatehouse", name="Gatehouse"),
        text=text_of(posting, name),
        attachments=posting.files,
        received_at_ms=lane.now_ms,
        authorship="forwarded" if author.tainted else "own",
    )
    identity = f"{inputs.MAIL}{author.session_id}:{posting.message_id}"
    return inputs.new_input(
        lane, message, rights.speaker, run_id=run_id, identity=identity, origin=NOTICE
    )


def text_of(posting: Posting, name: str) -> str:
    """What the reader is told: a header of ours, and the words of the other agent in a fence."""
    payload = posting.payload
    about = {"message_id": posting.message_id, "from": name, "type": payload.type}
    words = [posting.subject, posting.words]
    if payload.data is not None:
        words.append(json.dumps(payload.data, ensure_ascii=False))
    said = fence("\n\n".join(one for one in words if one.strip()), f"agent {name}")
    lead = "Another agent wrote to you. These are its words, not a person's:"
    told = f"{lead}\n{json.dumps(about)}\n{said}"
    if not posting.files:
        return told
    return f"{told}\nIt came with {counted(len(posting.files), 'file')}."


def settle(unit: Unit, session_id: str) -> int:
    """Note what became of the messages in a mailbox; how many are settled now."""
    conn = unit.conn
    if rows.root_of(conn, session_id) is None:
        return 0
    lane, settled = unit.lane(session_id), 0
    for one in rows.waiting(conn, session_id):
        if one.input_state in ("taken", "undone"):
            rows.settle(conn, one.letter, "delivered", now=lane.now_ms)
            _record(unit, lane, EventKind.MAIL_DELIVERED, one.run_id, one.letter)
            settled += 1
            continue
        reason = _why_dead(unit, lane, one)
        if reason:
            _bury(unit, lane, one, reason)
            settled += 1
    return settled


def _why_dead(unit: Unit, lane: Lane, one: Waiting) -> str:
    """Why nobody will read a message; empty where somebody may."""
    if one.input_state != "pending" or one.run_id is None or one.run_state is None:
        return WITHDRAWN
    if one.run_state in TERMINAL:
        try:
            _check_open(unit, lane)
        except Conflict:
            return ENDED
        return STOPPED
    expires = one.letter.expires_ms
    return EXPIRED if expires is not None and expires <= lane.now_ms else ""


def _bury(unit: Unit, lane: Lane, one: Waiting, reason: str) -> None:
    conn, letter = unit.conn, one.letter
    message_edits.withdraw(conn, letter.input_id)
    rows.settle(conn, letter, "dead", now=lane.now_ms, reason=reason)
    _record(unit, lane, EventKind.MAIL_DEAD, one.run_id, letter, reason=reason)
    if one.run_id is None or one.run_state in TERMINAL:
        return
    run_close.end_unread(unit, lane, runs.get(conn, one.run_id), reason)


class MailboxLetters(DeadLetters):
    """Keeps what nobody heard in the mailbox of whom it was for."""

    @override
    def bury(self, unit: Unit, letter: DeadLetter) -> None:
        lane = unit.lane(letter.session_id)
        payload = KeptPayload(type="message", text=letter.text[:MOST_TEXT])
        kept = Letter(
            session_id=letter.session_id,
            sender_id=letter.sender_id,
            message_id=letter.message_id,
            subject="",
            payload=payload.model_dump_json(exclude_defaults=True),
            input_id=letter.input_id,
            hops=0,
            sent_ms=letter.sent_ms,
            state="dead",
            settled_ms=lane.now_ms,
            reason=letter.reason,
        )
        rows.add(unit.conn, kept)
        _record(unit, lane, EventKind.MAIL_DEAD, None, kept, reason=letter.reason)


def _record(
    unit: Unit,
    lane: Lane,
    kind: EventKind,
    run_id: str | None,
    letter: Letter,
    *,
    reason: str | None = None,
) -> None:
    data: JsonObject = {"message_id": letter.message_id, "from": letter.sender_id}
    if reason is not None:
        data["reason"] = reason
    lane.record(kind, run_id, data)
    unit.changed(lane.session_id)
