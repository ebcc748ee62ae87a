"""Commands in the background as people meet them, on each database, under a clock that moves on
command (TOOL-6, TSK-2 to TSK-6)."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.decisions import PermissionMode, SessionMode
from runtime.domain.errors import Conflict, InvalidInput, NotFound, QueueFull, ToolError
from runtime.domain.ids import code_of
from runtime.features.tasks import board as boards
from runtime.features.tasks import shell_tasks
from runtime.features.tasks.board import TaskBoard
from runtime.features.tasks.model import OutputRequest, TaskCreate, TaskOutputView, TaskRecord
from runtime.features.tasks.output_file import output_path
from runtime.features.tasks.shell_tasks import GRACE_S, QUIET_S
from runtime.policy.decide import Bounds, CallFacts, decide
from runtime.policy.risk import risk_of
from runtime.sessions.bounds import PolicySettings
from runtime.tools.base import ToolContext
from runtime.tools.seen_versions import SeenFiles
from runtime.workspace.layout import Layout
from tests.contract.store_support import postgres_server
from tests.fakes.clock import settle
from tests.fakes.model import Said, ScriptedModel
from tests.fakes.sandbox import FakeSandbox, FakeStdio, Program, forever, obeying
from tests.scenario.cards import audited, both, card, policy, results
from tests.scenario.engine import OWNER, Setup, World
from tests.scenario.replicas import beside
from tests.scenario.schedules.test_reminders import House, goes_on, hears, house

__all__ = ["house"]

HERE = f"D-{OWNER}"
FREE = policy(PolicySettings(mode=PermissionMode.BYPASS))


async def three_lines(stdio: FakeStdio) -> int:
    """A command that prints and ends well."""
    await stdio.write(b"one\ntwo\nthree\n")
    return 0


async def breaks(stdio: FakeStdio) -> int:
    """A command that prints and ends badly."""
    await stdio.write(b"no such ``` thing\n")
    return 3


async def asks_back(stdio: FakeStdio) -> int:
    """A command that waits for a person."""
    await stdio.write(b"Overwrite it? [y/N] ")
    said = await stdio.input.readline()
    await stdio.write(b"\nyou said " + said)
    return 0


async def talks(stdio: FakeStdio) -> int:
    """A command that prints a line for each line that it reads, until its input ends."""
    while line := await stdio.input.readline():
        await stdio.write(b"heard " + line)
    return 0


PROGRAMS: dict[str, Program] = {
    "three": three_lines,
    "breaks": breaks,
    "asks": obeying(asks_back),
    "talks": obeying(talks),
    "stubborn": talks,
    "forever": forever,
}


def with_commands(setup: Setup) -> Setup:
    """A setup whose commands are `PROGRAMS`."""
    return replace(setup, sandbox=FakeSandbox(setup.clock, PROGRAMS))


def running(command: str, **more: object) -> Said:
    """A response that starts a command in the background."""
    asked = json.dumps({"command": command, "background": True, **more})
    return Said(calls=(("exec", asked),))


def starting(command: str, **more: object) -> ScriptedModel:
    """A model that starts a command in the background, and says so."""
    return ScriptedModel([running(command, **more), "It runs."])


def begins(house: House, model: ScriptedModel | None, *changes: Callable[[Setup], Setup]):
    return house.begins(model, change=both(with_commands, *(changes or (FREE,))))


def board(at: World) -> TaskBoard:
    return TaskBoard(at.engine.units, at.engine.parts.clock)


async def seen(at: World, session: str, task: TaskRecord, **asked: object) -> TaskOutputView:
    """What a task printed."""
    return await board(at).output(at.workspace, session, task.id, OutputRequest(**asked))


class Begun:
    """A command that a person had started, and the conversation where they did."""

    def __init__(self, at: World, session: str, run: str, task: TaskRecord) -> None:
        self.at, self.session, self.run, self.task = at, session, run, task

    @classmethod
    async def of(cls, at: World) -> "Begun":
        accepted = await at.says("run it")
        await at.chat.until(lambda: "It runs." in at.chat.texts(HERE))
        page = await board(at).listing(accepted.session_id)
        return cls(at, accepted.session_id, str(accepted.run_id), page.items[-1])

    @property
    def code(self) -> str:
        return code_of(self.task.id)

    async def now(self) -> TaskRecord:
        return await board(self.at).get(self.session, self.task.id)

    async def over(self, status: str) -> TaskRecord:
        """The task once it is over, which it is by a change and not by time."""
        await self.output(wait=True)
        while (found := await self.now()).status == "in_progress":
            await self.output(wait=True)
        assert found.status == status
        return found

    async def output(self, **asked: object) -> TaskOutputView:
        return await seen(self.at, self.session, self.task, **asked)

    async def printed(self, end: str) -> TaskOutputView:
        """What it printed, once that ends so."""
        while not ((view := await self.output()).output_excerpt or "").endswith(end):
            # A wait would begin behind what was printed meanwhile.
            await settle()
        return view

    def notices(self) -> list[str]:
        """What people were told of the task."""
        return [text for text in self.at.chat.texts(HERE) if text.startswith(f"Task `{self.code}`")]


@pytest.mark.requirement("TOOL-6", "TSK-2")
async def test_who_asked_is_told_once_when_it_is_done_and_sees_what_it_printed(
    house: House,
) -> None:
    async with begins(house, starting("three")) as at:
        command = await Begun.of(at)
        task = await command.over("completed")
        assert (task.metadata["exit_code"], task.metadata["terminal_reason"]) == (0, "exited")
        await at.chat.until(lambda: len(command.notices()) == 1)
        assert command.notices() == [
            f"Task `{command.code}`, `three`: done.\n\n```\none\ntwo\nthree\n```"
        ]
        view = await command.output(full=True)
        assert view.retrieval_status == "success"
        assert view.output_text == view.output_excerpt == "one\ntwo\nthree\n"
        assert (view.output_size_bytes, view.output_total_bytes) == (14, 14)
        assert (view.output_truncated, view.output_rotated) == (False, False)
        assert view.output_file_path == output_path(command.session, command.task.id)
        view = await command.output(tail_bytes=6)
        assert (view.output_excerpt, view.output_text) == ("three\n", None)
        assert view.output_truncated
        await goes_on(at, 60)
        assert len(command.notices()) == 1
    async with begins(house, None) as at:
        await goes_on(at, 60)
        assert [text for text in at.chat.texts(HERE) if text.startswith("Task")] == []


@pytest.mark.requirement("TSK-2")
async def test_a_command_that_fails_says_its_code_and_the_reading_succeeds(house: House) -> None:
    async with begins(house, starting("breaks")) as at:
        command = await Begun.of(at)
        task = await command.over("failed")
        assert task.metadata["exit_code"] == 3
        assert (await command.output()).retrieval_status == "success"
        await at.chat.until(lambda: len(command.notices()) == 1)
        assert command.notices() == [
            f"Task `{command.code}`, `breaks`: failed with exit code 3.\n\n"
            "````\nno such ``` thing\n````"
        ]


@pytest.mark.requirement("TOOL-6")
async def test_nobody_is_told_of_a_silent_one(house: House) -> None:
    async with begins(house, starting("three", notify="silent")) as at:
        command = await Begun.of(at)
        await command.over("completed")
        await goes_on(at, 5)
        assert command.notices() == []


@pytest.mark.requirement("TOOL-6")
async def test_a_session_runs_so_many_at_once_and_more_when_one_has_ended(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shell_tasks.MOST_LIVE == 20
    monkeypatch.setattr(shell_tasks, "MOST_LIVE", 1)
    again = Said(calls=(*running("forever").calls, *running("three").calls))
    begun = running("talks", notify="silent")
    model = ScriptedModel([begun, "It runs.", again, "Some run."])
    async with begins(house, model) as at:
        command = await Begun.of(at)
        await board(at).write(command.session, command.task.id, "", closes=True)
        await command.over("completed")
        assert await hears(at, "again") == "Some run."
        tasks = (await board(at).listing(command.session)).items
        assert sorted(one.title for one in tasks) == ["forever", "talks"]
        refused = [one.content for one in results(model.requests[-1])]
        assert "1 commands of this session run already; stop one" in refused[1]


@pytest.mark.requirement("TOOL-6", "APR-3")
async def test_a_person_is_asked_about_it_as_about_any_command(house: House) -> None:
    async with begins(house, starting("three"), policy(PolicySettings())) as at:
        accepted = await at.says("run it")
        asked = await card(at)
        assert (await board(at).listing(accepted.session_id)).items == ()
        assert (await at.presses(asked.open_call_id, "once")).accepted
        await at.chat.until(lambda: any(": done." in text for text in at.chat.texts(HERE)))
        assert len((await board(at).listing(accepted.session_id)).items) == 1


@pytest.mark.requirement("TOOL-6")
async def test_it_outlives_its_turn_and_reads_what_is_typed(house: House) -> None:
    async with begins(house, starting("talks")) as at:
        command = await Begun.of(at)
        assert (await command.now()).status == "in_progress"
        await board(at).write(command.session, command.task.id, "hello\n")
        await command.printed("heard hello\n")
        await board(at).write(command.session, command.task.id, "", closes=True)
        await command.over("completed")
        with pytest.raises(Conflict) as refused:
            await board(at).write(command.session, command.task.id, "more\n")
        assert refused.value.state == "completed"
        with pytest.raises(InvalidInput):
            await board(at).write(command.session, command.task.id, "x" * 70_000)


@pytest.mark.requirement("TSK-3")
async def test_waiting_wakes_by_a_signal_and_not_by_time(house: House) -> None:
    async with begins(house, starting("talks")) as at:
        command = await Begun.of(at)
        assert (await command.output()).retrieval_status == "not_ready"
        before, sleeping = at.engine.parts.clock.monotonic(), at.engine.parts.clock.sleeping
        waiting = asyncio.create_task(command.output(wait=True), name="waiting")
        while at.engine.parts.clock.sleeping == sleeping:
            await settle()
        await board(at).write(command.session, command.task.id, "one\n")
        view = await waiting
        assert (view.retrieval_status, view.output_excerpt) == ("success", "heard one\n")
        assert at.engine.parts.clock.monotonic() == before
        assert (await command.output(wait=True, timeout_ms=0)).retrieval_status == "timeout"


@pytest.mark.requirement("TSK-1", "TSK-2")
async def test_waiting_ends_with_its_time_and_says_so(house: House) -> None:
    async with begins(house, starting("forever")) as at:
        command = await Begun.of(at)
        sleeping = at.engine.parts.clock.sleeping
        waiting = asyncio.create_task(command.output(wait=True, timeout_ms=5_000), name="waiting")
        while at.engine.parts.clock.sleeping == sleeping:
            await settle()
        await goes_on(at, 4.9)
        assert not waiting.done()
        await goes_on(at, 0.2)
        view = await waiting
        assert (view.retrieval_status, view.task.status) == ("timeout", "in_progress")


@pytest.mark.requirement("TSK-3")
async def test_waiting_wakes_when_the_task_changes(house: House) -> None:
    async with begins(house, starting("forever")) as at:
        command = await Begun.of(at)
        # What began the command may still hold timers: they end first, or the count would not grow.
        await at.engine.parts.clock.advance(0)
        before, sleeping = at.engine.parts.clock.monotonic(), at.engine.parts.clock.sleeping
        waiting = asyncio.create_task(command.output(wait=True), name="waiting")
        async with asyncio.timeout(180):
            while at.engine.parts.clock.sleeping == sleeping:
                await settle()
        await board(at).stop(command.session, command.task.id, reason="enough", by="me")
        assert (await waiting).task.metadata["stop_requested"] is True
        assert at.engine.parts.clock.monotonic() == before


@pytest.mark.requirement("TSK-5")
async def test_the_first_stop_counts_and_ends_it_with_evidence(house: House) -> None:
    async with begins(house, starting("forever")) as at:
        command = await Begun.of(at)
        first = await board(at).stop(command.session, command.task.id, reason="enough", by="me")
        assert first.status == "in_progress"
        assert first.metadata["stop_requested"] is True
        await board(at).stop(command.session, command.task.id, reason="again", by="me")
        task = await command.over("cancelled")
        assert task.metadata["stop_reason"] == "enough"
        assert task.metadata["process_tree_shutdown_confirmed"] is True
        assert task.metadata["process_tree_shutdown_matched_target"] is True
        assert task.metadata["process_tree_shutdown_signal_sent"] is True
        assert task.metadata["process_tree_shutdown_supported"] is True
        assert task.metadata["process_tree_remaining_pids"] == []
        again = await board(at).stop(command.session, command.task.id, reason="late", by="me")
        assert again == task
        assert [(one.actor, one.session_id, one.data) for one in await audited(at, "task.")] == [
            ("me", command.session, {"task_id": task.id, "reason": "enough"})
        ]
        await at.chat.until(lambda: len(command.notices()) == 1)
        assert ": stopped." in command.notices()[0]


@pytest.mark.requirement("TSK-5")
async def test_another_session_reaches_no_task(house: House) -> None:
    async with begins(house, starting("forever")) as at:
        command = await Begun.of(at)
        other = (await at.says("/status", user="U-member")).session_id
        tasks = board(at)
        for attempt in (
            tasks.get(other, command.task.id),
            tasks.stop(other, command.task.id, by="me"),
            tasks.write(other, command.task.id, "x"),
            seen(at, other, command.task),
        ):
            with pytest.raises(NotFound):
                await attempt
        assert (await command.now()).status == "in_progress"


async def test_a_command_that_asks_is_noticed_and_said_once(house: House) -> None:
    async with begins(house, starting("asks")) as at:
        command = await Begun.of(at)
        await command.printed("[y/N] ")
        await goes_on(at, QUIET_S + 1)
        task = await command.now()
        assert task.metadata["waiting_for_input"] is True
        assert task.metadata["prompt"] == "Overwrite it? [y/N]"
        assert len(command.notices()) == 1
        assert "waiting for input" in command.notices()[0]
        assert "`Overwrite it? [y/N]`" in command.notices()[0]
        await board(at).write(command.session, command.task.id, "y\n")
        task = await command.over("completed")
        assert "waiting_for_input" not in task.metadata
        assert (await command.output()).output_excerpt.endswith("you said y\n")


@pytest.mark.requirement("TSK-6")
async def test_a_restart_fails_it_keeps_its_output_and_makes_sure_of_its_processes(
    house: House,
) -> None:
    async with begins(house, starting("talks")) as at:
        command = await Begun.of(at)
        workspace = at.workspace
        await board(at).write(command.session, command.task.id, "hello\n")
        await command.printed("heard hello\n")
    async with begins(house, None) as at:
        # A replica waits until the lease of the one that is gone has ended.
        await goes_on(at, 60)
        task = await board(at).get(command.session, command.task.id)
        assert task.status == "failed"
        alone = at.database.dialect == "sqlite"
        reason = "daemon_restarted" if alone else "replica_lost"
        assert task.metadata["terminal_reason"] == reason
        assert task.metadata.get("recovered_on_boot", False) is alone
        assert task.metadata["process_tree_shutdown_confirmed"] is True
        told = [text for text in at.chat.texts(HERE) if text.startswith("Task")]
        assert len(told) == 1
        asked = OutputRequest()
        view = await board(at).output(workspace, command.session, command.task.id, asked)
        assert view.output_excerpt == "heard hello\n"
        await goes_on(at, 60)
        assert len([text for text in at.chat.texts(HERE) if text.startswith("Task")]) == 1


@pytest.mark.requirement("TSK-3", "TSK-6")
async def test_stop_and_input_reach_the_replica_that_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = both(with_commands, FREE)
    async with (
        beside(tmp_path, postgres_server()) as place,
        place.replica("one", starting("talks"), change) as one,
        place.replica("two", ScriptedModel([]), change) as two,
    ):
        command = await Begun.of(one.world)
        other = board(two.world)
        # No signal of one ever reaches the other here: the tick finds it.
        await other.write(command.session, command.task.id, "hello\n")
        monkeypatch.setattr(boards, "MOST_WAITING", 1)
        with pytest.raises(QueueFull, match="has not read"):
            await other.write(command.session, command.task.id, "too much\n")
        await place.clock.advance(2)
        assert (await command.output()).output_excerpt == "heard hello\n"
        await other.stop(command.session, command.task.id, by="me")
        waiting = asyncio.create_task(
            seen(two.world, command.session, command.task, wait=True), name="waiting"
        )
        await place.clock.advance(2 + GRACE_S)
        assert (await command.now()).status == "cancelled"
        # Who waits beside the other replica hears that it missed something, and looks.
        assert not waiting.done()
        two.world.engine.parts.bus.lose()
        async with asyncio.timeout(180):
            assert (await waiting).task.status == "cancelled"


@pytest.mark.requirement("TSK-6")
async def test_the_others_fail_what_a_replica_held_whose_lease_ended(tmp_path: Path) -> None:
    change = both(with_commands, FREE)
    async with (
        beside(tmp_path, postgres_server()) as place,
        place.replica("one", starting("forever"), change) as one,
        place.replica("two", ScriptedModel([]), change) as two,
    ):
        command = await Begun.of(one.world)
        await one.dies()
        await place.clock.advance(60)
        task = await board(two.world).get(command.session, command.task.id)
        assert (task.status, task.metadata["terminal_reason"]) == ("failed", "replica_lost")
        assert "recovered_on_boot" not in task.metadata


@pytest.mark.requirement("TSK-1")
async def test_a_command_that_is_done_unblocks_what_waits_for_it(house: House) -> None:
    async with begins(house, starting("talks")) as at:
        command = await Begun.of(at)
        asked = TaskCreate(title="then this", blocked_by=(command.task.id,))
        waiting = await board(at).create(command.session, asked)
        assert waiting.status == "blocked"
        await board(at).write(command.session, command.task.id, "", closes=True)
        await command.over("completed")
        assert (await board(at).get(command.session, waiting.id)).status == "pending"


async def test_in_the_chat_tasks_are_listed_and_stopped(house: House) -> None:
    async with begins(house, starting("forever")) as at:
        assert await hears(at, "/tasks") == "There are no tasks in this conversation."
        command = await Begun.of(at)
        listed = await hears(at, "/tasks")
        assert listed.startswith(f"- `{command.code}` `forever`: running\n")
        assert "no task" in await hears(at, "/tasks stop abcdef")
        answer = await hears(at, f"/tasks stop {command.code}")
        assert answer == f"Task `{command.code}` is being stopped."
        task = await command.over("cancelled")
        assert task.metadata["stop_reason"] == "stopped by owner"
        await at.chat.until(lambda: len(command.notices()) == 2)
        assert "over already: stopped" in await hears(at, f"/tasks stop {command.code}")


def given(at: World, session: str, run: str = "run_none") -> ToolContext:
    """The context of a call of a session."""
    layout = Layout.of(at.workspace)
    return ToolContext(
        session,
        run,
        "c1",
        layout=layout,
        roots=(),
        files=SeenFiles(),
        emit=lambda text: None,
    )


@pytest.mark.requirement("TOOL-6", "TSK-2")
async def test_the_tools_show_type_and_stop_by_the_same_service(house: House) -> None:
    async with begins(house, starting("stubborn")) as at:
        command = await Begun.of(at)
        context = given(at, command.session, command.run)
        tools = {tool.name: tool for tool in at.engine.parts.registry.tools}

        async def does(name: str, **asked: object) -> str:
            named = {} if name in ("task_create", "task_list") else {"id": command.task.id}
            return (await tools[name].bind({**named, **asked}).run(context)).content

        assert '"status":"in_progress"' in await does("task_get")
        assert await does("task_list") == f"[in_progress] {command.task.id}: stubborn"
        typed = await does("task_write", command="stubborn", text="hello")
        assert typed.startswith("Typed. [in_progress]")
        await command.printed("heard hello\n")
        shown = await does("task_output")
        assert shown == f"[in_progress] {command.task.id}: stubborn\nheard hello\n"
        made = await does("task_create", title="later", blocked_by=[command.task.id])
        assert made.startswith("[blocked] tsk_")
        assert (await does("task_stop", reason="enough")).startswith("[in_progress]")
        # It does not obey SIGTERM.
        await goes_on(at, GRACE_S + 1)
        await command.over("cancelled")
        shown = await does("task_output")
        assert shown.startswith("[cancelled, exit code ")
        assert "stop_reason: enough" in shown
        with pytest.raises(ToolError, match="reads no more"):
            await does("task_write", command="stubborn", text="more")
        other = given(at, (await at.says("/status", user="U-member")).session_id)
        with pytest.raises(ToolError, match="no task has the id"):
            await tools["task_get"].bind({"id": command.task.id}).run(other)


@pytest.mark.requirement("TOOL-6")
async def test_what_is_typed_is_asked_about_as_a_command_is(house: House) -> None:
    async with begins(house, starting("talks")) as at:
        command = await Begun.of(at)
        tool = next(one for one in at.engine.parts.registry.tools if one.name == "task_write")
        asked = tool.bind({"id": command.task.id, "command": "talks", "text": "rm -rf ."})
        touches = asked.touches(given(at, command.session))
        assert (touches.command, touches.like) == ("rm -rf .", ("exec",))


@pytest.mark.requirement("TOOL-6", "POL-2", "UI-8")
async def test_what_is_typed_is_never_taken_for_a_command_that_only_reads(house: House) -> None:
    """A shell reads `cat notes.txt`; an `xargs rm` that is at work removes what it names."""
    async with begins(house, starting("talks")) as at:
        command = await Begun.of(at)
        tool = next(one for one in at.engine.parts.registry.tools if one.name == "task_write")
        asked = tool.bind({"id": command.task.id, "command": "talks", "text": "cat notes.txt"})
        facts = CallFacts(tool.name, tool.effect, asked.touches(given(at, command.session)))
        for mode in (SessionMode.PLAN, SessionMode.ASK):
            found = decide(facts, Bounds(session_mode=mode))
            assert found.rule == f"mode: {mode.value} mode types nothing into commands"
            assert found.verdict == "deny"
        assert decide(facts, Bounds()).verdict == "ask"
        assert risk_of(facts, sandboxed=True).level == "high"


@pytest.mark.requirement("TSK-1", "TOOL-11")
async def test_the_question_of_a_command_is_its_output_wherever_it_is_shown(house: House) -> None:
    async with begins(house, starting("asks")) as at:
        command = await Begun.of(at)
        tool = next(one for one in at.engine.parts.registry.tools if one.name == "task_get")
        look = tool.bind({"id": command.task.id})
        assert not (await look.run(given(at, command.session))).untrusted
        await command.printed("[y/N] ")
        await goes_on(at, QUIET_S + 1)
        shown = await look.run(given(at, command.session))
        assert "Overwrite it?" in shown.content
        assert (shown.untrusted, shown.source) == (True, "output of a command")
