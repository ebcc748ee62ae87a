"""What the units of all that comes in share. A unit may run twice, so nothing is kept between."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.commands.table import Commands
from runtime.domain.errors import NotFound
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import Button, ChatAddress, InboundMessage, OutboundMessage, TextPart
from runtime.domain.people import Sender, Speaker, Trust
from runtime.intake.access import ChannelAccess, decide_access, speaker_of, trust_of
from runtime.intake.settings import IntakeSettings
from runtime.ports.bus import OUTBOX
from runtime.sessions import outbox, people, sessions
from runtime.sessions.keys import Scope, session_key
from runtime.sessions.lanes import Lane, NewSession
from runtime.sessions.outbox import NewRow
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Unit
from runtime.store import Connection
from runtime.store.database import now_ms


class BeginAnew(Exception):
    """What a unit read before it had its lanes holds no longer; run it once more.

    Another unit became durable meanwhile, so this ends. The lanes must be given back first: to lock
    others behind them would break the order of locks.
    """


@dataclass(frozen=True, slots=True)
class Reception:
    """What a unit of the intake knows: the operator's rules, the commands that there are, and whose
    session a message is of."""

    settings: IntakeSettings
    commands: Commands

    def rules_of(self, channel: str) -> ChannelAccess:
        """The operator's rules for a channel."""
        return self.settings.access.get(channel, ChannelAccess())

    def speaker_at(
        self, conn: Connection, place: ChatAddress, sender: Sender, at_ms: int
    ) -> Speaker:
        """Who it is that acts at a place and sends no message; a stranger is a guest."""
        message = _said_at(place, sender, at_ms)
        known = people.find(conn, channel=place.channel, account=place.account, user_id=sender.id)
        rules = self.rules_of(place.channel)
        trust = trust_of(message, known.trusted if known else None, rules) or Trust.GUEST
        return speaker_of(message, known.speaker if known else None, trust)

    def admitted(self, conn: Connection, place: ChatAddress, user_id: str) -> Speaker | None:
        """Who an account is whose words at a place would be heard now; None where they would not
        be. A guest has no lasting id."""
        return self.all_admitted(conn, [(place, user_id)])[0]

    def all_admitted(
        self, conn: Connection, asked: Sequence[tuple[ChatAddress, str]]
    ) -> Sequence[Speaker | None]:
        """The same for several, each a place and the user id of an account there."""
        keys = [(place.channel, place.account, user_id) for place, user_id in asked]
        known, now = people.find_all(conn, set(keys)), now_ms(conn)
        return [
            self._admitted(place, user_id, known.get(key), now)
            for (place, user_id), key in zip(asked, keys, strict=True)
        ]

    def _admitted(
        self, place: ChatAddress, user_id: str, known: people.Account | None, now: int
    ) -> Speaker | None:
        sender = Sender(id=user_id, name=known.speaker.name if known else "")
        message = _said_at(place, sender, now)
        rules = self.rules_of(place.channel)
        access = decide_access(message, known.trusted if known else None, rules)
        if access.kind != "in":
            return None
        return speaker_of(message, known.speaker if known else None, access.trust)

    def key_of(self, address: ChatAddress, sender: Sender) -> str:
        """The key of the session that a person's words at a place belong to."""
        rules = self.rules_of(address.channel)
        scope: Scope = rules.group_scope
        if address.chat_kind == "channel":
            scope = rules.channel_scope
        return session_key(address, sender, scope=scope)

    def lane_of(
        self, unit: Unit, message: InboundMessage, *, beside: str | None = None
    ) -> tuple[Lane, Session]:
        """The message's lane, held until the unit ends, and its session as it is meanwhile; that is
        made where it is new.

        The lane of the session `beside` is locked with it, in the order of locks. A new session is
        made before, while the unit holds nothing. Whoever makes the same key at the same time waits
        for this unit, which may go on to wait for the lane `beside`: so nobody may hold that lane
        while they make a key. The new lane needs no place in the order, because nobody sees it, and
        those who wait for its key hold no lane. Raises `BeginAnew`.
        """
        key = self.key_of(message.address, message.sender)
        if beside is None:
            there = unit.session_by_key(key)
            if there is None:
                made = self._make(unit, message, key)
                if made is not None:
                    return made, sessions.get(unit.conn, made.session_id)
                there = unit.session_by_key(key)
            if there is None:
                raise BeginAnew(f"the session {key} was deleted")
            return there
        if sessions.by_key(unit.conn, key) is None:
            self._make(unit, message, key)
        found = sessions.by_key(unit.conn, key)
        if found is None:
            raise BeginAnew(f"the session {key} was deleted")
        lane = self.lanes(unit, [found.id, beside])[0]
        return lane, sessions.get(unit.conn, lane.session_id)

    def lanes(self, unit: Unit, session_ids: Sequence[str]) -> Sequence[Lane]:
        """The lanes of sessions that the unit found. Raises `BeginAnew` where one is gone."""
        try:
            return unit.lanes(session_ids)
        except NotFound as gone:
            raise BeginAnew(str(gone)) from gone

    def say(
        self,
        unit: Unit,
        target: ChatAddress,
        text: str,
        *,
        session_id: str | None = None,
        reply_to: str | None = None,
        buttons: tuple[Button, ...] = (),
    ) -> None:
        """Put one line of the gateway's own into the outbox."""
        message = OutboundMessage(
            outbox_id=new_id(IdPrefix.OUTBOX, now_ms(unit.conn)),
            target=target,
            reply_to=reply_to,
            parts=(TextPart(markdown=text, names_commands=True, buttons=buttons),),
            session_id=session_id,
        )
        outbox.add(unit.conn, NewRow(kind="notice", message=message))
        unit.say(OUTBOX, {"channel": target.channel, "account": target.account})

    def _make(self, unit: Unit, message: InboundMessage, key: str) -> Lane | None:
        return unit.create(
            NewSession(
                key=key,
                address=message.address.of_session,
                mode=self.settings.mode,
                queue_mode=self.settings.queue_mode,
                title=message.text.strip()[:80],
            )
        )


def _said_at(place: ChatAddress, sender: Sender, at_ms: int) -> InboundMessage:
    """What stands for a message to the agent that nobody sent."""
    return InboundMessage(
        channel=place.channel,
        account=place.account,
        chat_id=place.chat_id,
        chat_kind=place.chat_kind,
        message_id="",
        sender=sender,
        mentions_bot=True,
        received_at_ms=at_ms,
    )
