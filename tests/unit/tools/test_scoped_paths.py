"""A link that is put into a path after policy decided leads no call out of its scope (POL-5)."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from runtime.domain.capabilities import Capabilities, Scope
from runtime.domain.decisions import PermissionMode
from runtime.policy.decide import Bounds
from runtime.tools.executor import Executor
from tests.unit.tools.support import Desk, call

CALLS: dict[str, dict[str, JsonValue]] = {
    "read_file": {"path": "notes/now/a.md"},
    "list_dir": {"path": "notes/now"},
    "glob": {"pattern": "*", "path": "notes/now"},
    "grep": {"pattern": "pearl", "path": "notes/now"},
    "grep of a file": {"pattern": "pearl", "path": "notes/now/a.md"},
    "write_file": {"path": "notes/now/b.md", "content": "mine"},
    "edit_file": {"path": "notes/now/a.md", "old_text": "pearl", "new_text": "mine"},
    "send_file": {"path": "notes/now/a.md"},
}


@pytest.mark.requirement("POL-5", "SUB-18", "TOOL-2")
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("name", CALLS)
async def test_what_is_opened_is_in_the_scope_too(desk: Desk, name: str, swapped: bool) -> None:
    notes, other = desk.folder / "notes", desk.folder / "other"
    for folder in (notes / "now", other):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("a pearl\n")
    scope = Capabilities(paths=Scope.of(str(notes)))
    bounds = Bounds(mode=PermissionMode.BYPASS, scope=scope)
    context = replace(desk.context(), within=bounds.within)
    executor = Executor(desk.registry)
    (planned,) = executor.plan(
        [call(name.split()[0], CALLS[name])],
        run_id="run_1",
        step=1,
        bounds=bounds,
        context_for=lambda _id: context,
    )
    assert planned.row.decision is not None
    assert planned.row.decision.verdict == "allow"
    if swapped:
        (notes / "now").rename(notes / "was")
        (notes / "now").symlink_to(other)
    ran = await executor.run(planned, context)
    assert (ran.result.status == "ok") != swapped
    out = "leads elsewhere" if name == "write_file" else "leads out of what this session may reach"
    assert (out in ran.result.content) == swapped
    assert not ran.sends or not swapped
    assert other_files(other) == {"a.md": "a pearl\n"}


def other_files(folder: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in folder.iterdir()}
