"""What one spawn gives its children: an end in time, a budget of their own, a folder, a line about
them (SUB-7, SUB-18, POL-5)."""

import json
from pathlib import Path

import pytest

from runtime.domain.budgets import Limit
from runtime.ports.model import ModelRequest
from tests.contract.store_support import dialect, migrated_url, on_sqlite, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.spending import CALL, figures, limits
from tests.scenario.subagents.children import Script, name_of, settled, spawn, told, tree
from tests.scenario.subagents.family import grown, results
from tests.scenario.subagents.test_idle_timeouts import WORK, root_of, slow

__all__ = ["dialect", "migrated_url", "schema_templates"]


STORE_KEEPS_THIS_TIME = pytest.mark.parametrize("dialect", ["sqlite"])
"""A server's time is its own; what is asked of it is in `tests/contract/test_store_agents.py`."""


@pytest.fixture
def url(migrated_url: str) -> str:
    return migrated_url


def look(**where: str) -> Said:
    return Said("so far so good", calls=(("list_dir", json.dumps({"path": ".", **where})),))


def parent_of(child: Script, **spawned: object) -> Script:
    """A root that awaits one child, `top`, and says what its call came to."""

    def script(request: ModelRequest) -> object:
        if name_of(request):
            return child(request)
        return results(request)[0] if request.step > 1 else spawn(task="x", id="top", **spawned)

    return script


@pytest.mark.requirement("SUB-7", "SUB-8")
@STORE_KEEPS_THIS_TIME
async def test_a_child_whose_time_is_over_ends_with_what_it_has(tmp_path: Path, url: str) -> None:
    async with slow(tmp_path, url, root_of(lambda _: WORK, timeout_s=7)) as at:
        await at.at.says("go")
        await at.until(at.work.begun.is_set)
        for _ in range(3):
            await at.passes(2)
            await at.prints("still at it")
        assert (await at.one()).settled_ms is None
        await at.passes(2)
        assert await at.sees() == "one (explore) timed out"
        one = await at.one()
    assert (one.status, one.retries) == ("timed_out", 0)
    assert one.result == "Half of it.\n\n(It was ended here: its 7 s were over.)"


@pytest.mark.requirement("SUB-7", "SUB-23")
@STORE_KEEPS_THIS_TIME
async def test_a_deadline_holds_over_a_restart_and_for_one_that_never_ran(
    tmp_path: Path, url: str
) -> None:
    held = Gate()

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return Said("never", before=held)
        said = told(request)
        if "timed out" in said:
            return "It is late."
        if "accepted" in said:
            return "Sent."
        task = {"task": "x", "group": "g"}
        agents = [{**task, "id": "first"}, {**task, "id": "second"}]
        return spawn(mode="background", timeout_s=60, agents=agents)

    async with slow(tmp_path, url, script) as at:
        await at.at.says("go")
        assert await at.sees() == "Sent."
        await at.until(held.reached.is_set)
    async with slow(tmp_path, url, script) as at:
        await at.passes(61)
        assert await at.sees() == "It is late."
        found = await tree(at.at)
    assert {one.status for one in found.values()} == {"timed_out"}
    assert found["second"].steps == 0


@pytest.mark.requirement("SUB-7")
@STORE_KEEPS_THIS_TIME
async def test_a_child_of_a_child_ends_in_time_with_its_parent(tmp_path: Path, url: str) -> None:
    def child(request: ModelRequest) -> Said | str:
        if name_of(request) == "below":
            return WORK
        return spawn(task="y", id="below", timeout_s=3_000)

    async with slow(tmp_path, url, root_of(child, type="general", timeout_s=15)) as at:
        await at.at.says("go")
        await at.until(at.work.begun.is_set)
        await at.passes(16)
        assert await at.sees() == "one (general) timed out"
        found = await tree(at.at)
    assert found["below"].deadline_ms == found["one"].deadline_ms
    assert found["below"].settled_ms is not None


@pytest.mark.requirement("POL-5", "MSG-20")
async def test_a_childs_budget_holds_for_all_below_it(tmp_path: Path, url: str) -> None:
    asked: list[str] = []

    def child(request: ModelRequest) -> Said | str:
        asked.append(name_of(request))
        if name_of(request) == "top":
            return "never" if request.step > 1 else spawn(task="y", id="below")
        return look()

    script = parent_of(child, type="general", budget={"tokens": 2 * CALL + 1})
    async with grown(tmp_path, url, script) as at:
        await at.says("go")
        (line,) = await at.sees(1)
        found = await settled(at)
        assert asked == ["top", "below", "below"], "the call that crosses the limit is the last"
        assert found["below"].status == found["top"].status == "forced"
        assert "so far so good" in found["below"].result
        assert "I may use 221 tokens, with all subagents that I start" in found["below"].result
        assert await figures(at.database) == [("agent", 3 * CALL, 0)], "its parent has none"
        assert line.startswith("ok:"), "whoever spawned it goes on"


@pytest.mark.requirement("POL-5", "MSG-20")
async def test_a_budget_in_money_is_counted_beside_those_of_the_operator(
    tmp_path: Path, url: str
) -> None:
    calls = 0

    def child(request: ModelRequest) -> Said:
        nonlocal calls
        calls += 1
        return look()

    script = parent_of(child, budget={"usd": 0.0015})
    async with grown(tmp_path, url, script, limits(session=Limit(100 * CALL))) as at:
        await at.says("go")
        await at.sees(1)
        assert (await settled(at))["top"].status == "forced"
        assert calls == 2, "a tenth of a cent each"
        assert [scope for scope, _, _ in await figures(at.database)] == ["agent", "session"]


@pytest.mark.requirement("POL-5", "SUB-24")
async def test_a_budget_in_steps_counts_all_runs_of_a_child(tmp_path: Path, url: str) -> None:
    seen: list[int] = []

    def child(request: ModelRequest) -> Said | str:
        seen.append(request.step)
        return "done" if len(seen) == 2 else look()

    def script(request: ModelRequest) -> object:
        if name_of(request):
            return child(request)
        if request.step == 1:
            return spawn(task="x", id="top", budget={"steps": 4})
        if request.step == 2:
            words = {"action": "message", "agent": "top", "text": "more"}
            return Said("", calls=(("subagents", json.dumps(words)),))
        return "Done."

    async with grown(tmp_path, url, script) as at:
        await at.says("go")
        await at.sees(1)
        await settled(at)
        one = (await tree(at))["top"]
    assert one.status == "forced"
    assert "more than" in one.result
    assert len(seen) == 4, "a look and an answer are two, and two were left"


@pytest.mark.requirement("POL-5", "SUB-5")
@pytest.mark.parametrize(
    ("inner", "problem"),
    [
        ({"budget": {"tokens": 1001}}, "budget: wider on the axis spend: 1001 tokens"),
        ({"budget": {"usd": 2}}, "budget: wider on the axis spend: 2000000 millionths of a dollar"),
        ({"budget": {"steps": 9}}, "budget: wider on the axis spend: 9 steps"),
        ({"workspace": "/etc"}, "paths: wider on the axis paths: /etc is more than the parent has"),
        ({"workspace": "../up"}, "workspace: '../up' must be a file or a folder"),
        ({"budget": {"tokens": 0}}, "budget.tokens"),
        ({"budget": {"dollars": 1}}, "budget.dollars"),
        ({"timeout_s": 0}, "timeout_s"),
    ],
)
@on_sqlite
async def test_wider_than_the_parent_is_refused(
    tmp_path: Path, url: str, inner: dict[str, object], problem: str
) -> None:
    heard: list[str] = []

    def child(request: ModelRequest) -> Said | str:
        if request.step > 1:
            heard.extend(results(request))
            return "refused"
        return spawn(task="y", id="below", **inner)

    budget = {"tokens": 1000, "usd": 1, "steps": 8}
    script = parent_of(child, type="general", budget=budget, workspace="notes")
    async with grown(tmp_path, url, script) as at:
        await at.says("go")
        await at.sees(1)
        assert set(await tree(at)) == {"top"}
    assert problem in heard[0]


@pytest.mark.requirement("SUB-7", "POL-5")
async def test_a_child_with_a_folder_reaches_nothing_else(tmp_path: Path, url: str) -> None:
    heard: list[str] = []

    def child(request: ModelRequest) -> Said | str:
        heard.extend(results(request))
        return (look(path="notes"), look(), "done")[request.step - 1]

    async with grown(tmp_path, url, parent_of(child, workspace="notes")) as at:
        (at.workspace / "files/notes").mkdir()
        (at.workspace / "files/notes" / "one.md").write_text("one")
        await at.says("go")
        await at.sees(1)
    assert heard[0].startswith("ok:")
    assert "one.md" in heard[0]
    assert heard[1].startswith("denied:")


@pytest.mark.requirement("SUB-4", "SUB-7")
async def test_a_description_is_shown_where_the_child_is(tmp_path: Path, url: str) -> None:
    def script(request: ModelRequest) -> object:
        if name_of(request):
            return "done"
        if request.step == 1:
            return spawn(task="x", id="top", description="Counts\nthe pearls")
        if request.step == 2:
            words = {"action": "output", "agent": "top"}
            return Said("", calls=(("subagents", json.dumps(words)),))
        return results(request)[0]

    async with grown(tmp_path, url, script) as at:
        await at.says("go")
        (line,) = await at.sees(1)
    assert '"description": "Counts the pearls"' in line
