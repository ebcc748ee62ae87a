"""Commands in the background when something is in the way: the gateway stops or is stopped, an end
cannot be confirmed, a start is cancelled, a command asks again (TOOL-6, TSK-5, TSK-6)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from typing_extensions import override

from gateway.logs import MASK, Redactor
from runtime.domain.errors import StoreUnavailable
from runtime.features.tasks import rows
from runtime.features.tasks.model import OutputRequest
from runtime.features.tasks.output_file import CAP_BYTES, KEPT_BYTES, marker
from runtime.features.tasks.shell_tasks import CHECK_S, GRACE_S, QUIET_S
from runtime.ports.sandbox import ProcessIdentity, SandboxCommand, TreeEnd
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.fakes.clock import settle
from tests.fakes.model import ScriptedModel
from tests.fakes.sandbox import FakeProcess, FakeSandbox, FakeStdio, Program, forever
from tests.scenario.cards import audited, both
from tests.scenario.engine import Setup, World
from tests.scenario.replicas import beside
from tests.scenario.schedules.test_reminders import House, goes_on, house
from tests.scenario.tasks.test_background_commands import (
    FREE,
    HERE,
    Begun,
    begins,
    board,
    obeying,
    starting,
    talks,
)
from tests.scenario.test_faulty_units import Faults

__all__ = ["house"]

Change = Callable[[Setup], Setup]


def of(**programs: Program) -> Change:
    """A setup whose commands are these."""

    def change(setup: Setup) -> Setup:
        return replace(setup, sandbox=FakeSandbox(setup.clock, programs))

    return change


async def stopped() -> None:
    """The gateway has stopped as it does for SIGTERM, while its database is there."""
    engines = [one for one in asyncio.all_tasks() if one.get_name().startswith("engine")]
    for engine in engines:
        engine.cancel()
    await asyncio.wait(engines)


@asynccontextmanager
async def next_life(house: House, change: Change = FREE) -> AsyncIterator[World]:
    """The gateway is started again, and whatever an earlier life left is marked."""
    async with begins(house, None, FREE, change) as at:
        await goes_on(at, 60)
        yield at


@pytest.mark.requirement("TSK-6")
async def test_a_stop_of_the_gateway_lets_a_command_end_by_itself(house: House) -> None:
    async def tidies(stdio: FakeStdio) -> int:
        await stdio.write(b"at work\n")
        await forever(stdio)
        await stdio.write(b"tidied\n")
        return 0

    async with begins(house, starting("tidies"), FREE, of(tidies=tidies)) as at:
        command = await Begun.of(at)
        await command.printed("at work\n")
        await stopped()
        workspace = at.workspace
        assert (await command.now()).status == "in_progress"
        assert (await command.output()).output_excerpt == "at work\ntidied\n"
    async with next_life(house) as at:
        task = await board(at).get(command.session, command.task.id)
        assert task.status == "failed"
        assert task.metadata["terminal_reason"] == "daemon_restarted"
        assert task.metadata["recovered_on_boot"] is True
        assert task.metadata["process_tree_shutdown_confirmed"] is True
        assert task.metadata["process_tree_shutdown_signal_sent"] is True
        asked = OutputRequest()
        view = await board(at).output(workspace, command.session, command.task.id, asked)
        assert view.output_excerpt == "at work\ntidied\n"
        told = [text for text in at.chat.texts(HERE) if text.startswith("Task")]
        assert len(told) == 1
        assert "failed: the gateway was restarted while it ran" in told[0]


@pytest.mark.requirement("TSK-6")
async def test_a_command_that_does_not_obey_is_killed_after_the_grace(house: House) -> None:
    assert GRACE_S == 5
    async with begins(house, starting("talks"), FREE, of(talks=talks)) as at:
        await Begun.of(at)
        stopping = asyncio.create_task(stopped(), name="stopping")
        await goes_on(at, GRACE_S - 0.5)
        assert not stopping.done()
        await goes_on(at, 0.5)
        await stopping


@pytest.mark.requirement("TSK-6")
async def test_a_stop_does_not_wait_for_a_database_that_is_away(house: House) -> None:
    async with begins(house, starting("talks")) as at:
        command = await Begun.of(at)
        faults = Faults(at)
        faults.before["task-end"] = StoreUnavailable("away")
        await board(at).write(command.session, command.task.id, "", closes=True)
        while faults.before:
            await settle()
        faults.before["task-end"] = StoreUnavailable("still away")
        stopping = asyncio.create_task(stopped(), name="stopping")
        await goes_on(at, 1)
        await stopping
    async with next_life(house) as at:
        task = await board(at).get(command.session, command.task.id)
        assert task.metadata["terminal_reason"] == "daemon_restarted"


@pytest.mark.requirement("TSK-5")
async def test_an_end_waits_for_a_database_that_is_away(house: House) -> None:
    async with begins(house, starting("talks")) as at:
        command = await Begun.of(at)
        faults = Faults(at)
        faults.before["task-end"] = StoreUnavailable("away")
        await board(at).write(command.session, command.task.id, "", closes=True)
        while faults.before:
            await settle()
        assert (await command.now()).status == "in_progress"
        await goes_on(at, 1)
        await command.over("completed")


class Undead(FakeSandbox):
    """Its commands obey not even SIGKILL for the first `lives` times that somebody ends them."""

    lives = 0
    ended: list[ProcessIdentity]

    @override
    async def start(self, command: SandboxCommand) -> FakeProcess:
        process = await super().start(command)

        async def terminate(grace_s: float) -> TreeEnd:
            return self._ending()

        setattr(process, "terminate", terminate)  # noqa: B010 - of one object
        return process

    @override
    async def end_tree(self, identity: ProcessIdentity, grace_s: float) -> TreeEnd:
        self.ended.append(identity)
        return self._ending()

    def _ending(self) -> TreeEnd:
        self.lives -= 1
        left = (77,) if self.lives >= 0 else ()
        return TreeEnd(not left, True, True, True, remaining_pids=left)


@pytest.mark.requirement("TSK-5", "TSK-6")
async def test_an_end_that_could_not_be_confirmed_is_tried_again_at_each_start(
    house: House,
) -> None:
    made: list[Undead] = []

    def undead(setup: Setup) -> Setup:
        sandbox = Undead(setup.clock, {"talks": talks})
        sandbox.lives, sandbox.ended = 2 - len(made), []
        made.append(sandbox)
        return replace(setup, sandbox=sandbox)

    async with begins(house, starting("talks"), FREE, undead) as at:
        command = await Begun.of(at)
        await board(at).stop(command.session, command.task.id, reason="enough", by="me")
        task = await command.over("cancelled")
        assert task.metadata["process_tree_shutdown_confirmed"] is False
        assert task.metadata["process_tree_remaining_pids"] == [77]
        assert "exit_code" not in task.metadata
        await goes_on(at, 60)
        kept = await at.database.read(lambda conn: rows.find(conn, command.task.id))
        assert kept is not None
    for number, (calls, left) in enumerate([(1, [77]), (1, []), (0, [])], 1):
        async with next_life(house, undead) as at:
            task = await board(at).get(command.session, command.task.id)
            assert task.status == "cancelled"
            assert len(made[number].ended) == calls
            assert task.metadata["process_tree_shutdown_confirmed"] is (not left)
            assert task.metadata["process_tree_remaining_pids"] == left
            identity = ProcessIdentity(kept.pid or 0, kept.started_ticks or 0, kept.token or "")
            assert all(one == identity for one in made[number].ended)


@pytest.mark.requirement("TOOL-6")
async def test_a_start_that_is_cancelled_leaves_no_task_that_runs_for_ever(house: House) -> None:
    reached = asyncio.Event()

    class Slow(FakeSandbox):
        """It never comes to the end of a start."""

        @override
        async def start(self, command: SandboxCommand) -> FakeProcess:
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError

    def slow(setup: Setup) -> Setup:
        return replace(setup, sandbox=Slow(setup.clock))

    async with begins(house, starting("talks"), FREE, slow) as at:
        accepted = await at.says("run it")
        await reached.wait()
        await at.says("/stop")
        await at.chat.until(lambda: any("Task" in text for text in at.chat.texts(HERE)))
        (task,) = (await board(at).listing(accepted.session_id)).items
        assert (task.status, task.metadata["terminal_reason"]) == ("failed", "not_started")
        told = [text for text in at.chat.texts(HERE) if text.startswith("Task")]
        assert len(told) == 1
        assert told[0].endswith("failed: it could not be started.")


@pytest.mark.requirement("TOOL-6")
async def test_each_question_is_said_once_and_none_before_the_last_was_answered(
    house: House,
) -> None:
    again = asyncio.Event()

    async def asks(stdio: FakeStdio) -> int:
        await stdio.write(b"Name? ")
        await again.wait()
        await stdio.write(b"\nYour name? ")
        await stdio.input.readline()
        await stdio.write(b"\nSure? [y/N] ")
        await stdio.input.readline()
        return 0

    async with begins(house, starting("asks"), FREE, of(asks=obeying(asks))) as at:
        command = await Begun.of(at)

        async def asked(prompt: str, notices: int) -> None:
            await command.printed(f"{prompt} ")
            while "prompt" in (await command.now()).metadata:
                await settle()
            await goes_on(at, QUIET_S)
            while (await command.now()).metadata.get("prompt") != prompt:
                await settle()
            await goes_on(at, 1)
            assert len(command.notices()) == notices

        await asked("Name?", 1)
        again.set()
        await asked("Your name?", 1)
        await board(at).write(command.session, command.task.id, "Bob\n")
        await asked("Sure? [y/N]", 2)
        await board(at).write(command.session, command.task.id, "y\n")
        await command.over("completed")
        await at.chat.until(lambda: len(command.notices()) == 3)


@pytest.mark.requirement("TOOL-6")
@pytest.mark.parametrize("notify", ["done", "changes", "silent"])
async def test_who_asked_hears_what_they_wanted_to_hear(house: House, notify: str) -> None:
    async with begins(house, starting("forever", notify=notify)) as at:
        command = await Begun.of(at)
        await board(at).stop(command.session, command.task.id, by="me")
        await command.over("cancelled")
        await goes_on(at, 60)
        said = [text.rpartition(": ")[2] for text in command.notices()]
        wanted = {"done": ["stopped."], "changes": ["being stopped.", "stopped."], "silent": []}
        assert said == wanted[notify]


async def test_a_secret_is_masked_wherever_the_reads_cut_it(house: House) -> None:
    secret = "s3cret-12345"
    redactor = Redactor([secret])

    async def shows(stdio: FakeStdio) -> int:
        for piece in (
            f"key {secret[:5]}",
            f"{secret[5:]}\n",
            f"Use {secret[:1]}",
            f"{secret[1:]}? ",
        ):
            await stdio.write(piece.encode())
        await stdio.input.readline()
        await stdio.write(secret[:-1].encode())
        return 0

    def masking(setup: Setup) -> Setup:
        return replace(setup, redact=redactor.secrets, begun=redactor.begun)

    change = both(of(shows=obeying(shows)), masking)
    async with begins(house, starting("shows"), FREE, change) as at:
        command = await Begun.of(at)
        view = await command.printed("? ")
        assert view.output_excerpt == f"key {MASK}\nUse {MASK}? "
        await goes_on(at, QUIET_S)
        await at.chat.until(lambda: len(command.notices()) == 1)
        assert f"`Use {MASK}?`" in command.notices()[0]
        await board(at).write(command.session, command.task.id, "y\n")
        await command.over("completed")
        # What is no secret after all is kept once nothing follows.
        assert (await command.output()).output_excerpt == f"key {MASK}\nUse {MASK}? {secret[:-1]}"


@pytest.mark.requirement("TSK-4")
async def test_a_rotation_shows_while_the_command_runs(house: House) -> None:
    async def much(stdio: FakeStdio) -> int:
        await stdio.write(b"x" * CAP_BYTES + b"the end\n")
        await forever(stdio)
        return 0

    async with begins(house, starting("much"), FREE, of(much=much)) as at:
        command = await Begun.of(at)
        view = await command.printed("the end\n")
        while not (view := await command.output()).output_rotated:
            await settle()
        assert view.task.status == "in_progress"
        assert (view.output_rotation_count, view.output_truncated) == (1, True)
        assert view.output_total_bytes == CAP_BYTES + 8
        assert view.output_size_bytes == KEPT_BYTES + len(marker(CAP_BYTES + 8 - KEPT_BYTES, 1))


@pytest.mark.requirement("TSK-6")
async def test_a_holder_that_lost_its_task_ends_the_command_and_changes_nothing(
    tmp_path: Path,
) -> None:
    ended = asyncio.Event()

    async def lasts(stdio: FakeStdio) -> int:
        code = await forever(stdio)
        ended.set()
        return code

    change = both(of(lasts=lasts), FREE)
    async with (
        beside(tmp_path, postgres_server()) as place,
        place.replica("one", starting("lasts"), change) as one,
        place.replica("two", ScriptedModel([]), change) as two,
    ):
        command = await Begun.of(one.world)
        one.line.cut()
        await place.clock.advance(60)
        lost = await board(two.world).get(command.session, command.task.id)
        assert (lost.status, lost.metadata["terminal_reason"]) == ("failed", "replica_lost")
        assert not ended.is_set()
        one.line.mend()
        await place.clock.advance(CHECK_S)
        await ended.wait()
        await place.clock.advance(60)
        assert await board(two.world).get(command.session, command.task.id) == lost
        told = [text for text in two.chat.texts(HERE) if text.startswith("Task")]
        assert len(told) + len(command.notices()) == 1


@pytest.mark.requirement("TSK-6", "OPS-10")
async def test_a_stop_between_two_tries_does_not_wait_for_the_next_one(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    """The end of a command that the database could not take is for the next life."""
    over = asyncio.Event()

    async def waits(stdio: FakeStdio) -> int:
        await over.wait()
        return 0

    change = both(of(waits=waits), FREE)
    async with (
        beside(tmp_path, postgres_server()) as place,
        place.replica("one", starting("waits"), change) as one,
    ):
        await Begun.of(one.world)
        with capture_logs() as logs:
            one.line.cut()
            over.set()
            while not any(entry["event"] == "task_end_waits" for entry in logs):
                await settle()
        try:
            async with fail_after(10):
                await one.dies()
        finally:
            await place.clock.advance(60)
        assert one.task.cancelled()


@pytest.mark.requirement("TSK-5")
async def test_a_stop_leaves_a_finished_command_as_it_is(house: House) -> None:
    async with begins(house, starting("three")) as at:
        command = await Begun.of(at)
        task = await command.over("completed")
        assert await board(at).stop(command.session, task.id, reason="late", by="me") == task
        assert await command.now() == task
        assert await audited(at, "task.stopped") == []
        await goes_on(at, 60)
        assert len(command.notices()) == 1


@pytest.mark.requirement("TOOL-6")
async def test_who_asked_is_told_in_the_thread_where_they_asked(house: House) -> None:
    async with begins(house, starting("talks")) as at:
        accepted = await at.says("run it", chat_id="G-1", kind="group", thread="t1")
        await at.chat.until(lambda: "It runs." in at.chat.texts("G-1"))
        (task,) = (await board(at).listing(accepted.session_id)).items
        # The command goes on behind its turn, and another one in another place changes nothing.
        await at.says("/status", chat_id="G-1", kind="group", thread="t2")
        await at.sees(2, "G-1")
        await board(at).write(accepted.session_id, task.id, "", closes=True)
        await at.chat.until(lambda: any(one.text.startswith("Task") for one in at.chat.sent))
        (told,) = [one.target for one in at.chat.sent if one.text.startswith("Task")]
        assert (told.chat_id, told.thread_id) == ("G-1", "t1")
