"""The live workspace: a snapshot per turn, read again only when a file changed (CTX-5).

Files are watched by asking for their status at each turn: no task, no dependency, and the same on
every file system. The check costs some ten microseconds and is done on the event loop; reading is
done in a thread.
"""

import asyncio
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from runtime.workspace.content import (
    IDENTITY_FILES,
    MEMORY_FILE,
    SKILL_FILE,
    SKILLS_FOLDER,
    WorkspaceSnapshot,
    snapshot_of,
)
from runtime.workspace.definitions import DefinitionShelf
from runtime.workspace.skills import MAX_SKILLS, FindProgram, SkillShelf, skill_folders
from runtime.workspace.text_files import Skipped, Status, read_text, status

__all__ = ["Workspace", "WorkspaceSnapshot"]

log = structlog.get_logger(__name__)


class Workspace:
    """The workspace at `root`. `template` is where the built-in skills are.

    `env` are the names of the environment variables that are set: skills may require some.
    `user_agents` are folders of definitions of subagents besides those of the workspace.
    """

    def __init__(
        self,
        root: Path,
        *,
        template: Path | None = None,
        env: Collection[str] = frozenset(),
        find_program: FindProgram = shutil.which,
        user_agents: Sequence[Path] = (),
    ) -> None:
        self.root = root
        self.skills = SkillShelf(root, template, frozenset(env), find_program)
        self.agents = DefinitionShelf(root, template, user_agents, self.skills.names)
        self._find_program = find_program
        self._loading = asyncio.Lock()
        self._current: WorkspaceSnapshot | None = None
        self._seen: _Seen | None = None

    async def snapshot(self) -> WorkspaceSnapshot:
        """The workspace as it is now; the same object while nothing changed."""
        if self._current is not None and self._unchanged():
            return self._current
        async with self._loading:
            if self._current is not None and self._unchanged():
                return self._current
            before = self._current
            loaded, seen = await asyncio.to_thread(self._load)
            same = (
                before is not None
                and before.digest == loaded.digest
                and before.warnings == loaded.warnings
            )
            self._current = current = before if before is not None and same else loaded
            # Time stamps have a grain of some milliseconds: a second change within it, of the same
            # size, looks like none. So a change is believed to be over when two reads agree.
            self._seen = seen if same else None
            self._tell(current, before)
            return current

    async def problems(self) -> tuple[str, ...]:
        """Which files are not used, and why, for whoever asks once: nothing goes to the log."""
        loaded, _ = await asyncio.to_thread(self._load)
        return loaded.warnings

    def _unchanged(self) -> bool:
        return self._seen is not None and self._seen.still(self._find_program)

    def _tell(self, current: WorkspaceSnapshot, before: WorkspaceSnapshot | None) -> None:
        known = () if before is None else before.warnings
        for warning in current.warnings:
            if warning not in known:
                log.warning("workspace_file_skipped", reason=warning, workspace=str(self.root))

    def _load(self) -> tuple[WorkspaceSnapshot, "_Seen"]:
        # The status is taken before the content, so that a change in between is seen next time.
        states = tuple(_statuses(self.skills))
        warnings = [] if self.root.is_dir() else [f"the workspace {self.root} is not a folder"]
        texts = {name: self._text(name, warnings) for name in (*IDENTITY_FILES, MEMORY_FILE)}
        memory = texts.pop(MEMORY_FILE)
        skills, problems = self.skills.load()
        programs = sorted({program for read in skills for program in read.programs})
        found = tuple((one, self._find_program(one) is not None) for one in programs)
        snapshot = snapshot_of(
            self.root,
            identity={name: text for name, text in texts.items() if text is not None},
            memory=memory,
            skills=(read.skill for read in skills),
            warnings=(*warnings, *problems),
        )
        return snapshot, _Seen(states, found)

    def _text(self, name: str, warnings: list[str]) -> str | None:
        try:
            return read_text(self.root, name)
        except Skipped as skipped:
            warnings.append(f"{name} is skipped: {skipped}")
            return None


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the last read was based on: the status of files, the presence of programs."""

    files: tuple[tuple[Path, Status], ...]
    programs: tuple[tuple[str, bool], ...]

    def still(self, find_program: FindProgram) -> bool:
        """Whether all of it is as it was."""
        return all(status(path) == before for path, before in self.files) and all(
            (find_program(name) is not None) is present for name, present in self.programs
        )


def _statuses(shelf: SkillShelf) -> Iterator[tuple[Path, Status]]:
    """The files of the prompt, and the folders whose listing decides which files those are.

    A folder's status is taken before it is listed: what is added in between changes it.
    """
    for name in (*IDENTITY_FILES, MEMORY_FILE):
        path = shelf.root / name
        yield path, status(path)
    for _, place in shelf.places():
        folder = place / SKILLS_FOLDER
        yield folder, status(folder)
        for one in skill_folders(place)[:MAX_SKILLS]:
            path = folder / one / SKILL_FILE
            yield path, status(path)
