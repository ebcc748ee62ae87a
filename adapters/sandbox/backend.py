"""What the three backends share: a shell for the text, a token, the common part of a launch."""

import os
import secrets
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.environment import environment_of
from adapters.sandbox.limits import HeldLimits, describe_limits, hold
from adapters.sandbox.process import LaunchedProcess, Plan, launch_command
from adapters.sandbox.spec import LaunchSpec
from adapters.sandbox.trees import end_tree
from runtime.domain.errors import InvalidInput
from runtime.ports.clock import Clock
from runtime.ports.sandbox import ProcessIdentity, SandboxCommand, TreeEnd

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")


@dataclass(frozen=True, slots=True)
class Common:
    """The parts of a plan that do not depend on how a command is confined."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    token: str
    held: HeldLimits

    def spec(self) -> LaunchSpec:
        """A launch without confinement; backends replace fields of it."""
        return LaunchSpec(
            argv=self.argv,
            cwd=self.cwd,
            env=self.env,
            rlimits=self.held.rlimits,
            processes=self.held.processes,
            cgroups=self.held.cgroups(),
        )


class Backend(ABC):
    """A `Sandbox` that plans a launch and hands it to the supervisor."""

    name: str

    def __init__(self, clock: Clock, *, cgroups: Cgroups) -> None:
        self._clock = clock
        self._cgroups = cgroups

    @abstractmethod
    def plan(self, command: SandboxCommand) -> Plan:
        """Work out the launch of `command`; what it holds is freed by `Plan.free`."""

    @abstractmethod
    def confinement(self) -> str:
        """The sentence that `describe` opens with."""

    async def start(self, command: SandboxCommand) -> LaunchedProcess:
        return await launch_command(self.plan(command), command, clock=self._clock)

    async def end_tree(self, identity: ProcessIdentity, grace_s: float) -> TreeEnd:
        return await end_tree(identity, grace_s=grace_s, clock=self._clock)

    def describe(self) -> str:
        return f"{self.name}: {self.confinement()} {describe_limits(self._cgroups)}"

    def common(self, command: SandboxCommand, *, temporary: str, overhead: int = 0) -> Common:
        """Raises `InvalidInput` for a bad command, variable or directory."""
        token = command.token or secrets.token_hex(16)
        return Common(
            argv=_argv(command.command),
            cwd=os.path.realpath(command.cwd),
            env=environment_of(command, temporary=temporary, token=token),
            token=token,
            # Last, because it makes what has to be removed again.
            held=hold(command.limits, self._cgroups, overhead=overhead),
        )


def private_directory() -> str:
    """A fresh directory on this host that only this user may enter."""
    return os.path.realpath(tempfile.mkdtemp(prefix="gatehouse-"))


def _argv(command: str | tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(command, str):
        shell = next((path for path in _SHELLS if os.access(path, os.X_OK)), "/bin/sh")
        return (shell, "-c", command)
    if not command or not Path(command[0]).is_absolute():
        raise InvalidInput("command", "an argument vector starts with an absolute path")
    return command
