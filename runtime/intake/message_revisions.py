"""Messages that people edit or delete after they sent them (SLK-2, TEL-2).

What waits is changed or never runs; what was read already is noted for the next run. Commands,
answers and decisions stay as they were given, whatever becomes of their message.
"""

from dataclasses import replace

from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress, Deletion, InboundMessage, message_identity
from runtime.domain.people import Speaker, trusted_less
from runtime.domain.runs import RunState
from runtime.intake.accept import Accepting
from runtime.intake.access import decide_access
from runtime.ports.bus import RUNS
from runtime.ports.gatehouse import Accepted, Disposition
from runtime.sessions import inputs, lanes, message_edits, people, runs
from runtime.sessions.idempotency import first_time
from runtime.sessions.inputs import Input
from runtime.sessions.lanes import Lane
from runtime.sessions.run_close import end_as_asked
from runtime.sessions.unit import Unit
from runtime.store import Connection

DELETED = "its message was deleted"
EDITED_NOTE = "[I edited an earlier message of mine. It reads now:]\n{text}"
DELETED_NOTE = "[I deleted this earlier message of mine:]\n{text}"
_WORDS = ("command", "answer")
MOST_NOTES = 50
"""Edits and deletions that wait for a session's next run, which reads all of them (SCALE-5)."""
TOO_MANY = f"{MOST_NOTES} edits wait for the session's next run"


class Revising(Accepting):
    """The unit of work of an edit or a deletion."""

    def revise(self, unit: Unit, message: InboundMessage) -> Accepted:
        """Apply one edit, once."""
        conn = unit.conn
        found = message_edits.of_message(conn, _bare(message).identity)
        if found is None:
            return self._now_addressed(unit, message)
        refused = self._refused(conn, message, found)
        if refused:
            return _dropped(found, refused)
        lane = unit.lane(found.session_id)
        found = message_edits.of_message(conn, _bare(message).identity) or found
        if found.state in _WORDS:
            return _dropped(found, f"edits do not change an {found.state} that was given")
        if inputs.known(conn, message.identity) is not None or not first_time(
            conn, f"edit:{message.identity}"
        ):
            return _of(found, "duplicate")
        if found.state == "pending":
            changes = {
                "text": message.text,
                "attachments": message.attachments,
                "mentions_bot": message.mentions_bot,
                "authorship": message.authorship,
                "said": message.said,
            }
            message_edits.change(conn, found.id, found.message.model_copy(update=changes))
            message_edits.summarise(conn, lane, found.run_id)
        elif message_edits.notes_wait(conn, found.session_id, most=MOST_NOTES):
            return _full(found)
        elif found.state == "taken":
            said = EDITED_NOTE.format(text=message.text)
            _note(conn, lane, found, message.model_copy(update={"text": said}), message.identity)
        else:
            return _dropped(found, f"the message is {found.state}")
        lane.record(EventKind.INPUT_REVISED, found.run_id, {"input_id": found.id})
        return _of(found, "queued" if found.state == "pending" else "noted")

    def withdraw(self, unit: Unit, deletion: Deletion) -> Accepted:
        """Apply one deletion, once."""
        conn = unit.conn
        place = ChatAddress(
            channel=deletion.channel, account=deletion.account, chat_id=deletion.chat_id
        )
        identity = message_identity(place, deletion.message_id)
        found = message_edits.of_message(conn, identity)
        if found is None:
            return Accepted(disposition="dropped", reason="the message was never taken")
        lane = unit.lane(found.session_id)
        found = message_edits.of_message(conn, identity) or found
        if found.state in _WORDS:
            return _dropped(found, f"a deletion takes no {found.state} back")
        if not first_time(conn, f"deleted:{identity}"):
            return _of(found, "duplicate")
        if found.state == "pending":
            self._take_out(unit, lane, found)
        elif message_edits.notes_wait(conn, found.session_id, most=MOST_NOTES):
            return _full(found)
        elif found.state == "taken":
            said = DELETED_NOTE.format(text=found.message.text)
            note = found.message.model_copy(update={"text": said, "attachments": ()})
            _note(conn, lane, found, note, f"{identity}::deleted")
        lane.record(EventKind.INPUT_WITHDRAWN, found.run_id, {"input_id": found.id})
        return _of(found, "queued" if found.state == "pending" else "noted")

    def _now_addressed(self, unit: Unit, message: InboundMessage) -> Accepted:
        """An edit of what was never taken: it counts where it now calls for the bot."""
        if not message.mentions_bot:
            return Accepted(disposition="dropped", reason="an edit of what was never taken")
        accepted = self.accept(unit, message)
        if accepted.disposition == "queued" and accepted.input_id is not None:
            message_edits.link(unit.conn, _bare(message).identity, accepted.input_id)
        return accepted

    def _refused(self, conn: Connection, message: InboundMessage, found: Input) -> str:
        """Why an edit is not applied: access is decided anew, as of now; empty where it is.

        That the message was addressed was decided when it came in.
        """
        if not _same_account(found.speaker, message):
            return "an edit by somebody else than the author"
        known = people.find(
            conn, channel=message.channel, account=message.account, user_id=message.sender.id
        )
        asked = message.model_copy(update={"mentions_bot": True})
        access = decide_access(
            asked, known.trusted if known else None, self.rules_of(message.channel)
        )
        if access.kind != "in":
            return access.reason or "its author is a stranger now"
        if trusted_less(access.trust, found.speaker.trust):
            return "its author is trusted less than when it was sent"
        return ""

    def _take_out(self, unit: Unit, lane: Lane, found: Input) -> None:
        """A run without a message left is over before it begins."""
        conn = unit.conn
        message_edits.withdraw(conn, found.id)
        run = runs.get(conn, found.run_id or "")
        left = inputs.pending_of_run(conn, run.id)
        if left and run.reply_to == found.message.message_id:
            runs.change(conn, run.id, {"reply_to": left[-1].message.message_id})
        message_edits.summarise(conn, lane, run.id)
        if not left and run.state is RunState.QUEUED and run.started_ms is None:
            end_as_asked(unit, lane, run, DELETED)
            lanes.settle(conn, lane)
            unit.say(RUNS, {"session_id": lane.session_id})


def _note(
    conn: Connection, lane: Lane, about: Input, message: InboundMessage, identity: str
) -> None:
    lane.input_seq += 1
    note = replace(
        about,
        id=new_id(IdPrefix.INPUT, lane.now_ms),
        seq=lane.input_seq,
        identity=identity,
        message=message,
        received_ms=lane.now_ms,
    )
    message_edits.note(conn, note)


def _bare(message: InboundMessage) -> InboundMessage:
    return message.model_copy(update={"edited_at": None})


def _same_account(speaker: Speaker, message: InboundMessage) -> bool:
    return speaker.platform_account == (message.channel, message.account, message.sender.id)


def _of(found: Input, disposition: Disposition) -> Accepted:
    return Accepted(
        disposition=disposition,
        session_id=found.session_id,
        input_id=found.id,
        run_id=found.run_id,
    )


def _full(found: Input) -> Accepted:
    return Accepted(disposition="full", session_id=found.session_id, reason=TOO_MANY)


def _dropped(found: Input, reason: str) -> Accepted:
    return Accepted(disposition="dropped", session_id=found.session_id, reason=reason)
