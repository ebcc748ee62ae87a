"""What the three backends share: a shell for the text, a token, the common part of a launch."""

import os
import secrets
import tempfile
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.closed_folders import SYSTEM_CLOSED, ClosedPaths
from adapters.sandbox.command_process import DiskUse, LaunchedProcess, Plan, launch_command
from adapters.sandbox.environment import environment_of
from adapters.sandbox.file_view import View, view_of
from adapters.sandbox.launch_spec import DISK_INTERVAL_S, DiskSpec, LaunchSpec
from adapters.sandbox.limits import describe_limits, group_of, limits_of
from adapters.sandbox.orphan_trees import end_tree
from runtime.domain.errors import InvalidInput
from runtime.ports.clock import Clock
from runtime.ports.sandbox import ProcessIdentity, SandboxCommand, SandboxUnavailable, TreeEnd

_MOST_SESSIONS = 10_000
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")


@dataclass(eq=False)
class Backend(ABC):
    """A `Sandbox` that plans a launch and hands it to the supervisor.

    Each command's disk is measured every `disk_interval_s` seconds. `reasons` say why no other
    backend was taken.
    """

    name: ClassVar[str]
    confines: ClassVar[bool] = True
    asks_forks: ClassVar[bool] = True
    """Whether its filter can ask the supervisor at each fork."""

    clock: Clock
    _: KW_ONLY
    cgroups: Cgroups
    closed: ClosedPaths = SYSTEM_CLOSED
    disk_interval_s: float = DISK_INTERVAL_S
    reasons: tuple[str, ...] = ()
    # What each session was charged, and since when.
    _disk: dict[str, DiskUse] = field(default_factory=dict, init=False)

    def available(self) -> SandboxUnavailable | None:
        """Why it cannot be used here, or None."""
        return None

    @abstractmethod
    def plan(self, command: SandboxCommand) -> Plan:
        """Work out the launch of `command`; what it holds is freed by `Plan.free`."""

    @abstractmethod
    def confinement(self) -> str:
        """The sentence that `describe` opens with."""

    async def start(self, command: SandboxCommand) -> LaunchedProcess:
        if self.confines:
            await self.closed.refresh(self.clock.monotonic())
        plan = self.plan(command)
        if command.session is not None:
            plan = replace(plan, charge=partial(self._charge, command.session))
        return await launch_command(plan, command, clock=self.clock)

    def view(self, command: SandboxCommand) -> View:
        """What `command` sees; raises `InvalidInput` as `view_of` does."""
        return view_of(command, self.closed.paths())

    def _charge(self, session: str, use: DiskUse) -> None:
        """Add what a command of a session used; the least recent sessions are forgotten."""
        before = self._disk.pop(session, None)
        if before is not None:
            use = DiskUse(before.written + use.written, before.since_ns)
        self._disk[session] = use
        while len(self._disk) > _MOST_SESSIONS:
            del self._disk[next(iter(self._disk))]

    def _disk_spec(self, command: SandboxCommand, temporary: str | None) -> DiskSpec | None:
        limits = command.limits
        if limits.disk_bytes is None:
            return None
        use = self._disk.get(command.session) if command.session is not None else None
        folders = [os.path.realpath(path) for path in command.writable]
        if temporary is not None:
            folders.append(temporary)
        return DiskSpec(
            folders=tuple(folders),
            limit=limits.disk_bytes,
            reserve=limits.free_bytes,
            charged=use.written if use else 0,
            since_ns=use.since_ns if use else None,
            interval_s=self.disk_interval_s,
        )

    async def end_tree(self, identity: ProcessIdentity, grace_s: float) -> TreeEnd:
        return await end_tree(identity, grace_s=grace_s, clock=self.clock)

    def describe(self) -> str:
        limits = describe_limits(self.cgroups, asks_forks=self.asks_forks)
        return " ".join((f"{self.name}: {self.confinement()} {limits}", *self.reasons))

    def bare(
        self, command: SandboxCommand, *, shared: str | None = None, overhead: int = 0
    ) -> Plan:
        """The plan of a command that nothing confines. Its temporary folder is one of this host,
        made for it, or the path `shared` where it finds one of its own. Raises `InvalidInput` for a
        bad command, variable or directory."""
        with ExitStack() as undo:
            own = None
            if shared is None:
                own = os.path.realpath(tempfile.mkdtemp(prefix="gatehouse-"))
                undo.callback(os.rmdir, own)
            token = command.token or secrets.token_hex(16)
            argv = _argv(command.command)
            env = environment_of(command, temporary=shared or own or "", token=token)
            disk = self._disk_spec(command, own)
            # Last, because it makes what has to be removed again.
            group = group_of(command.limits, self.cgroups, overhead=overhead)
            undo.pop_all()
        limits = limits_of(
            command.limits, group, overhead=overhead, asks_forks=self.asks_forks, disk=disk
        )
        cwd = os.path.realpath(command.cwd)
        spec = LaunchSpec(argv=argv, cwd=cwd, env=env, limits=limits, temporary=own)
        return Plan(spec, token, group)


def _argv(command: str | tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(command, str):
        shell = next((path for path in _SHELLS if os.access(path, os.X_OK)), "/bin/sh")
        return (shell, "-c", command)
    if not command or not Path(command[0]).is_absolute():
        raise InvalidInput("command", "an argument vector starts with an absolute path")
    return command
