"""Where the calls of a session work: its folders, and the record of files that it has (SUB-17).

What a session saw lives in its process. It is put into rows only where another session uses the
same record, and read from rows only where a child was given it; so a person's own conversation,
which shares with nobody, costs nothing.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from runtime.sessions import seen_files
from runtime.sessions.seen_files import Record, Stamp
from runtime.sessions.unit import Units
from runtime.tools.seen_versions import Seen, SeenFiles
from runtime.workspace.layout import Layout

V = TypeVar("V")
_MOST_SESSIONS: Final = 512
"""What a session that is long idle saw is forgotten; it starts anew."""


@dataclass(frozen=True, slots=True)
class Site:
    """The folders of a session: its workspace with where relative paths begin, what else file tools
    and commands reach, and what its commands may read beyond that."""

    layout: Layout
    roots: tuple[Path, ...] = ()
    reads: tuple[Path, ...] = ()


@dataclass(slots=True)
class _Known:
    """One record in this process: what is in it, and what its rows said when they were last read
    or written."""

    files: SeenFiles = field(default_factory=SeenFiles)
    rows: dict[str, Stamp] = field(default_factory=dict)
    seeded: bool = False


class Places:
    """The places of the sessions of a process."""

    def __init__(self, units: Units, site: Site) -> None:
        self._units = units
        self._site = site
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._records: OrderedDict[str, tuple[str, bool]] = OrderedDict()
        self._sites: OrderedDict[str, Site] = OrderedDict()

    def site(self, session_id: str) -> Site:
        """The folders that a session works in."""
        return self._sites.get(session_id, self._site)

    def files(self, session_id: str) -> SeenFiles:
        """The record of files of a session."""
        owner, _ = self._records.get(session_id, (session_id, False))
        return self._of(owner).files

    def seen(self, session_id: str) -> Mapping[str, Stamp]:
        """What a session saw, for others that get it; whether they share it is asked again."""
        self._records.pop(session_id, None)
        return _stamps(self.files(session_id))

    def enter(self, session_id: str, *, alone: bool) -> None:
        """A turn of a session begins: whether others share its record is asked again, unless it was
        claimed as one that is `alone`."""
        self._records.pop(session_id, None)
        if alone:
            self._records[session_id] = (session_id, False)
            _bound(self._records)

    def work_in(self, session_id: str, site: Site | None) -> None:
        """Let a session work in another place than the workspace; None: in the workspace."""
        self._sites.pop(session_id, None)
        if site is not None:
            self._sites[session_id] = site
            _bound(self._sites)

    def is_apart(self, session_id: str) -> bool:
        """Whether a session works in another place than the workspace."""
        return session_id in self._sites

    async def load(self, session_id: str) -> None:
        """Take over what others put into a record since; call it before a step's calls."""
        known = self._records.get(session_id)
        if known is not None and not known[1]:
            return
        work = partial(seen_files.record, kinds=self._units.kinds, session_id=session_id)
        found = await self._units.database.read(work)
        self._records[session_id] = (found.owner, found.shared)
        _bound(self._records)
        record = self._of(found.owner)
        if found.shared or not record.seeded:
            _take(record, found)

    async def keep(self, session_id: str) -> None:
        """Put what calls saw into the rows of a record that is shared."""
        owner, shared = self._records.get(session_id, (session_id, False))
        if not shared:
            return
        record = self._of(owner)
        now = _stamps(record.files)
        fresh = {path: stamp for path, stamp in now.items() if record.rows.get(path) != stamp}
        gone = sorted(record.rows.keys() - now.keys())
        # One after the other: in one unit they could wait for another's in a circle.
        if gone:
            unit = partial(seen_files.keep, session_id=owner, files={}, gone=gone)
            await self._units.database.write(unit, name="files-seen")
        if fresh:
            unit = partial(seen_files.keep, session_id=owner, files=fresh)
            await self._units.database.write(unit, name="files-seen")
        record.rows = dict(now)

    def _of(self, owner: str) -> _Known:
        found = self._known.setdefault(owner, _Known())
        self._known.move_to_end(owner)
        _bound(self._known)
        return found


def _take(record: _Known, found: Record) -> None:
    for path, stamp in found.files.items():
        if record.rows.get(path) != stamp:
            at, size, digest = stamp
            record.files.note(Path(path), Seen(at, size, digest))
    record.rows = dict(found.files)
    record.seeded = True


def _stamps(files: SeenFiles) -> dict[str, Stamp]:
    return {str(path): (one.mtime_ns, one.size, one.digest) for path, one in files.all().items()}


def _bound(entries: OrderedDict[str, V]) -> None:
    while len(entries) > _MOST_SESSIONS:
        entries.popitem(last=False)
