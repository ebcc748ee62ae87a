"""Stopping the program: in order, at once, and by a crash; nothing that was accepted is lost."""

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.cli.conversation import Conversation
from gateway.http.health import WHY
from tests.conftest import FailAfter
from tests.scenario.process.program import Place, gateway
from tests.scenario.process.talk import conversation, finished, gone, reply
from tests.scenario.process.test_readiness import down
from tests.scenario.process.test_store_away import until_ready

SLOW = "run `echo once >> begun; while [ ! -e go ]; do sleep 0.05; done; echo all done`"
"""A turn that lasts until the test lets it go on."""


@pytest.fixture
def slow(place: Place) -> Place:
    """A place where commands need no approval and no sandbox."""
    place.configure('[tools]\nsandbox = "none"\n[policy]\nallow = ["exec"]\n')
    return place


async def begun(slow: Place, talk: Conversation) -> None:
    """Wait until the command of SLOW runs: its call is written down a moment before."""
    while not (slow.workspace / "files/begun").exists():
        await talk.refresh()


@pytest.mark.requirement("OPS-10")
async def test_sigterm_lets_the_running_turn_finish_and_exits_0(
    slow: Place, fail_after: FailAfter
) -> None:
    # One of its group that loads everything itself, see `nursery`.
    slow.loaded = False
    async with fail_after(60):
        async with gateway(slow) as program:
            url = await program.url()
            async with conversation(url) as talk:
                sent = await talk.submit(SLOW)
                await begun(slow, talk)
                program.signal(signal.SIGTERM)
                await program.says('"stopping"')
                (slow.workspace / "files/go").touch()
            assert await program.ended() == 0
        async with gateway(slow) as program, conversation(await program.url()) as talk:
            run = await talk.run(sent.run_id)
            assert run["state"] == "completed"
            assert (slow.workspace / "files/begun").read_text() == "once\n"
            assert "all done" in reply(talk, sent.run_id)


@pytest.mark.requirement("OPS-10")
async def test_a_turn_that_outlasts_the_grace_time_is_put_back_and_goes_on_later(
    slow: Place, fail_after: FailAfter
) -> None:
    slow.variables["GATEHOUSE_SHUTDOWN_GRACE_S"] = "0.2"
    async with fail_after(60):
        async with gateway(slow) as program:
            async with conversation(await program.url()) as talk:
                sent = await talk.submit(SLOW)
                await begun(slow, talk)
                program.signal(signal.SIGTERM)
            assert await program.ended() == 0
        (slow.workspace / "files/go").touch()
        async with gateway(slow) as program, conversation(await program.url()) as talk:
            assert await finished(talk, sent.run_id) == "completed"
            assert reply(talk, sent.run_id)
            assert (slow.workspace / "files/begun").read_text() == "once\n"


@pytest.mark.requirement("OPS-10", "API-5")
async def test_a_second_sigterm_is_immediate_and_loses_nothing(
    slow: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        async with gateway(slow) as program:
            url = await program.url()
            async with conversation(url) as talk:
                sent = await talk.submit(SLOW)
                await begun(slow, talk)
                program.signal(signal.SIGTERM)
                await program.says('"stopping"')
                await until_ready(url, ready=False)
                assert await down(url) == {"taking": WHY["taking"]}
                program.signal(signal.SIGTERM)
                assert await program.ended() == 128 + signal.SIGTERM
                await gone(url)
        (slow.workspace / "files/go").touch()
        async with gateway(slow) as program, conversation(await program.url()) as talk:
            assert await finished(talk, sent.run_id) == "completed"


@pytest.mark.requirement("OPS-10")
async def test_what_waits_in_line_at_a_kill_is_answered_after_the_restart(
    slow: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        async with gateway(slow) as program:
            async with conversation(await program.url()) as talk:
                first = await talk.submit(SLOW)
                await begun(slow, talk)
                second = await talk.submit("hello")
                program.signal(signal.SIGKILL)
            assert await program.ended() == -signal.SIGKILL
        (slow.workspace / "files/go").touch()
        async with gateway(slow) as program, conversation(await program.url()) as talk:
            assert await finished(talk, first.run_id) == "completed"
            assert await finished(talk, second.run_id) == "completed"
            asked = [one.text for one in talk.entries if one.kind == "user"]
            assert asked == [SLOW, "hello"]


@pytest.mark.requirement("OPS-10")
async def test_an_interrupt_by_the_keyboard_ends_it_in_order_too(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), gateway(place) as program:
        await program.url()
        program.signal(signal.SIGINT)
        assert await program.ended() == 0
        assert "Traceback" not in program.transcript
        assert lock_is_free(place.home / "gatehouse.db.lock")


def lock_is_free(lock: Path) -> bool:
    """A gateway that ended in order leaves no process id behind."""
    return lock.read_text().strip() == ""


@pytest.mark.requirement("OPS-10")
async def test_sigterm_leaves_no_lease_to_wait_for(tmp_path: Path, fail_after: FailAfter) -> None:
    place = Place(tmp_path)
    async with fail_after(60), gateway(place) as program:
        await program.url()
        assert _held(place) > 0
        program.process.terminate()
        assert await program.ended() == 0
    assert _held(place) == 0


def _held(place: Place) -> int:
    """Leases that have not run out, as another process would see them."""
    with closing(sqlite3.connect(place.home / "gatehouse.db")) as database:
        found = database.execute("SELECT count(*) FROM leases WHERE expires_ms > 0")
        return int(found.fetchone()[0])
