"""A platform's home page for one person: their sessions, and the cards that they may answer."""

from runtime.domain.messages import ApprovalPart, ChatAddress, InboundMessage, QuestionPart
from runtime.domain.people import Sender, Speaker, Trust
from runtime.intake import access_requests
from runtime.intake.access import speaker_of, trust_of
from runtime.intake.reception import Reception
from runtime.ports.gatehouse import Home, HomeSession
from runtime.sessions import app_home_rows, open_calls, people, sessions
from runtime.sessions.approvals import card_part
from runtime.sessions.approvers import permitted
from runtime.store import Connection

MOST = 20


class Homing(Reception):
    """Reads one home page. Whoever the agent does not know sees that, and nothing else."""

    def home(self, conn: Connection, *, channel: str, account: str, sender: Sender) -> Home:
        """Nobody's sessions but the person's own, whatever their trust."""
        speaker = self._who(conn, channel, account, sender)
        if speaker is None:
            return Home(known=False)
        direct = ChatAddress(channel=channel, account=account, chat_id=sender.id)
        found = app_home_rows.conversations(
            conn,
            channel=channel,
            account=account,
            user_id=sender.id,
            key=self.key_of(direct, sender),
            most=MOST,
        )
        listed = tuple(
            HomeSession(
                session_id=one.session_id,
                title=one.title,
                address=one.address,
                state=one.state,
                updated_at_ms=one.updated_ms,
            )
            for one in found
        )
        return Home(known=True, sessions=listed, cards=self._cards(conn, speaker)[:MOST])

    def _who(self, conn: Connection, channel: str, account: str, sender: Sender) -> Speaker | None:
        asked = InboundMessage(
            channel=channel,
            account=account,
            chat_id=sender.id,
            message_id="home",
            sender=sender,
            received_at_ms=0,
        )
        known = people.find(conn, channel=channel, account=account, user_id=sender.id)
        trust = trust_of(asked, known.trusted if known else None, self.rules_of(channel))
        if sender.is_bot or trust not in (Trust.OWNER, Trust.MEMBER):
            return None
        return speaker_of(asked, known.speaker if known else None, trust)

    def _cards(self, conn: Connection, speaker: Speaker) -> tuple[ApprovalPart | QuestionPart, ...]:
        """Open cards of this account that the person may answer, newest first."""
        cards: list[ApprovalPart | QuestionPart] = []
        if speaker.trust is Trust.OWNER:
            cards += access_requests.waiting(conn, channel=speaker.channel, account=speaker.account)
        for call in reversed(open_calls.open_ones(conn)):
            if call.kind not in open_calls.FOR_PEOPLE:
                continue
            place = sessions.get(conn, call.session_id).address
            here = (place.channel, place.account) == (speaker.channel, speaker.account)
            approvers = self.settings.commands.approvers
            if here and permitted(conn, call, speaker, approvers):
                part = card_part(call)
                if isinstance(part, ApprovalPart | QuestionPart):
                    cards.append(part)
            if len(cards) >= MOST:
                break
        return tuple(cards)
