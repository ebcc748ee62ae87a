"""The limits of a command as this host can hold them: cgroups first, rlimits for the rest."""

import os
import resource
from dataclasses import dataclass

from adapters.sandbox.cgroups import Cgroups, CommandGroup
from runtime.ports.sandbox import SandboxLimits, SandboxUnavailable

_NO_PROCESS_LIMIT = "NOTHING (RLIMIT_NPROC does not bind root and no pids cgroup is writable)"


@dataclass(frozen=True, slots=True)
class HeldLimits:
    """`processes` is set where RLIMIT_NPROC has to do, and `tasks` where the supervisor has; see
    `LimitsSpec` for the rest."""

    rlimits: tuple[tuple[int, int], ...]
    processes: int | None
    tasks: int | None
    group: CommandGroup | None

    def cgroups(self) -> tuple[str, ...]:
        """The directories to join."""
        return self.group.directories() if self.group is not None else ()


def hold(limits: SandboxLimits, cgroups: Cgroups, *, overhead: int, asks_forks: bool) -> HeldLimits:
    """Make the command's group and list its rlimits; the caller removes the group. `asks_forks`:
    the backend can have the supervisor asked at each fork.

    Address space is limited only where no memory cgroup is to be had: runtimes that reserve
    far more than they use (V8, the JVM, Go) would not even start under RLIMIT_AS.
    Raises `SandboxUnavailable` when a group cannot be made although the host offered one.
    """
    rlimits = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
    ]
    if cgroups.memory is None:
        rlimits.append((resource.RLIMIT_AS, limits.memory_bytes))
    try:
        group = cgroups.group(limits, overhead=overhead)
    except OSError as error:
        raise SandboxUnavailable(
            f"The cgroup of the command could not be made: {error}.",
            hint="Check that the cgroup file system is still writable, then restart the gateway.",
        ) from error
    most = limits.processes + overhead if cgroups.pids is None else None
    as_root = os.geteuid() == 0
    return HeldLimits(
        tuple(rlimits),
        processes=None if as_root else most,
        tasks=most if as_root and asks_forks else None,
        group=group,
    )


def describe_limits(cgroups: Cgroups, *, asks_forks: bool) -> str:
    """One sentence on how memory and processes are limited here."""
    memory = "a cgroup" if cgroups.memory is not None else "RLIMIT_AS for each process"
    if cgroups.pids is not None:
        processes = "a cgroup"
    elif os.geteuid() == 0:
        processes = "the supervisor, which counts them" if asks_forks else _NO_PROCESS_LIMIT
    else:
        processes = "RLIMIT_NPROC over all processes of this user"
    return f"Memory is limited by {memory}, the number of processes by {processes}."
