"""Who speaks: a platform account, the trust it carries, and what became of a stranger."""

from dataclasses import dataclass
from enum import StrEnum

from runtime.domain.value import Value


class Trust(StrEnum):
    """What a sender may cause, from most to least (POL-4). Never derived from message text."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"
    BOT = "bot"


def trusted_less(one: Trust, other: Trust) -> bool:
    """Whether `one` may cause less than `other`."""
    order = list(Trust)
    return order.index(one) > order.index(other)


class Sender(Value):
    """The platform's account behind a message."""

    id: str
    name: str = ""
    is_bot: bool = False


class Speaker(Value):
    """A sender after access was decided: the person behind the account, and its trust."""

    person_id: str
    channel: str
    account: str
    user_id: str
    name: str = ""
    trust: Trust


@dataclass(frozen=True, slots=True)
class Approvers:
    """Who may approve besides the owner: ``channel:account:user`` of platform accounts."""

    accounts: frozenset[str] = frozenset()

    def include(self, speaker: Speaker) -> bool:
        """Whether a person may answer approvals."""
        place = f"{speaker.channel}:{speaker.account}:{speaker.user_id}"
        return speaker.trust is Trust.OWNER or place in self.accounts
