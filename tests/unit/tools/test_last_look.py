"""Links are followed once for a call; what counts right before a command starts is asked anew."""

from pathlib import Path
from typing import Any

from runtime.tools.builtin.shell import Exec, ExecSettings
from runtime.tools.executor import Executor
from runtime.tools.grants import grants_of
from runtime.tools.registry import Registry
from tests.unit.tools.support import Desk
from tests.unit.tools.test_actions import Shelf, approved, planned_of, shelf

__all__ = ["shelf"]


class Linking(dict[str, str]):
    """Variables that make a private note of a script when they are looked at."""

    def __init__(self, note: Path, script: Path) -> None:
        super().__init__()
        self._note, self._script = note, script

    def get(self, key: str, default: Any = None) -> Any:
        if not self._note.is_symlink():
            self._note.unlink(missing_ok=True)
            self._note.symlink_to(self._script)
        return super().get(key, default)


async def test_the_last_look_before_a_command_sees_new_links(shelf: Shelf) -> None:
    script = shelf.files / "run.sh"
    script.write_text("echo 1\n")
    shelf.desk.notes = False
    command = Exec(
        shelf.sandbox, ExecSettings(env=Linking(shelf.desk.workspace / "USER.md", script))
    )
    executor = Executor(Registry([command]))
    planned = approved(planned_of(executor, shelf.desk, '{"command": "sh run.sh"}', "exec"))
    ran = await executor.run(planned, shelf.desk.context())
    assert "has changed since it was allowed" in ran.result.content
    assert shelf.sandbox.started == []


def test_what_a_command_may_not_read_is_looked_up_when_it_starts(desk: Desk) -> None:
    desk.notes = False
    context = desk.context()
    before = context.hidden.masks
    note, other = desk.workspace / "USER.md", desk.folder / "other.md"
    other.write_text("x")
    note.unlink(missing_ok=True)
    note.symlink_to(other)
    assert str(other) not in before
    assert str(other) in grants_of(context).hidden
