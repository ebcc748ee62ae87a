"""The limits of a command as this host can hold them: cgroups first, rlimits for the rest."""

import os
import resource
from dataclasses import dataclass

from adapters.sandbox.cgroups import Cgroups, CommandGroup
from runtime.ports.sandbox import SandboxLimits, SandboxUnavailable


@dataclass(frozen=True, slots=True)
class HeldLimits:
    """`processes` is set where RLIMIT_NPROC has to do; see `LaunchSpec` for the rest."""

    rlimits: tuple[tuple[int, int], ...]
    processes: int | None
    group: CommandGroup | None

    def cgroups(self) -> tuple[str, ...]:
        """The directories to join."""
        return self.group.directories() if self.group is not None else ()


def hold(limits: SandboxLimits, cgroups: Cgroups, *, overhead: int) -> HeldLimits:
    """Make the command's group and list its rlimits; the caller removes the group.

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
    by_user = cgroups.pids is None and os.geteuid() != 0
    processes = limits.processes + overhead if by_user else None
    return HeldLimits(tuple(rlimits), processes, group)


def describe_limits(cgroups: Cgroups) -> str:
    """One sentence on how memory and processes are limited here."""
    memory = "a cgroup" if cgroups.memory is not None else "RLIMIT_AS for each process"
    if cgroups.pids is not None:
        processes = "a cgroup"
    elif os.geteuid() == 0:
        processes = "NOTHING (RLIMIT_NPROC does not bind root and no pids cgroup is writable)"
    else:
        processes = "RLIMIT_NPROC over all processes of this user"
    return f"Memory is limited by {memory}, the number of processes by {processes}."
