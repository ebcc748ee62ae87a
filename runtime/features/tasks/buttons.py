"""What a person does with one task by a word or a button, each in the unit that hears of it.

A button of a home page carries the id of the task and a choice. Whoever presses it does it by their
own right: the task must be theirs, or they an owner of the gateway. Words and the buttons in a chat
stop by the same right; what a task printed, everybody of its conversation may read there.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from runtime.commands.table import Buttons, Lookups
from runtime.domain.ids import IdPrefix, code_of
from runtime.domain.messages import Button, ButtonPress
from runtime.domain.people import Speaker
from runtime.domain.printable import one_line, person_name
from runtime.features.tasks import changes, rows
from runtime.features.tasks.notices import NAME, output_text, standing
from runtime.features.tasks.output_file import read_output
from runtime.features.tasks.rows import SHELL, Task
from runtime.ports.gatehouse import HomeItem, Pressed
from runtime.sessions import app_home_rows
from runtime.sessions.unit import Unit
from runtime.store import Connection
from runtime.workspace.snapshot import Workspace

HEADING: Final = "Tasks"
MOST_ON_HOME: Final = 5
UNKNOWN: Final = "I do not know this task any more."
NO_BUTTON: Final = "There is no such button."
STOP, OUTPUT = "stop", "output"
_TAIL_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Printed:
    """The end of what a task printed, read before the unit that shows it."""

    task_id: str
    text: str


def stop(unit: Unit, task: Task, speaker: Speaker) -> Pressed:
    """Stop one whose lane is held for somebody who may, unless it is over."""
    if not changes.may_stop(unit.conn, task, speaker):
        return Pressed(accepted=False, text=changes.NOT_YOURS)
    code = code_of(task.id)
    if task.is_over:
        return Pressed(accepted=False, text=f"Task `{code}` is over already: {standing(task)}.")
    if task.stop_requested_ms is not None:
        return Pressed(accepted=False, text=f"Task `{code}` is being stopped already.")
    reason = f"stopped by {person_name(speaker.name)}"
    task = changes.request_stop(unit, task.session_id, task.id, reason, speaker.person_id)
    return Pressed(accepted=True, text=f"Task `{code}` is {standing(task)}.")


def output(task: Task, found: object) -> str:
    """How it stands and what it printed, if that was `found`."""
    mine = isinstance(found, Printed) and found.task_id == task.id
    return output_text(task, found.text if mine and isinstance(found, Printed) else None)


async def printed(workspace: Workspace, task: Task | None) -> Printed | None:
    """The end of what a task printed, if it printed anything."""
    if task is None or task.output_path is None:
        return None
    kept = await asyncio.to_thread(read_output, workspace.root, task.output_path, _TAIL_BYTES)
    return None if kept is None else Printed(task.id, kept.text)


async def _look_up(lookups: Lookups, press: ButtonPress) -> object:
    if press.choice != OUTPUT or lookups.workspace is None or lookups.database is None:
        return None
    task = await lookups.database.read(partial(rows.find, task_id=press.open_call_id))
    return await printed(lookups.workspace, task)


def _press(unit: Unit, speaker: Speaker, press: ButtonPress, found: object) -> Pressed:
    seen = rows.find(unit.conn, press.open_call_id)
    if seen is None:
        return Pressed(accepted=False, text=UNKNOWN)
    unit.lane(seen.session_id)
    # It may have ended since it was read.
    task = rows.find(unit.conn, seen.id)
    if task is None:
        return Pressed(accepted=False, text=UNKNOWN)
    if not changes.may_stop(unit.conn, task, speaker):
        return Pressed(accepted=False, text=changes.NOT_YOURS)
    if press.choice == STOP:
        return stop(unit, task, speaker)
    if press.choice == OUTPUT:
        return Pressed(accepted=True, text=output(task, found))
    return Pressed(accepted=False, text=NO_BUTTON)


def _home(conn: Connection, speaker: Speaker) -> Sequence[HomeItem]:
    channel, account, user_id = speaker.platform_account
    own = app_home_rows.own_sessions(conn, channel=channel, account=account, user_id=user_id)
    return [
        HomeItem(heading=HEADING, text=_item(task), buttons=_buttons(task))
        for task in rows.of_person(conn, speaker.person_id, own, MOST_ON_HOME)
    ]


def _item(task: Task) -> str:
    return f"{code_of(task.id)} · {standing(task)}\n{one_line(task.title, NAME)}"


def _buttons(task: Task) -> tuple[Button, ...]:
    choices = ((STOP, "Stop", not task.is_over), (OUTPUT, "Output of", task.kind == SHELL))
    return tuple(
        Button(label=f"{label} {code_of(task.id)}", about=task.id, choice=choice)
        for choice, label, offered in choices
        if offered
    )


BUTTONS: Final = Buttons(
    prefix=f"{IdPrefix.TASK.value}_", press=_press, home=_home, look_up=_look_up
)
