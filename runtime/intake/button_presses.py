"""A pressed button: who pressed, whether they may, and what it means (APR-2, APR-6).

A button of a card answers an open call. A button that is about a thing is answered by the command
to which the thing belongs. Any other button below a text of the gateway's own says a command: that
goes the way of a message from whoever pressed it, so that access, rights, limits and the guard
against repeats are those of the words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from runtime.domain.errors import Conflict
from runtime.domain.ids import IdPrefix
from runtime.domain.messages import (
    Button,
    ButtonPress,
    ChatAddress,
    InboundMessage,
    OutboundMessage,
    TextPart,
)
from runtime.intake import access_requests
from runtime.intake.reception import Reception
from runtime.intake.settings import MAX_FORM_TEXT
from runtime.ports.bus import OUTBOX
from runtime.ports.gatehouse import Accepted, Pressed
from runtime.sessions import answers, open_calls, outbox
from runtime.sessions.answers import REFUSED, may_answer
from runtime.sessions.approvals import Choice
from runtime.sessions.open_calls import QUESTION, OpenCall
from runtime.sessions.unit import Unit
from runtime.store import Connection

UNKNOWN_BUTTON: Final = Pressed(
    accepted=False, text="I do not know this button any more. Write the command instead."
)
NOT_HEARD: Final = Pressed(accepted=False, text="You may not use this here.")
_CHOICES: Final[Mapping[str, Choice]] = {"once": "once", "session": "session", "deny": "deny"}


@dataclass(frozen=True, slots=True)
class Pressing(Reception):
    """One press's unit of work. `found` is what was looked up for the button."""

    found: object = None

    def command_of(self, conn: Connection, press: ButtonPress) -> InboundMessage | Pressed:
        """The command of a button, as its presser's message at the place of the button, or what
        they are told where that would not be heard or no such button stands in that chat. A press
        that is delivered again is the same message."""
        row = outbox.get(conn, press.open_call_id)
        if row is None:
            return UNKNOWN_BUTTON
        place = row.message.target
        if _chat_of(place) != _chat_of(press):
            return UNKNOWN_BUTTON
        button = _button(row.message, press)
        if button is None:
            return UNKNOWN_BUTTON
        if self.admitted(conn, place, press.sender.id) is None:
            return NOT_HEARD
        return InboundMessage(
            channel=place.channel,
            account=place.account,
            chat_id=place.chat_id,
            chat_kind=place.chat_kind,
            thread_id=place.thread_id,
            joins_chat=place.joins_chat,
            message_id=f"press:{press.press_id}",
            sender=press.sender,
            text=button.command,
            mentions_bot=True,
            received_at_ms=press.received_at_ms,
        )

    def press(self, unit: Unit, press: ButtonPress) -> Pressed:
        """Settle what a card asks, if this person may."""
        conn = unit.conn
        # A card in front of somebody is no matter of who may write to the agent.
        place = ChatAddress(channel=press.channel, account=press.account, chat_id=press.chat_id)
        speaker = self.speaker_at(conn, place, press.sender, press.received_at_ms)
        if press.open_call_id.startswith(access_requests.PREFIX):
            unit.say(OUTBOX)
            return access_requests.press(conn, press.open_call_id, press.choice, speaker)
        kind = unit.kinds.card(press.open_call_id)
        if kind is not None:
            approvers = self.settings.commands.approvers
            given = kind.answer(unit, press.open_call_id, press.choice, speaker, approvers)
            return Pressed(accepted=given.accepted, text=given.text)
        done = self.commands.press(unit, speaker, press, self.found)
        if done is not None:
            return done
        call = open_calls.get(conn, press.open_call_id)
        if call is None:
            return Pressed(accepted=False, text="I do not know this card.")
        if not may_answer(conn, call, speaker, self.settings.commands.approvers):
            return Pressed(accepted=False, text=REFUSED)
        if call.state != "open":
            return Pressed(accepted=False, text=f"This was {call.state} already.")
        picked = choice_of(call, press)
        if picked is None:
            return Pressed(accepted=False, text="The card offers no such choice.")
        choice, text = picked
        try:
            answered = answers.answer(unit, call, speaker, choice=choice, text=text)
        except Conflict as error:
            return Pressed(accepted=False, text=f"{error}.")
        return Pressed(accepted=True, text=f"{answered.outcome}.")


def says_command(press: ButtonPress) -> bool:
    """Whether the button stands below a text, and not on a card."""
    return press.open_call_id.startswith(f"{IdPrefix.OUTBOX}_")


def _chat_of(one: ChatAddress | ButtonPress) -> tuple[str, str, str]:
    return one.channel, one.account, one.chat_id


def _button(message: OutboundMessage, press: ButtonPress) -> Button | None:
    texts = [part for part in message.parts if isinstance(part, TextPart)]
    buttons = [button for part in texts for button in part.buttons]
    numbered = {str(number): button for number, button in enumerate(buttons, start=1)}
    return numbered.get(press.choice if press.option is None else str(press.option))


def pressed_as(accepted: Accepted) -> Pressed:
    """What whoever pressed is told. What the command says stands in the chat, for all to see."""
    if accepted.applied == "command":
        return Pressed(accepted=True, text="")
    return NOT_HEARD


def choice_of(call: OpenCall, press: ButtonPress) -> tuple[Choice | None, str] | None:
    """What a press means: a choice with a denial's reason, or an answer. None where no card has
    such a button."""
    written = press.text.strip()[:MAX_FORM_TEXT]
    if call.kind == QUESTION:
        answer = _option(call, press) or ("" if press.choice or press.option else written)
        return (None, answer) if answer else None
    choice = _CHOICES.get(press.choice)
    if choice is None:
        return None
    return choice, written if choice == "deny" else ""


def _option(call: OpenCall, press: ButtonPress) -> str:
    listed = call.payload.get("options")
    options = [str(one) for one in listed] if isinstance(listed, list) else []
    if press.option is not None:
        return options[press.option - 1] if 1 <= press.option <= len(options) else ""
    return press.choice if press.choice in options else ""
