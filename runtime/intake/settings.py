"""The operator's rules for what comes in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from runtime.commands.table import CommandSettings
from runtime.intake.access import ChannelAccess

MAX_TEXT = 200_000
"""Characters of one message that are kept."""
MAX_FORM_TEXT = 4_000
"""Characters of what a person writes into a card's form that are kept."""


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """The operator's rules for what comes in; `access` is by channel name."""

    access: Mapping[str, ChannelAccess] = field(default_factory=dict)
    queue_mode: str = "collect"
    debounce_ms: int = 700
    stale_after_ms: int = 15 * 60 * 1000
    max_waiting: int = 500
    mode: str = "edit"
    commands: CommandSettings = field(default_factory=CommandSettings)
