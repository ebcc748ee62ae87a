"""The view of a read-only mode: what a command finds there it can read and not change (TOOL-7)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runtime.tools.base import ToolContext
from runtime.tools.builtin.shell import Exec, ExecArguments, ExecSettings
from runtime.tools.seen_versions import SeenFiles
from runtime.workspace.layout import FILES, Layout
from tests.contract.sandbox.conftest import Bench

ATTEMPTS = (
    "echo dead > new",
    "echo dead >> kept",
    "echo dead > sub/new",
    "rm -f kept",
    "mv kept moved",
    "ln kept linked",
    "ln -s kept linked",
    "mkdir made",
    "mkfifo pipe",
    "chmod 777 kept",
    "truncate -s 0 kept",
    "sed -i s/alive/dead/ kept",
    "cp kept ../../outside/new",
    "cp kept {extra}/new",
    "exec 3<>kept; echo dead >&3",
    "echo dead > /proc/self/cwd/new",
    "echo dead > /dev/shm/../../{workspace}/new",
)
"""Commands as if the judgement about them had been wrong; `kept` holds the word alive."""


@dataclass
class Desk:
    """The tool for commands in a session, on a real sandbox."""

    bench: Bench
    settings: ExecSettings = field(default_factory=ExecSettings)
    emit: Callable[[str], None] = lambda text: None

    @property
    def folder(self) -> Path:
        """The working folder."""
        return self.bench.workspace / FILES

    async def run(self, command: str, *, read_only: bool) -> str:
        """What the model is told of it."""
        context = ToolContext(
            session_id="ses_1",
            run_id="run_1",
            call_id="call_1",
            layout=Layout.of(self.bench.workspace),
            roots=(self.bench.base / "extra",),
            files=SeenFiles(),
            emit=self.emit,
            notes=True,
            read_only=read_only,
        )
        tool = Exec(self.bench.sandbox, self.settings)
        return (await tool.run(ExecArguments(command=command), context)).content


@pytest.fixture
def desk(confined: Bench) -> Desk:
    """A workspace with a file, and a second root."""
    desk = Desk(confined)
    (desk.folder / "sub").mkdir(parents=True)
    (confined.base / "extra").mkdir()
    (desk.folder / "kept").write_text("alive\n")
    (desk.folder / "kept").chmod(0o640)
    return desk


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_nothing_that_was_let_through_by_mistake_can_write(desk: Desk, attempt: str) -> None:
    places = {"extra": desk.bench.base / "extra", "workspace": desk.folder}
    command = attempt.format(**places)
    before = _seen(desk.bench.base)
    told = await desk.run(command, read_only=True)
    assert not told.startswith("[exit code 0,"), told
    assert _seen(desk.bench.base) == before


@pytest.mark.requirement("TOOL-7")
async def test_the_same_view_is_read_and_other_modes_write(desk: Desk) -> None:
    assert "alive" in await desk.run("cat kept; ls sub", read_only=True)
    told = await desk.run("echo dead > kept && echo x > sub/new", read_only=False)
    assert told.startswith("[exit code 0,")
    assert (desk.folder / "kept").read_text() == "dead\n"


@pytest.mark.requirement("TOOL-7")
async def test_nothing_that_was_granted_to_commands_reaches_a_read_only_one(desk: Desk) -> None:
    (desk.folder / "ls").write_text("#!/bin/sh\necho hijacked\n")
    (desk.folder / "ls").chmod(0o755)
    desk.settings = ExecSettings(
        env={"PATH": f"{desk.folder}:/usr/bin:/bin", "TOKEN": "t0ken"}, network=True
    )
    assert "hijacked" in await desk.run("ls", read_only=False)
    told = await desk.run("ls; env; cat /proc/net/dev", read_only=True)
    assert "hijacked" not in told
    assert "t0ken" not in told


def _seen(base: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in base.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (path.stat().st_mode, content)
    return found
