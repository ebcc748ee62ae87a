"""A pressed button: who pressed, whether they may, and what it means (APR-2, APR-6)."""

from runtime.domain.errors import Conflict
from runtime.domain.messages import ButtonPress, InboundMessage
from runtime.domain.people import Speaker, Trust
from runtime.intake import access_requests
from runtime.intake.access import speaker_of, trust_of
from runtime.intake.card_replies import choice_of
from runtime.intake.reception import Reception
from runtime.ports.bus import OUTBOX
from runtime.ports.gatehouse import Pressed
from runtime.sessions import answers, open_calls, people
from runtime.sessions.approvers import REFUSED, may_answer
from runtime.sessions.unit import Unit
from runtime.store import Connection


class Pressing(Reception):
    """One press's unit of work."""

    def press(self, unit: Unit, press: ButtonPress) -> Pressed:
        """Settle what a card asks, if this person may."""
        conn = unit.conn
        speaker = self._presser(conn, press)
        if press.open_call_id.startswith(access_requests.PREFIX):
            unit.say(OUTBOX)
            return access_requests.press(conn, press.open_call_id, press.choice, speaker)
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
            done = answers.answer(unit, call, speaker, choice=choice, text=text)
        except Conflict as error:
            return Pressed(accepted=False, text=f"{error}.")
        return Pressed(accepted=True, text=f"{done.outcome}.")

    def _presser(self, conn: Connection, press: ButtonPress) -> Speaker:
        """Who pressed. A card in front of them is no matter of who may write to the agent."""
        rules = self.rules_of(press.channel)
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
