"""A cgroup for each command: its memory and its number of processes, versions 1 and 2.

RLIMIT_NPROC does not bind root and RLIMIT_AS counts address space rather than memory, so these are
the better limits where they can be had. It moves no process of the gateway itself: on version 2
that means a delegated cgroup whose `subtree_control` can be written, such as a systemd unit with
`Delegate=yes` and `DelegateSubgroup=`.

A gateway holds a lock on each of its groups' directories from the moment on in which it makes them.
The kernel gives it back when the gateway ends, however it ends. So what nobody holds was left
behind, whatever the clocks say, and whichever home or pid namespace its gateway was in.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from runtime.ports.sandbox import LimitHit, SandboxLimits

Controller = Literal["memory", "pids"]
_CONTROLLERS: tuple[Controller, ...] = ("memory", "pids")
_PREFIX = "gatehouse-"
_TRIES = 20
"""A group that somebody swept between its making and its lock is made again."""
# (file with the limit, file with the count, the count's key), by controller and version.
_FILES: dict[tuple[Controller, int], tuple[str, str, str]] = {
    ("memory", 1): ("memory.limit_in_bytes", "memory.oom_control", "oom_kill"),
    ("memory", 2): ("memory.max", "memory.events", "oom_kill"),
    ("pids", 1): ("pids.max", "pids.events", "max"),
    ("pids", 2): ("pids.max", "pids.events", "max"),
}
# Swap counts as memory: without these a bomb pages the whole machine out first.
_SWAP = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}


@dataclass(frozen=True, slots=True)
class Parent:
    """A directory under which groups with this controller can be made."""

    path: Path
    controller: Controller
    version: int


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """The groups of one command, one directory a controller (one for both on version 2); `locks`
    say that they are in use, until `remove`."""

    members: tuple[Parent, ...]
    locks: tuple[int, ...] = ()

    def directories(self) -> tuple[str, ...]:
        """The directories that the first process joins."""
        return tuple(dict.fromkeys(str(member.path) for member in self.members))

    def limit_hit(self) -> LimitHit | None:
        """Which limit the kernel enforced, if any."""
        for member in self.members:
            _, events, key = _FILES[member.controller, member.version]
            if _count(member.path / events, key) > 0:
                return "memory" if member.controller == "memory" else "processes"
        return None

    def pids(self) -> list[int]:
        """Who is in there now, as pids of this host."""
        found: set[int] = set()
        for directory in self.directories():
            with contextlib.suppress(OSError):
                text = (Path(directory) / "cgroup.procs").read_text()
                found.update(int(line) for line in text.split())
        return sorted(found)

    def remove(self) -> None:
        """Remove the directories; one that is still in use is left for `Cgroups.sweep`."""
        for directory in self.directories():
            with contextlib.suppress(OSError):
                Path(directory).rmdir()
        for lock in self.locks:
            os.close(lock)


@dataclass(frozen=True, slots=True)
class Cgroups:
    """What this host offers; `memory` or `pids` is None where that limit cannot be had."""

    memory: Parent | None = None
    pids: Parent | None = None

    def group(self, limits: SandboxLimits, *, overhead: int) -> CommandGroup:
        """A fresh group with these limits. `overhead` processes are the backend's own.

        Raises `OSError` when the host takes back what `discover` found.
        """
        group = _make(tuple(self._parents()))
        try:
            for member in group.members:
                _limit(member, limits, overhead)
        except OSError:
            group.remove()
            raise
        return group

    def sweep(self) -> None:
        """Remove groups of commands that ended without their gateway. One stays that a gateway
        holds, also for a command that has not joined it yet, or that processes are in."""
        for parent in self._parents():
            for path in parent.path.glob(f"{_PREFIX}*"):
                with contextlib.suppress(OSError):
                    lock = _lock(path)
                    if lock is not None:
                        CommandGroup((replace(parent, path=path),), (lock,)).remove()

    def _parents(self) -> Iterator[Parent]:
        return filter(None, (self.memory, self.pids))


def discover(
    membership: Path = Path("/proc/self/cgroup"), mounts: Path = Path("/proc/self/mountinfo")
) -> Cgroups:
    """Find, by making one and removing it, where groups with limits can be made."""
    try:
        own = membership.read_text().splitlines()
        lines = mounts.read_text().splitlines()
    except OSError:
        return Cgroups()
    found: dict[Controller, Parent] = {}
    for parent in _candidates(own, lines):
        if parent.controller not in found and _usable(parent):
            found[parent.controller] = parent
    return Cgroups(memory=found.get("memory"), pids=found.get("pids"))


def _candidates(own: list[str], mounts: list[str]) -> Iterator[Parent]:
    places = dict(_memberships(own))
    for line in mounts:
        fields, _, rest = line.partition(" - ")
        mount = Path(fields.split()[4])
        kind, _, options = rest.split(" ", 2)
        if kind == "cgroup":
            for controller in _CONTROLLERS:
                if controller in options.split(",") and controller in places:
                    yield from _below(mount, places[controller], controller, 1)
        elif kind == "cgroup2":
            for controller in _CONTROLLERS:
                yield from _below(mount, places.get("", "/"), controller, 2)


def _memberships(own: list[str]) -> Iterator[tuple[str, str]]:
    """(controller, path) of each line of /proc/self/cgroup; version 2 has no controller."""
    for line in own:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _below(mount: Path, place: str, controller: Controller, version: int) -> Iterator[Parent]:
    """The process's own group, the one above (delegated, with it in a leaf), the mount itself."""
    own = mount / place.lstrip("/")
    yield Parent(own, controller, version)
    if version == 2 and own != mount:
        yield Parent(own.parent, controller, version)
    if own != mount and not own.is_dir():
        # In a container the path may be the host's, of which only this mount is visible.
        yield Parent(mount, controller, version)


def _make(parents: tuple[Parent, ...]) -> CommandGroup:
    """Fresh directories that this process holds. Raises `OSError`."""
    for _ in range(_TRIES):
        name, locks = _PREFIX + secrets.token_hex(8), list[int]()
        members = tuple(replace(parent, path=parent.path / name) for parent in parents)
        try:
            for directory in CommandGroup(members).directories():
                Path(directory).mkdir()
                lock = _lock(Path(directory))
                if lock is None:
                    break
                locks.append(lock)
            else:
                return CommandGroup(members, tuple(locks))
        except OSError:
            CommandGroup(members, tuple(locks)).remove()
            raise
        CommandGroup(members, tuple(locks)).remove()
    raise OSError(None, "its directories were removed again and again")


def _lock(path: Path) -> int | None:
    """The lock on a directory, as an open file; None where somebody else has it or it is gone."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Who had the lock before may have removed the directory.
        if os.path.samestat(os.fstat(lock), path.stat()):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _usable(parent: Parent) -> bool:
    try:
        if parent.version == 2:
            control = parent.path / "cgroup.subtree_control"
            if parent.controller not in control.read_text().split():
                control.write_text(f"+{parent.controller}")
        probe = _make((parent,))
    except OSError:
        return False
    limit, _, _ = _FILES[parent.controller, parent.version]
    usable = all(os.access(member.path / limit, os.W_OK) for member in probe.members)
    probe.remove()
    return usable


def _limit(member: Parent, limits: SandboxLimits, overhead: int) -> None:
    name, _, _ = _FILES[member.controller, member.version]
    if member.controller == "pids":
        (member.path / name).write_text(str(limits.processes + overhead))
        return
    (member.path / name).write_text(str(limits.memory_bytes))
    swap = member.path / _SWAP[member.version]
    if swap.exists():
        swap.write_text(str(limits.memory_bytes) if member.version == 1 else "0")


def _count(path: Path, key: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        name, _, value = line.partition(" ")
        if name == key and value.strip().isdecimal():
            return int(value)
    return 0
