"""Which children run when, how many, and which are never made (SUB-5, SUB-11 to SUB-14)."""

import json
from pathlib import Path

import pytest

from runtime.domain.errors import ModelRejected, ModelRetry
from runtime.features.subagents.settings import Limits
from runtime.ports.model import ModelRequest
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.subagents.children import engine, name_of, settled, spawn, told, tree

__all__ = ["dialect", "migrated_url", "schema_templates"]


@pytest.fixture
def url(migrated_url: str) -> str:
    return migrated_url


@pytest.mark.requirement("SUB-11")
async def test_a_dependant_starts_behind_all_that_it_needs_and_is_told_their_results(
    tmp_path: Path, url: str
) -> None:
    asked: list[str] = []

    def script(request: ModelRequest) -> Said | str:
        name, text = name_of(request), told(request)
        if name:
            asked.append(name)
        if name == "third":
            assert "alpha" in text
            assert "beta" in text
            return "compared"
        if name in ("first", "second"):
            return {"first": "alpha", "second": "beta"}[name]
        if "compared" in text:
            return "Done."
        return spawn(
            agents=[
                {"task": "c", "id": "third", "depends_on": ["second", "first"]},
                {"task": "a", "id": "first"},
                {"task": "b", "id": "second", "depends_on": ["first"]},
            ],
        )

    async with engine(tmp_path, url, script) as at:
        await at.says("compare")
        assert await at.sees(1) == ["Done."]
        assert asked == ["first", "second", "third"]


@pytest.mark.requirement("SUB-11")
@pytest.mark.parametrize("rule", ["fail", "continue"])
async def test_a_dependant_falls_with_what_it_needs_unless_it_is_told_to_go_on(
    tmp_path: Path, url: str, rule: str
) -> None:
    asked: list[str] = []

    def script(request: ModelRequest) -> Said | str | ModelRejected | ModelRetry:
        name, text = name_of(request), told(request)
        if name:
            asked.append(name)
        if name == "first":
            return ModelRejected("no such model", "It cannot be asked.")
        if name:
            return f"{name} went on"
        if "third" in text and "after" in text:
            return "Done."
        return spawn(
            on_dependency_failure=rule,
            agents=[
                {"task": "a", "id": "first"},
                {"task": "b", "id": "second", "depends_on": ["first"]},
                {"task": "c", "id": "third", "depends_on": ["second"]},
            ],
        )

    async with engine(tmp_path, url, script) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        found = await tree(at)
    if rule == "continue":
        assert asked == ["first", "second", "third"]
        assert found["third"].result == "third went on"
        return
    assert asked == ["first"]
    assert {one.status for one in found.values()} == {"failed"}
    assert "first failed" in found["second"].result
    assert "second failed" in found["third"].result


@pytest.mark.requirement("SUB-12", "SUB-13")
async def test_a_group_is_one_at_a_time_and_slots_bound_the_rest(tmp_path: Path, url: str) -> None:
    order: list[str] = []
    running: set[str] = set()
    most = 0

    def script(request: ModelRequest) -> Said | str:
        nonlocal most
        name = name_of(request)
        if name:
            if request.messages[-1].role == "tool":
                running.discard(name)
                return f"{name} is done"
            running.add(name)
            order.append(name)
            most = max(most, len(running))
            assert len(running & {"g1", "g2", "g3"}) <= 1, "a group is one at a time"
            return Said("", calls=(("list_dir", '{"path": "."}'),))
        if "g3 is done" in told(request):
            return "All of them."
        group = [{"task": "x", "id": f"g{n}", "group": "g"} for n in (1, 2, 3)]
        free = [{"task": "x", "id": f"f{n}"} for n in (1, 2, 3)]
        return spawn(agents=[*group, *free])

    async with engine(tmp_path, url, script, concurrency=2) as at:
        await at.says("go")
        assert await at.sees(1) == ["All of them."]
    assert most <= 2
    assert [name for name in order if name[0] == "g"] == ["g1", "g2", "g3"]


@pytest.mark.requirement("SUB-13")
async def test_awaits_three_deep_need_no_more_than_one_slot(tmp_path: Path, url: str) -> None:
    def script(request: ModelRequest) -> Said | str:
        name, text = name_of(request), told(request)
        if name == "below":
            return "deep"
        if "deep" in text:
            return "It is deep."
        if name == "child":
            return spawn(task="go deeper", id="below", type="general")
        return spawn(task="go deep", id="child", type="general")

    async with engine(tmp_path, url, script, concurrency=1) as at:
        await at.says("how deep?")
        assert await at.sees(1) == ["It is deep."]


@pytest.mark.requirement("SUB-13")
@pytest.mark.parametrize("concurrency", [1, 0])
async def test_a_persons_turn_takes_no_slot_and_0_slots_are_any_number(
    tmp_path: Path, url: str, concurrency: int
) -> None:
    gates = [Gate() for _ in range(12)]

    def script(request: ModelRequest) -> Said | str:
        name, text = name_of(request), told(request)
        if name:
            return Said("done", before=gates[int(name.removeprefix("c"))])
        if "accepted" in text:
            return "Sent."
        if "a word" in text:
            return "Yes?"
        everybody = [{"task": "x", "id": f"c{number}"} for number in range(len(gates))]
        return spawn(mode="background", agents=everybody)

    limits = Limits(live_per_parent=50)
    async with engine(tmp_path, url, script, limits=limits, concurrency=concurrency) as at:
        await at.says("go")
        assert await at.sees(1) == ["Sent."]
        for gate in gates if concurrency == 0 else gates[:1]:
            await gate.reached.wait()
        await at.says("a word", chat_id="D-another")
        assert await at.sees(1, "D-another") == ["Yes?"]
        assert sum(gate.reached.is_set() for gate in gates) == (12 if concurrency == 0 else 1)
        await at.says("/stop")
        for one in (await settled(at)).values():
            assert one.status == "cancelled"


@pytest.mark.requirement("SUB-14")
async def test_past_the_limits_nothing_is_spawned_and_the_model_is_told_which(
    tmp_path: Path, url: str
) -> None:
    def script(request: ModelRequest) -> Said | str:
        text = told(request)
        if "agents.live_per_parent is 2" in text:
            return "Too many." if "Nothing was started" in text else "?"
        return spawn(agents=[{"task": "x"}] * 3)

    async with engine(tmp_path, url, script, limits=Limits(live_per_parent=2)) as at:
        await at.says("a thousand")
        assert await at.sees(1) == ["Too many."]
        assert await tree(at) == {}


@pytest.mark.requirement("SUB-14")
async def test_who_has_settled_takes_no_room(tmp_path: Path, url: str) -> None:
    cast = [spawn(task="x", id="one"), spawn(task="x", id="two"), "Both."]
    answers = iter(cast)

    def script(request: ModelRequest) -> Said | str:
        return "a pearl" if name_of(request) else next(answers)

    limits = Limits(live_per_parent=1, live_per_tree=1)
    async with engine(tmp_path, url, script, limits=limits) as at:
        await at.says("one after the other")
        assert await at.sees(1) == ["Both."]
        found = await tree(at)
    assert {name: one.status for name, one in found.items()} == {
        "one": "completed",
        "two": "completed",
    }


@pytest.mark.requirement("SUB-14")
async def test_at_the_last_depth_the_spawn_tool_is_not_offered(tmp_path: Path, url: str) -> None:
    offered: dict[str, bool] = {}

    def script(request: ModelRequest) -> Said | str:
        name = name_of(request)
        offered[name] = "sessions_spawn" in [tool.name for tool in request.tools]
        if name == "leaf":
            return "the leaf"
        if "the leaf" in told(request):
            return "Reached the leaf."
        below = "leaf" if name else "child"
        return spawn(task="x", id=below, type="general")

    async with engine(tmp_path, url, script, limits=Limits(max_depth=3)) as at:
        await at.says("go down")
        assert await at.sees(1) == ["Reached the leaf."]
    assert offered == {"": True, "child": True, "leaf": False}


@pytest.mark.requirement("SUB-5")
async def test_all_that_is_wrong_with_a_spawn_is_told_at_once(tmp_path: Path, url: str) -> None:
    def script(request: ModelRequest) -> Said | str:
        text = told(request)
        if "Nothing was started" in text:
            for rule in ("agents[0].type", "agents[1].depends_on", "agents[2].task"):
                assert rule in text, text
            return "Three mistakes."
        return spawn(
            agents=[
                {"task": "a", "type": "explorer"},
                {"task": "b", "id": "b", "depends_on": ["b"]},
                {"task": " "},
            ]
        )

    async with engine(tmp_path, url, script) as at:
        await at.says("go")
        assert await at.sees(1) == ["Three mistakes."]
        assert await tree(at) == {}


@pytest.mark.requirement("SUB-4", "SUB-13")
@pytest.mark.parametrize("together", [True, False])
async def test_who_waits_for_others_by_a_tool_holds_no_slot(
    tmp_path: Path, url: str, together: bool
) -> None:
    """The only slot is for the one that it waits for, and both are done long before its time."""
    spawns = ("sessions_spawn", json.dumps({"task": "x", "id": "two", "mode": "background"}))
    waits = ("subagents", json.dumps({"action": "wait"}))
    steps = [[spawns, waits]] if together else [[spawns], [waits]]
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> Said | str:
        name = name_of(request)
        if name == "two":
            return "found"
        if name == "one":
            asked.append(request)
            return Said(calls=tuple(steps.pop(0))) if steps else "All."
        if "The subagent one" in told(request):
            return "Done."
        return spawn(task="look", id="one", type="general")

    async with engine(tmp_path, url, script, concurrency=1) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        found = await settled(at)
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(
        ("one", "two"), "completed"
    )
    assert "All of them have settled." in told(asked[-1])
    (handoff,) = [one for one in asked[-1].messages if "The subagent two" in str(one)]
    assert handoff.role == "notice"


@pytest.mark.requirement("SUB-4", "SUB-23")
@pytest.mark.parametrize("ends", ["in time", "too late"])
async def test_a_wait_by_a_tool_goes_on_after_a_restart_and_has_an_end(
    tmp_path: Path, url: str, ends: str
) -> None:
    seconds = 60 if ends == "in time" else 0.05
    spawns = ("sessions_spawn", json.dumps({"task": "x", "id": "two", "mode": "background"}))
    waits = ("subagents", json.dumps({"action": "wait", "agent": "two", "timeout_s": seconds}))
    steps = [[spawns, waits]]
    asked: list[ModelRequest] = []
    work = Gate()

    def script(request: ModelRequest) -> Said | str:
        name = name_of(request)
        if name == "two":
            return Said("found", before=work)
        if name == "one":
            if steps:
                return Said(calls=tuple(steps.pop(0)))
            asked.append(request)
            work.open.set()
            return "All."
        if "The subagent one" in told(request):
            return "Done."
        return spawn(task="look", id="one", type="general")

    async with engine(tmp_path, url, script, concurrency=2) as at:
        await at.says("go")
        await work.reached.wait()
    if ends == "in time":
        work.open.set()
    async with engine(tmp_path, url, script, concurrency=2) as at:
        assert await at.sees(1) == ["Done."]
        await settled(at)
    said = {"in time": "All of them have settled.", "too late": "Still at work: two."}
    assert said[ends] in told(asked[0])
