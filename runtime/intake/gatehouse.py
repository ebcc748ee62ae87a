"""The engine's door: `Intake` implements the port `gatehouse` for every adapter and for HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from runtime.commands import answers, parse, table
from runtime.commands.parse import Words
from runtime.commands.table import Call, CommandSettings
from runtime.domain.errors import Conflict, NotFound
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import (
    ButtonPress,
    ChatAddress,
    InboundMessage,
    OutboundMessage,
    TextPart,
)
from runtime.domain.people import Speaker, Trust
from runtime.domain.value import JsonObject
from runtime.inbox.enqueue import enqueue
from runtime.intake import pairing
from runtime.intake.access import LOCAL, ChannelAccess, decide_access, speaker_of, trust_of
from runtime.intake.cards import choice_of, waits_behind
from runtime.intake.keeping import duplicate_of, keep
from runtime.ports.bus import EVENTS, OUTBOX, RUNS, Bus
from runtime.ports.gatehouse import Accepted, Pressed
from runtime.ports.metrics import NO_OBSERVER, Observer
from runtime.sessions.keys import Scope, session_key
from runtime.store import Connection, Database, inputs, lanes, open_calls, outbox, people, sessions
from runtime.store.database import now_ms
from runtime.store.idempotency import first_time, was_seen
from runtime.store.lanes import Lane, NewSession
from runtime.store.open_calls import QUESTION
from runtime.store.outbox import NewRow

log = structlog.get_logger(__name__)

MAX_TEXT = 200_000
"""Characters of one message that are kept."""
MAX_BOT_TURNS = 6
"""Messages of bots that are answered one after another without a person (MSG-16)."""
Signals = list[tuple[str, JsonObject]]


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """The operator's rules for what comes in; `access` is by channel name."""

    access: Mapping[str, ChannelAccess] = field(default_factory=dict)
    queue_mode: str = "collect"
    debounce_ms: int = 700
    mode: str = "edit"
    commands: CommandSettings = field(default_factory=CommandSettings)


class Intake:
    """Stores or applies what arrives; what it returns for is durable (MSG-1)."""

    def __init__(
        self,
        database: Database,
        bus: Bus,
        settings: IntakeSettings,
        *,
        observer: Observer = NO_OBSERVER,
    ) -> None:
        self._database = database
        self._observer = observer
        self._bus = bus
        self._settings = settings
        self._changed = True

    def change(self, settings: IntakeSettings) -> None:
        """New rules for everything that arrives from now on (ACC-2)."""
        self._settings = settings
        self._changed = True

    async def accept(self, message: InboundMessage) -> Accepted:
        """Decide about one message and keep it. Raises `StoreUnavailable`."""
        if len(message.text) > MAX_TEXT:
            mark = f"[cut: the message had {len(message.text):,} characters]"
            cut = f"{message.text[:MAX_TEXT]}\n{mark}"
            message = message.model_copy(update={"text": cut})
        await self._forget_former()
        unit = _Unit(self._settings)
        accepted = await self._database.write(
            lambda conn: unit.accept(conn, message), name="accept"
        )
        self._publish(unit.signals, accepted.session_id)
        self._observer.accepted(message.channel, accepted.disposition)
        log.info(
            "message_in",
            disposition=accepted.disposition,
            channel=message.channel,
            session_id=accepted.session_id,
            run_id=accepted.run_id,
            reason=accepted.reason,
        )
        return accepted

    async def press(self, press: ButtonPress) -> Pressed:
        """Answer an open call by a button. Raises `StoreUnavailable`."""
        unit = _Unit(self._settings)
        pressed = await self._database.write(lambda conn: unit.press(conn, press), name="press")
        self._publish(unit.signals, None)
        return pressed

    async def _forget_former(self) -> None:
        """After a change of the rules, drop whom only the former ones knew."""
        if not self._changed:
            return
        keep = {
            channel: rules.owners | rules.allow_users
            for channel, rules in self._settings.access.items()
        }
        await self._database.write(
            lambda conn: people.forget_configured(conn, keep=keep), name="forget-former"
        )
        self._changed = False

    def _publish(self, signals: Signals, session_id: str | None) -> None:
        for topic, data in signals:
            self._bus.publish(topic, data)
        if signals:
            self._bus.publish(EVENTS, {"session_id": session_id})


class _Unit:
    """One message's unit of work. It may run twice, so it starts from nothing each time."""

    def __init__(self, settings: IntakeSettings) -> None:
        self._settings = settings
        self.signals: Signals = []

    def accept(self, conn: Connection, message: InboundMessage) -> Accepted:
        self.signals = []
        rules = self._settings.access.get(message.channel, ChannelAccess())
        known = people.find(
            conn, channel=message.channel, account=message.account, user_id=message.sender.id
        )
        access = decide_access(message, known.trusted if known else None, rules)
        claimed = self._claim(conn, message)
        if claimed is not None:
            return claimed
        if access.kind == "drop":
            return Accepted(disposition="dropped", reason=access.reason)
        if access.kind == "pair":
            return self._pair(conn, message)
        speaker = speaker_of(message, known.speaker if known else None, access.trust)
        self._know(conn, message, speaker, known)
        return self._take(conn, message, speaker, rules)

    def _claim(self, conn: Connection, message: InboundMessage) -> Accepted | None:
        if pairing.is_owner_code(message.text) and was_seen(conn, f"claim:{message.identity}"):
            return Accepted(disposition="duplicate")
        if pairing.give_away(conn, message):
            self._say(conn, message.address, pairing.GIVEN_AWAY, reply_to=message.message_id)
            return Accepted(disposition="dropped", reason="the owner code was said in a group")
        speaker = pairing.claim_owner(conn, message)
        if speaker is None:
            return None
        first_time(conn, f"claim:{message.identity}")
        self._say(conn, message.address, f"Welcome, {speaker.name}. You are my owner now.")
        return Accepted(disposition="pairing", reason="claimed by the owner code")

    def _pair(self, conn: Connection, message: InboundMessage) -> Accepted:
        if not first_time(conn, f"pairing:{message.identity}"):
            return Accepted(disposition="duplicate")
        told = pairing.request(conn, message)
        if told is None:
            return Accepted(disposition="dropped", reason="too many strangers wait already")
        self._say(conn, message.address, told)
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
        self, conn: Connection, message: InboundMessage, speaker: Speaker, rules: ChannelAccess
    ) -> Accepted:
        lane = self._lane(conn, message, rules)
        if speaker.trust is Trust.BOT:
            turns = inputs.since_person(conn, lane.session_id, most=MAX_BOT_TURNS)
            if turns >= MAX_BOT_TURNS:
                lanes.save(conn, lane)
                reason = f"{turns} turns between bots without a person"
                return Accepted(disposition="dropped", reason=reason)
        words = parse.parse(message.text, names=table.NAMES, mentioned=message.mentions_bot)
        if words is not None:
            return self._command(conn, lane, message, speaker, words)
        answered = self._answer(conn, lane, message, speaker)
        if answered is not None:
            return answered
        session = sessions.get(conn, lane.session_id)
        queued = enqueue(
            conn,
            lane,
            message,
            speaker,
            queue_mode=session.queue_mode,
            debounce_ms=self._settings.debounce_ms,
        )
        if queued is None:
            return duplicate_of(conn, message)
        self._name_open_card(conn, lane, message)
        lanes.save(conn, lane)
        self.signals.append((RUNS, {"session_id": lane.session_id}))
        return Accepted(
            disposition="queued",
            session_id=lane.session_id,
            input_id=queued.input_id,
            run_id=queued.run_id,
        )

    def _lane(self, conn: Connection, message: InboundMessage, rules: ChannelAccess) -> Lane:
        scope: Scope = rules.group_scope
        if message.chat_kind == "channel":
            scope = rules.channel_scope
        key = session_key(message.address, message.sender, scope=scope)
        lane = lanes.lock_by_key(conn, key)
        if lane is None:
            new = NewSession(
                key=key,
                address=message.address,
                mode=self._settings.mode,
                queue_mode=self._settings.queue_mode,
                title=message.text.strip()[:80],
            )
            lane = lanes.create(conn, new) or lanes.lock_by_key(conn, key)
        if lane is None:
            raise NotFound("session", key)
        return lane

    def _command(
        self,
        conn: Connection,
        lane: Lane,
        message: InboundMessage,
        speaker: Speaker,
        words: Words,
    ) -> Accepted:
        if not keep(conn, lane, message, speaker, "command"):
            return duplicate_of(conn, message)
        call = Call(
            conn,
            lane,
            sessions.get(conn, lane.session_id),
            speaker,
            words.rest,
            self._settings.commands,
        )
        said = table.apply(call, words.name)
        self._say(
            conn,
            message.address,
            said,
            session_id=lane.session_id,
            reply_to=message.message_id,
        )
        lanes.save(conn, lane)
        self.signals.extend(call.signals)
        return Accepted(disposition="command", session_id=lane.session_id, reason=words.name)

    def _answer(
        self, conn: Connection, lane: Lane, message: InboundMessage, speaker: Speaker
    ) -> Accepted | None:
        """A reply to a question's card is its answer (MSG-4)."""
        if message.reply_to is None:
            return None
        open_call_id = outbox.card_posted_as(
            conn,
            channel=message.channel,
            account=message.account,
            chat=message.chat_id,
            message_id=message.reply_to,
        )
        call = None if open_call_id is None else open_calls.get(conn, open_call_id)
        if call is None or call.kind != QUESTION or call.state != "open":
            return None
        if not keep(conn, lane, message, speaker, "answer"):
            return duplicate_of(conn, message)
        if answers.may_answer(conn, call, speaker, self._settings.commands.approvers):
            # On Slack a reply to a card is a thread of its own, and so another lane's message.
            held = lane if call.session_id == lane.session_id else None
            answers.answer(conn, call, speaker, text=message.text, lane=held)
        else:
            self._say(conn, message.address, answers.REFUSED, session_id=lane.session_id)
        lanes.save(conn, lane)
        self.signals.extend([(RUNS, {}), (OUTBOX, {})])
        return Accepted(disposition="answer", session_id=lane.session_id, run_id=call.run_id)

    def _name_open_card(self, conn: Connection, lane: Lane, message: InboundMessage) -> None:
        """One line at once for a message that must wait behind a question to a person (MSG-4)."""
        if lane.active_run is None:
            return
        waiting = open_calls.of_run(conn, lane.active_run, state="open")
        if waiting:
            self._say(
                conn,
                message.address,
                waits_behind(waiting[0]),
                session_id=lane.session_id,
                reply_to=message.message_id,
            )

    def press(self, conn: Connection, press: ButtonPress) -> Pressed:
        self.signals = []
        call = open_calls.get(conn, press.open_call_id)
        if call is None:
            return Pressed(accepted=False, text="I do not know this card.")
        speaker = self._presser(conn, press)
        if not answers.may_answer(conn, call, speaker, self._settings.commands.approvers):
            return Pressed(accepted=False, text=answers.REFUSED)
        if call.state != "open":
            return Pressed(accepted=False, text=f"This was {call.state} already.")
        picked = choice_of(call, press.choice)
        if picked is None:
            return Pressed(accepted=False, text="The card offers no such choice.")
        choice, text = picked
        try:
            done = answers.answer(conn, call, speaker, choice=choice, text=text)
        except Conflict as error:
            return Pressed(accepted=False, text=f"{error}.")
        self.signals.extend([(RUNS, {}), (OUTBOX, {})])
        return Pressed(accepted=True, text=f"{done.outcome}.")

    def _presser(self, conn: Connection, press: ButtonPress) -> Speaker:
        """Who pressed. A card in front of them is no matter of who may write to the agent."""
        rules = self._settings.access.get(press.channel, ChannelAccess())
        message = InboundMessage(
            channel=press.channel,
            account=press.account,
            chat_id=press.chat_id,
            message_id=press.press_id,
            sender=press.sender,
            received_at_ms=press.received_at_ms,
        )
        known = people.find(
            conn, channel=press.channel, account=press.account, user_id=press.sender.id
        )
        trust = trust_of(message, known.trusted if known else None, rules) or Trust.GUEST
        return speaker_of(message, known.speaker if known else None, trust)

    def _say(
        self,
        conn: Connection,
        target: ChatAddress,
        text: str,
        *,
        session_id: str | None = None,
        reply_to: str | None = None,
    ) -> None:
        message = OutboundMessage(
            outbox_id=new_id(IdPrefix.OUTBOX, now_ms(conn)),
            target=target,
            reply_to=reply_to,
            parts=(TextPart(markdown=text),),
            session_id=session_id,
        )
        outbox.add(conn, NewRow(kind="notice", message=message))
        self.signals.append((OUTBOX, {"channel": target.channel, "account": target.account}))
