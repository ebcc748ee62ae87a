"""What this gateway has beside the message path."""

from typing import Final

from runtime.engine.feature import Feature, commands_of
from runtime.features.personas.feature import PERSONAS
from runtime.features.subagents.feature import FACES as OF_SUBAGENTS
from runtime.features.subagents.feature import USUAL, subagents
from runtime.features.subagents.settings import ChildSettings
from runtime.tools.base import Face
from runtime.tools.builtin import FACES as OF_PATH


def features_of(children: ChildSettings = USUAL) -> tuple[Feature, ...]:
    """All features, under the operator's settings."""
    return PERSONAS, subagents(children)


FEATURES: Final = features_of()
"""All features as they are where nothing is set."""
COMMANDS: Final = commands_of(FEATURES)
"""All chat commands."""
FACES: Final[tuple[Face, ...]] = (*OF_PATH[:-1], *OF_SUBAGENTS, OF_PATH[-1])
"""All tools that come along, in the order in which the prompt lists them."""
