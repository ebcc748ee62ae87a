"""How calls become rows: those that no step reads any more, and one that is decided again."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from runtime.agent.wait_requests import wait_of
from runtime.domain.decisions import PermissionMode
from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect, ToolCall, ToolResult, Touches
from runtime.policy.decide import Bounds
from runtime.sessions.bounds import rule_lists
from runtime.sessions.calls import CallRow
from runtime.sessions.open_calls import AGENTS, APPROVAL
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.executor import MOST_CALLS, TOO_MANY, Executor, Planned, unfit_digest
from runtime.tools.registry import Registry
from tests.support.kinds import KINDS
from tests.unit.tools import support
from tests.unit.tools.support import Desk


def planned_of(desk: Desk, calls: list[ToolCall], bounds: Bounds) -> tuple[Planned, ...]:
    return Executor(desk.registry).plan(
        calls, run_id="run_1", step=3, bounds=bounds, context_for=desk.context
    )


@pytest.mark.requirement("POL-1")
def test_of_a_flood_of_calls_the_first_are_read(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    calls = [ToolCall(id=f"c{at}", name="list_dir", arguments="{}") for at in range(MOST_CALLS + 2)]
    planned = planned_of(desk, calls, Bounds())
    assert [one.row.place for one in planned] == list(range(MOST_CALLS + 2))
    assert all(one.prepared is not None for one in planned[:MOST_CALLS])
    last = calls[-1]
    assert planned[-1] == Planned(
        CallRow(
            run_id="run_1",
            step=3,
            place=MOST_CALLS + 1,
            call=last,
            effect=Effect.READ,
            state="ended",
            digest=unfit_digest(last),
            decision=TOO_MANY,
            result=ToolResult(
                call_id=last.id,
                name="list_dir",
                status="error",
                content="This response asked for 66 calls; only the first 64 were checked, and "
                "this is not one of them. Ask for what you still need in the next step.",
            ),
        ),
        None,
    )


@pytest.mark.requirement("POL-1")
def test_a_stored_call_is_decided_again_by_what_holds_now(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    call = ToolCall(id="c1", name="write_file", arguments='{"path": "a", "content": "x"}')
    other = ToolCall(id="c0", name="list_dir", arguments="{}")
    first = planned_of(desk, [other, call], Bounds())[1]
    executor = Executor(desk.registry)
    again = executor.replan(first.row, bounds=Bounds(), context_for=desk.context)
    assert (again.row, again.touches, again.action) == (first.row, first.touches, first.action)
    now = executor.replan(
        first.row, bounds=Bounds(mode=PermissionMode.PLAN), context_for=desk.context
    )
    assert now.row.decision is not None
    assert now.row.decision.verdict == "deny"


class Nothing(Arguments):
    pass


class Talker(Tool[Nothing]):
    """Says a secret while it runs, in what it gives and in its errors."""

    name = "talk"
    description = "Talk."
    arguments = Nothing
    effect = Effect.READ
    example = "{}"

    def __init__(self, outcome: ToolOutput | Exception) -> None:
        self._outcome = outcome

    def touches(self, arguments: Nothing, context: ToolContext) -> Touches:
        return Touches()

    async def run(self, arguments: Nothing, context: ToolContext) -> ToolOutput:
        context.emit("the key is 123")
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


@pytest.mark.requirement("POL-7")
@pytest.mark.parametrize(
    ("outcome", "status", "content"),
    [
        (ToolOutput("it is 123"), "ok", "it is [...]"),
        (ToolOutput("123" + "x" * 20_000), "ok", "[...]" + "x" * 20_000),
        (ToolError("not 123"), "error", "not [...]"),
        (RuntimeError("123"), "error", "talk failed inside; try another way."),
    ],
)
async def test_what_a_tool_says_is_masked_wherever_it_says_it(
    desk: Desk, outcome: ToolOutput | Exception, status: str, content: str
) -> None:
    executor = Executor(Registry([Talker(outcome)]), lambda text: text.replace("123", "[...]"))
    call = ToolCall(id="c1", name="talk", arguments="{}")
    (planned,) = executor.plan(
        [call], run_id="run_1", step=1, bounds=Bounds(), context_for=desk.context
    )
    ran = await executor.run(planned, desk.context())
    assert (ran.result.status, ran.result.content) == (status, content)
    assert ran.result.outside is (status == "ok")
    assert desk.seen == ["the key is [...]"]


@pytest.mark.requirement("POL-1")
async def test_a_call_that_passed_no_check_never_runs(desk: Desk) -> None:
    call = ToolCall(id="c1", name="nope", arguments="{}")
    (planned,) = planned_of(desk, [call], Bounds())
    with pytest.raises(ValueError, match="the call c1 was never prepared"):
        await Executor(desk.registry).run(planned, desk.context())


def writes(path: str) -> ToolCall:
    return ToolCall(id="c1", name="write_file", arguments=json.dumps({"path": path, "content": ""}))


@pytest.mark.requirement("POL-9")
@pytest.mark.parametrize(
    ("path", "bounds", "verdict", "offered"),
    [
        ("a.md", Bounds(rules=rule_lists(ask=("write_file",))), "ask", "write_file(a.md)"),
        ("a.md", Bounds(), "allow", None),
        ("AGENTS.md", Bounds(), "ask", None),
    ],
)
def test_a_card_offers_the_session_only_where_it_asks_and_never_for_instructions(
    desk: Desk, path: str, bounds: Bounds, verdict: str, offered: str | None
) -> None:
    (planned,) = planned_of(desk, [writes(path)], bounds)
    assert planned.row.decision is not None
    assert planned.row.decision.verdict == verdict
    assert (planned.grant and planned.grant.text) == offered
    assert (planned.risk is not None) == (verdict == "ask")


def test_a_child_that_waits_for_others_gives_up_its_slot_once_it_is_allowed(desk: Desk) -> None:
    child = Desk(desk.workspace, child=True)
    waits = ToolCall(id="c1", name="subagents", arguments='{"action": "wait"}')
    asks = Bounds(rules=rule_lists(ask=("subagents",)))
    for at, call, bounds, kind in (
        (child, waits, Bounds(), AGENTS),
        (child, waits, asks, APPROVAL),
        (desk, waits, Bounds(), None),
        (child, writes("a.md"), Bounds(mode=PermissionMode.BYPASS), None),
    ):
        (planned,) = planned_of(at, [call], bounds)
        found = wait_of(planned, KINDS.waits)
        assert (found and found.name) == kind


def test_what_the_model_left_out_is_not_added_to_its_call(desk: Desk) -> None:
    call = ToolCall(id="c1", name="read_file", arguments='{"path": "a.md"}')
    (planned,) = planned_of(desk, [call], Bounds())
    assert json.loads(planned.row.call.arguments) == {"path": "a.md"}


@pytest.mark.requirement("SUB-16", "CTX-6")
@pytest.mark.parametrize("bounds", [Bounds(child=True), Bounds(group=True)])
def test_notes_are_private_by_where_a_path_leads(desk: Desk, bounds: Bounds) -> None:
    (desk.workspace / "memory").mkdir()
    (desk.folder / "link").symlink_to(desk.workspace / "memory")
    calls = [writes(path) for path in ("memory/a.md", "link/a.md", "a.md")]
    verdicts = [
        one.row.decision and one.row.decision.verdict for one in planned_of(desk, calls, bounds)
    ]
    assert verdicts == ["deny", "deny", "allow"]


async def test_a_call_asks_the_disk_about_its_folders_once_to_be_decided_and_once_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question to the disk lets other threads go first, which costs more than the question."""
    desk = Desk(tmp_path)
    (desk.folder / "a.md").write_text("x")
    asked: list[str] = []
    listed: list[str] = []
    lstat, scandir = os.lstat, os.scandir

    def counted(path: Any, *rest: Any, **more: Any) -> os.stat_result:
        asked.append(str(path))
        return lstat(path, *rest, **more)

    def listing(path: Any) -> Any:
        listed.append(str(path))
        return scandir(path)

    monkeypatch.setattr(os, "lstat", counted)
    monkeypatch.setattr(os, "scandir", listing)
    executor = Executor(desk.registry)
    reading = support.call("read_file", {"path": "a.md"})
    (planned,) = planned_of(desk, [reading], Bounds())
    decided = Counter(asked)
    assert decided[str(desk.workspace)] == Counter(listed)[str(desk.workspace)] == 1
    assert not decided[str(desk.workspace / "AGENTS.md")]
    asked.clear()
    assert (await executor.run(planned, desk.context())).result.status == "ok"
    assert Counter(asked)[str(desk.workspace)] == 1
