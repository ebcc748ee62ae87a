"""Output, input and ends: what every sandbox promises, the fake included (TOOL-5)."""

import asyncio
import tracemalloc
from dataclasses import replace

import pytest

from runtime.domain.errors import InvalidInput
from runtime.ports.sandbox import TASK_TOKEN
from tests.contract.sandbox.conftest import BIG, COMMANDS, Bench, drain, read_until


@pytest.mark.requirement("TOOL-5")
async def test_output_of_both_streams_and_the_exit_code_are_reported(bench: Bench) -> None:
    output, ended = await bench.run(COMMANDS["exit"])
    assert output == "hello world"
    assert (ended.code, ended.signal, ended.timed_out, ended.limit) == (3, None, False, None)


@pytest.mark.requirement("TOOL-5")
async def test_the_signal_that_ended_it_is_reported(bench: Bench) -> None:
    _, ended = await bench.run(COMMANDS["kill"])
    assert (ended.code, ended.signal) == (137, 9)


@pytest.mark.requirement("TOOL-5")
async def test_what_is_written_to_its_input_reaches_it(bench: Bench) -> None:
    command = replace(bench.command(COMMANDS["cat"]), stdin="open")
    async with asyncio.timeout(180), await bench.sandbox.start(command) as process:
        await process.write(b"first\n")
        assert await read_until(process, "first\n") == "first\n"
        await process.write(b"second\n")
        process.close_stdin()
        assert await drain(process) == "second\n"
        assert (await process.wait()).code == 0


@pytest.mark.requirement("TOOL-5")
async def test_input_is_at_its_end_unless_it_was_asked_for(bench: Bench) -> None:
    output, ended = await bench.run(COMMANDS["cat"])
    assert (output, ended.code) == ("", 0)


@pytest.mark.requirement("TOOL-5")
async def test_ten_megabytes_stream_through_without_being_held(bench: Bench) -> None:
    total = 0
    async with (
        asyncio.timeout(300),
        await bench.sandbox.start(bench.command(COMMANDS["big"])) as process,
    ):
        tracemalloc.start()
        try:
            while chunk := await process.read():
                assert len(chunk) <= 64 * 1024
                total += len(chunk)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (await process.wait()).code == 0
    assert total == BIG
    # The fake holds its own ten megabytes before the measurement begins.
    assert peak < (BIG + 2**20 if bench.sandbox.name == "fake" else 2**20)


@pytest.mark.requirement("TOOL-5")
async def test_the_environment_holds_what_was_granted_and_nothing_of_the_gateway(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEHOUSE_SLACK__BOT_TOKEN", "xoxb-test-token")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
    command = replace(bench.command(COMMANDS["env"]), env={"COLOUR": "blue"}, token="made-up")
    output, _ = await bench.run(command)
    names = {line.partition("=")[0] for line in output.splitlines()}
    assert "COLOUR=blue" in output.splitlines()
    assert f"{TASK_TOKEN}=made-up" in output.splitlines()
    by_the_shell = {"PWD", "SHLVL", "_", "OLDPWD"}
    minimal = {"PATH", "HOME", "TMPDIR", "LANG", "TERM", "COLOUR", TASK_TOKEN}
    assert names <= minimal | by_the_shell


@pytest.mark.requirement("TOOL-5")
async def test_a_setting_of_the_gateway_cannot_be_granted(bench: Bench) -> None:
    command = replace(bench.command(COMMANDS["env"]), env={"GATEHOUSE_API_TOKEN": "made-up"})
    with pytest.raises(InvalidInput, match="env"):
        await bench.sandbox.start(command)


@pytest.mark.requirement("TOOL-5")
async def test_it_is_killed_when_its_time_is_over(bench: Bench) -> None:
    async with (
        asyncio.timeout(180),
        await bench.sandbox.start(bench.command(COMMANDS["stubborn"])) as process,
    ):
        await read_until(process, "up")
        bench.clock.advance(59)
        bench.clock.advance(1)
        ended = await process.wait()
    assert (ended.timed_out, ended.limit, ended.signal) == (True, "time", 9)
    assert ended.duration_s == pytest.approx(60)


@pytest.mark.requirement("TOOL-5")
async def test_a_command_that_ended_leaves_no_timer(bench: Bench) -> None:
    before = bench.clock.pending()
    await bench.run(COMMANDS["exit"])
    assert bench.clock.pending() == before


@pytest.mark.requirement("TOOL-5")
async def test_terminate_lets_it_end_by_itself(bench: Bench) -> None:
    async with (
        asyncio.timeout(180),
        await bench.sandbox.start(bench.command(COMMANDS["obedient"])) as process,
    ):
        await read_until(process, "up")
        end = await process.terminate(10)
        ended = await process.wait()
        again = await process.terminate(10)
    assert (end.confirmed, end.matched_target, end.signal_sent) == (True, True, True)
    assert end.remaining_pids == ()
    assert ended.signal == 15
    assert not ended.timed_out
    assert (again.confirmed, again.matched_target, again.signal_sent) == (True, False, False)


@pytest.mark.requirement("TOOL-5")
async def test_terminate_kills_what_outlives_the_grace(bench: Bench) -> None:
    async with (
        asyncio.timeout(180),
        await bench.sandbox.start(bench.command(COMMANDS["stubborn"])) as process,
        asyncio.TaskGroup() as tasks,
    ):
        await read_until(process, "up")
        ending = tasks.create_task(process.terminate(10), name="terminate")
        while 10.0 not in bench.clock.pending():
            assert not ending.done()
            await asyncio.to_thread(lambda: None)
        bench.clock.advance(10)
        assert (await ending).confirmed
        assert (await process.wait()).signal == 9


@pytest.mark.requirement("TOOL-5")
async def test_cancelling_the_wait_kills_it(bench: Bench) -> None:
    async with (
        asyncio.timeout(180),
        await bench.sandbox.start(bench.command(COMMANDS["stubborn"])) as process,
    ):
        await read_until(process, "up")
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(process.wait(), name="wait")
            await asyncio.to_thread(lambda: None)
            waiting.cancel()
        assert waiting.cancelled()
        assert (await process.wait()).signal == 9


@pytest.mark.requirement("TOOL-5")
async def test_leaving_the_context_ends_it(bench: Bench) -> None:
    async with asyncio.timeout(180):
        async with await bench.sandbox.start(bench.command(COMMANDS["stubborn"])) as process:
            await read_until(process, "up")
        assert (await process.wait()).signal == 9


@pytest.mark.requirement("TOOL-5")
async def test_what_it_reads_no_more_is_a_broken_pipe(bench: Bench) -> None:
    command = replace(bench.command(COMMANDS["exit"]), stdin="open")
    async with asyncio.timeout(180), await bench.sandbox.start(command) as process:
        await drain(process)
        await process.wait()
        with pytest.raises(BrokenPipeError):
            await process.write(b"too late\n")
