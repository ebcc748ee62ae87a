"""Where commands look up what they need to know, before the unit that obeys them: a unit touches
neither the disk nor the network."""

from dataclasses import dataclass

from runtime.ports.model import ModelLists
from runtime.workspace.snapshot import Workspace


@dataclass(frozen=True, slots=True)
class Lookups:
    """What is None is not there."""

    workspace: Workspace | None = None
    models: ModelLists | None = None
