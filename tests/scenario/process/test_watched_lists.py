"""Lists that stay open while the gateway works."""

import signal
from contextlib import AsyncExitStack

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import Place, gateway, reaching
from tests.scenario.process.talk import conversation, finished
from tests.scenario.process.test_terminal import CTRL_C, terminal


@pytest.mark.requirement("OPS-2")
async def test_a_pipe_gets_the_list_and_a_line_for_each_change(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(90), gateway(place) as program:
        url = await program.url()
        there = reaching(place, url)
        async with gateway(there, "runs", "list", "--watch") as watched, conversation(url) as talk:
            await watched.until(watched.err, lambda line: line == "There are no such runs.")
            sent = await talk.submit("hello")
            await finished(talk, sent.run_id)
            line = await watched.until(
                watched.out, lambda line: sent.run_id in line and "completed" in line
            )
            assert line.split()[:2] == [sent.run_id, "completed"]
            watched.signal(signal.SIGINT)
            assert await watched.ended() == 0
            assert "Traceback" not in watched.transcript


@pytest.mark.requirement("OPS-2")
async def test_a_list_is_watched_through_a_restart(place: Place, fail_after: FailAfter) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(fail_after(180))
        before = await stack.enter_async_context(gateway(place))
        await before.url()
        watched = await stack.enter_async_context(gateway(place, "runs", "list", "--watch"))
        await watched.until(watched.err, lambda line: line.startswith("Watching."))
        before.signal(signal.SIGTERM)
        await watched.until(watched.err, lambda line: "Trying again until it is back." in line)
        await before.ended()
        after = await stack.enter_async_context(gateway(place))
        talk = await stack.enter_async_context(conversation(await after.url()))
        sent = await talk.submit("hello")
        await watched.until(watched.out, lambda line: sent.run_id in line)
        watched.signal(signal.SIGINT)
        assert await watched.ended() == 0
        assert sum("Trying again" in line for line in watched.err) == 1
        assert "Traceback" not in watched.transcript


@pytest.mark.requirement("OPS-2")
async def test_without_a_gateway_only_the_error_is_said(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), gateway(place, "runs", "list", "--watch") as watched:
        assert await watched.ended() == 3
        (said,) = watched.err
        assert said.startswith("gatehouse: no gateway of ")


@pytest.mark.requirement("OPS-2")
async def test_who_has_seen_enough_ends_it_without_an_error(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(90), gateway(place) as program:
        there = reaching(place, await program.url())
        async with gateway(there, "approvals", "list", "--watch") as watched:
            await watched.until(watched.err, lambda line: line == "Nothing waits for a decision.")
            watched.signal(signal.SIGINT)
            assert await watched.ended() == 0
            assert "Traceback" not in watched.transcript


@pytest.mark.requirement("OPS-2")
async def test_a_terminal_shows_a_table_that_is_drawn_anew(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(90), gateway(place) as program:
        url = await program.url()
        async with (
            terminal(reaching(place, url), "sessions", "list", "--watch") as shown,
            conversation(url) as talk,
        ):
            await shown.shows("STATE")
            sent = await talk.submit("hello")
            await finished(talk, sent.run_id)
            await shown.shows("hello")
            shown.press(CTRL_C)
            assert await shown.ended() == 0
