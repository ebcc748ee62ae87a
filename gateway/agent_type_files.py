"""The types of subagents of a configuration, read from its files: no gateway needs to run (SUB-2).

The tools that come along are known by their names; what tool servers offer is not asked for here.
"""

from dataclasses import dataclass
from pathlib import Path

from gateway.config import Config
from gateway.config_engine import child_models, child_settings
from gateway.features import FACES
from gateway.workspaces import open_workspace
from runtime.features.subagents.spawn.agent_types import Caller, Types, types_for, wider
from runtime.ports.model import Models
from runtime.workspace.definition_file import Definition, DefinitionSource, Known, read
from runtime.workspace.definitions import Definitions


@dataclass(frozen=True, slots=True)
class Found:
    """The definitions, and the types as the agent that people talk to may spawn them."""

    definitions: Definitions
    types: Types

    def source(self, name: str) -> DefinitionSource:
        """Where a type comes from; what no file defines comes with the gateway."""
        one = self.definitions.get(name)
        return "built-in" if one is None else one.source


def known(config: Config, models: Models) -> Known:
    """The names that definitions may use. Blocks on files."""
    skills = open_workspace(config).skills.names()
    return Known([one.name for one in FACES], child_models(config.settings, models).offered, skills)


def find(config: Config, models: Models) -> Found:
    """All types. Raises `Unavailable`. Blocks on files."""
    definitions = open_workspace(config).agents.load(known(config, models))
    settings = child_settings(config.settings, models)
    caller = Caller(max_steps=config.settings.agents.max_steps)
    return Found(definitions, types_for(FACES, definitions, caller, settings))


def read_one(path: Path, names: Known) -> Definition:
    """One file, wherever it is, as it would be read in the workspace. Blocks on files."""
    return read("workspace", path.absolute().parent, path.name).checked(names)


def too_wide(one: Definition) -> tuple[str, ...]:
    """What it asks for and a child of its type may not have, where it can be used."""
    return tuple(wider(one, FACES)) if one.available else ()
