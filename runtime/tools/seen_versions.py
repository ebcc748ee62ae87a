"""What a session last saw of its files, so that a write over somebody's change is noticed."""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock


@dataclass(frozen=True, slots=True)
class Seen:
    """One file at one moment. ``digest`` is empty where the file is too large to be hashed."""

    mtime_ns: int
    size: int
    digest: str

    @classmethod
    def of(cls, stat: os.stat_result, content: bytes | None) -> "Seen":
        digest = "" if content is None else hashlib.blake2b(content, digest_size=16).hexdigest()
        return cls(mtime_ns=stat.st_mtime_ns, size=stat.st_size, digest=digest)

    def differs(self, now: "Seen") -> bool:
        """Whether the content changed; a touched file with the same content did not."""
        if self.digest and now.digest:
            return self.digest != now.digest
        return (self.mtime_ns, self.size) != (now.mtime_ns, now.size)


class SeenFiles:
    """One session's record, by canonical path; the oldest entries fall out beyond `limit`.

    Safe to call from threads. What fell out counts as never seen.
    """

    def __init__(self, limit: int = 1024) -> None:
        self._limit = limit
        self._files: OrderedDict[Path, Seen] = OrderedDict()
        self._lock = Lock()

    def note(self, path: Path, seen: Seen) -> None:
        """The session has just read or written `path`."""
        with self._lock:
            self._files[path] = seen
            self._files.move_to_end(path)
            while len(self._files) > self._limit:
                self._files.popitem(last=False)

    def changed(self, path: Path, now: Seen) -> bool:
        """Whether `path` was seen before and is another now."""
        with self._lock:
            seen = self._files.get(path)
        return seen is not None and seen.differs(now)

    def all(self) -> Mapping[Path, Seen]:
        """What was seen, as it is now."""
        with self._lock:
            return dict(self._files)
