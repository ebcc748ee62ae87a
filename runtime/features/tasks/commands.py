"""The command ``/tasks``: what a conversation has to do, and the commands that run for it.

Each button below its list says one of its own words, so that a press does what the words do and no
more. Those of the home page, where nobody speaks, are in `runtime.features.tasks.buttons`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from runtime.commands.table import Call, Command, LookedFor, Lookups
from runtime.domain.ids import CODE_LENGTH, code_of
from runtime.domain.messages import Button
from runtime.domain.printable import code_name
from runtime.features.tasks import rows
from runtime.features.tasks.buttons import BUTTONS, output, printed, stop
from runtime.features.tasks.notices import NAME, standing
from runtime.features.tasks.rows import SHELL, Task
from runtime.store import Connection

MOST_LISTED: Final = 20
MOST_WITH_BUTTONS: Final = 10
HOW: Final = "`/tasks stop CODE` stops one, `/tasks output CODE` shows what a command printed."
NONE: Final = "There are no tasks in this conversation."
USAGE: Final = f"`/tasks` lists the tasks of this conversation. {HOW}"


def _tasks(call: Call) -> str:
    verb, code = _words(call.rest)
    if not verb or (verb, code) == ("list", ""):
        return _listed(call)
    act = _VERBS.get(verb)
    if act is None:
        return f"I do not know {code_name(verb, 20)} here. {USAGE}"
    if not code:
        return USAGE
    task = _named(call.unit.conn, call.session.id, code)
    if task is None:
        return f"There is no task {code_name(code, 20)} here. `/tasks` lists them."
    return act(call, task)


def _stop(call: Call, task: Task) -> str:
    return stop(call.unit, task, call.speaker).text


def _output(call: Call, task: Task) -> str:
    return output(task, call.found)


_VERBS: Final = {"stop": _stop, "output": _output}


def _listed(call: Call) -> str:
    conn, session_id = call.unit.conn, call.session.id
    found = rows.newest(conn, session_id, MOST_LISTED)
    if not found:
        return NONE
    lines = [
        f"- `{code_of(task.id)}` {code_name(task.title, NAME)}: {standing(task)}" for task in found
    ]
    more = rows.total(conn, session_id) - len(found)
    lines += [f"- and {more} more"] if more > 0 else []
    call.buttons.extend(_buttons(found))
    return "\n".join([*lines, "", HOW])


def _buttons(found: Sequence[Task]) -> tuple[Button, ...]:
    """A stop for what is not over, and the output of what is a command."""
    first = [task for task in found if task.kind == SHELL or not task.is_over][:MOST_WITH_BUTTONS]
    return tuple(
        Button(label=f"{label} {code_of(task.id)}", command=f"/tasks {verb} {code_of(task.id)}")
        for task in first
        for verb, label, offered in (
            ("stop", "Stop", not task.is_over),
            ("output", "Output of", task.kind == SHELL),
        )
        if offered
    )


def _words(rest: str) -> tuple[str, str]:
    verb, _, code = rest.lower().partition(" ")
    return verb, code.strip()


def _named(conn: Connection, session_id: str, code: str) -> Task | None:
    """The one task of a session that has this code."""
    named = rows.ending_with(conn, session_id, code) if len(code) == CODE_LENGTH else []
    return named[0] if len(named) == 1 else None


async def _look_up(lookups: Lookups, wanted: LookedFor) -> object:
    """What the task printed that somebody asks about; a unit reads no file."""
    verb, code = _words(wanted.rest)
    if verb != "output" or lookups.workspace is None or lookups.database is None:
        return None
    task = await lookups.database.read(partial(_wanted, wanted=wanted, code=code))
    return await printed(lookups.workspace, task)


def _wanted(conn: Connection, wanted: LookedFor, code: str) -> Task | None:
    session = wanted.session_in(conn)
    return None if session is None else _named(conn, session.id, code)


TASKS: Final = Command(
    "tasks",
    "lists tasks; `stop CODE` stops one, `output CODE` shows what it printed",
    _tasks,
    look_up=_look_up,
    buttons=BUTTONS,
)
