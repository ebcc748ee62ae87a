"""Decisions about tool calls, and the modes and rules that make them."""

from enum import StrEnum
from typing import Literal

from runtime.domain.value import Value

Verdict = Literal["allow", "ask", "deny"]


class PermissionMode(StrEnum):
    """How much is allowed where no rule decides, widest to narrowest."""

    BYPASS = "bypassPermissions"
    ACCEPT_EDITS = "acceptEdits"
    DEFAULT = "default"
    DONT_ASK = "dontAsk"
    PLAN = "plan"


_WIDTH = (
    PermissionMode.PLAN,
    PermissionMode.DONT_ASK,
    PermissionMode.DEFAULT,
    PermissionMode.ACCEPT_EDITS,
    PermissionMode.BYPASS,
)


def narrower(one: PermissionMode, other: PermissionMode | None) -> PermissionMode:
    """The narrower of two permission modes; None bounds nothing."""
    return one if other is None else min(one, other, key=_WIDTH.index)


class SessionMode(StrEnum):
    """The interactive modes of a session, widest to narrowest: ``edit`` follows the operator's
    permission mode."""

    EDIT = "edit"
    PLAN = "plan"
    ASK = "ask"


_MODES = tuple(SessionMode)


def narrower_of(one: SessionMode, other: SessionMode) -> SessionMode:
    """The narrower of two interactive modes."""
    return max(one, other, key=_MODES.index)


RiskLevel = Literal["low", "medium", "high"]


class Touch(StrEnum):
    """What a call reaches, from what is least to what is most."""

    READS = "reads"
    AGENTS = "agents"
    WRITES = "writes"
    NETWORK = "network"
    SENDS = "sends"
    CODE = "code"


class Risk(Value):
    """How risky a call is, for the person who is asked (UI-8). ``words`` is one sentence that says
    so without a colour."""

    level: RiskLevel
    touches: tuple[Touch, ...]
    words: str


class Link(Value):
    """One link of a decision's chain: what bounded the call, what it said, and why."""

    bound: str
    verdict: Verdict
    rule: str


class Decision(Value):
    """What policy says of one call: the strictest link decides (POL-1).

    ``rule`` is the deciding link's, ``chain`` holds every link that was asked, in order.
    """

    verdict: Verdict
    rule: str
    reason: str = ""
    chain: tuple[Link, ...] = ()
