"""A repository in a working folder, and a program that it names: for tests through real git."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.unconfined import Unconfined
from adapters.system.clock import SystemClock
from tests.unit.tools.support import Desk


@dataclass(frozen=True)
class Trap:
    """A program that a repository names: its keys, and the command that would start it."""

    command: str
    keys: tuple[str, ...] = ()
    value: str = "{evil}"
    attributes: str = ""
    hook: str = ""
    works: str = ""
    """What the command prints although nothing of the repository's ran."""


class Playground:
    """A repository in a working folder, and a program that leaves a mark where it ran."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.mark = desk.workspace.parent / "ran"
        self.evil = desk.workspace.parent / "evil"
        self.evil.write_text(f"#!/bin/sh\necho ran >> {self.mark}\nexit 0\n")
        self.evil.chmod(0o755)
        self.repository = desk.folder

    def git(self, *words: str, folder: Path | None = None) -> None:
        """As the person would who set it up."""
        me = (
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@example.org",
            "-c",
            "core.hooksPath=/dev/null",
        )
        subprocess.run(["git", *me, *words], cwd=folder or self.repository, check=True)

    def fill(self) -> None:
        """Two branches, and a change that is not committed."""
        self.git("init", "--quiet", "--initial-branch=main")
        file = self.repository / "a.txt"
        file.write_text("one\n" + "line\n" * 9)
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "First")
        self.git("checkout", "--quiet", "-b", "other")
        file.write_text("one\n" + "line\n" * 9 + "zero\n")
        self.git("commit", "--quiet", "-am", "Other")
        self.git("checkout", "--quiet", "main")
        file.write_text("two\n" + "line\n" * 9)
        self.git("config", "user.name", "Legit")
        self.git("config", "user.email", "legit@example.org")
        shutil.copytree(self.repository, self.repository / "here")
        self.git("config", "remote.here.url", "./here")

    def set(self, trap: Trap) -> None:
        """Let the repository name the program."""
        hooks = self.repository / ".evil-hooks"
        hooks.mkdir()
        for name in ("pre-commit", "post-checkout", "post-index-change"):
            shutil.copy(self.evil, hooks / name)
        for key in trap.keys:
            self.git("config", key, trap.value.format(evil=self.evil, hooks=hooks))
        if trap.attributes:
            (self.repository / ".git/info/attributes").write_text(trap.attributes)
        if trap.hook:
            shutil.copy(self.evil, self.repository / ".git/hooks" / trap.hook)

    async def runs(self, command: str, **arguments: object) -> str:
        """What a command of the agent prints."""
        output = await self.desk.run("exec", command=command, **arguments)
        return output.content

    def ran(self) -> bool:
        """Whether the program was started, which is forgotten then."""
        found = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return found


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that is made once."""
    workspace = tmp_path_factory.mktemp("filled") / "workspace"
    workspace.mkdir()
    Playground(Desk(workspace)).fill()
    return workspace


@pytest.fixture
def playground(filled: Path, tmp_path: Path) -> Playground:
    workspace = tmp_path / "workspace"
    shutil.copytree(filled, workspace)
    return Playground(Desk(workspace, sandbox=Unconfined(SystemClock(), cgroups=Cgroups())))
