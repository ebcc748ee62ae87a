"""Accepting a message: one unit decides access, dedupes, then enqueues it or applies it (MSG-1)."""

from dataclasses import dataclass
from typing import Final

from runtime.commands.parse import Unknown, Words
from runtime.commands.table import Call
from runtime.domain.errors import Conflict
from runtime.domain.events import EventKind
from runtime.domain.messages import Button, InboundMessage
from runtime.domain.people import Speaker, Trust
from runtime.intake import (
    access_requests,
    bot_loop_guard,
    card_references,
    full_lane,
    late_messages,
    pairing,
)
from runtime.intake.access import LOCAL, decide_access, speaker_of
from runtime.intake.card_references import said_to, waits_behind
from runtime.intake.limits import Limits, Over
from runtime.intake.reception import BeginAnew, Reception
from runtime.ports.gatehouse import Accepted, Applied
from runtime.sessions import answers, erasure, inputs, open_calls, people, sessions
from runtime.sessions.answers import REFUSED, Picked, may_answer
from runtime.sessions.idempotency import first_time, was_seen
from runtime.sessions.lanes import Lane
from runtime.sessions.queue_modes import Enqueued, Refused, enqueue
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Unit
from runtime.store import Connection

_APPLIED: Final[dict[str, Applied]] = {"command": "command", "answer": "answer"}


@dataclass(frozen=True, slots=True)
class Accepting(Reception):
    """One message's unit of work. `session_id` names the session that the message must be for;
    `found` is what was looked up for the command that it is."""

    session_id: str | None = None
    found: object = None

    def accept(self, unit: Unit, message: InboundMessage) -> Accepted:
        """Decide about one message, and keep or apply it. Raises `BeginAnew`."""
        conn = unit.conn
        rules = self.rules_of(message.channel)
        known = people.find(
            conn, channel=message.channel, account=message.account, user_id=message.sender.id
        )
        access = decide_access(message, known.trusted if known else None, rules)
        claimed = self._claim(unit, message)
        if claimed is not None:
            return claimed
        if access.kind == "drop":
            return Accepted(disposition="dropped", reason=access.reason)
        if access.kind == "pair":
            return self._pair(unit, message)
        speaker = speaker_of(message, known.speaker if known else None, access.trust)
        return self._take(unit, message, speaker, known)

    def _claim(self, unit: Unit, message: InboundMessage) -> Accepted | None:
        conn = unit.conn
        if pairing.is_owner_code(message.text) and was_seen(conn, f"claim:{message.identity}"):
            return Accepted(disposition="duplicate")
        if pairing.give_away(conn, message):
            self.say(unit, message.address, pairing.GIVEN_AWAY, reply_to=message.message_id)
            return Accepted(disposition="dropped", reason="the owner code was said in a group")
        speaker = pairing.claim_owner(conn, message)
        if speaker is None:
            return None
        first_time(conn, f"claim:{message.identity}")
        access_requests.close_own(conn, speaker)
        self.say(unit, message.address, f"Welcome, {speaker.name}. You are my owner now.")
        return Accepted(disposition="pairing", reason="claimed by the owner code")

    def _pair(self, unit: Unit, message: InboundMessage) -> Accepted:
        conn = unit.conn
        if not first_time(conn, f"pairing:{message.identity}"):
            return Accepted(disposition="duplicate")
        requested = pairing.request(conn, message)
        if requested is None:
            return Accepted(disposition="dropped", reason="too many strangers wait already")
        if requested.new is not None:
            access_requests.ask(conn, requested.new)
        self.say(unit, message.address, requested.told)
        return Accepted(disposition="pairing")

    def _know(
        self,
        conn: Connection,
        message: InboundMessage,
        speaker: Speaker,
        known: people.Account | None,
    ) -> None:
        """Keep people who may act, and where to reach them; guests leave no row.

        What the configuration grants is not made lasting by it: it ends when the line is removed.
        """
        direct = message.address.of_session if message.chat_kind == "direct" else None
        if speaker.trust not in (Trust.OWNER, Trust.MEMBER) or message.channel in LOCAL:
            return
        paired = known is not None and known.paired
        if paired and known is not None:
            speaker = speaker.model_copy(update={"trust": known.speaker.trust})
        # Where their clocks are is said with each message, and kept with none.
        speaker = speaker.model_copy(update={"timezone": ""})
        same = known is not None and known.speaker == speaker
        if not same or (direct is not None and known is not None and known.direct_chat != direct):
            people.put(conn, speaker, direct_chat=direct, paired=paired)

    def _take(
        self,
        unit: Unit,
        message: InboundMessage,
        speaker: Speaker,
        known: people.Account | None,
    ) -> Accepted:
        conn = unit.conn
        key = self.key_of(message.address, message.sender)
        words = self.commands.named_in(message)
        meant = card_references.meant_by(conn, message, words, key)
        lane, session = self._locked(unit, message, meant)
        self._know(conn, message, speaker, known)
        message = late_messages.marked(
            message, now_ms=lane.now_ms, after_ms=self.settings.stale_after_ms
        )
        held = _Held(self, unit, lane, message, speaker)
        ended = bot_loop_guard.over(conn, lane, message, speaker)
        if ended is not None:
            return held.end_exchange(ended)
        unknown = self.commands.mistyped_in(message)
        if words is not None:
            return held.command(words, meant)
        if unknown is not None and card_references.card_replied_to(conn, message) is None:
            return held.command(unknown, meant)
        answered = held.answer(meant)
        if answered is not None:
            return answered
        if full_lane.is_full(conn, lane, message, most=self.settings.max_waiting):
            return held.full()
        queued = held.enqueue(session.queue_mode)
        if queued is None:
            return _duplicate_of(conn, message)
        if isinstance(queued, Over):
            return held.limited(queued)
        held.name_open_card()
        return Accepted(
            disposition="queued",
            session_id=lane.session_id,
            input_id=queued.input_id,
            run_id=queued.run_id,
        )

    def _locked(self, unit: Unit, message: InboundMessage, meant: Picked) -> tuple[Lane, Session]:
        """The message's lane, locked with that of the card it may answer; and its session as it is
        while that is held. A session that is being deleted has ended and lost its key already, so
        nothing comes in between the steps of its deletion."""
        call = meant.call
        beside = None if call is None or call.state != "open" else call.session_id
        if self.session_id is not None:
            lane = self._lane_named(unit, self.session_id, beside)
            session = sessions.get(unit.conn, lane.session_id)
            if session.status != "open":
                raise Conflict("this session has ended", session.status)
            return lane, session
        lane, session = self.lane_of(unit, message, beside=beside)
        if session.key == erasure.key_of(session.id):
            # Its deletion began while this waited for the lane: the message begins another one.
            raise BeginAnew(f"the session {session.id} is being deleted")
        return lane, session

    def _lane_named(self, unit: Unit, session_id: str, beside: str | None) -> Lane:
        if beside is None:
            return unit.lane(session_id)
        # Whoever named a session that is gone is told so; nobody named that of the card.
        sessions.get(unit.conn, session_id)
        return self.lanes(unit, [session_id, beside])[0]


@dataclass(frozen=True, slots=True)
class _Held:
    """A message whose lane is held, with who said it."""

    door: Accepting
    unit: Unit
    lane: Lane
    message: InboundMessage
    speaker: Speaker

    def enqueue(self, queue_mode: str) -> Enqueued | Over | None:
        limits = self._limits
        over = list[Over]()

        def may_begin() -> bool:
            found = limits.begin(self.unit.conn)
            over.extend([] if found is None else [found])
            return found is None

        queued = enqueue(
            self.unit,
            self.lane,
            self.message,
            self.speaker,
            queue_mode=queue_mode,
            debounce_ms=self.door.settings.debounce_ms,
            may_begin=may_begin,
        )
        return over[0] if isinstance(queued, Refused) else queued

    @property
    def _limits(self) -> Limits:
        settings = self.door.settings.commands
        return Limits(settings, self.speaker, self.message.address, self.lane.now_ms)

    def limited(self, over: Over) -> Accepted:
        session_id = None if self.lane.is_new else self.lane.session_id
        if over.line is not None:
            self._reply(over.line, session_id)
        if session_id is None:
            self.unit.take_back(self.lane)
        return Accepted(disposition="limited", session_id=session_id, reason=over.reason)

    def _reply(self, text: str, session_id: str | None, buttons: tuple[Button, ...] = ()) -> None:
        message = self.message
        self.door.say(
            self.unit,
            message.address,
            text,
            session_id=session_id,
            reply_to=message.message_id,
            buttons=buttons,
        )

    def _remark(self, text: str, buttons: tuple[Button, ...] = ()) -> None:
        """Reply by ourselves, unless this person was told as much as may be already (POL-8)."""
        over = self._limits.speak(self.unit.conn)
        if over is None:
            self._reply(text, self.lane.session_id, buttons)
        elif over.line is not None:
            self._reply(over.line, self.lane.session_id)

    def full(self) -> Accepted:
        session_id, most = self.lane.session_id, self.door.settings.max_waiting
        if full_lane.tells(self.unit.conn, self.lane):
            self._reply(full_lane.FULL.format(most=most), session_id)
        reason = f"{most} messages wait in its session"
        return Accepted(disposition="full", session_id=session_id, reason=reason)

    def end_exchange(self, ended: bot_loop_guard.Over) -> Accepted:
        if ended.tell:
            self._reply(bot_loop_guard.OVER, self.lane.session_id)
        return Accepted(disposition="dropped", reason=ended.reason)

    def command(self, words: Words | Unknown, meant: Picked) -> Accepted:
        """Obey a command, or say that there is none of that name."""
        conn = self.unit.conn
        superseded = late_messages.passed_by(conn, self.lane, self.message)
        buttons: tuple[Button, ...] = ()
        input_id = _keep(conn, self.lane, self.message, self.speaker, "command")
        if input_id is None:
            return _duplicate_of(conn, self.message)
        if isinstance(words, Unknown):
            said = self.door.commands.unknown_text(words, self.speaker.trust)
        elif superseded:
            said = late_messages.left(words.name, self.lane, self.message)
        else:
            call = Call(
                self.unit,
                self.lane,
                sessions.get(conn, self.lane.session_id),
                self.speaker,
                self.message.address,
                words.rest,
                self.door.settings.commands,
                said_ms=self.message.sent_at_ms if self.message.late else None,
                sent_ms=self.message.sent_at_ms or self.message.received_at_ms,
                meant=meant,
                commands=self.door.commands,
                found=self.door.found,
            )
            introduced = access_requests.word(conn, words, self.speaker)
            said = introduced or self.door.commands.apply(call, words.name)
            buttons = tuple(call.buttons)
        self._remark(said, buttons)
        name = "unknown" if isinstance(words, Unknown) else words.name
        return Accepted(
            disposition="command",
            session_id=self.lane.session_id,
            input_id=input_id,
            reason=name,
            applied="command",
        )

    def answer(self, meant: Picked) -> Accepted | None:
        """What a person says to the card that is meant: an answer to a question, a denial (MSG-4).

        A message with files goes to the agent, so that none of them is lost.
        """
        conn, call = self.unit.conn, None if self.message.attachments else meant.call
        if call is not None and call.state == "open":
            # Somebody may have answered it before its lane was ours.
            call = open_calls.get(conn, call.id)
        given = (
            None if call is None or call.state != "open" else said_to(call, self.message.own_words)
        )
        if call is None or given is None or card_references.is_older(self.message, call):
            return None
        input_id = _keep(conn, self.lane, self.message, self.speaker, "answer", run_id=call.run_id)
        if input_id is None:
            return _duplicate_of(conn, self.message)
        if may_answer(conn, call, self.speaker, self.door.settings.commands.approvers):
            choice, text = given
            answers.answer(self.unit, call, self.speaker, choice=choice, text=text)
        else:
            self._remark(REFUSED)
        return Accepted(
            disposition="answer",
            session_id=self.lane.session_id,
            input_id=input_id,
            run_id=call.run_id,
            applied="answer",
        )

    def name_open_card(self) -> None:
        """One line at once for a message that must wait behind a question to a person (MSG-4)."""
        if self.lane.active_run is None:
            return
        conn = self.unit.conn
        opened = open_calls.of_run(conn, self.lane.active_run, state="open")
        waiting = [call for call in opened if call.kind in open_calls.FOR_PEOPLE]
        if opened and not waiting:
            # It waits for a child, and that may wait for a person.
            waiting += open_calls.of_tree(conn, self.lane.session_id)
        if waiting:
            self._remark(waits_behind(waiting[0]))


def _keep(
    conn: Connection,
    lane: Lane,
    message: InboundMessage,
    speaker: Speaker,
    state: Applied,
    *,
    run_id: str | None = None,
) -> str | None:
    """Store a message that is applied at once, so that a redelivery is recognised (MSG-2): for an
    answer to the run that asked. The input's id, None when it was applied before."""
    new = inputs.new_input(lane, message, speaker, run_id=None, state=state)
    if not inputs.add(conn, new):
        lane.input_seq -= 1
        return None
    if run_id is not None:
        inputs.name_run(conn, new.id, run_id)
    lane.record(EventKind.INPUT_ACCEPTED, None, {"state": state})
    return new.id


def _duplicate_of(conn: Connection, message: InboundMessage) -> Accepted:
    """What a message that was taken before became, as its sender was told then."""
    found = inputs.known(conn, message.identity)
    if found is None:
        return Accepted(disposition="duplicate")
    return Accepted(
        disposition="duplicate",
        session_id=found.session_id,
        input_id=found.id,
        run_id=found.run_id,
        applied=_APPLIED.get(found.state),
    )
