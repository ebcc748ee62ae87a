"""Commands in the background: started, read, fed, stopped and made sure of (TOOL-6, TSK-4 to 6).

The process that starts a command holds it until it ends. Others ask for a stop or type by rows,
which the holder is signalled of; the tick finds what no signal told. A command whose holder is gone
is marked by whoever finds it, and its processes are ended where this host has them.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from runtime.domain.errors import InvalidInput, StoreUnavailable, ToolError
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.value import JsonObject
from runtime.engine.feature import nothing_begun
from runtime.features.tasks import changes, rows
from runtime.features.tasks.model import Status
from runtime.features.tasks.output_file import OutputFile, asks, output_path, read_output
from runtime.features.tasks.rows import TASKS_DUE, Task, Typed
from runtime.ports.bus import TASKS
from runtime.ports.clock import Clock, Timer
from runtime.ports.sandbox import (
    ProcessIdentity,
    Sandbox,
    SandboxExit,
    SandboxProcess,
    SandboxUnavailable,
    TreeEnd,
)
from runtime.process.due_poll import Looks
from runtime.process.wakeup import Wake
from runtime.sessions.due_work import Due
from runtime.sessions.unit import Unit, Units
from runtime.tools.builtin.shell import BackgroundCommand

log = structlog.get_logger(__name__)

GRACE_S: Final = 5.0
"""Between SIGTERM and SIGKILL."""
MOST_LIVE: Final = 20
"""Commands of one session that are at work."""
NEWS_S: Final = 0.2
"""The least time between two signals that a command printed more."""
QUIET_S: Final = 3.0
"""This long without a word behind a line that looks like a question, a command waits for input."""
CHECK_S: Final = 30.0
"""How often a holder looks whether a command is its own still."""
AGAIN_S: Final = 1.0
_TAIL_BYTES: Final = 4096
RESTARTED, LOST, NOT_STARTED = "daemon_restarted", "replica_lost", "not_started"
UNHELD = "holder_failed"


@dataclass(frozen=True, slots=True)
class HolderServices:
    """What a holder works with. `worker` is its name among the lease holders; `host` names the
    processes that it can see; `clean` masks the gateway's secrets in what commands print, and
    `begun` says how much at the end of a text may be the beginning of one."""

    units: Units
    clock: Clock
    looks: Looks
    sandbox: Sandbox
    workspace: Path
    worker: str
    host: str
    clean: Callable[[str], str] = str
    begun: Callable[[str], int] = nothing_begun


@dataclass(slots=True)
class _Held:
    """One command at work. `evidence` is what came of ending it, once somebody asked for that, and
    `left` says that this process did, because it is being stopped itself. `asked`: the command
    waits for input; `noted`: its task says so; `told`: people heard of it since they last typed."""

    task: Task
    process: SandboxProcess
    file: OutputFile
    ends: Wake
    input: Wake
    stopping: bool = False
    left: bool = False
    evidence: TreeEnd | None = None
    asked: bool = False
    noted: bool = False
    told: bool = False
    quiet: Timer | None = None
    news: Timer | None = None
    more: bool = False

    def cancel_timers(self) -> None:
        """Nothing is to be said any more."""
        for timer in (self.quiet, self.news):
            if timer is not None:
                timer.cancel()


class ShellTasks:
    """Holds the commands of one process."""

    def __init__(self, services: HolderServices) -> None:
        self._services = services
        self._units = services.units
        self._clock = services.clock
        self._wake = Wake(services.clock)
        self._held: dict[str, _Held] = {}
        self._starting: set[str] = set()
        self._group: asyncio.TaskGroup | None = None
        self._attending: set[asyncio.Task[None]] = set()
        self._leaving = False

    async def start(self, begun: BackgroundCommand) -> str:
        """Start a command and hold it; the id of its task. Raises `ToolError` where it cannot be
        had."""
        if self._group is None:
            raise ToolError("background: no command can be started now; try again later")
        task_id = new_id(IdPrefix.TASK, self._clock.now_ms())
        self._starting.add(task_id)
        try:
            add = partial(_add, services=self._services, begun=begun, task_id=task_id)
            task = await self._units.run(add, name="task-create")
            await self._launch(begun, task)
        finally:
            self._starting.discard(task_id)
            if task_id not in self._held:
                # Whoever asked may have been cancelled: then the next round ends the task.
                self._wake.set()
        return task_id

    async def keep(self) -> None:
        """Hold commands, and look after those that nobody holds, until cancelled."""
        with self._services.looks.for_feature(TASKS_DUE, self._tell):
            async with asyncio.TaskGroup() as group:
                self._group, self._leaving = group, False
                try:
                    await self._look_after()
                finally:
                    self._group = None
                    await self._leave()

    async def listen(self) -> None:
        """Hear of stops and input until cancelled."""
        async with self._units.bus.subscribe(TASKS) as signals:
            async for signal in signals:
                if signal.gap:
                    self._wake_all()
                held = self._held.get(str(signal.data.get("task_id")))
                if held is not None and not signal.data.get("printed"):
                    held.ends.set()
                    held.input.set()

    def _tell(self, due: Due) -> None:
        if TASKS_DUE.name in due.features:
            self._wake_all()

    def _wake_all(self) -> None:
        self._wake.set()
        for held in self._held.values():
            held.ends.set()
            held.input.set()

    async def _leave(self) -> None:
        """End what is held as a stop does, and wait for that; their tasks are for the next life."""
        self._leaving = True
        for held in self._held.values():
            held.ends.set()
        if self._attending:
            await asyncio.wait(self._attending)

    async def _launch(self, begun: BackgroundCommand, task: Task) -> None:
        """The command at work, noted and held. On any failure nothing of it is left, and the task
        says that it was not started."""
        try:
            async with AsyncExitStack() as undo:
                file = await asyncio.to_thread(self._file, task)
                undo.callback(file.close)
                await asyncio.to_thread(begun.unchanged)
                command = replace(begun.command, token=task.token, stdin="open")
                process = await self._services.sandbox.start(command)
                undo.push_async_exit(process)
                started = partial(_started, task_id=task.id, identity=process.identity)
                task = await self._units.run(started, name="task-started")
                group = self._group
                if group is None:
                    raise ToolError("the gateway is being stopped")
                self._hold(group, _Held(task, process, file, *self._wakes()))
                undo.pop_all()
        except (SandboxUnavailable, InvalidInput, OSError, ToolError) as error:
            # Nobody has to be told: whoever asked for it gets the error.
            facts: JsonObject = {"terminal_reason": NOT_STARTED, "error": str(error)}
            await self._units.run(
                partial(_not_started, task_id=task.id, facts=facts), name="task-end"
            )
            raise ToolError(f"the command was not run: {error}") from error

    def _wakes(self) -> tuple[Wake, Wake]:
        return Wake(self._clock), Wake(self._clock)

    def _hold(self, group: asyncio.TaskGroup, held: _Held) -> None:
        self._held[held.task.id] = held
        attending = group.create_task(self._attend(held), name=f"shell task {held.task.id}")
        self._attending.add(attending)
        attending.add_done_callback(self._attending.discard)

    def _file(self, task: Task) -> OutputFile:
        services, path = self._services, task.output_path or ""
        return OutputFile(services.workspace, path, clean=services.clean, begun=services.begun)

    async def _attend(self, held: _Held) -> None:
        """See one command through to its end."""
        try:
            end = await self._see_out(held)
            await self._end(held, end)
        except Exception:  # the worker root of a command: its defect must not end the others
            log.exception("shell_task_failed", task_id=held.task.id)
            # The next round finds that nobody holds it.
            self._wake.set()
        finally:
            held.cancel_timers()
            self._held.pop(held.task.id, None)
            held.file.close()

    async def _see_out(self, held: _Held) -> SandboxExit | None:
        """How it ended; None where not even SIGKILL ended it, which nobody waits for."""
        process, end = held.process, None
        async with process, asyncio.TaskGroup() as group:
            # Beside the reading: what a command left behind holds the output open until the wait
            # ends it.
            ending = group.create_task(process.wait(), name="shell task end")
            reading = group.create_task(self._read(held), name="shell task output")
            stopping = group.create_task(self._await_stop(held), name="shell task stop")
            feeding = group.create_task(self._feed(held), name="shell task input")
            await asyncio.wait({ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if held.evidence is None or held.evidence.confirmed:
                await reading
                end = await ending
            for task in (feeding, reading, ending, *([] if held.stopping else [stopping])):
                task.cancel()
        return end

    async def _read(self, held: _Held) -> None:
        while piece := await held.process.read():
            await self._keep_output(held, partial(held.file.append, piece))
        await self._keep_output(held, held.file.finish)

    async def _keep_output(self, held: _Held, write: Callable[[], bool]) -> None:
        try:
            rotated = await asyncio.to_thread(write)
        except OSError as error:
            # The command goes on: what it does counts for more than what it says.
            log.warning("task_output_lost", task_id=held.task.id, reason=str(error))
            return
        if rotated:
            await self._note(held, {}, **_sizes(held.file))
        self._say_news(held)
        if held.quiet is not None:
            held.quiet.cancel()
            held.quiet = None
        held.asked = False
        if held.noted:
            held.noted = False
            await self._note(held, {"waiting_for_input": None, "prompt": None})
        if asks(held.file.last_line):
            held.quiet = self._clock.call_later(QUIET_S, partial(self._is_quiet, held))

    def _is_quiet(self, held: _Held) -> None:
        held.asked = True
        held.input.set()

    def _say_news(self, held: _Held) -> None:
        """Tell who waits that there is more, now or with what comes within a moment."""
        held.more = True
        if held.news is None:
            self._publish_news(held)

    def _publish_news(self, held: _Held) -> None:
        held.news = None
        if held.more:
            held.more = False
            self._units.bus.publish(TASKS, {"task_id": held.task.id, "printed": True})
            held.news = self._clock.call_later(NEWS_S, partial(self._publish_news, held))

    async def _await_stop(self, held: _Held) -> None:
        """End the command once somebody asks for it, once it is this process's no more, or once
        this process is being stopped."""
        task = held.task
        while not self._leaving:
            try:
                now = await self._units.database.read(partial(rows.find, task_id=task.id))
            except StoreUnavailable as error:
                log.warning("tasks_wait", reason=str(error))
            else:
                mine = now is not None and not now.is_over and now.worker == task.worker
                if now is None or not mine or now.stop_requested_ms is not None:
                    break
            await held.ends.wait(CHECK_S)
        else:
            held.left = True
        held.stopping = True
        held.evidence = await held.process.terminate(GRACE_S)

    async def _feed(self, held: _Held) -> None:
        """Pass on what people and agents type, and say so once the command waits for it."""
        while True:
            try:
                if held.asked and not held.noted:
                    held.noted = True
                    await self._units.run(partial(_asked, held=held), name="task-prompt")
                    held.told = True
                waiting = await self._units.database.read(
                    partial(rows.waiting_input, task_id=held.task.id)
                )
                if waiting:
                    take = partial(_take_input, task=held.task)
                    await self._type(held, await self._units.run(take, name="task-input"))
            except StoreUnavailable as error:
                log.warning("tasks_wait", reason=str(error))
            await held.input.wait(CHECK_S)

    async def _type(self, held: _Held, pieces: Sequence[Typed]) -> None:
        held.told = False
        try:
            for piece in pieces:
                await held.process.write(piece.text.encode())
                if piece.closes:
                    held.process.close_stdin()
                    await self._note(held, {"input_closed": True})
        except (BrokenPipeError, ConnectionError):
            await self._note(held, {"input_closed": True})

    async def _note(self, held: _Held, facts: JsonObject, **values: object) -> None:
        note = partial(_note, task=held.task, facts=facts, values=values)
        try:
            await self._units.run(note, name="task-note")
        except StoreUnavailable as error:
            log.warning("task_not_noted", task_id=held.task.id, reason=str(error))

    async def _end(self, held: _Held, end: SandboxExit | None) -> None:
        """Keep what became of it, however long the database is away; a process that is being
        stopped leaves that to the next one."""
        path, workspace = held.task.output_path or "", self._services.workspace
        kept = await asyncio.to_thread(read_output, workspace, path, _TAIL_BYTES)
        settle = partial(_ended, held=held, end=end, tail="" if kept is None else kept.text)
        while True:
            try:
                await self._units.run(settle, name="task-end")
            except StoreUnavailable as error:
                log.warning("task_end_waits", task_id=held.task.id, reason=str(error))
                if self._leaving:
                    return
                # Also until this process is being stopped.
                await held.ends.wait(AGAIN_S)
            else:
                return

    async def _look_after(self) -> None:
        """Look after commands that nobody holds, whenever there may be some."""
        first = True
        while True:
            try:
                await self._round(first)
                first = False
            except StoreUnavailable as error:
                log.warning("tasks_wait", reason=str(error))
                await self._clock.sleep(AGAIN_S)
                continue
            await self._wake.wait(None)

    async def _round(self, first: bool) -> None:
        """Mark the commands that nobody holds any more, and end their processes where they are on
        this host; at the start also those that an earlier life could not make sure of."""
        services = self._services
        found = await self._units.database.read(rows.orphans)
        mine = await self._units.database.read(partial(rows.live_of, worker=services.worker))
        busy = self._held.keys() | self._starting
        unheld = [task for task in mine if task.id not in busy]
        lost: list[Task] = []
        for task in (*found, *unheld):
            reason = RESTARTED if first and self._sees(task) else LOST
            if task in unheld:
                reason = NOT_STARTED if task.pid is None else UNHELD
            work = partial(_lose, task=task, reason=reason)
            gone = await self._units.run(work, name="task-lost")
            if gone is not None:
                log.warning("task_lost", task_id=task.id, reason=reason)
                lost.append(gone)
        if first:
            lost = list(await self._units.database.read(rows.open_trees))
        for task in lost:
            if self._sees(task):
                await self._end_tree(task)

    def _sees(self, task: Task) -> bool:
        """Whether the processes of a command would be among those that this process can see."""
        alone = self._units.database.dialect == "sqlite"
        return alone or task.host == self._services.host

    async def _end_tree(self, task: Task) -> None:
        """End what is left of a command, by what tells its processes from all others."""
        identity = ProcessIdentity(task.pid or 0, task.started_ticks or 0, task.token or "")
        evidence = await self._services.sandbox.end_tree(identity, GRACE_S)
        facts = evidence_facts(evidence)
        left: dict[str, object] = {"tree_open": not evidence.confirmed}
        work = partial(_note, task=task, facts=facts, values=left)
        await self._units.run(work, name="task-tree")


def evidence_facts(evidence: TreeEnd) -> JsonObject:
    """What came of ending a process tree, as a task shows it (TSK-5)."""
    return {
        "process_tree_shutdown_confirmed": evidence.confirmed,
        "process_tree_shutdown_matched_target": evidence.matched_target,
        "process_tree_shutdown_signal_sent": evidence.signal_sent,
        "process_tree_shutdown_supported": evidence.supported,
        "process_tree_remaining_pids": list(evidence.remaining_pids),
    }


def exit_facts(end: SandboxExit) -> JsonObject:
    """How a command ended, as a task shows it."""
    facts: JsonObject = {"exit_code": end.code, "duration_ms": round(end.duration_s * 1000)}
    if end.limit is not None:
        facts["terminal_reason"] = f"{end.limit}_limit"
    elif end.signal is not None:
        facts |= {"terminal_reason": "signal", "signal": end.signal}
    else:
        facts["terminal_reason"] = "exited"
    return facts


def _sizes(file: OutputFile) -> dict[str, object]:
    return {"output_dropped": file.dropped, "rotations": file.rotations}


def _add(unit: Unit, *, services: HolderServices, begun: BackgroundCommand, task_id: str) -> Task:
    lane = unit.lane(begun.session_id)
    if rows.live_in(unit.conn, begun.session_id) >= MOST_LIVE:
        raise ToolError(f"background: {MOST_LIVE} commands of this session run already; stop one")
    title = " ".join(begun.text.split())
    task = Task(
        id=task_id,
        session_id=begun.session_id,
        kind="shell",
        title=title if len(title) <= 200 else f"{title[:197]}...",
        description=begun.text[:8_000],
        status="in_progress",
        created_ms=lane.now_ms,
        updated_ms=lane.now_ms,
        place=changes.place_of(unit, begun.session_id, begun.run_id),
        notify=begun.notify,
        asked_by=changes.asker_of(unit, begun.run_id),
        facts=changes.marked(unit, begun.run_id),
        worker=services.worker,
        host=services.host,
        token=secrets.token_hex(16),
        tree_open=True,
        output_path=output_path(begun.session_id, task_id),
    )
    changes.add_shell(unit, task, run_id=begun.run_id)
    return task


def _started(unit: Unit, task_id: str, identity: ProcessIdentity) -> Task:
    task = rows.find(unit.conn, task_id)
    if task is None:
        raise ToolError("its conversation was deleted")
    unit.lane(task.session_id)
    ids = {"pid": identity.pid, "started_ticks": identity.started_ticks}
    return rows.change(unit.conn, task, **ids)


def _live(unit: Unit, task: Task) -> Task | None:
    """The task as it is now, with its lane held; None where it is over, gone or another's."""
    if rows.find(unit.conn, task.id) is None:
        return None
    unit.lane(task.session_id)
    now = rows.find(unit.conn, task.id)
    return None if now is None or now.is_over or now.worker != task.worker else now


def _not_started(unit: Unit, task_id: str, facts: JsonObject) -> None:
    task = rows.find(unit.conn, task_id)
    now = None if task is None else _live(unit, task)
    if now is not None:
        now = rows.change(unit.conn, now, notify="silent", tree_open=False)
        changes.settle(unit, now, "failed", facts)


def _ended(unit: Unit, held: _Held, end: SandboxExit | None, tail: str) -> None:
    now = _live(unit, held.task)
    if now is None:
        return
    # It may have ended by itself before anybody could stop it.
    gone = TreeEnd(True, matched_target=False, signal_sent=False, supported=True)
    evidence, stopped = held.evidence or gone, now.stop_requested_ms is not None
    values = {**_sizes(held.file), "tree_open": not evidence.confirmed}
    if held.left and not stopped and (evidence.signal_sent or end is None):
        changes.note(unit, now, evidence_facts(evidence), **values)
        return
    facts = {**now.facts, **({} if end is None else exit_facts(end))}
    facts = {key: facts[key] for key in facts if key not in ("waiting_for_input", "prompt")}
    now = replace(now, facts=facts)
    if stopped or end is None:
        facts = {**evidence_facts(evidence), "terminal_reason": "stopped"}
        changes.settle(unit, now, "cancelled", facts, tail=tail, **values)
        return
    status: Status = "failed" if end.code != 0 or end.timed_out else "completed"
    changes.settle(unit, now, status, {}, tail=tail, **values)


def _lose(unit: Unit, task: Task, reason: str) -> Task | None:
    """Say that a command is lost, unless it is over by now or was taken back."""
    now = _live(unit, task)
    if now is None:
        return None
    facts: JsonObject = {"terminal_reason": reason}
    if reason == RESTARTED:
        facts["recovered_on_boot"] = True
    return changes.settle(unit, now, "failed", facts)


def _asked(unit: Unit, held: _Held) -> None:
    now = _live(unit, held.task)
    if now is None or not held.asked:
        return
    prompt = held.file.last_line.decode("utf-8", "replace").replace("\0", "").strip()
    facts: JsonObject = {"waiting_for_input": True, "prompt": prompt[-200:]}
    task = changes.note(unit, now, facts)
    if not held.told:
        changes.tell(unit, task, {"done"})


def _take_input(unit: Unit, task: Task) -> Sequence[Typed]:
    return [] if _live(unit, task) is None else rows.take_input(unit.conn, task.id)


def _note(unit: Unit, task: Task, facts: JsonObject, values: dict[str, object]) -> None:
    unit.lane(task.session_id)
    now = rows.find(unit.conn, task.id)
    if now is not None:
        changes.note(unit, now, facts, **values)
