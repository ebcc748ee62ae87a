"""What others may not read in the folders of the system that every command is shown.

A command is nobody in particular. The kernel keeps an ordinary user's command out by itself; the
command of a root gateway owns what root owns, so these files are found and hidden from it.
"""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from adapters.sandbox import folder_walk
from adapters.sandbox.folder_walk import closed_below, open_to_others

SYSTEM_READABLE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")
# Everybody may read them by their design, and they hold millions of files.
STORES_READABLE = ("/nix/store", "/gnu/store")
_FRESH_S = 600.0
_IMPORT_ROOT = str(Path(__file__).resolve().parents[2])


class ClosedPaths:
    """The walk over `folders`, which takes about a second, and what it found.

    A walk is used for ten minutes. What is made or closed meanwhile, deeper than the folders that
    are looked at for every command, is hidden from then on.
    """

    def __init__(self, folders: Iterable[str] = SYSTEM_READABLE) -> None:
        self.folders = _outermost(folders)
        self._lock = threading.Lock()
        self._begun: subprocess.Popen[bytes] | None = None
        self._found: tuple[str, ...] = ()
        self._walked_at: float | None = None

    @property
    def walked(self) -> bool:
        """Whether any walk was made."""
        return self._walked_at is not None

    def begin(self) -> None:
        """Begin the first walk beside whatever comes next. Who needs it first waits for its end."""
        with self._lock:
            if not self.walked and self._begun is None:
                self._begun = _begin(self.folders)

    async def refresh(self, now: float) -> None:
        """Walk again if the last walk is too old at `now`, a time of a monotonic clock."""
        if self._is_stale(now):
            await asyncio.to_thread(self.walk, now)

    def paths(self) -> tuple[str, ...]:
        """What the last walk found; the first one is made here if none was made before."""
        if not self.walked:
            self.walk(0.0)
        return self._found

    def _is_stale(self, now: float) -> bool:
        return self._walked_at is None or now - self._walked_at > _FRESH_S

    def walk(self, now: float) -> None:
        """The same in this thread."""
        with self._lock:
            # Another command may have waited for the same walk.
            if self._is_stale(now):
                begun, self._begun = self._begun or _begin(self.folders), None
                self._found = _finish(begun, self.folders)
                self._walked_at = now


@cache
def closed_tables() -> tuple[str, ...]:
    """What a root gateway's command could read of the kernel's tables and settings, and others may
    not. What belongs to one process is left out."""
    if os.geteuid() != 0:
        return ()
    tables = [
        path
        for path in Path("/proc").iterdir()
        if not path.name.isdecimal() and not path.is_symlink()
    ]
    shown = [str(path) for path in tables if open_to_others(str(path))]
    closed = [str(path) for path in tables if str(path) not in shown]
    return (*closed, *(path for folder in shown for path in closed_below(folder, depth=None)))


@cache
def shown_tables() -> tuple[str, ...]:
    """What anybody may read of the kernel's tables and settings, each by its path, for a backend
    whose rule on /proc would cover what only root may read, and every process. Left out is
    ``sys/net``, which is some hundred settings of a network that commands do not have."""
    closed = closed_tables()

    def shown(path: Path) -> Iterator[str]:
        if path.is_symlink() or str(path) in {*closed, "/proc/sys/net"}:
            return
        if any(one.startswith(f"{path}/") for one in (*closed, "/proc/sys/net")):
            for child in sorted(path.iterdir()):
                yield from shown(child)
        else:
            yield str(path)

    tables = [path for path in sorted(Path("/proc").iterdir()) if not path.name.isdecimal()]
    return tuple(table for path in tables for table in shown(path))


def _begin(folders: Sequence[str]) -> "subprocess.Popen[bytes] | None":
    """A process that walks; None for an ordinary user, who has nothing to find, and where no
    process can be started."""
    if os.geteuid() != 0:
        return None
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", folder_walk.BOOT, _IMPORT_ROOT, *folders],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Commands of the same user may look at this process, so it gets no secret.
            env={},
            cwd="/",
        )
    except OSError:
        return None


def _finish(begun: "subprocess.Popen[bytes] | None", folders: Iterable[str]) -> tuple[str, ...]:
    """What the process found. Where it came to no end, the walk is made here: what was not found
    would be shown."""
    if begun is not None:
        with begun:
            found = folder_walk.read(begun.communicate()[0])
        if begun.returncode == 0 and found is not None:
            return found
    return tuple(path for folder in folders for path in closed_below(folder, depth=None))


def _outermost(folders: Iterable[str]) -> tuple[str, ...]:
    real = {os.path.realpath(folder) for folder in folders}
    return tuple(
        path for path in sorted(real) if not any(path.startswith(f"{other}/") for other in real)
    )


SYSTEM_CLOSED = ClosedPaths()
"""One walk for all backends of this process."""
