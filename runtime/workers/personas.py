"""The feature of personas: other identity files for a conversation (CTX-11)."""

from typing import Final

from runtime.commands.personas import PERSONA
from runtime.workers.feature import Feature

PERSONAS: Final = Feature(name="personas", commands=(PERSONA,))
