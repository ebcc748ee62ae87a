"""The terms of a spawn beside its agents: what is shared, what stays listed, and its key (SUB-6,
SUB-16, SUB-24)."""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import StringConstraints

from runtime.features.subagents.rows.agents import Retention, Share
from runtime.features.subagents.spawn.spawn_requests import Problem

RequestKey = Annotated[str, StringConstraints(pattern=r"^[ -~]{1,200}$")]
SHARES: Final[tuple[Share, ...]] = ("isolated", "handoff", "inherit-readonly")
"""From the narrowest to the widest."""
SETTING: Final = "tools.subagents.memory_share_mode"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a spawn says about all of its agents. `widest` is what the setting allows, and holds
    where `share` says nothing. `key` and `digest` make it repeatable: who sends the same key again
    gets the same agents, if all else that was sent is the same too."""

    share: Share | None = None
    widest: Share = "handoff"
    retention: Retention = "retain"
    key: str | None = None
    digest: str | None = None

    @property
    def shared(self) -> Share:
        """What holds."""
        return self.share or self.widest

    def problems(self) -> tuple[Problem, ...]:
        """Every rule that is broken."""
        if SHARES.index(self.shared) <= SHARES.index(self.widest):
            return ()
        rule = (
            f"{self.shared} is wider than {SETTING}, which is {self.widest}; "
            "choose one that is not wider"
        )
        return (Problem("memory_share_mode", rule),)
