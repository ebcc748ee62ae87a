"""The engine's door: `Intake` implements the port `gatehouse` for every adapter and for HTTP."""

import structlog

from runtime.domain.messages import ButtonPress, Deletion, InboundMessage, Move
from runtime.domain.people import Approvers, Sender
from runtime.intake.accepting import Accepting
from runtime.intake.home import Homing
from runtime.intake.lookups import Lookups
from runtime.intake.moving import Moving
from runtime.intake.pressing import Pressing
from runtime.intake.revising import Revising
from runtime.intake.settings import MAX_TEXT, IntakeSettings
from runtime.intake.unit import Signals, Unit
from runtime.ports.bus import EVENTS, Bus
from runtime.ports.gatehouse import Accepted, Home, Pressed
from runtime.ports.metrics import NO_OBSERVER, Observer
from runtime.store import Database, people

__all__ = ["MAX_TEXT", "Intake", "IntakeSettings"]

log = structlog.get_logger(__name__)


class Intake:
    """Stores or applies what arrives; what it returns for is durable (MSG-1)."""

    def __init__(
        self,
        database: Database,
        bus: Bus,
        settings: IntakeSettings,
        *,
        observer: Observer = NO_OBSERVER,
        lookups: Lookups | None = None,
    ) -> None:
        self._lookups = lookups or Lookups()
        self._database = database
        self._observer = observer
        self._bus = bus
        self._settings = settings
        self._changed = True

    @property
    def approvers(self) -> Approvers:
        """Who may approve now."""
        return self._settings.commands.approvers

    def change(self, settings: IntakeSettings) -> None:
        """New rules for everything that arrives from now on (ACC-2)."""
        self._settings = settings
        self._changed = True

    async def accept(self, message: InboundMessage, *, session_id: str | None = None) -> Accepted:
        """Decide about one message and keep it. Raises `StoreUnavailable`.

        Where it must be for `session_id`, raises `NotFound` and `Conflict` as well.
        """
        message = _within_limit(message)
        await self._forget_former()
        settings = await self._lookups.prepared(self._settings, message)
        unit = Accepting(settings, session_id=session_id)
        accepted = await self._database.write(
            lambda conn: unit.accept(conn, message), name="accept"
        )
        return self._told("message_in", message.channel, unit, accepted)

    async def press(self, press: ButtonPress) -> Pressed:
        """Answer an open call by a button. Raises `StoreUnavailable`."""
        unit = Pressing(self._settings)
        pressed = await self._database.write(lambda conn: unit.press(conn, press), name="press")
        self._publish(unit.signals, None)
        return pressed

    async def revise(self, message: InboundMessage) -> Accepted:
        """Apply an edit. Raises `StoreUnavailable`."""
        message = _within_limit(message)
        await self._forget_former()
        unit = Revising(self._settings)
        accepted = await self._database.write(
            lambda conn: unit.revise(conn, message), name="revise"
        )
        return self._told("edit_in", message.channel, unit, accepted)

    async def withdraw(self, deletion: Deletion) -> Accepted:
        """Apply a deletion. Raises `StoreUnavailable`."""
        unit = Revising(self._settings)
        accepted = await self._database.write(
            lambda conn: unit.withdraw(conn, deletion), name="withdraw"
        )
        return self._told("deletion_in", deletion.channel, unit, accepted)

    async def move(self, move: Move) -> None:
        """Let everything of a chat follow it to its new id. Raises `StoreUnavailable`."""
        unit = Moving(self._settings)
        await self._database.write(lambda conn: unit.move(conn, move), name="move")
        self._publish(unit.signals, None)
        log.info("chat_moved", channel=move.channel, account=move.account)

    async def home(self, *, channel: str, account: str, sender: Sender) -> Home:
        """What one person's home page shows. Raises `StoreUnavailable`."""
        unit = Homing(self._settings)
        return await self._database.read(
            lambda conn: unit.home(conn, channel=channel, account=account, sender=sender)
        )

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

    def _told(self, what: str, channel: str, unit: Unit, accepted: Accepted) -> Accepted:
        self._publish(unit.signals, accepted.session_id)
        self._observer.accepted(channel, accepted.disposition)
        log.info(
            what,
            disposition=accepted.disposition,
            channel=channel,
            session_id=accepted.session_id,
            run_id=accepted.run_id,
            reason=accepted.reason,
        )
        return accepted

    def _publish(self, signals: Signals, session_id: str | None) -> None:
        for topic, data in signals:
            self._bus.publish(topic, data)
        if signals:
            self._bus.publish(EVENTS, {"session_id": session_id})


def _within_limit(message: InboundMessage) -> InboundMessage:
    if len(message.text) <= MAX_TEXT:
        return message
    mark = f"[cut: the message had {len(message.text):,} characters]"
    return message.model_copy(update={"text": f"{message.text[:MAX_TEXT]}\n{mark}"})
