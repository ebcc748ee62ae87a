"""The engine's door: `Intake` implements the port `gatehouse` for every adapter and for HTTP."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from runtime.commands.table import Commands, Lookups
from runtime.domain.messages import ButtonPress, Deletion, InboundMessage, Move
from runtime.domain.people import Approvers, Sender
from runtime.domain.request_keys import RequestKey
from runtime.intake.accept import Accepting
from runtime.intake.app_home import Homing
from runtime.intake.button_presses import Pressing, pressed_as, says_command
from runtime.intake.chat_migration import Moving
from runtime.intake.message_revisions import Revising
from runtime.intake.reception import BeginAnew, Reception
from runtime.intake.settings import MAX_TEXT, IntakeSettings
from runtime.ports.bus import EVENTS
from runtime.ports.gatehouse import Accepted, Home, Pressed
from runtime.ports.metrics import NO_OBSERVER, Observer
from runtime.sessions import idempotency, people
from runtime.sessions.unit import Unit, Units, Work

__all__ = ["MAX_TEXT", "Intake", "IntakeSettings"]

log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(slots=True)
class Intake:
    """Stores or applies what arrives; what it returns for is durable (MSG-1)."""

    units: Units
    settings: IntakeSettings
    observer: Observer = NO_OBSERVER
    commands: Commands = field(default_factory=Commands)
    lookups: Lookups = field(default_factory=Lookups)
    _changed: bool = True

    @property
    def approvers(self) -> Approvers:
        """Who may approve now."""
        return self.settings.commands.approvers

    def change(self, settings: IntakeSettings) -> None:
        """New rules for everything that arrives from now on (ACC-2)."""
        self.settings = settings
        self._changed = True

    async def accept(
        self,
        message: InboundMessage,
        *,
        session_id: str | None = None,
        key: RequestKey | None = None,
    ) -> Accepted:
        """Decide about one message and keep it. Raises `StoreUnavailable`.

        Where it must be for `session_id`, raises `NotFound` and `Conflict` as well, and `Conflict`
        for a `key` that came with another request.
        """
        message = _within_limit(message)
        await self._forget_former()
        reception = Reception(self.settings, self.commands)
        lane = reception.key_of(message.address, message.sender)
        found = await self.commands.look_up(self.lookups, message, key=lane, session_id=session_id)
        accepting = Accepting(self.settings, self.commands, session_id=session_id, found=found)
        accepted = await self._apply(
            lambda unit: _once(unit, key, lambda: accepting.accept(unit, message)), name="accept"
        )
        return self._told("message_in", message.channel, accepted)

    async def press(self, press: ButtonPress) -> Pressed:
        """Answer an open call, or say a command, by a button. Raises `StoreUnavailable`."""
        found = await self.commands.look_up_press(self.lookups, press)
        pressing = Pressing(self.settings, self.commands, found)
        if says_command(press):
            said = await self.units.database.read(lambda conn: pressing.command_of(conn, press))
            return said if isinstance(said, Pressed) else pressed_as(await self.accept(said))
        return await self._run(lambda unit: pressing.press(unit, press), name="press")

    async def revise(self, message: InboundMessage) -> Accepted:
        """Apply an edit. Raises `StoreUnavailable`."""
        message = _within_limit(message)
        await self._forget_former()
        revising = Revising(self.settings, self.commands)
        accepted = await self._apply(lambda unit: revising.revise(unit, message), name="revise")
        return self._told("edit_in", message.channel, accepted)

    async def withdraw(self, deletion: Deletion) -> Accepted:
        """Apply a deletion. Raises `StoreUnavailable`."""
        revising = Revising(self.settings, self.commands)
        accepted = await self._apply(
            lambda unit: revising.withdraw(unit, deletion), name="withdraw"
        )
        return self._told("deletion_in", deletion.channel, accepted)

    async def move(self, move: Move) -> None:
        """Let everything of a chat follow it to its new id. Raises `StoreUnavailable`."""
        moving = Moving(self.settings, self.commands)
        await self._run(lambda unit: moving.move(unit, move), name="move")
        log.info("chat_moved", channel=move.channel, account=move.account)

    async def home(self, *, channel: str, account: str, sender: Sender) -> Home:
        """What one person's home page shows. Raises `StoreUnavailable`."""
        homing = Homing(self.settings, self.commands, self.units.kinds.cards)
        return await self.units.database.read(
            lambda conn: homing.home(conn, channel=channel, account=account, sender=sender)
        )

    async def _forget_former(self) -> None:
        """After a change of the rules, drop whom only the former ones knew."""
        if not self._changed:
            return
        keep = {
            channel: rules.owners | rules.allow_users
            for channel, rules in self.settings.access.items()
        }
        await self.units.database.write(
            lambda conn: people.forget_configured(conn, keep=keep), name="forget-former"
        )
        self._changed = False

    async def _apply(self, work: Work[Accepted], *, name: str) -> Accepted:
        return await self._run(work, name=name, of=lambda accepted: accepted.session_id)

    async def _run(
        self, work: Work[T], *, name: str, of: Callable[[T], str | None] = lambda _: None
    ) -> T:
        """Run a unit, which begins anew until what it read before its locks held behind them.

        Where it changed something, whoever watches the session that the result is `of` is told.
        """

        def attempt(unit: Unit) -> T:
            result = work(unit)
            if unit.said:
                unit.say(EVENTS, {"session_id": of(result)})
            return result

        while True:
            try:
                return await self.units.run(attempt, name=name)
            except BeginAnew as reason:
                log.info("begun_anew", unit=name, reason=str(reason))

    def _told(self, what: str, channel: str, accepted: Accepted) -> Accepted:
        self.observer.accepted(channel, accepted.disposition)
        log.info(
            what,
            disposition=accepted.disposition,
            channel=channel,
            session_id=accepted.session_id,
            run_id=accepted.run_id,
            reason=accepted.reason,
        )
        return accepted


def _once(unit: Unit, key: RequestKey | None, accept: Callable[[], Accepted]) -> Accepted:
    """What became of the first message under a key; nothing is kept of one that is not taken."""
    kept = idempotency.claim(unit.conn, key)
    if kept is not None:
        return Accepted.model_validate(kept).model_copy(update={"disposition": "duplicate"})
    accepted = accept()
    if accepted.input_id is None:
        idempotency.give_back(unit.conn, key)
    else:
        idempotency.keep(unit.conn, key, accepted.model_dump(mode="json"))
    return accepted


def _within_limit(message: InboundMessage) -> InboundMessage:
    if len(message.text) <= MAX_TEXT:
        return message
    mark = f"[cut: the message had {len(message.text):,} characters]"
    return message.model_copy(update={"text": f"{message.text[:MAX_TEXT]}\n{mark}"})
