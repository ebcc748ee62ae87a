"""Deleted files that processes keep: their size, or at least that there may be some.

A deleted file takes room for as long as anything holds it. One that is open can be counted. One
that is mapped, that waits in the queue of a socket, or that a process holds whose memory is closed
to this one cannot be counted: all that is known is that it may be there. One that only a system
call in progress holds, after its handle was closed by another thread, leaves no trace at all.
Standard library only, as in `launch_spec`.
"""

import contextlib
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from adapters.sandbox import threads

_DELETED = b" (deleted)\n"
# Memory that a mapping names as if it were a file. No command can make a file of such a name.
_MEMORY = (b"/dev/zero", b"/dev/shm/", b"/SYSV", b"/memfd:", b"/anon_hugepage")


class Holdings:
    """What `processes` hold now: `size` is what can be counted, and they may `conceal` more."""

    def __init__(self, processes: Iterable[int]) -> None:
        self._sizes: dict[tuple[int, int], int] = {}
        self.conceal = False
        for pid in processes:
            living = [Path(f"/proc/{thread}") for thread in threads.living(pid)]
            # Each thread, because one can have a table of its own, and the first may have left.
            for thread in living:
                with self._looking(thread):
                    self._look_at_handles(thread)
            for thread in living[:1]:
                with self._looking(thread):
                    self._look_at_mappings(thread)

    @property
    def size(self) -> int:
        """Bytes of the files that are counted, each once."""
        return sum(self._sizes.values())

    @contextlib.contextmanager
    def _looking(self, thread: Path) -> Iterator[None]:
        """What is closed to this process may hold something; what is gone holds nothing."""
        try:
            yield
        except PermissionError:
            # The kernel says so too of a handle whose thread ended a moment ago.
            self.conceal = self.conceal or _lives(thread)
        except OSError:
            pass

    def _look_at_handles(self, thread: Path) -> None:
        for handle in (thread / "fd").iterdir():
            with self._looking(thread):
                found = handle.stat()
                if stat.S_ISSOCK(found.st_mode):
                    self.conceal = self.conceal or _has_queued_files(thread, handle.name)
                elif found.st_nlink == 0:
                    self._sizes[found.st_dev, found.st_ino] = found.st_blocks * 512

    def _look_at_mappings(self, thread: Path) -> None:
        with (thread / "maps").open("rb") as mappings:
            paths = (line[line.find(b"/") :] for line in mappings if line.endswith(_DELETED))
            self.conceal = self.conceal or any(not path.startswith(_MEMORY) for path in paths)


def _lives(thread: Path) -> bool:
    try:
        return threads.stat_fields(str(thread))[0] not in threads.DEAD
    except OSError:
        return False


def _has_queued_files(thread: Path, handle: str) -> bool:
    """Whether handles wait to be received from a socket."""
    told = (thread / "fdinfo" / handle).read_text()
    counts = [line.split()[1] for line in told.splitlines() if line.startswith("scm_fds:")]
    return any(int(count) > 0 for count in counts)
