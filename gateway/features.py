"""What this gateway has beside the message path."""

from typing import Final

from runtime.workers.feature import Feature, commands_of
from runtime.workers.personas import PERSONAS
from runtime.workers.subagents import SUBAGENTS

FEATURES: Final[tuple[Feature, ...]] = (PERSONAS, SUBAGENTS)
COMMANDS: Final = commands_of(FEATURES)
"""All chat commands."""
