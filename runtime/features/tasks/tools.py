"""The tools by which a model keeps the tasks of its session and looks after its commands (TSK-1).

A task of another session does not exist for them. What is typed into a command is decided about as
a command is.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from pydantic import Field
from typing_extensions import override

from runtime.domain.errors import Conflict, Forbidden, InvalidInput, NotFound, QueueFull, ToolError
from runtime.domain.tools import Effect, Touches
from runtime.engine.feature import ToolServices
from runtime.features.tasks.board import TaskBoard
from runtime.features.tasks.model import (
    MOST_INPUT,
    MOST_TAIL_BYTES,
    TAIL_BYTES,
    Notify,
    OutputRequest,
    Status,
    TaskCreate,
    TaskOutputView,
    TaskRecord,
    TaskUpdate,
    ends_line,
)
from runtime.tools.base import A, AnyTool, Arguments, Face, Tool, ToolContext, ToolOutput

FAMILY: Final = "tasks"
MOST_LISTED: Final = 100
MOST_WAIT_S: Final = 60
PRINTED: Final = "output of a command"
PIECE: Final = (
    "text: must be whole lines, because they are decided about as commands are; leave enter true, "
    "and end no line with a backslash that joins it to the next. With close the last line needs no "
    "end"
)
WRITTEN: Final = "tasks that were written after reading something from outside"
_REFUSALS: Final = (Conflict, Forbidden, InvalidInput, NotFound, QueueFull)


class NamedTask(Arguments):
    id: str = Field(min_length=1, max_length=64, description="a task's id or its code")


class BlockedTask(Arguments):
    """Arguments that may name what blocks a task."""

    blocked_by: tuple[str, ...] | None = Field(
        default=None, max_length=50, description="ids or codes of tasks"
    )


class _TaskTool(Tool[A]):
    """What the tools of tasks have in common."""

    family = FAMILY
    own_words = True

    def __init__(self, board: TaskBoard) -> None:
        self._board = board

    @override
    def touches(self, arguments: A, context: ToolContext) -> Touches:
        return Touches(subject=arguments.id if isinstance(arguments, NamedTask) else "")

    @abstractmethod
    async def act(self, arguments: A, context: ToolContext) -> ToolOutput:
        """What the tool does; what the service refuses goes to the model."""

    @override
    async def run(self, arguments: A, context: ToolContext) -> ToolOutput:
        try:
            return await self.act(await self._with_ids(arguments, context.session_id), context)
        except _REFUSALS as error:
            raise ToolError(str(error)) from error

    async def _with_ids(self, arguments: A, session_id: str) -> A:
        """The arguments with an id for each code that people call a task of the session by."""
        found: dict[str, object] = {}
        if isinstance(arguments, NamedTask):
            found["id"] = await self._board.id_of(session_id, arguments.id)
        if isinstance(arguments, BlockedTask) and arguments.blocked_by is not None:
            named = [await self._board.id_of(session_id, one) for one in arguments.blocked_by]
            found["blocked_by"] = tuple(named)
        return arguments.model_copy(update=found) if found else arguments


class CreateArguments(BlockedTask):
    title: str = Field(min_length=1, max_length=200, pattern=r"\S")
    description: str = Field(default="", max_length=8_000)
    notify: Notify = "silent"


class TaskCreateTool(_TaskTool[CreateArguments]):
    name = "task_create"
    description = "Note something to be done in this conversation, behind what blocks it."
    arguments = CreateArguments
    effect = Effect.ONCE
    example = '{"title": "Write the release notes"}'

    @override
    async def act(self, arguments: CreateArguments, context: ToolContext) -> ToolOutput:
        asked = TaskCreate(
            title=arguments.title,
            description=arguments.description,
            blocked_by=arguments.blocked_by or (),
            notify=arguments.notify,
        )
        task = await self._board.create(context.session_id, asked, run_id=context.run_id)
        return ToolOutput(_line(task))


class TaskGet(_TaskTool[NamedTask]):
    name = "task_get"
    description = "Show one task with all that is known of it."
    arguments = NamedTask
    effect = Effect.READ
    example = '{"id": "tsk_01jd0000000000000000000000"}'

    @override
    async def act(self, arguments: NamedTask, context: ToolContext) -> ToolOutput:
        task = await self._board.get(context.session_id, arguments.id)
        shown = task.model_dump_json(exclude_none=True)
        # What it asks for is output as well, and the command chose the words.
        if "prompt" in task.metadata:
            return ToolOutput(shown, untrusted=True, source=PRINTED)
        return _given(shown, task)


class ListArguments(Arguments):
    status: Status | None = None


class TaskList(_TaskTool[ListArguments]):
    name = "task_list"
    description = "List the tasks of this conversation, commands in the background among them."
    arguments = ListArguments
    effect = Effect.READ
    example = '{"status": "in_progress"}'

    @override
    async def act(self, arguments: ListArguments, context: ToolContext) -> ToolOutput:
        page = await self._board.listing(
            context.session_id, status=arguments.status, limit=MOST_LISTED
        )
        lines = [_line(task) for task in page.items]
        more = (page.total_count or 0) - len(lines)
        lines += [f"and {more} more"] if more > 0 else []
        return _given("\n".join(lines) or "There are no such tasks.", *page.items)


class UpdateArguments(NamedTask, BlockedTask):
    title: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"\S")
    description: str | None = Field(default=None, max_length=8_000)
    status: Literal["pending", "in_progress", "completed", "failed", "cancelled"] | None = None
    notify: Notify | None = None


class TaskUpdateTool(_TaskTool[UpdateArguments]):
    name = "task_update"
    description = "Change a task: its status, its words, what blocks it, who hears of it."
    arguments = UpdateArguments
    effect = Effect.IDEMPOTENT
    example = '{"id": "tsk_01jd0000000000000000000000", "status": "completed"}'

    @override
    async def act(self, arguments: UpdateArguments, context: ToolContext) -> ToolOutput:
        asked = TaskUpdate(**arguments.model_dump(exclude={"id"}, exclude_unset=True))
        task = await self._board.update(
            context.session_id, arguments.id, asked, run_id=context.run_id
        )
        return _given(_line(task), task)


class StopArguments(NamedTask):
    reason: str | None = Field(default=None, max_length=500)


class TaskStop(_TaskTool[StopArguments]):
    name = "task_stop"
    description = "Stop a task; a command is ended with all its processes."
    arguments = StopArguments
    effect = Effect.IDEMPOTENT
    example = '{"id": "tsk_01jd0000000000000000000000", "reason": "no longer needed"}'

    @override
    async def act(self, arguments: StopArguments, context: ToolContext) -> ToolOutput:
        task = await self._board.stop(
            context.session_id,
            arguments.id,
            reason=arguments.reason,
            by=context.run_id,
            run_id=context.run_id,
        )
        return _given(_line(task), task)


class OutputArguments(NamedTask):
    wait_s: float = Field(
        default=0, ge=0, le=MOST_WAIT_S, description="for more output or a change"
    )
    tail_bytes: int = Field(default=TAIL_BYTES, ge=1, le=MOST_TAIL_BYTES)


class TaskOutput(_TaskTool[OutputArguments]):
    name = "task_output"
    description = "Show how a command in the background stands, and the end of its output."
    arguments = OutputArguments
    effect = Effect.READ
    example = '{"id": "tsk_01jd0000000000000000000000", "wait_s": 30}'

    @override
    async def act(self, arguments: OutputArguments, context: ToolContext) -> ToolOutput:
        asked = OutputRequest(
            wait=arguments.wait_s > 0,
            timeout_ms=int(arguments.wait_s * 1000),
            tail_bytes=arguments.tail_bytes,
        )
        home = context.layout.home
        view = await self._board.output(home, context.session_id, arguments.id, asked)
        if not view.output_excerpt and "prompt" not in view.task.metadata:
            return replace(_given(_shown(view), view.task), outside=False)
        # A command may have been allowed the network.
        return ToolOutput(_shown(view), untrusted=True, source=PRINTED)


class WriteArguments(NamedTask):
    command: str = Field(
        min_length=1, max_length=8_000, description="the command of the task, as task_get shows it"
    )
    text: str = Field(default="", max_length=MOST_INPUT)
    enter: bool = Field(default=True, description="end the text with a line break")
    close: bool = Field(default=False, description="end the input behind it")


class TaskWrite(_TaskTool[WriteArguments]):
    name = "task_write"
    description = "Type into a command that runs in the background."
    arguments = WriteArguments
    effect = Effect.ONCE
    example = '{"id": "tsk_01jd0000000000000000000000", "command": "sh setup.sh", "text": "yes"}'

    @override
    def touches(self, arguments: WriteArguments, context: ToolContext) -> Touches:
        # The command may join what is typed in pieces to a line that no rule was asked about.
        if not ends_line(_typed(arguments)) and not (arguments.close and arguments.text):
            raise ToolError(PIECE)
        return Touches(
            command=arguments.text,
            folder=str(context.resolved.files),
            subject=arguments.text,
            like=("exec",),
            typed=True,
        )

    @override
    async def act(self, arguments: WriteArguments, context: ToolContext) -> ToolOutput:
        task = await self._board.write(
            context.session_id,
            arguments.id,
            _typed(arguments),
            closes=arguments.close,
            into=arguments.command,
        )
        return _given(f"Typed. {_line(task)}", task)


def _typed(arguments: WriteArguments) -> str:
    end = "\n" if arguments.enter and arguments.text else ""
    return f"{arguments.text}{end}"


def task_tools(services: ToolServices) -> Sequence[AnyTool]:
    """All of them."""
    board = TaskBoard(services.units, services.clock)
    return [tool(board) for tool in TOOLS]


TOOLS: Final = (
    *(TaskCreateTool, TaskGet, TaskList, TaskUpdateTool),
    *(TaskStop, TaskOutput, TaskWrite),
)
FACES: Final = tuple(Face(tool.name, tool.effect) for tool in TOOLS)
"""The tools of the feature, in the order in which they are made."""


def _given(text: str, *tasks: TaskRecord) -> ToolOutput:
    """What shows the words of tasks: whoever reads those of a tainted agent is tainted too."""
    untrusted = any(task.is_untrusted for task in tasks)
    return ToolOutput(text, untrusted=untrusted, source=WRITTEN if untrusted else "")


def _line(task: TaskRecord) -> str:
    """A task in one line: its status and exit code lead."""
    code = task.metadata.get("exit_code")
    how = task.status if code is None else f"{task.status}, exit code {code}"
    waits = f", blocked by {', '.join(task.blocked_by)}" if task.blocked_by else ""
    return f"[{how}] {task.id}: {task.title}{waits}"


def _shown(view: TaskOutputView) -> str:
    lines = [_line(view.task)]
    for name in ("terminal_reason", "prompt", "stop_reason"):
        if name in view.task.metadata:
            lines.append(f"{name}: {view.task.metadata[name]}")
    if view.output_truncated:
        lines.append(
            f"[the end of {view.output_total_bytes:,} bytes; {view.output_file_path} has the rest]"
        )
    return "\n".join([*lines, view.output_excerpt or "[no output]"])
