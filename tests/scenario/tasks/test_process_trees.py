"""Commands in the background as real processes of the system, on each sandbox (TSK-4 to TSK-6)."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.process_tree import find_tree, read_process
from adapters.system.clock import SystemClock
from runtime.domain.value import JsonObject
from runtime.features.tasks import rows, shell_tasks
from runtime.features.tasks.output_file import CAP_BYTES, marker
from runtime.ports.sandbox import TASK_TOKEN, ProcessIdentity, Sandbox
from tests.contract.sandbox.conftest import build
from tests.fakes.model import ScriptedModels
from tests.scenario.engine import setup_at, world
from tests.scenario.tasks.test_background_commands import FREE, Begun, board, starting
from tests.support.templates import make_database


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
async def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Every backend that starts processes and that this host has."""
    return await build(request.param, SystemClock(), Cgroups(memory=None, pids=None))


@asynccontextmanager
async def runs(path: Path, command: str, sandbox: Sandbox) -> AsyncIterator[Begun]:
    """A real command in the background, started by a message."""
    url = f"sqlite:///{path}/gatehouse.db"
    await make_database(url)
    setup = setup_at(path, url, ScriptedModels(starting(command)), sandbox=sandbox)
    async with world(FREE(setup)) as at:
        async with asyncio.timeout(300):
            yield await Begun.of(at)


async def left(command: Begun) -> bool:
    """Whether any process carries the token of the command."""
    task = await command.at.database.read(lambda conn: rows.find(conn, command.task.id))
    assert task is not None
    assert task.token
    return bool(find_tree(ProcessIdentity(0, 0, task.token)))


@pytest.mark.requirement("TSK-5")
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("trap '' TERM; echo ready; while :; do sleep 1; done", id="ignores SIGTERM"),
        pytest.param(
            "setsid sh -c 'setsid sleep 600 & exec sleep 600' >/dev/null 2>&1 & "
            "echo ready; sleep 600",
            id="daemonised grandchild",
        ),
    ],
)
async def test_a_stop_ends_every_process(tmp_path: Path, command: str, sandbox: Sandbox) -> None:
    async with runs(tmp_path, command, sandbox) as begun:
        await begun.printed("ready\n")
        assert await left(begun)
        await board(begun.at).stop(begun.session, begun.task.id, by="me")
        task = await begun.over("cancelled")
        assert task.metadata["process_tree_shutdown_confirmed"] is True
        assert task.metadata["process_tree_shutdown_matched_target"] is True
        assert task.metadata["process_tree_shutdown_signal_sent"] is True
        assert task.metadata["process_tree_shutdown_supported"] is True
        assert task.metadata["process_tree_remaining_pids"] == []
        assert not await left(begun)


@pytest.mark.requirement("TSK-5")
async def test_what_holds_the_output_open_does_not_outlive_the_shell(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    async with runs(tmp_path, "sleep 600 & echo ready", sandbox) as begun:
        task = await begun.over("completed")
        assert task.metadata["exit_code"] == 0
        assert not await left(begun)


@pytest.mark.requirement("TSK-4")
async def test_of_much_output_the_latest_is_kept(tmp_path: Path, sandbox: Sandbox) -> None:
    command = "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo the end"
    async with runs(tmp_path, command, sandbox) as begun:
        await begun.over("completed")
        view = await begun.output(full=True)
        assert view.output_total_bytes == 100_000_009
        assert (view.output_rotated, view.output_truncated) == (True, True)
        assert view.output_rotation_count > 1
        assert view.output_size_bytes <= CAP_BYTES
        first, _, rest = view.output_text.partition("\n")
        dropped = view.output_total_bytes - len(rest)
        assert f"{first}\n".encode() == marker(dropped, view.output_rotation_count)
        assert rest.endswith("x\nthe end\n")


async def test_what_is_no_utf_8_is_kept_and_shown(tmp_path: Path, sandbox: Sandbox) -> None:
    async with runs(tmp_path, "printf 'a\\377b\\n'", sandbox) as begun:
        await begun.over("completed")
        view = await begun.output()
        assert view.output_excerpt == "a\N{REPLACEMENT CHARACTER}b\n"
        file = begun.at.workspace / str(view.output_file_path)
        assert file.read_bytes() == b"a\xffb\n"


@pytest.mark.requirement("TSK-5")
async def test_a_stop_lets_a_command_tidy_up_first(tmp_path: Path, sandbox: Sandbox) -> None:
    command = "trap 'echo tidied; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    async with runs(tmp_path, command, sandbox) as begun:
        await begun.printed("ready\n")
        await board(begun.at).stop(begun.session, begun.task.id, by="me")
        task = await begun.over("cancelled")
        assert task.metadata["exit_code"] == 0
        assert (await begun.output()).output_excerpt.endswith("\ntidied\n")


@pytest.mark.requirement("TOOL-6")
async def test_a_command_reads_what_is_typed_for_it(tmp_path: Path, sandbox: Sandbox) -> None:
    command = 'read name; echo "hello $name"; cat; echo over'
    async with runs(tmp_path, command, sandbox) as begun:
        await board(begun.at).write(begun.session, begun.task.id, "Bob\n")
        await begun.printed("hello Bob\n")
        await board(begun.at).write(begun.session, begun.task.id, "more\n", closes=True)
        await begun.over("completed")
        assert (await begun.output()).output_excerpt == "hello Bob\nmore\nover\n"


async def test_a_question_is_noticed_though_its_line_has_no_end(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_tasks, "QUIET_S", 0.05)
    command = "printf 'Go on? [y/N] '; read answer; echo \"you said $answer\""
    async with runs(tmp_path, command, sandbox) as begun:
        while "prompt" not in (task := await begun.now()).metadata:
            await begun.output(wait=True)
        assert task.metadata["prompt"] == "Go on? [y/N]"
        await board(begun.at).write(begun.session, begun.task.id, "y\n")
        task = await begun.over("completed")
        assert "waiting_for_input" not in task.metadata
        assert (await begun.output()).output_excerpt.endswith("you said y\n")


async def sleeper(token: str) -> asyncio.subprocess.Process:
    """A process that an earlier life of the gateway may have left, in a session of its own."""
    return await asyncio.create_subprocess_exec(
        "/bin/sleep", "600", env={TASK_TOKEN: token}, start_new_session=True
    )


@pytest.mark.requirement("TSK-6")
async def test_a_restart_ends_what_is_left_and_never_who_took_its_pid(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    mine, other = await sleeper("a" * 32), await sleeper("b" * 32)
    try:
        async with runs(tmp_path, "echo done", sandbox) as begun:
            await begun.over("completed")
            done = await begun.at.database.read(lambda conn: rows.find(conn, begun.task.id))
            assert done is not None
            for number, process in enumerate((mine, other), 1):
                found = read_process(process.pid)
                assert found is not None
                # The other one has the pid of a command that began a moment before it.
                task = replace(
                    done,
                    id=f"{done.id[:-2]}u{number}",
                    status="in_progress",
                    facts={},
                    worker="wrk_gone",
                    tree_open=True,
                    pid=process.pid,
                    token="a" * 32 if process is mine else "c" * 32,
                    started_ticks=found.started_ticks - (process is other),
                )
                await begun.at.database.write(partial(rows.add, task=task), name="test")
            session = begun.session
        url = f"sqlite:///{tmp_path}/gatehouse.db"
        setup = setup_at(tmp_path, url, ScriptedModels(), sandbox=sandbox)
        async with world(FREE(setup)) as at, asyncio.timeout(300):
            assert await mine.wait() == -signal.SIGTERM
            facts: dict[str, JsonObject] = {}
            while not all("process_tree_remaining_pids" in facts.get(n, {}) for n in "12"):
                tasks = (await board(at).listing(session)).items
                facts = {task.id[-1]: task.metadata for task in tasks if task.id[-2] == "u"}
        assert other.returncode is None
        for number, hit in (("1", True), ("2", False)):
            assert facts[number]["terminal_reason"] == "daemon_restarted"
            assert facts[number]["recovered_on_boot"] is True
            assert facts[number]["process_tree_shutdown_confirmed"] is True
            assert facts[number]["process_tree_shutdown_matched_target"] is hit
            assert facts[number]["process_tree_shutdown_signal_sent"] is hit
    finally:
        for process in (mine, other):
            if process.returncode is None:
                process.kill()
                await process.wait()
