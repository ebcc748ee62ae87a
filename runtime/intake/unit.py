"""What every unit of what comes in shares. It may run twice, so it begins with nothing."""

from runtime.domain.errors import NotFound
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress, InboundMessage, OutboundMessage, TextPart
from runtime.domain.people import Sender
from runtime.domain.value import JsonObject
from runtime.intake.access import ChannelAccess
from runtime.intake.settings import IntakeSettings
from runtime.ports.bus import OUTBOX
from runtime.sessions.keys import Scope, session_key
from runtime.store import Connection, lanes, outbox
from runtime.store.database import now_ms
from runtime.store.lanes import Lane, NewSession
from runtime.store.outbox import NewRow

Signals = list[tuple[str, JsonObject]]


class Unit:
    """One unit of work; `signals` are to be published once it is durable."""

    def __init__(self, settings: IntakeSettings) -> None:
        self.settings = settings
        self.signals: Signals = []

    def rules_of(self, channel: str) -> ChannelAccess:
        """The operator's rules for a channel."""
        return self.settings.access.get(channel, ChannelAccess())

    def key_of(self, address: ChatAddress, sender: Sender) -> str:
        """The key of the session that a person's words at a place belong to."""
        rules = self.rules_of(address.channel)
        scope: Scope = rules.group_scope
        if address.chat_kind == "channel":
            scope = rules.channel_scope
        return session_key(address, sender, scope=scope)

    def lane_of(self, conn: Connection, message: InboundMessage) -> Lane:
        """The message's lane, held until the unit ends; its session is made where it is new."""
        key = self.key_of(message.address, message.sender)
        lane = lanes.lock_by_key(conn, key)
        if lane is None:
            new = NewSession(
                key=key,
                address=message.address,
                mode=self.settings.mode,
                queue_mode=self.settings.queue_mode,
                title=message.text.strip()[:80],
            )
            lane = lanes.create(conn, new) or lanes.lock_by_key(conn, key)
        if lane is None:
            raise NotFound("session", key)
        return lane

    def say(
        self,
        conn: Connection,
        target: ChatAddress,
        text: str,
        *,
        session_id: str | None = None,
        reply_to: str | None = None,
    ) -> None:
        """Put one line of the gateway's own into the outbox."""
        message = OutboundMessage(
            outbox_id=new_id(IdPrefix.OUTBOX, now_ms(conn)),
            target=target,
            reply_to=reply_to,
            parts=(TextPart(markdown=text, names_commands=True),),
            session_id=session_id,
        )
        outbox.add(conn, NewRow(kind="notice", message=message))
        self.signals.append((OUTBOX, {"channel": target.channel, "account": target.account}))
