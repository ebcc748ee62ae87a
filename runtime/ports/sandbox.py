"""Running a command where it can do little harm (TOOL-5).

The port says what a caller may count on; how far each backend goes is in its `describe()`. It
decides nothing about which commands are allowed: that is the policy's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Protocol, Self

from runtime.domain.errors import Unavailable

TASK_TOKEN = "GATEHOUSE_TASK_TOKEN"
"""The variable that every process of a command inherits, so that its tree can be found (TSK-5)."""

LimitHit = Literal["time", "memory", "processes", "file_size", "disk", "free_space"]


class SandboxUnavailable(Unavailable):
    """No command was run: the confinement cannot be had. `hint` says what to install or change."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What one command may use; bytes, counts and seconds. `timeout_s` None means no end.

    `disk_bytes` is what the commands of one session may add to the folders that they may write,
    and `free_bytes` what a command that writes must leave free there; each is measured once a
    second. None means that it is not measured.
    """

    memory_bytes: int = 2 * 1024**3
    processes: int = 256
    file_bytes: int = 512 * 1024**2
    disk_bytes: int | None = 2 * 1024**3
    free_bytes: int = 256 * 1024**2
    open_files: int = 1024
    timeout_s: float | None = 60.0


@dataclass(frozen=True, slots=True)
class SandboxCommand:
    """One command and everything that it is granted.

    `command` is a shell text (run by bash where it exists, else by /bin/sh) or an argument vector.
    Paths are absolute. What is in none of the roots is hidden, except the system's programs and
    libraries, which are readable; of two roots, one inside the other, the inner one counts, and
    `hidden` beats `writable` beats `readable` on the same path. Roots are taken where links lead,
    but for those of `unlinked`, which are readable folders in places that commands may write: one
    that is, or is reached through, a link is refused. `env` is added to a minimal
    environment: nothing of the gateway's own environment is ever inherited.
    `session` says whose commands share the disk limit; alone if it is None.
    `token` identifies the tree in later lives of the gateway; a fresh one is made when it is None.
    """

    command: str | tuple[str, ...]
    cwd: str
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    unlinked: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    network: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    stdin: Literal["closed", "open"] = "closed"
    token: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class SandboxExit:
    """How it ended. `code` is 128 + `signal` after a signal, as shells say it.

    `limit` names the limit that was met, whether or not it ended the command.
    """

    code: int
    signal: int | None
    timed_out: bool
    duration_s: float
    limit: LimitHit | None


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """What tells a process tree from a later one with the same pid.

    `started_ticks` is the start time of `pid` in clock ticks after boot (proc(5), field 22).
    """

    pid: int
    started_ticks: int
    token: str


@dataclass(frozen=True, slots=True)
class TreeEnd:
    """Evidence of ending a tree (TSK-5).

    `supported` is False where processes cannot be listed. `confirmed` says that nothing of the
    tree is left; `remaining_pids` are those that were still there after SIGKILL.
    """

    confirmed: bool
    matched_target: bool
    signal_sent: bool
    supported: bool
    remaining_pids: tuple[int, ...] = ()


class SandboxProcess(Protocol):
    """A running command. Leaving its context ends the tree and frees what it held."""

    @property
    def identity(self) -> ProcessIdentity:
        """The head of the tree on this host; its pid is the supervisor's, not the shell's."""
        ...

    async def read(self) -> bytes:
        """The next output, stdout and stderr in the order written; b"" at the end.

        At most 64 KiB a call. A command whose output is not read is held up, not buffered.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Feed standard input. Raises `BrokenPipeError` when the command no longer reads."""
        ...

    def close_stdin(self) -> None:
        """Let the command see the end of its input."""
        ...

    async def wait(self) -> SandboxExit:
        """Wait until the first process and all that it left behind are gone.

        What outlives the first process is killed. Cancelling the wait kills the whole tree.
        """
        ...

    async def terminate(self, grace_s: float) -> TreeEnd:
        """SIGTERM to the tree, `grace_s` seconds, SIGKILL to what is left."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Sandbox(Protocol):
    """One way to confine commands."""

    @property
    def name(self) -> str:
        """A short name for `/status`, the log and a metric's label."""
        ...

    async def start(self, command: SandboxCommand) -> SandboxProcess:
        """Start it. Raises `SandboxUnavailable`, and `InvalidInput` for a bad path or variable."""
        ...

    async def end_tree(self, identity: ProcessIdentity, grace_s: float) -> TreeEnd:
        """End a tree that an earlier life of the gateway started (TSK-6)."""
        ...

    def describe(self) -> str:
        """What confines commands here, and what does not; one short paragraph."""
        ...
