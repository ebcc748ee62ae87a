"""Accepting a message: one unit decides access, dedupes, then enqueues it or applies it (MSG-1)."""

from runtime.commands.parse import Unknown, Words
from runtime.commands.table import Call, Commands
from runtime.domain.errors import Conflict
from runtime.domain.messages import InboundMessage
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
from runtime.intake.applied_messages import duplicate_of, keep
from runtime.intake.card_replies import said_to, waits_behind
from runtime.intake.limits import Limits, Over
from runtime.intake.reception import BeginAnew, Reception
from runtime.intake.settings import IntakeSettings
from runtime.ports.gatehouse import Accepted
from runtime.sessions import answers, erasure, open_calls, people, sessions
from runtime.sessions.answers import Picked
from runtime.sessions.approvers import REFUSED, may_answer
from runtime.sessions.idempotency import first_time, was_seen
from runtime.sessions.lanes import Lane
from runtime.sessions.queue_modes import Enqueued, Refused, enqueue
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Unit
from runtime.store import Connection


class Accepting(Reception):
    """One message's unit of work. `session_id` names the session that the message must be for;
    `found` is what was looked up for the command that it is."""

    def __init__(
        self,
        settings: IntakeSettings,
        commands: Commands,
        *,
        session_id: str | None = None,
        found: object = None,
    ) -> None:
        super().__init__(settings, commands)
        self._session_id = session_id
        self._found = found

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
        direct = message.address if message.chat_kind == "direct" else None
        if speaker.trust not in (Trust.OWNER, Trust.MEMBER) or message.channel in LOCAL:
            return
        paired = known is not None and known.paired
        if paired and known is not None:
            speaker = speaker.model_copy(update={"trust": known.speaker.trust})
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
        ended = bot_loop_guard.over(conn, lane, message, speaker)
        if ended is not None:
            return self._end_exchange(unit, lane, message, ended)
        message = late_messages.marked(
            message, now_ms=lane.now_ms, after_ms=self.settings.stale_after_ms
        )
        unknown = self.commands.mistyped_in(message)
        if words is not None:
            return self._command(unit, lane, message, speaker, words, meant)
        if unknown is not None and card_references.card_replied_to(conn, message) is None:
            return self._command(unit, lane, message, speaker, unknown, meant)
        answered = self._answer(unit, lane, message, speaker, meant)
        if answered is not None:
            return answered
        if full_lane.is_full(conn, lane, message, most=self.settings.max_waiting):
            return self._full(unit, lane, message)
        queued = self._enqueue(unit, lane, message, speaker, session.queue_mode)
        if queued is None:
            return duplicate_of(conn, message)
        if isinstance(queued, Over):
            return self._limited(unit, lane, message, queued)
        self._name_open_card(unit, lane, message, speaker)
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
        if self._session_id is not None:
            lane = self._lane_named(unit, self._session_id, beside)
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

    def _enqueue(
        self,
        unit: Unit,
        lane: Lane,
        message: InboundMessage,
        speaker: Speaker,
        queue_mode: str,
    ) -> Enqueued | Over | None:
        limits = self._limits(lane, message, speaker)
        over = list[Over]()

        def may_begin() -> bool:
            found = limits.begin(unit.conn)
            over.extend([] if found is None else [found])
            return found is None

        queued = enqueue(
            unit,
            lane,
            message,
            speaker,
            queue_mode=queue_mode,
            debounce_ms=self.settings.debounce_ms,
            may_begin=may_begin,
        )
        return over[0] if isinstance(queued, Refused) else queued

    def _limits(self, lane: Lane, message: InboundMessage, speaker: Speaker) -> Limits:
        return Limits(self.settings.commands, speaker, message.address, lane.now_ms)

    def _limited(self, unit: Unit, lane: Lane, message: InboundMessage, over: Over) -> Accepted:
        known = not lane.is_new
        if over.line is not None:
            self.say(
                unit,
                message.address,
                over.line,
                session_id=lane.session_id if known else None,
                reply_to=message.message_id,
            )
        if not known:
            unit.take_back(lane)
        session_id = lane.session_id if known else None
        return Accepted(disposition="limited", session_id=session_id, reason=over.reason)

    def _reply(self, unit: Unit, lane: Lane, message: InboundMessage, text: str) -> None:
        self.say(
            unit,
            message.address,
            text,
            session_id=lane.session_id,
            reply_to=message.message_id,
        )

    def _remark(
        self, unit: Unit, lane: Lane, message: InboundMessage, speaker: Speaker, text: str
    ) -> None:
        """Reply by ourselves, unless this person was told as much as may be already (POL-8)."""
        over = self._limits(lane, message, speaker).speak(unit.conn)
        said = text if over is None else over.line
        if said is not None:
            self._reply(unit, lane, message, said)

    def _full(self, unit: Unit, lane: Lane, message: InboundMessage) -> Accepted:
        if full_lane.tells(unit.conn, lane):
            said = full_lane.FULL.format(most=self.settings.max_waiting)
            self._reply(unit, lane, message, said)
        reason = f"{self.settings.max_waiting} messages wait in its session"
        return Accepted(disposition="full", session_id=lane.session_id, reason=reason)

    def _end_exchange(
        self, unit: Unit, lane: Lane, message: InboundMessage, ended: bot_loop_guard.Over
    ) -> Accepted:
        if ended.tell:
            self._reply(unit, lane, message, bot_loop_guard.OVER)
        return Accepted(disposition="dropped", reason=ended.reason)

    def _command(
        self,
        unit: Unit,
        lane: Lane,
        message: InboundMessage,
        speaker: Speaker,
        words: Words | Unknown,
        meant: Picked,
    ) -> Accepted:
        """Obey a command, or say that there is none of that name."""
        conn = unit.conn
        superseded = late_messages.passed_by(conn, lane, message)
        input_id = keep(conn, lane, message, speaker, "command")
        if input_id is None:
            return duplicate_of(conn, message)
        if isinstance(words, Unknown):
            said = self.commands.unknown_text(words, speaker.trust)
        elif superseded:
            said = late_messages.left(words.name, lane, message)
        else:
            call = Call(
                unit,
                lane,
                sessions.get(conn, lane.session_id),
                speaker,
                words.rest,
                self.settings.commands,
                said_ms=message.sent_at_ms if message.late else None,
                sent_ms=message.sent_at_ms or message.received_at_ms,
                meant=meant,
                commands=self.commands,
                found=self._found,
            )
            introduced = access_requests.word(conn, words, speaker)
            said = introduced or self.commands.apply(call, words.name)
        self._remark(unit, lane, message, speaker, said)
        name = "unknown" if isinstance(words, Unknown) else words.name
        return Accepted(
            disposition="command",
            session_id=lane.session_id,
            input_id=input_id,
            reason=name,
            applied="command",
        )

    def _answer(
        self,
        unit: Unit,
        lane: Lane,
        message: InboundMessage,
        speaker: Speaker,
        meant: Picked,
    ) -> Accepted | None:
        """What a person says to the card that is meant: an answer to a question, a denial (MSG-4).

        A message with files goes to the agent, so that none of them is lost.
        """
        conn, call = unit.conn, None if message.attachments else meant.call
        if call is not None and call.state == "open":
            # Somebody may have answered it before its lane was ours.
            call = open_calls.get(conn, call.id)
        given = None if call is None or call.state != "open" else said_to(call, message.own_words)
        if call is None or given is None or card_references.is_older(message, call):
            return None
        input_id = keep(conn, lane, message, speaker, "answer", run_id=call.run_id)
        if input_id is None:
            return duplicate_of(conn, message)
        if may_answer(conn, call, speaker, self.settings.commands.approvers):
            choice, text = given
            answers.answer(unit, call, speaker, choice=choice, text=text)
        else:
            self._remark(unit, lane, message, speaker, REFUSED)
        return Accepted(
            disposition="answer",
            session_id=lane.session_id,
            input_id=input_id,
            run_id=call.run_id,
            applied="answer",
        )

    def _name_open_card(
        self, unit: Unit, lane: Lane, message: InboundMessage, speaker: Speaker
    ) -> None:
        """One line at once for a message that must wait behind a question to a person (MSG-4)."""
        if lane.active_run is None:
            return
        conn = unit.conn
        opened = open_calls.of_run(conn, lane.active_run, state="open")
        waiting = [call for call in opened if call.kind in open_calls.FOR_PEOPLE]
        if opened and not waiting:
            # It waits for a child, and that may wait for a person.
            waiting += open_calls.of_tree(conn, lane.session_id)
        if waiting:
            self._remark(unit, lane, message, speaker, waits_behind(waiting[0]))
