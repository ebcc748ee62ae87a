"""The tools of tasks as a model is offered them and calls them, and whom a task tells."""

import asyncio
import json
from dataclasses import replace

import pytest

from runtime.domain.ids import code_of
from runtime.domain.tools import ToolResult
from runtime.features.tasks.board import TaskBoard
from runtime.features.tasks.model import TaskCreate, TaskRecord, TaskUpdate
from runtime.features.tasks.tools import FACES
from tests.fakes.clock import settle
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import GUEST, both, results
from tests.scenario.engine import World
from tests.scenario.schedules.test_reminders import GROUP, HERE, TEAM, House, goes_on, hears, house
from tests.scenario.tasks.test_background_commands import (
    FREE,
    Begun,
    given,
    running,
    starting,
    with_commands,
)
from tests.scenario.undoing import quiet

__all__ = ["house"]


def by_name(tool: str, **arguments: object) -> Said:
    """A call of a tool of tasks, by its name."""
    text = json.dumps({"tool": f"task_{tool}", "arguments": arguments})
    return Said(calls=(("call_tool", text),))


def board(at: World) -> TaskBoard:
    return TaskBoard(at.engine.units, at.engine.parts.clock)


async def only(at: World, session: str) -> TaskRecord:
    """The one task of a session."""
    (task,) = (await board(at).listing(session)).items
    return task


def last(model: ScriptedModel) -> ToolResult:
    return results(model.requests[-1])[-1]


@pytest.mark.requirement("CTX-12", "TSK-1")
async def test_their_schemas_are_loaded_on_demand(house: House) -> None:
    load = ("load_tools", json.dumps({"family": "tasks"}))
    model = ScriptedModel([Said(calls=(load,)), "done"])
    async with house.begins(model) as at:
        await hears(at, "hi")
    first, second = model.requests
    offered = json.dumps([tool.model_dump() for tool in first.tools])
    (loaded,) = results(second)
    for face in FACES:
        assert face.name in offered
        assert f"{face.name}: " in loaded.content
    assert "Write the release notes" in loaded.content
    assert "Write the release notes" not in offered
    assert second.tools == first.tools


@pytest.mark.requirement("MSG-22", "TSK-1")
async def test_an_undo_names_what_it_made_as_remaining(house: House) -> None:
    model = ScriptedModel([by_name("create", title="water the plants"), "done"])
    async with house.begins(model) as at:
        session = str((await at.says("note it")).session_id)
        await at.sees(1)
        await quiet(at)
        answer = await hears(at, "/undo")
        assert "What I did remains too:\n\n- `task_create`" in answer
        assert (await only(at, session)).status == "pending"


@pytest.mark.requirement("MSG-22", "TSK-1")
async def test_an_undo_leaves_a_command_at_work_and_names_it(house: House) -> None:
    async with house.begins(starting("forever"), change=both(with_commands, FREE)) as at:
        command = await Begun.of(at)
        await quiet(at)
        assert "- `exec forever`" in await hears(at, "/undo")
        assert (await command.now()).status == "in_progress"


@pytest.mark.requirement("TSK-1", "POL-4")
async def test_a_guest_makes_none(house: House) -> None:
    model = ScriptedModel([by_name("create", title="x"), "no"])
    async with house.begins(model, access=replace(TEAM, dm_policy="open")) as at:
        said = await at.says("note it", user=GUEST, chat_id=GROUP, kind="group")
        await at.sees(1, GROUP)
        assert last(model).status == "denied"
        assert (await board(at).listing(str(said.session_id))).items == ()


@pytest.mark.requirement("TSK-1")
@pytest.mark.parametrize(
    ("notify", "told"),
    [
        ("silent", []),
        ("done", ["done"]),
        ("changes", ["in progress", "done"]),
    ],
)
async def test_who_asked_for_a_task_is_told_of_it_as_they_wished(
    house: House, notify: str, told: list[str]
) -> None:
    model = ScriptedModel([by_name("create", title="tea", notify=notify), "done"])
    async with house.begins(model) as at:
        session = str((await at.says("note it")).session_id)
        await at.sees(1)
        task = await only(at, session)
        for status in ("in_progress", "completed"):
            await board(at).update(session, task.id, TaskUpdate(status=status))
            await goes_on(at, 1)
        await goes_on(at, 60)
        assert at.chat.texts(HERE)[1:] == [
            f"Task `{code_of(task.id)}`, `tea`: {standing}." for standing in told
        ]


@pytest.mark.requirement("TSK-1")
async def test_whoever_waits_for_a_change_hears_that_a_task_is_free(house: House) -> None:
    async with house.begins() as at:
        session = str((await at.says("/tasks")).session_id)
        await at.sees(1)
        first = await board(at).create(session, TaskCreate(title="one"))
        behind = TaskCreate(title="two", blocked_by=(first.id,), notify="changes")
        second = await board(at).create(session, behind)
        await board(at).update(session, first.id, TaskUpdate(status="completed"))
        texts = await at.sees(3)
        code = code_of(second.id)
        assert texts[1:] == [
            f"Task `{code}`, `two`: blocked.",
            f"Task `{code}`, `two`: to be done.",
        ]


@pytest.mark.requirement("TSK-2")
async def test_task_output_leads_with_the_status_and_the_exit_code(house: House) -> None:
    model = ScriptedModel([running("breaks"), "It runs."])
    async with house.begins(model, change=both(with_commands, FREE)) as at:
        command = await Begun.of(at)
        await command.over("failed")
        tool = next(one for one in at.engine.parts.registry.tools if one.name == "task_output")

        shown = await tool.bind({"id": command.task.id}).run(given(at, command.session))
        first, *rest = shown.content.splitlines()
        assert first == f"[failed, exit code 3] {command.task.id}: breaks"
        assert rest == ["terminal_reason: exited", "no such ``` thing"]
        assert shown.untrusted
        short = await tool.bind({"id": command.code, "tail_bytes": 6}).run(
            given(at, command.session)
        )
        path = (await command.output()).output_file_path
        assert short.content.splitlines()[0] == first
        assert f"[the end of 18 bytes; {path} has the rest]" in short.content
        assert short.content.endswith("thing\n")


@pytest.mark.requirement("MSG-12", "TSK-1", "TSK-2")
async def test_the_chat_shows_what_a_command_printed(house: House) -> None:
    async with house.begins(starting("talks"), change=both(with_commands, FREE)) as at:
        command = await Begun.of(at)
        head = f"Task `{command.code}`, `talks`: running."
        assert await hears(at, f"/tasks output {command.code}") == (
            f"{head}\n\nIt has printed nothing."
        )
        await board(at).write(command.session, command.task.id, "`" * 3 + "\n")
        await command.printed("heard ```\n")
        assert await hears(at, f"/tasks output {command.code.upper()}") == (
            f"{head}\n\n````\nheard ```\n````"
        )
        task = await board(at).create(command.session, TaskCreate(title="tea"))
        told = await hears(at, f"/tasks output {code_of(task.id)}")
        assert told.endswith("to be done.\n\nIt is no command, so it prints nothing.")
        usage = await hears(at, "/tasks output")
        assert usage == await hears(at, "/tasks stop") != await hears(at, "/tasks")
        assert await hears(at, "/tasks show x") == f"I do not know `show` here. {usage}"
        assert "There is no task `zzzzzz` here" in await hears(at, "/tasks output zzzzzz")
        # Another conversation's task is none.
        there = {"chat_id": GROUP, "kind": "group"}
        answer = await hears(at, f"/tasks output {command.code}", **there)
        assert answer == f"There is no task `{command.code}` here. `/tasks` lists them."


@pytest.mark.requirement("MSG-12", "TSK-1")
async def test_a_long_list_says_how_many_it_leaves_out(house: House) -> None:
    async with house.begins() as at:
        session = str((await at.says("/tasks")).session_id)
        await at.sees(1)
        first = await board(at).create(session, TaskCreate(title="oldest"))
        for number in range(22):
            task = await board(at).create(session, TaskCreate(title=f"n{number}"))
            await board(at).update(session, task.id, TaskUpdate(status="completed"))
        listed = (await hears(at, "/tasks")).splitlines()
        # What is not over is not pushed out by what is.
        assert listed[0] == f"- `{code_of(first.id)}` `oldest`: to be done"
        assert listed[20:] == [
            "- and 3 more",
            "",
            "`/tasks stop CODE` stops one, `/tasks output CODE` shows what a command printed.",
        ]


@pytest.mark.requirement("TSK-1", "TSK-3")
async def test_task_output_waits_for_more_where_it_is_told_to(house: House) -> None:
    async with house.begins(starting("talks"), change=both(with_commands, FREE)) as at:
        command, clock = await Begun.of(at), at.engine.parts.clock
        tool = next(one for one in at.engine.parts.registry.tools if one.name == "task_output")
        context, sleeping = given(at, command.session), clock.sleeping
        reading = tool.bind({"id": command.code, "wait_s": 30}).run(context)
        waiting = asyncio.create_task(reading, name="waiting")
        while clock.sleeping == sleeping and not waiting.done():
            await settle()
        await board(at).write(command.session, command.task.id, "hello\n")
        assert (await waiting).content.endswith("talks\nheard hello\n")
