"""Children spend from the budgets of the run and the session that asked for them (MSG-20)."""

import json
from pathlib import Path

import pytest

from runtime.domain.budgets import Limit
from runtime.ports.model import ModelRequest
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.spending import CALL, figures, limits
from tests.scenario.subagents.children import name_of, settled, spawn, told, tree
from tests.scenario.subagents.family import grown

__all__ = ["dialect", "migrated_url", "schema_templates"]


def look() -> Said:
    return Said("so far so good", calls=(("list_dir", json.dumps({"path": "."})),))


@pytest.mark.requirement("MSG-20", "SUB-7")
async def test_a_child_that_uses_up_its_parents_budget_ends_forced_with_what_it_has(
    tmp_path: Path, migrated_url: str
) -> None:
    asked: list[str] = []

    def script(request: ModelRequest) -> Said | str:
        name = name_of(request)
        asked.append(name)
        if name == "top":
            return spawn(task="x", id="below") if request.step == 1 else "never"
        return look() if name else spawn(task="x", type="general", id="top")

    change = limits(run=Limit(3 * CALL + 1))
    async with grown(tmp_path, migrated_url, script, change) as at:
        await at.says("go")
        (line,) = await at.sees(1)
        assert "one request may use 331 tokens" in line
        found = await settled(at)
        assert asked == ["", "top", "below", "below"], "the call that crosses the limit is the last"
        assert found["below"].status == found["top"].status == "forced"
        assert "so far so good" in found["below"].result
        assert "one request may use 331 tokens" in found["below"].result
        assert await figures(at.database) == [("run", 4 * CALL, 0)]
        await at.says("again")
        await at.sees(2)
        assert len(asked) == 8, "the next request has a budget of its own"


@pytest.mark.requirement("MSG-20", "SUB-7")
async def test_what_background_children_use_counts_on_the_session(
    tmp_path: Path, migrated_url: str
) -> None:
    gate = Gate()

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return Said("a pearl", before=gate)
        if "a pearl" in told(request):
            return "never"
        return "Sent." if "accepted" in told(request) else spawn(task="x", mode="background")

    async with grown(tmp_path, migrated_url, script, limits(session=Limit(3 * CALL))) as at:
        await at.says("go")
        assert await at.sees(1) == ["Sent."]
        gate.open.set()
        _, line = await at.sees(2)
        assert line.startswith("This session has used its budget of 330 tokens")
        assert await figures(at.database) == [("session", 3 * CALL, 0)]
        await at.says("/usage")
        usage = (await at.sees(3))[2]
        assert f"Its subagents used {CALL:,} tokens more" in usage
        assert "this session: 330 tokens of 330 tokens used" in usage


@pytest.mark.requirement("MSG-20", "SUB-7")
async def test_children_side_by_side_overshoot_by_one_call_at_most(
    tmp_path: Path, migrated_url: str
) -> None:
    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return look()
        return spawn(agents=[{"task": f"look {n}"} for n in range(6)])

    change = limits(run=Limit(5 * CALL))
    async with grown(tmp_path, migrated_url, script, change) as at:
        await at.says("go")
        await at.sees(1)
        found = await settled(at)
        assert {one.status for one in found.values()} == {"forced"}
        ((_, used, reserved),) = await figures(at.database)
        assert reserved == 0
        assert 5 * CALL <= used <= 6 * CALL


@pytest.mark.requirement("MSG-20")
async def test_a_limit_that_is_set_later_counts_what_children_used_before(
    tmp_path: Path, migrated_url: str
) -> None:
    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return "done"
        return "Done." if "completed after" in told(request) else spawn(task="x")

    async with grown(tmp_path, migrated_url, script) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        assert set(await tree(at)) == {"explore-1"}
    async with grown(tmp_path, migrated_url, script, limits(session=Limit(3 * CALL))) as at:
        await at.says("again", message_id="another")
        (line,) = await at.sees(1)
        assert line.startswith("This session has used its budget")


@pytest.mark.requirement("MSG-20", "SUB-24")
async def test_a_child_that_is_spoken_to_later_spends_for_whoever_speaks(
    tmp_path: Path, migrated_url: str
) -> None:
    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return "done"
        text = told(request)
        if "continues with this" in text:
            return "Told it."
        if "once more" in text:
            word = {"action": "message", "agent": "one", "text": "more"}
            return Said("", calls=(("subagents", json.dumps(word)),))
        return "Done." if "completed after" in text else spawn(task="x", id="one")

    async with grown(tmp_path, migrated_url, script, limits(run=Limit(100 * CALL))) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        await at.says("once more")
        await at.chat.until(lambda: "Told it." in at.chat.texts())
        await settled(at)
        rows = [used for _, used, _ in await figures(at.database)]
        # Two calls of the root each, and one of the child; what the word brings back is a third.
        assert rows[:2] == [3 * CALL, 3 * CALL]
