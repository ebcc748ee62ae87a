"""No confinement, by explicit setting only: the limits and the clean environment remain."""

from pathlib import Path

from adapters.sandbox.backend import Backend, private_directory
from adapters.sandbox.command_process import Plan
from adapters.sandbox.launch_spec import LaunchSpec
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
        temporary = private_directory()
        try:
            common = self.common(command, temporary=temporary)
        except BaseException:
            Path(temporary).rmdir()
            raise
        return Plan(
            spec=LaunchSpec(
                argv=common.argv,
                cwd=common.cwd,
                env=common.env,
                limits=common.limits(),
                temporary=temporary,
            ),
            token=common.token,
            group=common.held.group,
            temporary=temporary,
        )

    def confinement(self) -> str:
        return (
            "commands are NOT confined: files, the network and other processes are open to them. "
            "They run in a process group of their own with a clean environment and limits."
        )
