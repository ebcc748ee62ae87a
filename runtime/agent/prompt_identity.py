"""Whose identity files a prompt holds: the live workspace's, or a persona's (CTX-11)."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from runtime.sessions import personas
from runtime.sessions.sessions import Bound
from runtime.store import Database
from runtime.workspace.content import WorkspaceSnapshot, with_persona
from runtime.workspace.snapshot import Workspace

MOST: Final = 16
"""Personas whose files are kept in memory; what is behind a digest never changes."""


class Identity:
    """Makes the snapshot that a session's prompt is built from."""

    def __init__(self, workspace: Workspace, database: Database) -> None:
        self._workspace = workspace
        self._database = database
        self._kept: OrderedDict[str, Mapping[str, str]] = OrderedDict()

    async def snapshot(self, persona: Bound | None) -> WorkspaceSnapshot:
        """The workspace as it is now, with the files of the persona as they were when it was bound.

        Raises `StoreUnavailable`, and `NotFound` for a digest that was never kept.
        """
        live = await self._workspace.snapshot()
        if persona is None:
            return live
        return with_persona(live, persona.name, await self._files(persona.digest))

    async def _files(self, digest: str) -> Mapping[str, str]:
        found = self._kept.get(digest)
        if found is None:
            found = await self._database.read(lambda conn: personas.files_of(conn, digest))
            self._kept[digest] = found
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(digest)
        return found
