"""A command's pipes: each descriptor is closed once, by its one owner, on every event loop."""

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox import process_tree
from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.pipe_ends import ReadPipe, WritePipe, open_pipe
from adapters.sandbox.process_tree import ProcessInfo
from adapters.sandbox.unconfined import Unconfined
from runtime.ports.sandbox import TASK_TOKEN
from tests.contract.sandbox.conftest import Bench, HandClock
from tests.support.profiles import is_long

ROOT = Path(__file__).parents[3]
CHILDREN, COMMANDS = (20_000, 1_000) if is_long() else (400, 12)
LIMIT_S = 4 * 3600 if is_long() else 600
LOOPS = ("asyncio", "uvloop")
FULL = bytes(1024 * 1024)


def factory(loop: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if loop == "asyncio":
        return asyncio.new_event_loop
    uvloop = pytest.importorskip("uvloop", reason="pip install 'gatehouse[speed]'")
    made: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return made


def play(loop: str, work: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=factory(loop)) as runner:
        runner.run(asyncio.wait_for(work, 60))


def open_descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("loop", LOOPS)
async def test_no_file_of_another_thread_is_closed_beside_commands(loop: str) -> None:
    factory(loop)
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.contract.sandbox.commands_beside_files"),
        *(loop, str(CHILDREN), str(COMMANDS)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        # A loop that lost its own descriptor waits for ever.
        async with asyncio.timeout(LIMIT_S):
            printed, _ = await program.communicate()
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    assert program.returncode == 0
    report = json.loads(printed)
    assert (report["wrong"], report["left"]) == ([], 0)
    assert report["opened"] > CHILDREN


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_reader_that_goes_away_wakes_whoever_waits_to_write(loop: str) -> None:
    async def work() -> None:
        out, into = open_pipe()
        feed = WritePipe(into)
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(_broken_write(feed))
            await asyncio.to_thread(out.read, 1)
            assert not writing.done()
            out.close()
        with pytest.raises(BrokenPipeError):
            await feed.write(b"more")
        assert into.closed

    play(loop, work())


async def _broken_write(feed: WritePipe) -> None:
    with pytest.raises(BrokenPipeError):
        await feed.write(FULL)


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("loop", LOOPS)
def test_what_was_written_before_the_end_arrives_whole_and_then_the_end(loop: str) -> None:
    async def work() -> None:
        out, into = open_pipe()
        source, feed = ReadPipe(out), WritePipe(into)
        reader = asyncio.StreamReader(limit=4096)
        source.connect(asyncio.StreamReaderProtocol(reader))

        async def write() -> None:
            await feed.write(FULL)
            await feed.write(b"the last")
            feed.finish()

        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            assert await reader.read() == FULL + b"the last"
        assert out.closed
        assert into.closed
        with pytest.raises(BrokenPipeError):
            await feed.write(b"too late")

    play(loop, work())


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("failing", [1, 2, 3, 4])
async def test_a_pipe_that_cannot_be_made_leaves_nothing_open(
    launched: Bench, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    made = 0
    pipe = os.pipe

    def fail() -> tuple[int, int]:
        nonlocal made
        made += 1
        if made == failing:
            raise OSError(errno.EMFILE, "Too many open files")
        return pipe()

    before = open_descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pipe", fail)
        with pytest.raises(OSError, match="Too many open files"):
            await launched.sandbox.start(replace(launched.command("cat"), stdin="open"))
    assert open_descriptors() == before


@pytest.fixture
def ungrouped(tmp_path: Path, clock: HandClock) -> Bench:
    """Without control groups: one can outlast a supervisor that was killed while it started."""
    bench = Bench(Unconfined(clock, cgroups=Cgroups()), clock, tmp_path)
    bench.workspace.mkdir()
    return bench


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("failing", [1, 2])
async def test_a_pipe_that_the_loop_refuses_leaves_nothing_open(
    ungrouped: Bench, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """The first pipe is connected when the second one fails."""
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(open_descriptors)
    refused = 0
    add_reader = loop.add_reader

    def refuse(number: int, call: Callable[[], None]) -> None:
        nonlocal refused
        refused += 1
        if refused == failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        add_reader(number, call)

    before = open_descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "add_reader", refuse)
        with pytest.raises(OSError, match="No space left"):
            await ungrouped.sandbox.start(replace(ungrouped.command("cat"), stdin="open"))
    assert open_descriptors() == before


@pytest.mark.requirement("TOOL-5")
async def test_what_a_dying_supervisor_begins_while_it_is_looked_for_is_ended_too(
    launched: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that it had forked in that moment is in no list, and would outlive it."""
    late: list[subprocess.Popen[bytes]] = []
    send = process_tree.send

    def begin_another(found: Sequence[ProcessInfo], number: signal.Signals) -> int:
        if not late:
            late.append(subprocess.Popen(["sleep", "1000"], env={TASK_TOKEN: "made-up"}))
        return send(found, number)

    def refuse(number: int, call: Callable[[], None]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    command = replace(launched.command("cat"), stdin="open", token="made-up")
    with monkeypatch.context() as patch:
        patch.setattr(process_tree, "send", begin_another)
        patch.setattr(asyncio.get_running_loop(), "add_reader", refuse)
        with pytest.raises(OSError, match="No space left"):
            await launched.sandbox.start(command)
    (child,) = late
    try:
        assert child.wait(timeout=10) == -signal.SIGKILL
    finally:
        child.kill()


@pytest.mark.requirement("TOOL-5")
async def test_a_start_that_is_cancelled_twice_leaves_nothing_open(ungrouped: Bench) -> None:
    await ungrouped.run("true")
    before = open_descriptors()
    command = replace(ungrouped.command("cat"), stdin="open")
    start = asyncio.create_task(ungrouped.sandbox.start(command), name="start")
    while open_descriptors() <= before:
        await asyncio.to_thread(lambda: None)
    start.cancel()
    await asyncio.to_thread(lambda: None)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    # What concludes the command goes on without its caller, and reads files itself.
    ends = [each for each in asyncio.all_tasks() if each.get_name() == "command-conclude"]
    await asyncio.gather(*ends)
    assert open_descriptors() <= before
