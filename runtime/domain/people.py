"""Who speaks: a platform account, the trust it carries, and what became of a stranger."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

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
    """The platform's account behind a message. ``timezone`` is what the platform's profile or the
    browser says, as it says it; empty where neither does."""

    id: str
    name: str = ""
    is_bot: bool = False
    timezone: str = ""


class Speaker(Value):
    """A sender after access was decided: the person behind the account, and its trust."""

    person_id: str
    channel: str
    account: str
    user_id: str
    name: str = ""
    trust: Trust
    timezone: str = ""

    @property
    def platform_account(self) -> tuple[str, str, str]:
        """What is the same for one person however often they speak: a guest is kept nowhere and
        has no lasting id."""
        return self.channel, self.account, self.user_id

    def is_same_person(self, other: Self) -> bool:
        """Whether both are one person, by the person's id or by the account."""
        same_account = self.platform_account == other.platform_account
        return self.person_id == other.person_id or same_account

    def has_rights_of(self, other: Self) -> bool:
        """Whether both are one person with one trust, so that what either says may be heard by a
        run of the other: recipients and budgets are a person's, and no trust says whose."""
        return self.trust is other.trust and self.is_same_person(other)


@dataclass(frozen=True, slots=True)
class Approvers:
    """Who may approve besides the owner: ``channel:account:user`` of platform accounts."""

    accounts: frozenset[str] = frozenset()

    def include(self, speaker: Speaker) -> bool:
        """Whether a person may answer approvals."""
        place = f"{speaker.channel}:{speaker.account}:{speaker.user_id}"
        return speaker.trust is Trust.OWNER or place in self.accounts
