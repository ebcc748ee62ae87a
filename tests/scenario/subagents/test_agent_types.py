"""Types and definitions through the real path: steps, models and tools of children."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from runtime.features.subagents.settings import ChildModels, Limits
from runtime.features.tasks.board import TaskBoard
from runtime.sessions.tables import runs
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.cards import rows
from tests.scenario.cast import Cast, after, ask, spawn, tree
from tests.scenario.subagents.typed import LOOK, kept, played, session_of

__all__ = ["dialect", "migrated_url", "schema_templates"]


@pytest.mark.requirement("SUB-2")
@pytest.mark.parametrize(("field", "operators"), [("maxTurns", 40), ("max_iterations", 40)])
async def test_a_definition_ends_its_child_after_its_steps(
    tmp_path: Path, migrated_url: str, field: str, operators: int
) -> None:
    kept(tmp_path, "scout", f"{field}: 2")
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", type="scout"),)), "Done."],
        {"one": [Said("So far so good.", calls=(LOOK,)), Said(calls=(LOOK,))]},
    )
    at, _ = played(tmp_path, migrated_url, cast, max_steps=operators)
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        child = (await tree(here, said.session_id))["one"]
    assert (child.status, child.steps) == ("forced", 2)
    assert "So far so good." in child.result
    assert "more than 2 steps" in child.result


@pytest.mark.requirement("SUB-2")
async def test_a_childs_steps_are_capped_by_its_parents(tmp_path: Path, migrated_url: str) -> None:
    """A child of a child too: the middle one has three, so the last one has no fifty."""
    kept(tmp_path, "scout", "maxTurns: 3")
    kept(tmp_path, "deep", "maxTurns: 900")
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", type="scout"),)), "Done."],
        {
            "one": [Said(calls=(spawn(task="Look.", id="two", type="deep"),)), "a"],
            "two": [Said(calls=(LOOK,))] * 3,
        },
    )
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        found = await tree(here, said.session_id)
        assert (found["one"].status, found["two"].status) == ("completed", "forced")
        assert (await session_of(here, said.session_id, "two")).scope.max_steps == 3


@pytest.mark.requirement("SUB-2", "SUB-4")
async def test_what_is_said_at_a_childs_last_step_is_answered_by_a_run_of_its_own(
    tmp_path: Path, migrated_url: str
) -> None:
    """Behind that step nothing is asked any more, so nobody would answer what is heard there."""
    kept(tmp_path, "scout", "maxTurns: 1")
    work = Gate()
    cast = Cast(
        [
            Said(calls=(spawn(task="Look.", id="one", type="scout", mode="background"),)),
            Said(calls=(ask("steer", agent="one", text="The tests too."),), before=after(work)),
            "It looks.",
            "Done.",
        ],
        {"one": [Said(calls=(LOOK,), before=work), "Both."]},
    )
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["It looks."]
        work.open.set()
        assert await here.sees(2) == ["It looks.", "Done."]
        child = (await tree(here, said.session_id))["one"]
    assert (child.status, child.result) == ("completed", "Both.")
    assert "The tests too." in cast.words(1, "one")


@pytest.mark.requirement("SUB-15")
async def test_a_model_is_the_calls_then_the_definitions_then_by_depth_then_the_sessions(
    tmp_path: Path, migrated_url: str
) -> None:
    kept(tmp_path, "scout", "model: m:defined")
    everywhere = ("m:main", "m:called", "m:defined", "m:first", "m:all", "m:chosen")
    models = ChildModels("m:all", {1: "m:first"}, frozenset(everywhere))
    deeper = spawn(task="Look.", id="deeper", type="general")
    calls = (
        spawn(task="Look.", id="called", type="scout", model="m:called"),
        spawn(task="Look.", id="defined", type="scout"),
        spawn(task="Look.", id="first", type="general"),
    )
    cast = Cast(
        [Said(calls=calls), "Done."],
        {
            "called": ["a"],
            "defined": ["b"],
            "first": [Said(calls=(deeper,)), "c"],
            "deeper": ["d"],
        },
    )
    at, asked = played(tmp_path, migrated_url, cast, *everywhere, models=models)
    async with at as here:
        await here.says("look")
        assert await here.sees(1) == ["Done."]
    assert {name: len(one.requests) for name, one in asked.items()} == {
        "m:main": 2,
        "m:called": 1,
        "m:defined": 1,
        "m:first": 2,
        "m:all": 1,
        "m:chosen": 0,
    }


@pytest.mark.requirement("SUB-15")
async def test_without_any_a_child_has_the_model_of_the_session_that_starts_it(
    tmp_path: Path, migrated_url: str
) -> None:
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one"),)), "Done."],
        {"one": ["a"]},
    )
    at, asked = played(tmp_path, migrated_url, cast, "m:main", "m:chosen")
    async with at as here:
        intake = here.engine.settings.intake
        commands = replace(intake.commands, models=("m:main", "m:chosen"))
        here.engine.intake.change(replace(intake, commands=commands))
        await here.says("/model m:chosen")
        await here.sees(1)
        await here.says("look")
        assert (await here.sees(2))[1] == "Done."
    assert (len(asked["m:main"].requests), len(asked["m:chosen"].requests)) == (0, 3)


@pytest.mark.requirement("SUB-15", "SUB-5")
async def test_a_model_that_is_not_offered_starts_nothing(
    tmp_path: Path, migrated_url: str
) -> None:
    kept(tmp_path, "scout", "model: m:secret")
    cast = Cast(
        [
            Said(calls=(spawn(task="", id="one", type="scot", model="m:smal"),)),
            Said(calls=(spawn(task="Look.", id="two", type="scout"),)),
            "Done.",
        ],
        {"two": ["a"]},
    )
    models = ChildModels(offered=frozenset({"m:main", "m:small"}))
    at, asked = played(tmp_path, migrated_url, cast, "m:main", "m:secret", models=models)
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        assert list(await tree(here, said.session_id)) == ["two"]
    (told,) = cast.told(1)
    assert "task: say what the agent is to do" in told
    assert "type: there is no type scot; near it: scout" in told
    assert "model: no model m:smal is offered here; near it: m:small" in told
    assert not asked["m:secret"].requests, "a file of the workspace chose it"


@pytest.mark.requirement("SUB-2")
async def test_a_definition_is_seen_at_the_next_spawn_when_it_changes(
    tmp_path: Path, migrated_url: str
) -> None:
    gates = [Gate(), Gate()]
    cast = Cast(
        [
            Said(calls=(spawn(task="Look.", id="one", type="scout"),)),
            Said(calls=(spawn(task="Look.", id="two", type="scout"),), before=gates[0]),
            Said(calls=(spawn(task="Look.", id="three", type="scout"),), before=gates[1]),
            "Done.",
        ],
        {"one": ["a"], "two": ["b"]},
    )
    kept(tmp_path, "scout", "tools: read_file")
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        said = await here.says("look")
        await gates[0].reached.wait()
        kept(tmp_path, "scout", "tools: grep, glob")
        gates[0].open.set()
        await gates[1].reached.wait()
        (tmp_path / "workspace" / "agents" / "scout.md").unlink()
        gates[1].open.set()
        assert await here.sees(1) == ["Done."]
        first = await session_of(here, said.session_id, "one")
        second = await session_of(here, said.session_id, "two")
    assert (first.scope.tools, second.scope.tools) == ({"read_file"}, {"grep", "glob"})
    assert "type: there is no type scout" in cast.told(3)[0]
    assert [one.name for one in cast.requests["two"][0].tools] == ["glob", "grep"]


@pytest.mark.requirement("SUB-2")
async def test_a_definition_may_want_the_background(tmp_path: Path, migrated_url: str) -> None:
    """Where the call says nothing; a call that awaits is obeyed, and a batch needs all of them."""
    kept(tmp_path, "scout", "background: true")
    mixed = [{"task": "Look.", "id": "x", "type": "scout"}, {"task": "Look.", "id": "y"}]
    cast = Cast(
        [
            Said(calls=(spawn(task="Look.", id="one", type="scout", mode="await"),)),
            Said(calls=(spawn(agents=mixed),)),
            Said(calls=(spawn(task="Look.", id="two", type="scout"),)),
            "It looks.",
            "Done.",
        ],
        {"one": ["a"], "x": ["b"], "y": ["c"], "two": ["d"]},
    )
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        said = await here.says("look")
        await here.sees(1)
        found = await tree(here, said.session_id)
    modes = {name: one.mode for name, one in found.items()}
    assert modes == {"one": "await", "x": "await", "y": "await", "two": "background"}


@pytest.mark.requirement("SUB-14")
async def test_where_the_first_level_is_the_last_nobody_is_offered_the_tool(
    tmp_path: Path, migrated_url: str
) -> None:
    cast = Cast([Said(calls=(spawn(task="Look.", id="one"), ("agents_list", "{}"))), "Done."])
    at, asked = played(tmp_path, migrated_url, cast, limits=Limits(max_depth=1))
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        assert await tree(here, said.session_id) == {}
    tools = {one.name for one in asked["m:main"].requests[0].tools}
    assert "sessions_spawn" not in tools
    assert "agents_list" in tools
    assert "sessions_spawn" not in asked["m:main"].requests[0].system
    spawned, listed = cast.told(1)
    assert "there is no tool named sessions_spawn" in spawned
    assert listed.startswith("You may spawn no subagents.")


@pytest.mark.requirement("SUB-1", "TSK-1")
async def test_who_coordinates_keeps_tasks_of_its_own_and_types_into_none(
    tmp_path: Path, migrated_url: str
) -> None:
    def named(tool: str, **arguments: object) -> Said:
        text = json.dumps({"tool": f"task_{tool}", "arguments": arguments})
        return Said(calls=(("call_tool", text),))

    cast = Cast(
        [Said(calls=(spawn(task="Lead.", id="one", type="coordination"),)), "Done."],
        {
            "one": [
                named("create", title="read it"),
                named("list"),
                named("write", id="tsk_1", command="sh", text="rm x"),
                "It is planned.",
            ]
        },
    )
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        said = await here.says("plan it")
        assert await here.sees(1) == ["Done."]
        child = await session_of(here, said.session_id, "one")
        board = TaskBoard(here.engine.units, here.engine.parts.clock)
        (task,) = (await board.listing(child.id)).items
        assert (await board.listing(said.session_id)).items == ()
        assert (task.title, task.status) == ("read it", "pending")
        run = select(runs.c.id).where(runs.c.session_id == child.id)
        run_id = await here.database.read(lambda conn: conn.execute(run).scalar_one())
        made, listed, typed = await rows(here, run_id)
    assert made.result.status == listed.result.status == "ok"
    assert listed.result.content == f"[pending] {task.id}: read it"
    assert typed.result.status == "denied"
