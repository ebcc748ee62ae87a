"""What some commands need to know, looked up before the unit that obeys them.

A unit touches neither the disk nor the network.
"""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from runtime.commands import parse, table
from runtime.commands.personas import OFF, Asked
from runtime.domain.errors import InvalidInput
from runtime.domain.messages import InboundMessage
from runtime.intake.settings import IntakeSettings
from runtime.ports.model import ModelLists
from runtime.workspace.personas import persona_names, read_persona
from runtime.workspace.snapshot import Workspace

PERSONA: Final = "persona"
MODEL: Final = "model"
STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class Lookups:
    """Where commands are looked up; what is None is not there."""

    workspace: Workspace | None = None
    models: ModelLists | None = None

    async def prepared(self, settings: IntakeSettings, message: InboundMessage) -> IntakeSettings:
        """The settings that a message is accepted with: with what its command asks for."""
        words = parse.command_of(message, names=table.NAMES)
        if words is None:
            return settings
        known = settings.commands
        if words.name == PERSONA and self.workspace is not None:
            asked = await asyncio.to_thread(_look, self.workspace.root, words.rest)
            known = replace(known, persona=asked)
        if words.name == STATUS and self.workspace is not None:
            known = replace(known, skipped=(await self.workspace.snapshot()).warnings)
        if words.name == MODEL and self.models is not None:
            known = replace(known, listing=await self.models.listing())
        return replace(settings, commands=known)


def _look(root: Path, name: str) -> Asked:
    names = tuple(persona_names(root))
    if name in ("", OFF):
        return Asked(names)
    try:
        return Asked(names, found=read_persona(root, name))
    except InvalidInput as error:
        return Asked(names, problem=error.rule)
