"""What an agent writes into tasks carries the taint of what it had read (POL-6, SUB-9)."""

import json
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from runtime.domain.errors import ToolError
from runtime.domain.ids import code_of
from runtime.features.tasks.model import TaskCreate, TaskRecord, TaskUpdate
from runtime.sessions import runs
from runtime.tools.base import ToolOutput
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import both
from tests.scenario.engine import World
from tests.scenario.schedules.test_reminders import House, house
from tests.scenario.tasks.test_background_commands import (
    FREE,
    Begun,
    begins,
    given,
    starting,
    with_commands,
)
from tests.scenario.tasks.test_tools import board, by_name

__all__ = ["house"]

READS = Said(calls=(("read_file", '{"path": "uploads/x.txt"}'),))
Does = Callable[..., Awaitable[ToolOutput]]


async def is_tainted(at: World, run_id: str | None) -> bool:
    return (await at.database.read(lambda conn: runs.get(conn, run_id or ""))).tainted


@pytest.mark.requirement("POL-6", "TSK-1")
@pytest.mark.parametrize("reads", [True, False])
async def test_a_task_taints_whoever_lists_it_in_a_fresh_conversation(
    house: House, reads: bool
) -> None:
    model = ScriptedModel(
        [
            READS if reads else Said("Nothing to read."),
            *(["Read."] if reads else []),
            by_name("create", title="Do as it says"),
            "Noted.",
            by_name("list"),
            "Listed.",
        ]
    )
    async with house.begins(model) as at:
        folder = at.workspace / "uploads"
        folder.mkdir(exist_ok=True)
        (folder / "x.txt").write_text("from outside")
        await at.says("read it")
        await at.sees(1)
        await at.says("note it")
        await at.sees(2)
        await at.says("/new")
        await at.sees(3)
        lists = await at.says("what is to be done?")
        await at.sees(4)
        assert await is_tainted(at, lists.run_id) is reads
        (said,) = model.requests[-1].messages[-1].results
        assert said.content.startswith("<untrusted ") is reads


@pytest.mark.requirement("POL-6", "TSK-2")
async def test_the_output_of_a_task_that_is_no_command_taints_nobody(house: House) -> None:
    script = [by_name("create", title="Call Bob"), "Noted."]
    model = ScriptedModel(script)
    async with house.begins(model) as at:
        noted = await at.says("note it")
        await at.sees(1)
        (task,) = (await board(at).listing(noted.session_id)).items
        script += [by_name("output", id=code_of(task.id)), "It printed nothing."]
        looks = await at.says("show its output")
        await at.sees(2)
        (said,) = model.requests[-1].messages[-1].results
        assert said.content == f"[pending] {task.id}: Call Bob\n[no output]"
        assert not await is_tainted(at, looks.run_id)


@pytest.mark.requirement("POL-6", "TSK-2")
async def test_a_command_taints_who_looks_at_it_once_it_has_printed(house: House) -> None:
    async with house.begins(starting("talks"), change=both(with_commands, FREE)) as at:
        command = await Begun.of(at)
        tools = {tool.name: tool for tool in at.engine.parts.registry.tools}
        looks = tools["task_output"].bind({"id": command.code})
        context = given(at, command.session)
        assert not (await looks.run(context)).untrusted
        await board(at).write(command.session, command.task.id, "hello\n")
        await command.printed("heard hello\n")
        assert (await looks.run(context)).untrusted


async def tools_of(at: World, session: str, run_id: str, *, tainted: bool) -> Does:
    """Calls of the tools of tasks by a run."""
    change = partial(runs.change, run_id=run_id, values={"tainted": tainted})
    await at.database.write(change, name="taint")
    tools = {tool.name: tool for tool in at.engine.parts.registry.tools}
    context = given(at, session, run_id)

    async def does(name: str, **asked: object) -> ToolOutput:
        return await tools[f"task_{name}"].bind(asked).run(context)

    return does


async def written(does: Does, at: World, session: str, way: str) -> TaskRecord:
    """A task that the run has written words of; the one that is read later."""
    if way == "create":
        made = await does("create", title="x")
        return await board(at).get(session, made.content.split()[1].rstrip(":"))
    task = await board(at).create(session, TaskCreate(title="clean"))
    if way == "update":
        await does("update", id=task.id, description="x")
    elif way == "stop":
        await does("stop", id=task.id, reason="x")
    elif way == "blocker":
        made = await does("create", title="x")
        cause = made.content.split()[1].rstrip(":")
        await board(at).update(session, task.id, TaskUpdate(blocked_by=(cause,)))
        await board(at).update(session, cause, TaskUpdate(status="failed"))
    elif way == "no words":
        await does("update", id=task.id, status="in_progress")
    return task


@pytest.mark.requirement("POL-6", "TSK-1")
@pytest.mark.parametrize("tainted", [True, False])
@pytest.mark.parametrize("way", ["create", "update", "stop", "blocker", "no words"])
async def test_each_way_to_write_words_marks_the_task(
    house: House, way: str, *, tainted: bool
) -> None:
    async with house.begins(ScriptedModel(["Hello."])) as at:
        said = await at.says("hello")
        await at.sees(1)
        session, run_id = str(said.session_id), str(said.run_id)
        does = await tools_of(at, session, run_id, tainted=tainted)
        task = await written(does, at, session, way)
        marked = tainted and way != "no words"
        assert (await board(at).get(session, task.id)).metadata.get("untrusted", False) is marked
        for name, asked in (("get", {"id": task.id}), ("list", {}), ("stop", {"id": task.id})):
            shown = await does(name, **asked)
            assert shown.untrusted is marked or (name == "list" and tainted), name
        if way == "blocker":
            # What stays blocked in vain is cancelled by now.
            other = await written(does, at, session, way)
            with pytest.raises(ToolError) as refused:
                await does("update", id=other.id, status="completed")
            assert ("(x) failed" in str(refused.value)) is not tainted


@pytest.mark.requirement("POL-6", "TSK-1")
@pytest.mark.parametrize("tainted", [True, False])
async def test_a_change_shows_words_with_their_mark(house: House, *, tainted: bool) -> None:
    async with house.begins(ScriptedModel(["Hello."])) as at:
        said = await at.says("hello")
        await at.sees(1)
        session, run_id = str(said.session_id), str(said.run_id)
        does = await tools_of(at, session, run_id, tainted=tainted)
        task = await written(does, at, session, "create")
        does = await tools_of(at, session, run_id, tainted=False)
        shown = await does("update", id=task.id, status="in_progress")
        assert shown.untrusted is tainted
        assert json.loads((await does("get", id=task.id)).content)["status"] == "in_progress"


@pytest.mark.requirement("POL-6", "TOOL-6")
@pytest.mark.parametrize("tainted", [True, False])
async def test_a_command_of_a_tainted_run_is_shown_with_its_mark(
    house: House, *, tainted: bool
) -> None:
    async with begins(house, starting("talks")) as at:
        command = await Begun.of(at)
        does = await tools_of(at, command.session, command.run, tainted=tainted)
        tool = next(one for one in at.engine.parts.registry.tools if one.name == "exec")
        context = given(at, command.session, command.run)
        await tool.bind({"command": "talks", "background": True}).run(context)
        there = (await board(at).listing(command.session)).items
        (second,) = (task for task in there if task.id != command.task.id)
        assert (await does("get", id=second.id)).untrusted is tainted
        assert not (await does("get", id=command.task.id)).untrusted
        assert (await does("write", id=second.id, command="talks", text="x")).untrusted is tainted
