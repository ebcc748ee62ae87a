"""A platform's home page for one person: their sessions, and the cards that they may answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.domain.messages import ApprovalPart, ChatAddress, QuestionPart
from runtime.domain.people import Sender, Speaker, Trust
from runtime.intake import access_requests
from runtime.intake.reception import Reception
from runtime.ports.gatehouse import Home
from runtime.sessions import app_home_rows, open_calls, sessions
from runtime.sessions.answers import permitted
from runtime.sessions.approvals import card_part
from runtime.sessions.unit import CardKind
from runtime.store import Connection

MOST = 20


@dataclass(frozen=True, slots=True)
class Homing(Reception):
    """Reads one home page. Whoever the agent does not know sees that, and nothing else."""

    cards: tuple[CardKind, ...]

    def home(self, conn: Connection, *, channel: str, account: str, sender: Sender) -> Home:
        """Nobody's sessions but the person's own, whatever their trust."""
        direct = ChatAddress(channel=channel, account=account, chat_id=sender.id)
        speaker = self.speaker_at(conn, direct, sender, 0)
        if sender.is_bot or speaker.trust not in (Trust.OWNER, Trust.MEMBER):
            return Home(known=False)
        found = app_home_rows.conversations(
            conn,
            channel=channel,
            account=account,
            user_id=sender.id,
            key=self.key_of(direct, sender),
            most=MOST,
        )
        return Home(
            known=True,
            sessions=tuple(found),
            cards=tuple(self._cards(conn, speaker)[:MOST]),
            items=tuple(self.commands.home(conn, speaker)),
        )

    def _cards(self, conn: Connection, speaker: Speaker) -> Sequence[ApprovalPart | QuestionPart]:
        """Open cards of this account that the person may answer: requests for access, then those
        of calls and of features, newest first."""
        asking: Sequence[ApprovalPart] = ()
        if speaker.trust is Trust.OWNER:
            here = {"channel": speaker.channel, "account": speaker.account}
            asking = access_requests.waiting(conn, **here)
        others = [*self._calls(conn, speaker), *self._of_features(conn, speaker)]
        # Ids sort by the time of their making.
        others.sort(key=lambda part: part.open_call_id.partition("_")[2], reverse=True)
        return [*asking, *others]

    def _calls(self, conn: Connection, speaker: Speaker) -> Sequence[ApprovalPart | QuestionPart]:
        cards: list[ApprovalPart | QuestionPart] = []
        for call in reversed(open_calls.open_ones(conn)):
            if call.kind not in open_calls.FOR_PEOPLE:
                continue
            place = sessions.get(conn, call.session_id).address
            here = (place.channel, place.account) == (speaker.channel, speaker.account)
            if here and permitted(conn, call, speaker, self.settings.commands.approvers):
                part = card_part(call)
                if isinstance(part, ApprovalPart | QuestionPart):
                    cards.append(part)
            if len(cards) >= MOST:
                break
        return cards

    def _of_features(self, conn: Connection, speaker: Speaker) -> Sequence[ApprovalPart]:
        """Half of the page at most: there may be many, and calls must find room beside them."""
        if not self.settings.commands.approvers.include(speaker):
            return ()
        channel, account = speaker.channel, speaker.account
        found = [kind.waiting(conn, channel, account, MOST // 2) for kind in self.cards]
        return [one for cards in found for one in cards]
