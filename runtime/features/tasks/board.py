"""The tasks of sessions, for tools, chats and programs alike (TSK-1, TSK-2, TSK-3).

Each call names the session, and a task of another session does not exist for it.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from runtime.domain import cursors
from runtime.domain.cursors import Page
from runtime.domain.errors import Conflict, InvalidInput, QueueFull
from runtime.domain.ids import CODE_LENGTH
from runtime.domain.printable import quoted
from runtime.domain.request_keys import request_key
from runtime.features.tasks import changes, rows
from runtime.features.tasks.model import (
    MOST_INPUT,
    OutputRequest,
    Retrieval,
    Status,
    TaskCreate,
    TaskOutputView,
    TaskRecord,
    TaskUpdate,
    ends_line,
    is_same_command,
)
from runtime.features.tasks.output_file import Kept, marker, read_output
from runtime.features.tasks.rows import SHELL, Task, Typed
from runtime.ports.bus import TASKS, Signal
from runtime.ports.clock import Clock
from runtime.process.wakeup import Wake
from runtime.sessions import idempotency, sessions
from runtime.sessions.unit import Unit, Units
from runtime.store import Connection

MOST_WAITING: Final = 100
"""Pieces of input that wait for one command."""
LINE_BEGUN: Final = "line_begun"
"""The fact that says that a program has typed a line that has no end yet."""
_ALL_BYTES: Final = 9 * 1024 * 1024
"""More than any output file holds."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A task with its output, as they were at one moment."""

    task: Task
    record: TaskRecord
    kept: Kept | None

    @property
    def total_bytes(self) -> int | None:
        """All that was ever printed."""
        if self.kept is None:
            return None
        task = self.task
        head = len(marker(task.output_dropped, task.rotations)) if task.rotations else 0
        return self.kept.size - head + task.output_dropped

    def differs(self, before: "_Seen") -> bool:
        """Whether there is more output, or something else of the task changed."""
        return (self.record, self.total_bytes) != (before.record, before.total_bytes)


class TaskBoard:
    """One service behind the tools, the chat and the API."""

    def __init__(self, units: Units, clock: Clock) -> None:
        self._units = units
        self._clock = clock

    async def listing(
        self,
        session_id: str,
        *,
        status: Status | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[TaskRecord]:
        """A session's tasks in the order of their making. Raises `NotFound` and `InvalidInput`."""
        after = "" if cursor is None else str(cursors.decode(cursor, str)[0])

        def work(conn: Connection) -> Page[TaskRecord]:
            sessions.get(conn, session_id)
            found = rows.listing(conn, session_id, status=status, after=after, limit=limit + 1)
            more = len(found) > limit
            items = tuple(rows.records(conn, found[:limit]))
            return Page(
                items=items,
                next_cursor=cursors.encode(items[-1].id) if more else None,
                total_count=rows.total(conn, session_id, status),
            )

        return await self._units.database.read(work)

    async def get(self, session_id: str, task_id: str) -> TaskRecord:
        """One task. Raises `NotFound`."""
        return await self._units.database.read(
            lambda conn: _record(conn, rows.get(conn, session_id, task_id))
        )

    async def id_of(self, session_id: str, name: str) -> str:
        """The id of the task that people call by this code, where one of the session has it; else
        the name as it stands."""
        if len(name) != CODE_LENGTH:
            return name
        named = await self._units.database.read(
            lambda conn: rows.ending_with(conn, session_id, name.lower())
        )
        return named[0].id if len(named) == 1 else name

    async def create(
        self,
        session_id: str,
        asked: TaskCreate,
        *,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> TaskRecord:
        """Make a task that somebody does; a repeated request gets the task of the first. Raises as
        `changes.create`, and `Conflict` for a key that came with another request."""
        key = request_key(f"task:{session_id}", idempotency_key, asked.model_dump(mode="json"))

        def work(unit: Unit) -> TaskRecord:
            conn = unit.conn
            kept = idempotency.claim(conn, key)
            if kept is not None:
                return _record(conn, rows.get(conn, session_id, str(kept["task_id"])))
            task = changes.create(unit, session_id, asked, run_id=run_id)
            idempotency.keep(conn, key, {"task_id": task.id})
            return _record(conn, task)

        return await self._units.run(work, name="task-create")

    async def update(
        self, session_id: str, task_id: str, asked: TaskUpdate, *, run_id: str | None = None
    ) -> TaskRecord:
        """Change a task. Raises as `changes.update`."""

        def work(unit: Unit) -> TaskRecord:
            changed = changes.update(unit, session_id, task_id, asked, run_id=run_id)
            return _record(unit.conn, changed)

        return await self._units.run(work, name="task-update")

    async def stop(
        self,
        session_id: str,
        task_id: str,
        *,
        reason: str | None = None,
        by: str,
        run_id: str | None = None,
    ) -> TaskRecord:
        """Stop a task (TSK-5). Raises `NotFound`."""

        def work(unit: Unit) -> TaskRecord:
            stopped = changes.request_stop(unit, session_id, task_id, reason, by, run_id=run_id)
            return _record(unit.conn, stopped)

        return await self._units.run(work, name="task-stop")

    async def write(
        self,
        session_id: str,
        task_id: str,
        text: str,
        *,
        closes: bool = False,
        into: str | None = None,
    ) -> TaskRecord:
        """Type into a command; whoever holds it passes it on. Who was allowed to type into one
        command says `into` which, and may not end a line that somebody else has begun: nobody has
        judged the whole of it. Raises `NotFound`, `InvalidInput`, `Conflict` where it reads no
        more, and `QueueFull`."""
        if len(text.encode()) > MOST_INPUT:
            raise InvalidInput("text", f"must be at most {MOST_INPUT:,} bytes")

        def work(unit: Unit) -> TaskRecord:
            unit.lane(session_id)
            task = rows.get(unit.conn, session_id, task_id)
            if task.kind != SHELL:
                raise InvalidInput("task_id", "must be a command in the background")
            if task.status != "in_progress" or task.stop_requested_ms is not None:
                raise Conflict("the command reads no more", task.status)
            if task.facts.get("input_closed"):
                raise Conflict("the command's input is closed", task.status)
            if rows.waiting_input(unit.conn, task_id) >= MOST_WAITING:
                raise QueueFull("The command has not read what was typed before.")
            if into is not None:
                _must_be_judged(task, into)
            rows.type_in(unit.conn, task_id, Typed(text, closes))
            if text and bool(task.facts.get(LINE_BEGUN)) is ends_line(text):
                task = changes.note(unit, task, {LINE_BEGUN: None if ends_line(text) else True})
            unit.say(TASKS, {"task_id": task_id})
            return _record(unit.conn, task)

        return await self._units.run(work, name="task-write")

    async def output(
        self, workspace: Path, session_id: str, task_id: str, asked: OutputRequest
    ) -> TaskOutputView:
        """What a task printed. Waiting ends with more output, or a change of the task. Raises
        `NotFound`."""
        try:
            return await self._output(workspace, session_id, task_id, asked)
        except ExceptionGroup as group:
            # That of the TaskGroup, whose other task raises nothing.
            raise group.exceptions[0] from None

    async def _output(
        self, workspace: Path, session_id: str, task_id: str, asked: OutputRequest
    ) -> TaskOutputView:
        look = partial(self._look, workspace, session_id, task_id, asked)
        if not asked.wait:
            seen = await look()
            return _view(seen, asked, "success" if seen.task.is_over else "not_ready")
        # In front of the first look: what changes in between is signalled, not missed.
        async with self._units.bus.subscribe(TASKS) as signals, asyncio.TaskGroup() as group:
            wake = Wake(self._clock)
            listening = group.create_task(_listen(signals, task_id, wake), name="task news")
            try:
                first = seen = await look()
                until = self._clock.monotonic() + asked.timeout_ms / 1000
                while not seen.task.is_over and not seen.differs(first):
                    left_s = until - self._clock.monotonic()
                    if left_s <= 0:
                        return _view(seen, asked, "timeout")
                    await wake.wait(left_s)
                    seen = await look()
                return _view(seen, asked, "success")
            finally:
                listening.cancel()

    async def _look(
        self, workspace: Path, session_id: str, task_id: str, asked: OutputRequest
    ) -> _Seen:
        def work(conn: Connection) -> tuple[Task, TaskRecord]:
            task = rows.get(conn, session_id, task_id)
            return task, _record(conn, task)

        task, record = await self._units.database.read(work)
        kept = None
        if task.output_path is not None:
            most = _ALL_BYTES if asked.full else asked.tail_bytes
            kept = await asyncio.to_thread(read_output, workspace, task.output_path, most)
        return _Seen(task, record, kept)


async def _listen(signals: AsyncIterator[Signal], task_id: str, wake: Wake) -> None:
    async for signal in signals:
        if signal.gap or signal.data.get("task_id") == task_id:
            wake.set()


def _must_be_judged(task: Task, into: str) -> None:
    """Raises where what is typed is not what was decided about."""
    if not is_same_command(into, task.description):
        raise InvalidInput("command", f"must be what this task runs: {quoted(task.description)}")
    if task.facts.get(LINE_BEGUN):
        raise Conflict(
            "somebody has typed the beginning of a line; whoever did must end it first", task.status
        )


def _record(conn: Connection, task: Task) -> TaskRecord:
    return rows.records(conn, [task])[0]


def _view(seen: _Seen, asked: OutputRequest, status: Retrieval) -> TaskOutputView:
    view = TaskOutputView(retrieval_status=status, task=seen.record)
    task, kept = seen.task, seen.kept
    if kept is None:
        return view
    excerpt = kept
    if asked.full:
        tail = kept.text.encode()[-asked.tail_bytes :].decode(errors="ignore")
        excerpt = replace(kept, text=tail)
    return view.model_copy(
        update={
            "output_file_path": task.output_path,
            "output_excerpt": excerpt.text,
            "output_text": kept.text if asked.full else None,
            "output_truncated": kept.skipped > 0 or task.rotations > 0,
            "output_size_bytes": kept.size,
            "output_total_bytes": seen.total_bytes,
            "output_rotated": task.rotations > 0,
            "output_rotation_count": task.rotations,
        }
    )
