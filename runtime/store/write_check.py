"""Whether the database takes writes, for `/readyz`, `/v1/status` and a log line at each turn.

On a full disk small writes may go on for long: SQLite writes over the pages of its log that were
copied into the file already, so a lease is renewed while a message finds no room. A write that
succeeds therefore does not prove that the next one will. What counts is the room on the disk of a
SQLite file, and that nothing has failed for a while. It writes nothing itself: leases are renewed
every few seconds, and each write tells of itself.
"""

from pathlib import Path
from typing import Final

import structlog

from runtime.domain.errors import CommitUnknown, StoreUnavailable
from runtime.ports.clock import Clock
from runtime.store.checkpoints import room_on_disk

log = structlog.get_logger(__name__)

CALM_S: Final = 5.0
"""How long no write may have failed before the database counts as mended."""
LOOK_S: Final = 5.0
"""How often the disk is asked for its room; a call of some microseconds on a local disk."""
LEAST_ROOM: Final = 4 * 1024**2
"""In bytes. A group of units with long messages may take as much at once."""


class Writable:
    """What the writes have found. `file` is that of SQLite; a server's disk is its own matter."""

    def __init__(self, clock: Clock, file: Path | None = None) -> None:
        self._clock = clock
        self._file = file
        self._trouble = ""
        self._began = 0.0
        self._failed = float("-inf")
        self._looked = float("-inf")

    @property
    def trouble(self) -> str:
        """Why writes fail or soon will; empty while all is well."""
        self._look()
        return self._trouble

    def failed(self, error: StoreUnavailable) -> None:
        """A write failed because of the database."""
        if isinstance(error, CommitUnknown):
            # The line broke; what follows says whether it is mended.
            return
        self._failed = self._clock.monotonic()
        self._turn(str(error))

    def wrote(self) -> None:
        """A write was committed."""
        self._look()
        calm = self._clock.monotonic() - self._failed >= CALM_S
        if self._trouble and calm and not self._no_room():
            lasted = self._clock.monotonic() - self._began
            self._trouble = ""
            log.info("database_recovered", after_s=round(lasted, 1))

    def _look(self) -> None:
        now = self._clock.monotonic()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        reason = self._no_room()
        if reason:
            self._turn(reason)

    def _turn(self, reason: str) -> None:
        if not self._trouble:
            self._began = self._clock.monotonic()
            log.warning("database_not_writable", reason=reason)
        self._trouble = reason

    def _no_room(self) -> str:
        if self._file is None:
            return ""
        try:
            room = room_on_disk(self._file.parent)
        except OSError as error:
            return f"The disk of {self._file} cannot be asked for its room: {error.strerror}."
        if room >= LEAST_ROOM:
            return ""
        return f"The disk of {self._file} is full: {room // 1024} KiB are left. Free space."
