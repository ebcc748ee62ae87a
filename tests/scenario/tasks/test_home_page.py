"""A person's own tasks on their home page, and by whose right their buttons count."""

from itertools import count

import pytest

from runtime.domain.ids import code_of
from runtime.domain.messages import ButtonPress
from runtime.domain.people import Sender
from runtime.domain.runs import RunState
from runtime.features.tasks import changes, rows
from runtime.features.tasks.buttons import (
    HEADING,
    MOST_ON_HOME,
    NO_BUTTON,
    UNKNOWN,
)
from runtime.features.tasks.changes import NOT_YOURS
from runtime.features.tasks.model import TaskCreate
from runtime.features.tasks.output_file import OutputFile, output_path
from runtime.features.tasks.rows import Task
from runtime.ports.gatehouse import HomeItem, Pressed
from runtime.sessions.unit import Unit
from tests.fakes.model import ScriptedModel
from tests.scenario.cards import GUEST, MEMBER, reaches
from tests.scenario.engine import OWNER, World
from tests.scenario.schedules.test_reminders import OTHER, House, house
from tests.scenario.test_command_buttons import EACH_THEIR_OWN, board

__all__ = ["house"]
pytestmark = pytest.mark.requirement("TSK-1", "SLK-4")
NUMBERS = count(1)
GROUP = {"chat_id": "G-1", "kind": "group"}


async def asked(at: World, title: str, *, user: str, **place: object) -> Task:
    """A task that a person's run made in a place, where its answer has come."""
    before = len(at.chat.texts())
    accepted = await at.says("do it", user=user, **place)
    session, run = str(accepted.session_id), accepted.run_id
    await reaches(at, run, RunState.COMPLETED)
    await at.chat.until(lambda: len(at.chat.texts()) > before)

    def make(unit: Unit) -> Task:
        return changes.create(unit, session, TaskCreate(title=title), run_id=run)

    return await at.engine.units.run(make, name="made")


async def command_of(at: World, task: Task, text: str = "") -> Task:
    """A command of the same person in the same place, which printed a text."""

    def make(unit: Unit) -> Task:
        lane = unit.lane(task.session_id)
        command = Task(
            id=f"tsk_shell{next(NUMBERS):06}",
            session_id=task.session_id,
            kind="shell",
            title="make `it`",
            status="in_progress",
            created_ms=lane.now_ms,
            updated_ms=lane.now_ms,
            asked_by=task.asked_by,
            output_path=output_path(task.session_id, "shell"),
            worker="nobody",
        )
        changes.add_shell(unit, command, run_id=None)
        return command

    made = await at.engine.units.run(make, name="made")
    workspace = at.engine.parts.workspace
    assert workspace is not None
    assert made.output_path is not None
    file = OutputFile(workspace.root, made.output_path)
    file.append(text.encode())
    file.close()
    return made


async def home(at: World, user: str) -> tuple[HomeItem, ...]:
    page = await at.engine.intake.home(channel="test", account="A1", sender=Sender(id=user))
    return tuple(item for item in page.items if item.heading == HEADING)


def choices(item: HomeItem) -> list[tuple[str, str]]:
    return [(button.about, button.choice) for button in item.buttons]


async def presses(
    at: World, about: str, choice: str, *, user: str = OWNER, press_id: str = ""
) -> Pressed:
    press = ButtonPress(
        channel="test",
        account="A1",
        chat_id="home",
        sender=Sender(id=user, name=user.removeprefix("U-")),
        open_call_id=about,
        choice=choice,
        press_id=press_id or f"h{next(NUMBERS)}",
        received_at_ms=1,
    )
    return await at.engine.intake.press(press)


async def status(at: World, task: Task) -> str:
    found = await at.database.read(lambda conn: rows.find(conn, task.id))
    return "" if found is None else found.status


def model() -> ScriptedModel:
    return ScriptedModel(lambda _: "done")


async def test_a_home_page_lists_what_a_person_asked_for_and_nothing_of_others(
    house: House,
) -> None:
    async with house.begins(model()) as at:
        mine = await asked(at, "tea", user=OWNER, **GROUP)
        theirs = await asked(at, "cake", user=MEMBER, **GROUP)
        assert mine.session_id == theirs.session_id
        (item,) = await home(at, MEMBER)
        assert item.text == f"{code_of(theirs.id)} · to be done\ncake"
        assert choices(item) == [(theirs.id, "stop")]
        assert [choices(one) for one in await home(at, OWNER)] == [[(mine.id, "stop")]]
        for nobody in (OTHER, GUEST, "U-nobody"):
            assert await home(at, nobody) == ()


async def test_a_home_page_lists_what_is_in_a_session_of_the_person_alone(house: House) -> None:
    async with house.begins(model(), access=EACH_THEIR_OWN) as at:
        made = []
        for place in ({"chat_id": MEMBER}, GROUP):
            session = str((await at.says("hello", user=MEMBER, **place)).session_id)
            made.append(await board(at).create(session, TaskCreate(title="of a program")))
        shown = {about for item in await home(at, MEMBER) for about, _ in choices(item)}
        assert shown == {one.id for one in made}
        assert await home(at, OTHER) == ()
        for task in made:
            assert (await presses(at, task.id, "stop", user=OTHER)).text == NOT_YOURS
            assert (await presses(at, task.id, "stop", user=MEMBER)).accepted


async def test_what_is_not_over_comes_first_and_only_commands_stay(house: House) -> None:
    async with house.begins(model()) as at:
        first = await asked(at, "one", user=MEMBER)
        ended = await command_of(at, first)
        await presses(at, first.id, "stop", user=MEMBER)

        def end(unit: Unit) -> None:
            unit.lane(ended.session_id)
            changes.settle(unit, ended, "completed", {})

        await at.engine.units.run(end, name="ended")
        assert [choices(one) for one in await home(at, MEMBER)] == [[(ended.id, "output")]]
        for number in range(MOST_ON_HOME):
            await asked(at, f"more {number}", user=MEMBER)
        texts = [one.text.partition("\n")[2] for one in await home(at, MEMBER)]
        assert sorted(texts) == [f"more {number}" for number in range(MOST_ON_HOME)]


@pytest.mark.requirement("TSK-5")
async def test_a_task_is_stopped_once_and_an_old_button_is_answered_plainly(house: House) -> None:
    async with house.begins(model()) as at:
        task = await asked(at, "tea", user=MEMBER, **GROUP)
        code = code_of(task.id)
        said = await presses(at, task.id, "stop", user=MEMBER, press_id="same")
        assert said == Pressed(accepted=True, text=f"Task `{code}` is cancelled.")
        found = await board(at).get(task.session_id, task.id)
        assert found.metadata["stop_reason"] == "stopped by member"
        again = await presses(at, task.id, "stop", user=MEMBER, press_id="same")
        assert again == Pressed(accepted=False, text="This was done already.")
        stale = await presses(at, task.id, "stop", user=MEMBER)
        over = f"Task `{code}` is over already: cancelled."
        assert stale == Pressed(accepted=False, text=over)
        gone = await presses(at, f"{task.id}x", "stop", user=MEMBER)
        assert gone == Pressed(accepted=False, text=UNKNOWN)
        wrong = await presses(at, task.id, "snooze", user=MEMBER)
        assert wrong == Pressed(accepted=False, text=NO_BUTTON)
        assert await home(at, MEMBER) == ()

        command = await command_of(at, task)
        asked_twice = [await presses(at, command.id, "stop", user=MEMBER) for _ in range(2)]
        assert [one.accepted for one in asked_twice] == [True, False]
        assert asked_twice[1].text == f"Task `{code_of(command.id)}` is being stopped already."


async def test_its_owner_sees_what_a_command_printed(house: House) -> None:
    async with house.begins(model()) as at:
        task = await asked(at, "tea", user=MEMBER, **GROUP)
        command = await command_of(at, task, "3 passed\n<!channel>\n")
        said = await presses(at, command.id, "output", user=MEMBER)
        assert said.accepted
        assert "make" in said.text
        assert said.text.endswith("```\n3 passed\n<!channel>\n```")
        # Nobody else reads it: it is in no chat.
        assert not any("3 passed" in text for text in at.chat.texts())
        nothing = await presses(at, task.id, "output", user=MEMBER)
        assert nothing.text.endswith("It is no command, so it prints nothing.")


@pytest.mark.parametrize("choice", ["stop", "output"])
@pytest.mark.requirement("ACC-1")
async def test_a_press_counts_by_the_right_of_whoever_presses(house: House, choice: str) -> None:
    async with house.begins(model()) as at:
        task = await asked(at, "tea", user=MEMBER, **GROUP)
        command = await command_of(at, task, "secret\n")
        said = await presses(at, command.id, choice, user=OTHER)
        assert said == Pressed(accepted=False, text=NOT_YOURS)
        for user in (GUEST, "U-nobody"):
            said = await presses(at, command.id, choice, user=user)
            assert said == Pressed(accepted=False, text="`/tasks` is not open to you.")
        found = await at.database.read(lambda conn: rows.find(conn, command.id))
        assert found is not None
        assert found.stop_requested_ms is None
        assert (await presses(at, command.id, choice, user=OWNER)).accepted
