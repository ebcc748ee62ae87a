"""The settings of turns, as the engine sees them; `gateway.config` fills them in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from runtime.domain.patterns import named
from runtime.store.agents import Share
from runtime.subagents.requests import Limits

MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class AttachmentSettings:
    """How much of what people send is taken: bytes of one file, files and bytes of one message,
    bytes of all that a session keeps.

    `shown` files at most go along with a request; `timeout_s` is for all files of a message.
    """

    file_bytes: int = 20 * MEGABYTE
    files: int = 10
    message_bytes: int = 50 * MEGABYTE
    session_bytes: int = 1000 * MEGABYTE
    shown: int = 20
    timeout_s: float = 120.0


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


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """`window_tokens` bounds history, `max_steps` the iterations (MSG-15), times are in ms."""

    max_steps: int = 40
    window_tokens: int = 32_000
    max_output_tokens: int = 8_192
    approval_expiry_ms: int = 7 * 24 * 3600 * 1000
    timezone: str = "UTC"
    attachments: AttachmentSettings = field(default_factory=AttachmentSettings)
    children: ChildSettings = field(default_factory=ChildSettings)

    def steps_of(self, own: int | None) -> int:
        """The steps of one run of a session whose own limit is `own`, if any."""
        return self.max_steps if own is None else min(own, self.max_steps)
