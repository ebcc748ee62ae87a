"""The settings of subagents, as the feature sees them; `gateway.config_engine` fills them in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from runtime.domain.patterns import named
from runtime.features.subagents.rows.agents import Share


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be alive and spawned; see the settings ``agents.*``. Depth counts the root.
    Unattended runs are those that results alone began since a person last spoke."""

    max_depth: int = 3
    live_per_parent: int = 8
    live_per_tree: int = 24
    spawned_per_run: int = 16
    spawned_per_minute: int = 60
    unattended_runs: int = 50


@dataclass(frozen=True, slots=True)
class ChildModels:
    """Which models subagents use where neither their spawn nor their definition names one: by
    depth (1: children of the agent that people talk to), else the `default`, else their parent's.
    `offered` are the names that spawns and definitions may choose (SUB-15)."""

    default: str | None = None
    by_depth: Mapping[int, str] = field(default_factory=dict)
    offered: frozenset[str] = frozenset()

    def at(self, depth: int) -> str | None:
        """The model of that depth; None: the parent's."""
        return self.by_depth.get(depth, self.default)


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """How many subagents run at once over the deployment (0: any number), how many there may be,
    how long one is awaited before its parent goes on without it, the most that a spawn may `share`
    of memory, which models they use, and how long one waits for its parent's answer. `allow` and
    `deny` are patterns of tools that they may have; None allows all, no pattern at all allows
    none.

    One whose model cannot be reached begins anew `max_retries` times, first after `retry_ms`; one
    that makes no progress for `idle_s` seconds ends."""

    concurrency: int = 10
    limits: Limits = field(default_factory=Limits)
    await_ms: int = 120_000
    share: Share = "handoff"
    models: ChildModels = field(default_factory=ChildModels)
    clarify_ms: int = 24 * 3600 * 1000
    max_retries: int = 2
    retry_ms: int = 5_000
    idle_s: float = 900.0
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()

    def offers(self, name: str) -> bool:
        """Whether any subagent may have the tool of that name."""
        return (self.allow is None or named(self.allow, name)) and not named(self.deny, name)
