"""How much disk a command uses, measured by its supervisor while it runs.

Each look costs next to nothing: what the file systems below its folders lost since its start is
asked, and what its processes wrote. Both say too much, as others use the same disks and a file can
be written twice. So when they exceed what the session may use its folders are walked, and every few
seconds besides, because what others remove meanwhile hides what the command adds: what changed
there since the session began, as it lies there now, is what counts. A sparse file counts by its
blocks, a deleted file as long as it is held open, and an entry as at least 4 KiB, so that empty
files count too. A walk does not find everything: not what lies in a folder that was closed or is
too deep, nor a deleted file that is mapped or whose handle waits in a socket (`deleted_files`). So
when both numbers exceed twice the quota, no walk is asked; where a walk met one of these, what the
disks lost is enough, because a process that nobody waits for takes its count along. Whoever is to
blame, a command that writes is ended when a disk is nearly full. Standard library only, and little
of it, as in `launch_spec`.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator

from adapters.sandbox.launch_spec import DiskSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Excess = Literal["disk", "free_space"]

# CLOCK_REALTIME_COARSE, by which Linux dates changes; no call sets these back.
_CLOCK_OF_CHANGES = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
_ENTRY_BYTES = 4096
_STEP = 2000
_NOTICED = 1024**2
_METADATA = 64 * 1024
"""By how much what is there may grow by itself: blocks that describe a file come late."""
_QUIET_LOOKS = 5
"""Looks before a walk that no number asked for; after a long walk, a quarter of its steps."""


class DiskMeter:
    """Measures one command from its making on."""

    def __init__(self, spec: DiskSpec) -> None:
        self._spec = spec
        self.started_ns = time.clock_gettime_ns(_CLOCK_OF_CHANGES)
        self._since_ns = self.started_ns if spec.since_ns is None else spec.since_ns
        self._folders = _one_each(spec.folders)
        self._before = {folder: _used(folder) for folder in self._folders}
        self._walk: Iterator[int | None] | None = None
        self._walk_took = 0
        self._quiet = 0
        # Who ends unnoticed by its parent takes its count along.
        self._most_written = 0
        self._most_changed = 0
        self._hidden = False
        # A session that has more already may still remove some of it.
        self._allowed = spec.limit
        if spec.charged > spec.limit:
            there = max(size or 0 for size in self._changed(()))
            self._allowed = max(spec.limit, there + _METADATA)
        # No walk before the command grew by this much.
        self._walk_at = max(spec.limit - spec.charged, _NOTICED)

    @property
    def interval_s(self) -> float:
        """Seconds from one look to the next."""
        return self._spec.interval_s

    @property
    def walking(self) -> bool:
        """Whether a walk is under way, which goes on at the next `measure`."""
        return self._walk is not None

    def measure(self, descendants: tuple[int, ...]) -> "Excess | None":
        """Look once, for some milliseconds at most; which bound was exceeded."""
        lost = self._lost()
        if lost > _NOTICED and any(_free(each) < self._spec.reserve for each in self._folders):
            return "free_space"
        self._most_written = written = max(self._most_written, _written(descendants))
        growth = max(lost, written)
        if (lost if self._hidden else min(lost, written)) > 2 * self._spec.limit:
            return "disk"
        if self._walk is None:
            self._quiet += 1
            if growth <= self._walk_at and self._quiet < max(_QUIET_LOOKS, self._walk_took // 4):
                return None
            self._walk, self._walk_took = self._changed(descendants), 0
        self._walk_took += 1
        changed = next(self._walk, None)
        if changed is None:
            return None
        self._walk, self._quiet = None, 0
        self._most_changed = max(self._most_changed, changed)
        if changed > self._allowed:
            return "disk"
        self._walk_at = growth + max(self._allowed - changed, _NOTICED)
        return None

    def total(self) -> int:
        """What to charge for the command, which has ended: at least what it added.

        What others removed meanwhile hides it on the disk, and who was killed took its count along.
        A charge that is too high costs a look more; what is there decides."""
        return max(self._lost(), _written(()), self._most_written, self._most_changed, 0)

    def _lost(self) -> int:
        lost = 0
        for folder, (size, entries) in self._before.items():
            size_now, entries_now = _used(folder)
            made = (entries_now - entries) * _ENTRY_BYTES
            lost += max(size_now - size, made) if made > 0 else size_now - size
        return lost

    def _changed(self, descendants: tuple[int, ...]) -> Iterator[int | None]:
        """Bytes of what changed since the session began; None between steps of the walk."""
        # Most commands end before the first walk, and need no `pathlib`.
        from adapters.sandbox.deleted_files import Holdings

        held = Holdings(descendants)
        self._hidden = self._hidden or held.conceal
        size, entries, seen = held.size, 0, 0
        todo = list(self._spec.folders)
        while todo:
            for entry in self._entries(todo.pop()):
                seen += 1
                with self._looking():
                    found = entry.stat(follow_symlinks=False)
                    if found.st_ctime_ns >= self._since_ns:
                        size += found.st_blocks * 512 // max(found.st_nlink, 1)
                        entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                if seen % _STEP == 0:
                    yield None
        yield max(size, entries * _ENTRY_BYTES)

    def _entries(self, folder: str) -> list["os.DirEntry[str]"]:
        with self._looking(), os.scandir(folder) as found:
            return list(found)
        return []

    @contextlib.contextmanager
    def _looking(self) -> Iterator[None]:
        """What is closed or too deep hides something; what was removed meanwhile holds nothing."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            self._hidden = True


def _one_each(folders: Iterable[str]) -> tuple[str, ...]:
    """One folder for each file system."""
    found: dict[int, str] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            found.setdefault(os.stat(folder).st_dev, folder)
    return tuple(found.values())


def _used(folder: str) -> tuple[int, int]:
    """Bytes and entries in use on the file system of a folder."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0, 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree


def _free(folder: str) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def _written(descendants: tuple[int, ...]) -> int:
    """Bytes that these processes, and all for whom this one waited, sent to disks."""
    return _written_by("self") + sum(_written_by(pid) for pid in descendants)


def _written_by(pid: int | str) -> int:
    try:
        with open(f"/proc/{pid}/io") as file:
            lines = file.read().splitlines()
    except OSError:
        # It is gone, or nobody counts here.
        return 0
    counts = {name: int(value) for name, value in (line.split(": ") for line in lines)}
    return counts["write_bytes"] - counts["cancelled_write_bytes"]
