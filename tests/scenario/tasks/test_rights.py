"""For whom a task is stopped, and who reads it, whichever way they go (TSK-5, POL-4)."""

import json
from dataclasses import dataclass, field

import pytest

from runtime.domain.ids import code_of
from runtime.features.tasks import rows
from runtime.features.tasks.changes import NOT_YOURS
from runtime.features.tasks.model import TaskCreate, TaskRecord
from runtime.features.tasks.rows import Task
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import MEMBER, results
from tests.scenario.engine import OWNER, World
from tests.scenario.schedules.test_reminders import OTHER, House, hears, house
from tests.scenario.tasks.test_home_page import asked, command_of, presses
from tests.scenario.test_command_buttons import EACH_THEIR_OWN, GROUP, SHARED, board, listed
from tests.scenario.test_command_buttons import presses as presses_in_chat

__all__ = ["house"]
pytestmark = pytest.mark.requirement("TSK-5", "POL-4")
WAYS = ("word", "button", "home", "stop", "update")


@dataclass
class People:
    """People with one agent, whose model makes one call for each message and then says "done"."""

    calls: list[Said] = field(default_factory=list)
    model: ScriptedModel = field(init=False)

    def __post_init__(self) -> None:
        self.model = ScriptedModel(lambda _: self.calls.pop() if self.calls else "done")

    async def calling(
        self, at: World, user: str, tool: str, *, chat_id: str = GROUP, **arguments: object
    ) -> str:
        """What a call gives that the agent makes for somebody."""
        text = json.dumps({"tool": f"task_{tool}", "arguments": arguments})
        self.calls.append(Said(calls=(("call_tool", text),)))
        kind = "group" if chat_id == GROUP else "direct"
        assert await hears(at, "please", user=user, chat_id=chat_id, kind=kind) == "done"
        return results(self.model.requests[-1])[-1].content

    async def stops(self, at: World, way: str, user: str, task: Task | TaskRecord) -> str:
        """What somebody hears who wants a task of the group stopped."""
        if way == "word":
            return await hears(at, f"/tasks stop {code_of(task.id)}", user=user, **SHARED)
        if way == "home":
            return (await presses(at, task.id, "stop", user=user)).text
        if way == "button":
            message = await listed(at, user=user, **SHARED)
            before = len(at.chat.texts(GROUP))
            await presses_in_chat(at, message, user=user)
            return (await at.sees(before + 1, GROUP))[-1]
        more = {"status": "cancelled"} if way == "update" else {}
        return await self.calling(at, user, way, id=task.id, **more)


async def stopped(at: World, task: Task | TaskRecord) -> bool:
    """Whether somebody has stopped it."""
    found = await at.database.read(lambda conn: rows.find(conn, task.id))
    assert found is not None
    return found.stop_requested_ms is not None or found.status == "cancelled"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("user", [MEMBER, OWNER])
async def test_a_task_is_stopped_for_who_asked_for_it_and_for_owners(
    house: House, way: str, user: str
) -> None:
    people = People()
    async with house.begins(people.model) as at:
        task = await asked(at, "tea", user=MEMBER, **SHARED)
        assert await people.stops(at, way, OTHER, task) == NOT_YOURS
        assert not await stopped(at, task)
        assert await people.stops(at, way, user, task) != NOT_YOURS
        assert await stopped(at, task)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "update"])
async def test_a_member_stops_no_command_of_the_owner(house: House, way: str) -> None:
    people = People()
    async with house.begins(people.model) as at:
        task = await asked(at, "tea", user=OWNER, **SHARED)
        command = await command_of(at, task)
        assert await people.stops(at, "stop", OWNER, task) != NOT_YOURS
        assert await people.stops(at, way, MEMBER, command) == NOT_YOURS
        assert not await stopped(at, command)
        assert await people.stops(at, way, OWNER, command) != NOT_YOURS
        assert await stopped(at, command)


@pytest.mark.requirement("TSK-1", "TSK-2")
async def test_everybody_of_the_chat_reads_its_tasks_and_what_they_printed(house: House) -> None:
    people = People()
    async with house.begins(people.model) as at:
        task = await asked(at, "tea", user=OWNER, **SHARED)
        command = await command_of(at, task, "3 passed\n")
        assert code_of(command.id) in await hears(at, "/tasks", user=MEMBER, **SHARED)
        word = f"/tasks output {code_of(command.id)}"
        assert "3 passed" in await hears(at, word, user=MEMBER, **SHARED)
        assert "3 passed" in await people.calling(at, MEMBER, "output", id=command.id)
        assert command.id in await people.calling(at, MEMBER, "list")
        # To say that something is done stops nothing.
        said = await people.calling(at, MEMBER, "update", id=task.id, status="completed")
        assert said.startswith("[completed]")


@pytest.mark.parametrize("way", ["word", "home", "stop"])
async def test_what_nobody_asked_for_is_stopped_by_owners(house: House, way: str) -> None:
    people = People()
    async with house.begins(people.model) as at:
        session = str((await at.says("hello", user=MEMBER, **SHARED)).session_id)
        await at.sees(1, GROUP)
        task = await board(at).create(session, TaskCreate(title="of a program"))
        assert await people.stops(at, way, MEMBER, task) == NOT_YOURS
        assert not await stopped(at, task)
        await people.stops(at, way, OWNER, task)
        assert await stopped(at, task)


@pytest.mark.parametrize("by_tool", [False, True])
async def test_what_nobody_asked_for_is_stopped_by_the_person_of_a_direct_chat(
    house: House, *, by_tool: bool
) -> None:
    people = People()
    async with house.begins(people.model) as at:
        there = {"user": MEMBER, "chat_id": MEMBER}
        session = str((await at.says("hello", **there)).session_id)
        await at.sees(1, MEMBER)
        task = await board(at).create(session, TaskCreate(title="of a program"))
        if by_tool:
            await people.calling(at, MEMBER, "stop", chat_id=MEMBER, id=task.id)
        else:
            await hears(at, f"/tasks stop {code_of(task.id)}", **there)
        assert await stopped(at, task)


async def test_it_is_stopped_by_the_person_of_a_session_of_their_own_in_a_group(
    house: House,
) -> None:
    people = People()
    async with house.begins(people.model, access=EACH_THEIR_OWN) as at:
        session = str((await at.says("hello", user=MEMBER, **SHARED)).session_id)
        await at.sees(1, GROUP)
        task = await board(at).create(session, TaskCreate(title="of a program"))
        await people.stops(at, "word", MEMBER, task)
        assert await stopped(at, task)
