"""Where the calls of a session work: its folders, and the record of files that it has (SUB-17).

What a session saw lives in its process. It is put into rows only where another session uses the
same record, and read from rows only where a child was given it; so a person's own conversation,
which shares with nobody, costs one look for each turn that calls tools.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from runtime.agent.worktrees import Site, Worktrees, no_worktree
from runtime.domain.errors import ToolError
from runtime.store import Connection, Database, agent_trees, agents, seen_files
from runtime.store.agents import Agent, TreeState
from runtime.store.seen_files import Record, Stamp
from runtime.store.sessions import Session
from runtime.tools.files import Seen, SeenFiles

V = TypeVar("V")
_MOST_SESSIONS: Final = 512
"""What a session that is long idle saw is forgotten; it starts anew."""


@dataclass(slots=True)
class _Known:
    """One record in this process: what is in it, and what its rows said when they were last read
    or written."""

    files: SeenFiles = field(default_factory=SeenFiles)
    rows: dict[str, Stamp] = field(default_factory=dict)
    seeded: bool = False


class Places:
    """The places of the sessions of a process."""

    def __init__(self, database: Database, site: Site, worktrees: Worktrees | None = None) -> None:
        self._database = database
        self._site = site
        self._worktrees = worktrees
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._records: OrderedDict[str, tuple[str, bool]] = OrderedDict()
        self._sites: OrderedDict[str, Site] = OrderedDict()

    def site(self, session_id: str) -> Site:
        """The folders of a session that was entered."""
        return self._sites.get(session_id, self._site)

    def files(self, session_id: str) -> SeenFiles:
        """The record of files of a session."""
        owner, _ = self._records.get(session_id, (session_id, False))
        return self._of(owner).files

    def seen(self, session_id: str) -> Mapping[str, Stamp]:
        """What a session saw, for those whom it spawns; whether others share it is asked again."""
        self._records.pop(session_id, None)
        return _stamps(self.files(session_id))

    async def enter(self, session: Session) -> None:
        """Find where a session works, at the begin of its turn. Raises `ModelRejected` where it
        has a worktree that cannot be had."""
        self._records.pop(session.id, None)
        if not session.is_child:
            return
        owner = await self._database.read(partial(_home, session_id=session.id))
        if owner is None:
            self._sites.pop(session.id, None)
            return
        site = await self._tree(owner)
        self._sites[session.id] = site
        _bound(self._sites)

    async def base(self, above: str | None) -> str:
        """The commit at which a worktree would begin. Raises `ToolError`."""
        if self._worktrees is None:
            raise ToolError("commands are not run by this process")
        return await self._worktrees.base(above)

    async def leave(self, session_id: str) -> None:
        """Note whether anything changed in a session's own worktree, before its end is told."""
        if session_id not in self._sites or self._worktrees is None:
            return
        agent = await self._database.read(partial(agents.get, session_id=session_id))
        if agent.tree_state is None:
            return
        try:
            changed = await self._worktrees.changed(session_id, agent.base or "")
        except ToolError:
            # It stays, and the one who reads of it is told that nobody looked.
            return
        state: TreeState = "kept" if changed else "clean"
        unit = partial(agent_trees.set_tree, session_id=session_id, state=state)
        await self._database.write(unit, name="worktree-seen")

    async def _tree(self, owner: Agent) -> Site:
        if self._worktrees is None:
            raise no_worktree("this process has no sandbox")
        return await self._worktrees.ensure(owner.session_id, owner.base or "")

    async def load(self, session_id: str) -> None:
        """Take over what others put into a record since; call it before a step's calls."""
        known = self._records.get(session_id)
        if known is not None and not known[1]:
            return
        found = await self._database.read(partial(seen_files.record, session_id=session_id))
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
            await self._database.write(unit, name="files-seen")
        if fresh:
            unit = partial(seen_files.keep, session_id=owner, files=fresh)
            await self._database.write(unit, name="files-seen")
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


def _home(conn: Connection, session_id: str) -> Agent | None:
    """The agent whose worktree one works in; None for one in the workspace."""
    agent = agents.find(conn, session_id)
    if agent is None or agent.worktree is None:
        return None
    return agents.get(conn, agent.worktree)


def _bound(entries: OrderedDict[str, V]) -> None:
    while len(entries) > _MOST_SESSIONS:
        entries.popitem(last=False)
