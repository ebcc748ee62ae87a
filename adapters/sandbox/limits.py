"""The limits of a command as this host can hold them: cgroups first, rlimits for the rest."""

import os
import resource

from adapters.sandbox.cgroups import Cgroups, CommandGroup
from adapters.sandbox.launch_spec import DiskSpec, LimitsSpec
from runtime.ports.sandbox import SandboxLimits, SandboxUnavailable

_NICE = 10
_NO_PROCESS_LIMIT = "NOTHING (RLIMIT_NPROC does not bind root and no pids cgroup is writable)"


def group_of(limits: SandboxLimits, cgroups: Cgroups, *, overhead: int) -> CommandGroup:
    """A fresh group of the command, which the caller removes. Raises `SandboxUnavailable` when
    none can be made although the host offered one."""
    try:
        return cgroups.group(limits, overhead=overhead)
    except OSError as error:
        raise SandboxUnavailable(
            f"The cgroup of the command could not be made: {error}.",
            hint="Check that the cgroup file system is still writable, then restart the gateway.",
        ) from error


def limits_of(
    limits: SandboxLimits,
    group: CommandGroup,
    *,
    overhead: int,
    asks_forks: bool,
    disk: DiskSpec | None,
) -> LimitsSpec:
    """The group's directories, and rlimits for what it does not hold. `asks_forks`: the backend can
    have the supervisor asked at each fork.

    Address space is limited only where no memory cgroup is to be had: runtimes that reserve
    far more than they use (V8, the JVM, Go) would not even start under RLIMIT_AS.
    """
    held = {member.controller for member in group.members}
    rlimits = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
    ]
    if "memory" not in held:
        rlimits.append((resource.RLIMIT_AS, limits.memory_bytes))
    most = limits.processes + overhead if "pids" not in held else None
    as_root = os.geteuid() == 0
    return LimitsSpec(
        rlimits=tuple(rlimits),
        processes=None if as_root else most,
        tasks=most if as_root and asks_forks else None,
        cgroups=group.directories(),
        disk=disk,
        nice=_NICE,
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
