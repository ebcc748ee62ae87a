"""Buttons below the gateway's own texts: a press says a command for whoever pressed (MSG-12)."""

from dataclasses import replace

import pytest

from runtime.domain.ids import code_of
from runtime.domain.messages import Button, ButtonPress, TextPart
from runtime.domain.people import Sender, Trust
from runtime.features.tasks.board import TaskBoard
from runtime.features.tasks.changes import NOT_YOURS
from runtime.features.tasks.commands import MOST_WITH_BUTTONS
from runtime.features.tasks.model import TaskCreate, TaskRecord
from runtime.intake.button_presses import NOT_HEARD, UNKNOWN_BUTTON
from runtime.ports.gatehouse import Pressed
from runtime.views import conversation
from tests.fakes.chat import Sent
from tests.scenario.cards import GUEST, MEMBER
from tests.scenario.engine import OWNER, World
from tests.scenario.schedules.test_reminders import HERE, TEAM, House, goes_on, hears, house

__all__ = ["house"]

pytestmark = pytest.mark.requirement("MSG-12")
GROUP = "G-1"
SHARED = {"chat_id": GROUP, "kind": "group"}
EACH_THEIR_OWN = replace(TEAM, group_scope="user")


def board(at: World) -> TaskBoard:
    return TaskBoard(at.engine.units, at.engine.parts.clock)


async def with_task(at: World, title: str = "one", **said: object) -> tuple[str, TaskRecord]:
    """A session with a task, begun by somebody at a place; its id and the task."""
    chat = str(said.get("chat_id", HERE))
    before = len(at.chat.texts(chat))
    session = str((await at.says("/tasks", **said)).session_id)
    await at.sees(before + 1, chat)
    return session, await board(at).create(session, TaskCreate(title=title))


def offered(sent: Sent) -> tuple[Button, ...]:
    """The buttons below a message."""
    return tuple(
        button
        for part in sent.message.parts
        if isinstance(part, TextPart)
        for button in part.buttons
    )


async def listed(at: World, **said: object) -> Sent:
    """The message that lists the tasks of a place."""
    await hears(at, "/tasks", **said)
    return at.chat.sent[-1]


async def presses(
    at: World, message: Sent, number: int | None = 1, *, user: str = OWNER, **form: object
) -> Pressed:
    press = ButtonPress(
        channel="test",
        account="A1",
        chat_id=message.target.chat_id,
        sender=Sender(id=user, name=user.removeprefix("U-")),
        open_call_id=message.outbox_id,
        choice="",
        option=number,
        press_id=f"p{next(at.ids)}",
        received_at_ms=at.engine.parts.clock.now_ms(),
    )
    return await at.engine.intake.press(press.model_copy(update=form))


async def test_a_press_says_its_command_once_and_the_answer_stands_in_the_chat(
    house: House,
) -> None:
    async with house.begins() as at:
        session, task = await with_task(at)
        code, message = code_of(task.id), await listed(at)
        assert offered(message) == (Button(label=f"Stop {code}", command=f"/tasks stop {code}"),)
        before = len(at.chat.texts(HERE))
        assert await presses(at, message, press_id="same") == Pressed(accepted=True, text="")
        texts = await at.sees(before + 1, HERE)
        assert texts[-1] == f"Task `{code}` is cancelled."
        stopped = await board(at).get(session, task.id)
        assert stopped.metadata["stop_reason"] == "stopped by owner"
        # The platform delivers the same press again.
        again = await presses(at, message, press_id="same")
        assert (again.accepted, len(at.chat.texts(HERE))) == (True, before + 1)
        # Somebody presses the old button again.
        assert (await presses(at, message)).accepted
        texts = await at.sees(before + 2, HERE)
        assert texts[-1] == f"Task `{code}` is over already: cancelled."
        await goes_on(at, 1)
        assert len(at.chat.texts(HERE)) == before + 2


async def test_a_press_in_a_thread_is_said_and_answered_in_the_thread(house: House) -> None:
    there = {"chat_id": GROUP, "kind": "channel", "thread": "T7"}
    async with house.begins() as at:
        session, task = await with_task(at, **there)
        message, before = await listed(at, **there), len(at.chat.texts(GROUP))
        assert (await presses(at, message)).accepted
        await at.sees(before + 1, GROUP)
        assert at.chat.sent[-1].target.thread_id == "T7"
        assert (await board(at).get(session, task.id)).status == "cancelled"


async def test_a_button_that_is_not_there_does_nothing(house: House) -> None:
    async with house.begins() as at:
        session, task = await with_task(at)
        message = await listed(at)
        before = len(at.chat.texts())
        wrong: tuple[dict[str, object], ...] = (
            {"option": 0},
            {"option": 2},
            {"option": None},
            {"option": None, "choice": "stop"},
            {"option": None, "choice": "\N{SUPERSCRIPT TWO}"},
            {"option": None, "choice": "9999"},
            {"open_call_id": "out_none"},
            {"open_call_id": at.chat.sent[0].outbox_id},
            {"chat_id": "D-elsewhere"},
            {"account": "A2"},
            {"channel": "telegram"},
        )
        for form in wrong:
            assert await presses(at, message, **form) == UNKNOWN_BUTTON, form
        assert (await board(at).get(session, task.id)).status == "pending"
        assert len(at.chat.texts()) == before


async def test_the_number_may_come_as_a_choice(house: House) -> None:
    async with house.begins() as at:
        session, task = await with_task(at)
        assert (await presses(at, await listed(at), None, choice="1")).accepted
        assert (await board(at).get(session, task.id)).status == "cancelled"


@pytest.mark.requirement("ACC-1", "POL-4")
async def test_a_press_has_the_rights_of_whoever_pressed_and_no_others(house: House) -> None:
    access = replace(TEAM, group_policy="open")
    async with house.begins(access=access) as at:
        session, task = await with_task(at, **SHARED)
        message, code = await listed(at, **SHARED), code_of(task.id)
        before = len(at.chat.texts(GROUP))
        await presses(at, message, user=GUEST)
        texts = await at.sees(before + 1, GROUP)
        assert texts[-1] == "`/tasks` is not open to guests."
        assert (await board(at).get(session, task.id)).status == "pending"
        # Nobody asked for it, so it is for owners to stop.
        await presses(at, message, user=MEMBER)
        texts = await at.sees(before + 2, GROUP)
        assert texts[-1] == NOT_YOURS
        assert (await board(at).get(session, task.id)).status == "pending"
        await presses(at, message)
        texts = await at.sees(before + 3, GROUP)
        assert texts[-1] == f"Task `{code}` is cancelled."
        stopped = await board(at).get(session, task.id)
        assert stopped.metadata["stop_reason"] == "stopped by owner"


@pytest.mark.requirement("ACC-1")
async def test_whom_a_place_does_not_hear_presses_in_vain(house: House) -> None:
    async with house.begins(access=replace(TEAM, group_policy="allowlist")) as at:
        session, task = await with_task(at, **SHARED)
        message = await listed(at, **SHARED)
        before = len(at.chat.texts())
        pressed = await presses(at, message, user=MEMBER)
        assert pressed == NOT_HEARD
        assert (await board(at).get(session, task.id)).status == "pending"
        assert len(at.chat.texts()) == before


async def test_in_a_group_where_each_has_their_own_session_a_press_reaches_no_other(
    house: House,
) -> None:
    async with house.begins(access=EACH_THEIR_OWN) as at:
        session, task = await with_task(at, **SHARED)
        message, code = await listed(at, **SHARED), code_of(task.id)
        before = len(at.chat.texts(GROUP))
        await presses(at, message, user=MEMBER)
        texts = await at.sees(before + 1, GROUP)
        assert texts[-1] == f"There is no task `{code}` here. `/tasks` lists them."
        assert (await board(at).get(session, task.id)).status == "pending"


async def test_the_page_shows_them_and_what_was_pressed(house: House) -> None:
    async with house.begins() as at:
        session, task = await with_task(at)
        message, command = await listed(at), f"/tasks stop {code_of(task.id)}"
        await presses(at, message)

        kinds = at.engine.units.kinds
        page = await at.database.read(
            lambda conn: conversation.read(
                conn, kinds, session, transcript=None, before=None, limit=50
            )
        )
        notice = next(item for item in page.items if item.key == message.outbox_id)
        assert notice.buttons == offered(message)
        said = next(item for item in page.items if item.text == command)
        assert (said.kind, said.name, said.trust) == ("user", "owner", Trust.OWNER)


async def test_a_few_tasks_have_buttons_and_the_live_ones_come_first(house: House) -> None:
    async with house.begins() as at:
        session, first = await with_task(at)
        tasks = []
        for number in range(MOST_WITH_BUTTONS + 1):
            # The order of two ids that were made in one millisecond is random.
            await goes_on(at, 0.01)
            tasks.append(await board(at).create(session, TaskCreate(title=f"n{number}")))
        newest = tasks[-1]
        await board(at).stop(session, newest.id, by="me")
        labels = [one.label for one in offered(await listed(at))]
        assert len(labels) == MOST_WITH_BUTTONS
        assert f"Stop {code_of(newest.id)}" not in labels
        assert labels[0] == f"Stop {code_of(tasks[-2].id)}"
        assert f"Stop {code_of(first.id)}" not in labels
