"""`chat -m` when the gateway that it talks to goes away in the middle of the answer."""

import asyncio
import re
import signal

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import Ended, Place, command, gateway, reaching
from tests.scenario.process.talk import conversation, finished
from tests.scenario.process.test_stop import SLOW


@pytest.fixture
def slow(place: Place) -> Place:
    """A place where commands need no approval and no sandbox."""
    place.configure('[tools]\nsandbox = "none"\n[policy]\nallow = ["exec"]\n')
    return place


async def taken(url: str) -> str:
    """The run of the message that another process sends, once its tool call has begun."""
    async with conversation(url) as talk:
        while not any(entry.calls for entry in talk.entries):
            await talk.refresh()
        return next(entry.run_id for entry in talk.entries if entry.calls)


def shown_in(ended: Ended) -> tuple[str, ...]:
    """The command that it names, without the program's name."""
    found = ended.err.partition("`gatehouse ")[2].partition("`")[0]
    assert found.startswith("sessions show "), ended.err
    return tuple(found.split())


@pytest.mark.requirement("OPS-2", "TTY-1")
async def test_it_says_where_the_answer_will_be_and_ends_with_3_when_the_gateway_is_killed(
    slow: Place, fail_after: FailAfter
) -> None:
    async with fail_after(90):
        async with gateway(slow) as program, asyncio.TaskGroup() as group:
            url = await program.url()
            said = group.create_task(command(reaching(slow, url), "chat", "-m", SLOW), name="chat")
            run = await taken(url)
            program.signal(signal.SIGKILL)
            ended = await said
        assert ended.code == 3, ended.err
        assert "Traceback" not in ended.err
        assert "your message was accepted" in ended.err
        assert "no gateway can be reached" in ended.err
        assert re.search(r"\(the connection was (refused|cut)\)", ended.err), ended.err
        assert len(ended.err.splitlines()) == 2
        (slow.workspace / "files/go").touch()
        async with gateway(slow) as again:
            url = await again.url()
            async with conversation(url) as talk:
                assert await finished(talk, run) == "completed"
            shown = await command(reaching(slow, url), *shown_in(ended))
        assert shown.code == 0, shown.err
        assert "all done" in shown.out


@pytest.mark.requirement("OPS-2", "TTY-1")
async def test_what_its_own_gateway_refuses_is_one_line_too(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        ended = await command(place, "chat", "--session", "x" * 5000, "-m", "hello")
    assert ended.code == 1, ended.err
    assert "Traceback" not in ended.err
    assert ended.err.splitlines()[-1].startswith("gatehouse: ")
    assert "key" in ended.err.splitlines()[-1]


@pytest.mark.requirement("OPS-2", "TTY-1")
async def test_a_log_that_cannot_be_written_is_named_with_what_to_do(
    place: Place, fail_after: FailAfter
) -> None:
    (place.home / "chat.log").mkdir(parents=True)
    async with fail_after(60):
        ended = await command(place, "chat", "-m", "hello")
    assert (ended.code, ended.out) == (1, ""), ended
    told = ended.err.splitlines()[-1]
    assert f"{place.home / 'chat.log'} cannot be written" in told
    assert "GATEHOUSE_HOME" in told
