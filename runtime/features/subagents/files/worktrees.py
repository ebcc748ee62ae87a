"""Worktrees of the workspace for subagents (SUB-17): made, looked at, and removed by git.

Whatever is in the workspace may be hostile: a repository's settings name programs that git runs
for filters and hooks. So git itself runs in the sandbox, without the network, and with no more than
the repository and the one worktree to write in; where commands are not confined there are no
worktrees. Nothing here runs inside a unit of the database, and every step can be done again after a
crash.
"""

import asyncio
import fcntl
import os
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import structlog

from runtime.agent.working_folders import Site
from runtime.domain.errors import InvalidInput, ModelRejected, ToolError
from runtime.domain.printable import one_line
from runtime.domain.worktrees import FOLDER, branch_of
from runtime.ports.clock import Clock
from runtime.ports.sandbox import Sandbox, SandboxCommand, SandboxLimits, SandboxUnavailable
from runtime.tools.builtin.shell import UNCONFINED
from runtime.tools.git_programs import hardened
from runtime.tools.hidden_paths import is_folder, made_folder
from runtime.workspace.layout import Layout

log = structlog.get_logger(__name__)

_FLAGS: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.pager=cat"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "submodule.recurse=false"),
    *("-c", "core.quotePath=true"),
)
_ENV: Final = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "LC_ALL": "C.UTF-8",
}
_ENV_TOOL: Final = "/usr/bin/env"
"""Finds git on the path that commands have."""
_NOT_FOUND: Final = 127
_LIMITS: Final = SandboxLimits(timeout_s=300.0)
_MOST_OUTPUT: Final = 64 * 1024
_AGAIN_S: Final = 0.1
_ID: Final = re.compile(r"[A-Za-z0-9_]{1,64}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class _Said:
    code: int
    text: str


class Ledger(Protocol):
    """What is written down of worktrees."""

    async def left(self, session_id: str) -> bool:
        """Whether nobody works in a worktree any more, and nobody said what became of it."""
        ...

    async def ended(self, session_id: str, *, kept: bool) -> None:
        """It stays, or is gone."""
        ...


def no_worktree(reason: str) -> ModelRejected:
    """A child that cannot have its worktree does nothing at all."""
    return ModelRejected(f"no worktree: {reason}", f"The worktree cannot be used: {reason}.")


class Worktrees:
    """Worktrees in one workspace, each named by the session of the agent that it was made for."""

    def __init__(self, sandbox: Sandbox, home: Path, clock: Clock) -> None:
        self._sandbox = sandbox
        self._home = home.resolve()
        self._clock = clock
        self._mine = asyncio.Lock()

    async def base(self, above: str | None = None) -> str:
        """The commit at which a new worktree would begin: that of the workspace, or of the
        worktree `above`. Raises `ToolError`, saying why there can be none."""
        git = self._repository()
        where = git if above is None else _admin(git, above)
        said = await self._git(
            (f"--git-dir={where}", "rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
            cwd=git,
            readable=(git,),
        )
        found = said.text.strip()
        if said.code or not _COMMIT.fullmatch(found):
            raise ToolError("the repository of the working folder has no commit that git can read")
        return found

    async def ensure(self, session_id: str, base: str) -> Site:
        """The site of a worktree, made where it is not there yet, or any more. Raises
        `ModelRejected`."""
        try:
            async with self._held():
                return await self._ensure(session_id, base)
        except (ToolError, OSError) as error:
            raise no_worktree(str(error)) from error

    async def changed(self, session_id: str, base: str) -> bool:
        """Whether there is anything in a worktree that was not there when it was made. What git
        cannot tell counts as changed: nothing is thrown away by mistake. Raises `ToolError`."""
        git, path = self._repository(), self._path(session_id)
        admin = _admin(git, session_id)
        readable = (git, path)
        where = (f"--git-dir={admin}", f"--work-tree={path}")
        head = await self._git(
            (*where, "rev-parse", "--verify", "HEAD"), cwd=path, readable=readable
        )
        if head.code or head.text.strip() != base:
            return True
        status = await self._git(
            (*where, "status", "--porcelain", "--untracked-files=normal", "--no-renames"),
            cwd=path,
            readable=readable,
        )
        return bool(status.code or status.text.strip())

    async def finish(self, session_id: str, base: str, ledger: Ledger) -> None:
        """Remove a worktree in which nothing changed, and say so in the books, which are read and
        written while nobody can make it again. Raises `ToolError` and `OSError`."""
        async with self._held():
            if not await ledger.left(session_id):
                return
            path = self._path(session_id)
            if is_folder(path):
                if await self.changed(session_id, base):
                    await ledger.ended(session_id, kept=True)
                    return
                # From here on it is to be removed, also for the one who finds it after a crash.
                path.rename(_gone(path))
            await asyncio.to_thread(shutil.rmtree, _gone(path), ignore_errors=True)
            await self._forget(session_id, base)
            await ledger.ended(session_id, kept=False)

    async def _ensure(self, session_id: str, base: str) -> Site:
        if not _ID.fullmatch(session_id) or not _COMMIT.fullmatch(base):
            raise ToolError("its place is not known")
        git = self._repository()
        path, admin = self._path(session_id), _admin(git, session_id)
        half = _initializing(admin)
        if half or (not is_folder(path) and is_folder(admin)):
            # Git was killed while it made or removed it; nobody has worked in it.
            for left in (path, _gone(path)):
                await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)
            await self._forget(session_id, base)
        begun = is_folder(path) and not is_folder(admin) and not any(path.iterdir())
        if begun or not is_folder(path):
            await self._add(git, session_id, base)
        elif not is_folder(admin):
            raise ToolError("the repository does not know it any more")
        return Site(Layout.of_worktree(self._home, path), reads=(git,))

    async def _add(self, git: Path, session_id: str, base: str) -> None:
        path, branch = self._path(session_id), branch_of(session_id)
        there = await self._git(
            (f"--git-dir={git}", "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"),
            cwd=git,
            readable=(git,),
        )
        # Made first, so that programs which the repository names reach no other worktree.
        path.mkdir(mode=0o700, exist_ok=True)
        what = (str(path), branch) if there.code == 0 else ("-b", branch, str(path), base)
        made = await self._git(
            (f"--git-dir={git}", "worktree", "add", "--quiet", *what),
            cwd=path,
            writable=(git, path),
        )
        if made.code:
            raise ToolError(f"git could not make it: {_line(made.text)}")

    async def _forget(self, session_id: str, base: str) -> None:
        """Let the repository know no worktree and no branch of it, where nobody moved that."""
        git, path = self._repository(), self._path(session_id)
        for words in (
            # Twice: one that git was killed in is locked.
            ("worktree", "remove", "--force", "--force", str(path)),
            ("update-ref", "-d", f"refs/heads/{branch_of(session_id)}", base),
        ):
            said = await self._git((f"--git-dir={git}", *words), cwd=git, writable=(git,))
            if said.code:
                log.info("worktree_left", session_id=session_id, said=_line(said.text))

    def _repository(self) -> Path:
        """The folder of the repository. Raises `ToolError` where there can be no worktrees."""
        if self._sandbox.name == UNCONFINED:
            raise ToolError("commands are not confined here, and a worktree needs that")
        git = Layout.of(self._home).files.resolve() / ".git"
        if not is_folder(git) or not (git / "HEAD").is_file():
            raise ToolError("the working folder is not the top of a git repository")
        return git

    def _folder(self) -> Path:
        path = made_folder(self._home, FOLDER.split("/"))
        if path is None:
            raise ToolError(f"{FOLDER} is not a folder")
        return path

    def _path(self, session_id: str) -> Path:
        return self._home / FOLDER / session_id

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        """Alone among all gateways that use the workspace: making and removing exclude each
        other."""
        async with self._mine:
            handle = os.open(
                self._folder() / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            )
            try:
                while not _locked(handle):
                    await self._clock.sleep(_AGAIN_S)
                yield
            finally:
                os.close(handle)

    async def _git(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
    ) -> _Said:
        git = await asyncio.to_thread(hardened, [self._repository()], (), granted=_ENV)
        if git.problem:
            raise ToolError(f"git does not start here: {git.problem}")
        command = SandboxCommand(
            command=(_ENV_TOOL, "git", *_FLAGS, *words),
            cwd=str(cwd),
            readable=tuple(str(path) for path in readable),
            writable=tuple(str(path) for path in writable),
            env=git.variables,
            limits=_LIMITS,
        )
        kept = bytearray()
        try:
            async with (
                await self._sandbox.start(command) as process,
                asyncio.TaskGroup() as tasks,
            ):
                waiting = tasks.create_task(process.wait(), name="git")
                while piece := await process.read():
                    kept += piece[: max(_MOST_OUTPUT - len(kept), 0)]
        except (SandboxUnavailable, InvalidInput) as error:
            raise ToolError(f"git cannot be run: {error}") from error
        if waiting.result().code == _NOT_FOUND:
            raise ToolError("git is not installed where commands run")
        return _Said(waiting.result().code, kept.decode(errors="replace"))


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _admin(git: Path, session_id: str) -> Path:
    """What the repository keeps of a worktree; it is named after the last part of its path."""
    return git / "worktrees" / session_id


def _initializing(admin: Path) -> bool:
    """Whether git was killed while it made a worktree: it locks one for so long, with that word."""
    with suppress(OSError):
        return (admin / "locked").read_text(errors="replace").strip() == "initializing"
    return False


def _gone(path: Path) -> Path:
    return path.with_name(f"{path.name}.gone")


def _line(text: str) -> str:
    """How git's output begins, on one line."""
    return one_line(text, 300) or "it said nothing"
