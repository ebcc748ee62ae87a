"""What one decided call costs. Run with ``make bench``; asserts nothing.

Processor time of one decision, and of the decision with its run, in a workspace of the template:
the median of several rounds, so that other work on the machine counts little.
"""

import asyncio
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from runtime.domain.tools import ToolCall
from runtime.policy.decide import Bounds
from runtime.sessions.bounds import rule_lists
from runtime.tools.executor import Executor, Planned
from runtime.workspace.scaffold import find_template, scaffold
from tests.unit.tools.support import Desk

ROUNDS = 25
CALLS = 20
PLAIN = Bounds()
RULES = Bounds(
    rules=rule_lists(
        allow=("exec(make test)", "exec(pytest:*)", "exec(npm test)", "write_file(notes/**)"),
        ask=("write_file(skills/**)",),
        deny=("exec(rm:*)", "read_file(secrets/**)"),
    )
)
READ = ("read_file", {"path": "docs/guide/plan.md"})
WRITE = ("write_file", {"path": "docs/guide/plan.md", "content": "# Plan\n"})
COMMAND = ("exec", {"command": "python3 tool.py --check docs/guide"})


@pytest.mark.parametrize("call", [READ, WRITE, COMMAND], ids=lambda call: str(call[0]))
@pytest.mark.parametrize("bounds", [PLAIN, RULES], ids=["no rules", "seven rules"])
def test_a_decision(
    tmp_path: Path,
    call: tuple[str, dict[str, str]],
    bounds: Bounds,
    capsys: pytest.CaptureFixture[str],
) -> None:
    desk = desk_at(tmp_path)
    executor = Executor(desk.registry)
    asked = ToolCall(id="call_1", name=call[0], arguments=json.dumps(call[1]))

    def decided() -> Planned:
        (planned,) = executor.plan(
            [asked], run_id="run_1", step=1, bounds=bounds, context_for=desk.context
        )
        return planned

    def ran() -> None:
        asyncio.run(repeated(executor, decided(), desk))

    planned = decided()
    assert planned.row.decision is not None
    figures = [f"decided {microseconds(decided):.0f}"]
    if call is not COMMAND:
        figures.append(f"run {microseconds(ran, CALLS) - microseconds(decided) / CALLS:.0f}")
    with capsys.disabled():
        print(f"\n  {call[0]}: {', '.join(figures)} microseconds")


def desk_at(path: Path) -> Desk:
    """A workspace as a gateway makes it, with some files of its own."""
    workspace = path / "home" / "workspace"
    scaffold(workspace, find_template())
    desk = Desk(workspace)
    (desk.folder / "docs" / "guide").mkdir(parents=True)
    (desk.folder / "docs" / "guide" / "plan.md").write_text("# Plan\n")
    (desk.folder / "tool.py").write_text("print('checked')\n")
    return desk


async def repeated(executor: Executor, planned: Planned, desk: Desk) -> None:
    for _ in range(CALLS):
        await executor.run(planned, desk.context())


def microseconds(work: Callable[[], object], per: int = 1) -> float:
    """Processor time of one call of `work`, which does `per` things."""
    taken = []
    for _ in range(ROUNDS):
        begin = process_time()
        for _ in range(CALLS // per or 1):
            work()
        taken.append((process_time() - begin) / (CALLS // per or 1) / per)
    return statistics.median(taken) * 1e6
