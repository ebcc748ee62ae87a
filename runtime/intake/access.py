"""Who may speak to the agent, and with what trust (ACC-1, POL-4). Pure."""

from dataclasses import dataclass
from typing import Final, Literal

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Speaker, Trust
from runtime.domain.printable import person_name
from runtime.sessions.keys import Scope

DmPolicy = Literal["pairing", "allowlist", "open", "disabled"]
GroupPolicy = Literal["allowlist", "open", "disabled"]
LOCAL: Final = frozenset({"web", "terminal", "api"})
"""Channels whose requests were authenticated by the gateway's own HTTP server."""


@dataclass(frozen=True, slots=True)
class ChannelAccess:
    """The operator's rules for one channel. Ids are the platform's; `group_trust` is what an
    unknown member of an admitted group gets."""

    dm_policy: DmPolicy = "pairing"
    group_policy: GroupPolicy = "allowlist"
    require_mention: bool = True
    thread_without_mention: bool = True
    owners: frozenset[str] = frozenset()
    allow_users: frozenset[str] = frozenset()
    allow_groups: frozenset[str] = frozenset()
    allow_bots: bool = False
    group_trust: Trust = Trust.GUEST
    channel_scope: Scope = "thread"
    group_scope: Scope = "room"


@dataclass(frozen=True, slots=True)
class Access:
    """`kind`: ``in``, ``pair`` (a stranger gets a code) or ``drop``; `reason` is for the log."""

    kind: Literal["in", "pair", "drop"]
    trust: Trust = Trust.GUEST
    reason: str = ""


def decide_access(message: InboundMessage, known: Speaker | None, rules: ChannelAccess) -> Access:
    """Whether a message gets in. What it says never matters, only who sent it, and where."""
    if message.channel in LOCAL:
        return Access("in", Trust.OWNER)
    if message.sender.is_bot:
        return _bot(message, rules)
    trust = trust_of(message, known, rules)
    if message.chat_kind == "direct":
        return _direct(message, trust, rules)
    return _group(message, trust, rules)


def _bot(message: InboundMessage, rules: ChannelAccess) -> Access:
    """A bot is nobody's friend: it gets in where it is allowed to, and where a guest would."""
    if not rules.allow_bots:
        return Access("drop", reason="from a bot")
    if message.chat_kind == "direct":
        open_to_all = rules.dm_policy == "open" or message.sender.id in rules.allow_users
        if rules.dm_policy == "disabled" or not open_to_all:
            return Access("drop", reason="a bot in a direct chat that is not open to it")
        return Access("in", Trust.BOT)
    admitted = _group(message, Trust.BOT, rules)
    return Access("in", Trust.BOT) if admitted.kind == "in" else admitted


def trust_of(message: InboundMessage, known: Speaker | None, rules: ChannelAccess) -> Trust | None:
    """What the sender's account may cause; None for a stranger."""
    if message.channel in LOCAL:
        return Trust.OWNER
    if message.sender.id in rules.owners:
        return Trust.OWNER
    if known is not None:
        return known.trust
    return Trust.MEMBER if message.sender.id in rules.allow_users else None


def _direct(message: InboundMessage, trust: Trust | None, rules: ChannelAccess) -> Access:
    if rules.dm_policy == "disabled":
        return Access("drop", reason="direct messages are disabled")
    if trust is not None:
        return Access("in", trust)
    if rules.dm_policy == "open":
        return Access("in", Trust.GUEST)
    if rules.dm_policy == "pairing":
        return Access("pair")
    return Access("drop", reason=f"{message.sender.id} is not on the allowlist")


def _group(message: InboundMessage, trust: Trust | None, rules: ChannelAccess) -> Access:
    if rules.group_policy == "disabled":
        return Access("drop", reason="groups are disabled")
    listed = message.chat_id in rules.allow_groups
    if rules.group_policy == "allowlist" and not listed and trust is not Trust.OWNER:
        return Access("drop", reason=f"group {message.chat_id} is not on the allowlist")
    addressed = message.mentions_bot or (message.replies_to_bot and rules.thread_without_mention)
    if rules.require_mention and not addressed:
        return Access("drop", reason="not addressed")
    return Access("in", trust or rules.group_trust)


def speaker_of(message: InboundMessage, known: Speaker | None, trust: Trust) -> Speaker:
    """The person behind a message; a person that is not known yet gets an id of their own."""
    person = known.person_id if known else new_id(IdPrefix.PERSON, message.received_at_ms)
    if message.channel in LOCAL:
        person = "per_local_owner"
    return speaker_named(person, message, trust)


def speaker_named(person: str, message: InboundMessage, trust: Trust) -> Speaker:
    """The person of this id, as the sender of a message."""
    return Speaker(
        person_id=person,
        channel=message.channel,
        account=message.account,
        user_id=message.sender.id,
        name=person_name(message.sender.name or message.sender.id),
        trust=trust,
        timezone=message.sender.timezone,
    )
