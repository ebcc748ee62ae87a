"""No confinement, by explicit setting only: the limits and the clean environment remain."""

from pathlib import Path

from adapters.sandbox.backend import Backend
from adapters.sandbox.command_process import Plan
from runtime.domain.errors import InvalidInput
from runtime.ports.sandbox import SandboxCommand


class Unconfined(Backend):
    """Commands see and change what the gateway's own user can."""

    name = "none"
    confines = False
    asks_forks = False

    def plan(self, command: SandboxCommand) -> Plan:
        if not Path(command.cwd).is_dir():
            raise InvalidInput("cwd", "it must be an existing directory")
        return self.bare(command)

    def confinement(self) -> str:
        return (
            "commands are NOT confined: files, the network and other processes are open to them. "
            "They run in a process group of their own with a clean environment and limits."
        )
