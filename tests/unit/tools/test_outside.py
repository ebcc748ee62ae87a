"""Which results the model cannot have written itself: addresses in them were given (POL-10)."""

import json
from pathlib import Path

import pytest

from runtime.domain.tools import ToolCall
from runtime.policy.decide import Bounds
from runtime.ports.fetch import Page
from runtime.sessions.bounds import rule_lists
from runtime.tools.executor import Executor
from tests.fakes.fetch import FakeFetch
from tests.fakes.sandbox import FakeSandbox, FakeStdio
from tests.unit.tools.support import Desk, StillClock

PAGE = "https://example.org/"


async def prints(stdio: FakeStdio) -> int:
    await stdio.write(PAGE.encode())
    return 0


def at_work(desk: Desk) -> Desk:
    files = desk.workspace / "files"
    for folder in (files, desk.workspace / "skills/x", desk.workspace / "uploads/ses_1/abc"):
        folder.mkdir(parents=True, exist_ok=True)
    for path in ("files/a.md", "AGENTS.md", "uploads/ses_1/abc/a.txt", "skills/x/SKILL.md"):
        Path(desk.workspace, path).write_text(f"see {PAGE}\n")
    (desk.workspace / "memory").mkdir(exist_ok=True)
    (desk.workspace / "memory/MEMORY.md").write_text(PAGE)
    return Desk(
        desk.workspace,
        fetch=FakeFetch({PAGE: Page(PAGE, 200, "text/plain", b"hello", "utf-8", truncated=False)}),
        sandbox=FakeSandbox(StillClock(), {"echo": prints}),
    )


@pytest.mark.requirement("POL-10")
@pytest.mark.parametrize(
    ("tool", "arguments", "outside"),
    [
        ("web_fetch", {"url": PAGE}, True),
        ("read_file", {"path": "AGENTS.md"}, True),
        ("read_file", {"path": "skills/x/SKILL.md"}, True),
        ("read_file", {"path": "uploads/ses_1/abc/a.txt"}, True),
        ("grep", {"pattern": "see", "path": "skills"}, True),
        ("read_file", {"path": "a.md"}, False),
        ("read_file", {"path": "memory/MEMORY.md"}, False),
        ("grep", {"pattern": "see", "path": "."}, False),
        ("list_dir", {"path": "."}, False),
        ("glob", {"pattern": "*"}, False),
        ("write_file", {"path": "b.md", "content": PAGE}, False),
        ("exec", {"command": "echo"}, False),
        ("read_file", {"path": PAGE}, False),
    ],
)
async def test_a_result_says_whether_the_model_may_have_written_it(
    desk: Desk, tool: str, arguments: dict[str, str], outside: bool
) -> None:
    desk = at_work(desk)
    executor = Executor(desk.registry)
    bounds = Bounds(rules=rule_lists(allow=("*",)))
    (planned,) = executor.plan(
        [ToolCall(id="c", name=tool, arguments=json.dumps(arguments))],
        run_id="r",
        step=1,
        bounds=bounds,
        context_for=lambda _id: desk.context(),
    )
    ran = await executor.run(planned, desk.context())
    assert ran.result.outside is outside
