"""The feature of personas: other identity files for a conversation (CTX-11)."""

from typing import Final

from runtime.engine.feature import Feature
from runtime.features.personas.commands import PERSONA

PERSONAS: Final = Feature(name="personas", commands=(PERSONA,))
