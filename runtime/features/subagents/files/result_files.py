"""Long results of subagents as files of whoever reads them (SUB-10).

A unit that tells of a result names its path and keeps its words in the database; the file is made
of them before the model is asked, by whichever process has the run. So no crash loses it, a file
that is there already is the same, and replicas need no common disk.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import structlog

from runtime.domain.errors import ToolError
from runtime.domain.results import path_of
from runtime.domain.transcript import NoticeMessage, ToolMessage, TranscriptMessage
from runtime.features.subagents.rows import results
from runtime.features.subagents.rows.results import Handed
from runtime.features.subagents.spawn.spawn_arguments import SPAWN
from runtime.sessions.runs import Run
from runtime.sessions.transcripts import Line
from runtime.store import Connection, Database
from runtime.tools import upload_folders as shelf

log = structlog.get_logger(__name__)


class ResultFiles:
    """The results that one run may read."""

    def __init__(self, database: Database, run: Run) -> None:
        self._database = database
        self._run = run
        self._looked = 0
        self._there: set[Handed] = set()

    async def keep(self, lines: Sequence[Line], workspace: Path) -> None:
        """Write what the run was told of since the last time into its workspace, which may be a
        worktree; a disk that takes nothing is logged.

        Raises `StoreUnavailable`.
        """
        mine = [line for line in lines if line.seq > self._looked and line.run_id == self._run.id]
        self._looked = max((line.seq for line in mine), default=self._looked)
        if not any(_tells(line.message) for line in mine):
            return
        session_id = self._run.session_id
        found = await self._database.read(partial(results.handed_to, session_id=session_id))
        for one in found:
            if one not in self._there:
                await self._write(one, path_of(session_id, one.agent_id, one.digest), workspace)

    async def _write(self, one: Handed, path: str, workspace: Path) -> None:
        here = partial(shelf.read, workspace, path, one.digest, one.size)
        if await asyncio.to_thread(here) is None:
            words = await self._database.read(partial(_words, one=one))
            try:
                await asyncio.to_thread(shelf.keep_at, workspace, path, words.encode())
            except ToolError as error:
                log.warning("result_not_kept", run_id=self._run.id, reason=error.detail)
                return
        self._there.add(one)


def _words(conn: Connection, one: Handed) -> str:
    return results.whole(conn, one.agent_id, one.digest) or ""


def _tells(message: TranscriptMessage) -> bool:
    """Whether a message may tell of children: a handoff, or the result of a spawn."""
    if isinstance(message, NoticeMessage):
        return message.file is None
    if isinstance(message, ToolMessage):
        return any(result.name == SPAWN for result in message.results)
    return False
