"""What a platform delivers after an outage is answered together, once, and acts on nothing newer.

(MSG-17)
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from runtime.domain.people import Trust
from runtime.domain.runs import RunState
from runtime.domain.transcript import UserMessage
from runtime.ports.model import ModelRequest
from runtime.sessions import runs
from runtime.store import Connection
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import GUEST, both, call, card, offering, reaches, state
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import Setup, World
from tests.scenario.tools import Note

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def mode(name: str, *, debounce_ms: int = 0) -> Callable[[Setup], Setup]:
    return intake(queue_mode=name, debounce_ms=debounce_ms)


def ago(world: World, ms: int) -> int:
    """A moment before now."""
    return world.engine.parts.clock.now_ms() - ms


def said(request: ModelRequest) -> list[str]:
    """The last lines of what people said: without the mark of what came late."""
    return [m.text.split("\n")[-1] for m in request.messages if isinstance(m, UserMessage)]


def timed(name: str, clock: FakeClock) -> Callable[[Setup], Setup]:
    """A mode under a clock that stands still: the quiet pause ends when the test says so."""
    return lambda setup: mode(name, debounce_ms=700)(replace(setup, clock=clock))


async def answered(world: World, clock: FakeClock) -> list[str]:
    """What people see, once time has passed."""
    async with asyncio.timeout(120):
        while not world.chat.sent:
            await clock.advance(0.5)
    return world.chat.texts()


@pytest.mark.requirement("MSG-17")
@pytest.mark.parametrize("name", ["followup", "collect", "steer", "interrupt"])
async def test_old_messages_of_an_idle_lane_are_answered_together_once(
    worlds: Worlds, name: str
) -> None:
    clock, model = FakeClock(), ScriptedModel(["all three"])
    async with worlds(model, change=timed(name, clock)) as world:
        found = [
            await world.says(f"{number}", sent_ms=ago(world, HOUR_MS - number * MINUTE_MS))
            for number in range(3)
        ]
        assert len({one.run_id for one in found}) == 1
        assert await answered(world, clock) == ["all three"]
        assert said(model.requests[0]) == ["0", "1", "2"]
        assert "arrived long after it was sent" in model.requests[0].present
        texts = [message.text for message in model.requests[0].messages]
        assert all(text.startswith("[sent ") and "arrived late]\n" in text for text in texts)


@pytest.mark.requirement("MSG-17")
async def test_one_old_message_is_answered_after_the_quiet_pause(worlds: Worlds) -> None:
    clock = FakeClock()
    async with worlds(ScriptedModel(["late but here"]), change=timed("collect", clock)) as world:
        await world.says("anybody?", sent_ms=ago(world, HOUR_MS))
        await clock.advance(0.5)
        assert world.chat.sent == []
        assert await answered(world, clock) == ["late but here"]


@pytest.mark.requirement("MSG-17")
@pytest.mark.parametrize("minutes", [14, 16])
async def test_fifteen_minutes_are_what_makes_a_message_old(worlds: Worlds, minutes: int) -> None:
    model = ScriptedModel(["yes"])
    async with worlds(model, change=mode("followup")) as world:
        accepted = await world.says("hm", sent_ms=ago(world, minutes * MINUTE_MS))
        await world.sees(1)
        run = await world.database.read(lambda conn: runs.get(conn, accepted.run_id or ""))
        assert run.late == (minutes > 15)
        assert ("arrived late" in model.requests[0].messages[0].text) == run.late


@pytest.mark.requirement("MSG-17")
@pytest.mark.parametrize("name", ["followup", "steer", "interrupt"])
async def test_old_messages_wait_for_the_run_at_work_and_share_the_next(
    worlds: Worlds, name: str
) -> None:
    gate = Gate()
    model = ScriptedModel([Said("now", before=gate), "then"])
    async with worlds(model, change=mode(name)) as world:
        first = await world.says("present")
        await gate.reached.wait()
        old = [await world.says(f"{n}", sent_ms=ago(world, HOUR_MS)) for n in range(2)]
        fresh = await world.says("and this") if name == "followup" else None
        assert len({one.run_id for one in old}) == 1
        assert old[0].run_id != first.run_id
        assert fresh is None or fresh.run_id == old[0].run_id, "with what else waits"
        gate.open.set()
        assert await world.sees(2) == ["now", "then"]
        assert await state(world, first.run_id) is RunState.COMPLETED


@pytest.mark.requirement("MSG-17", "POL-4")
async def test_old_messages_of_several_people_are_answered_once_for_the_least_trusted(
    worlds: Worlds,
) -> None:
    clock, model = FakeClock(), ScriptedModel(["all"])
    async with worlds(model, change=timed("followup", clock)) as world:
        old = ago(world, HOUR_MS)
        one = await world.says("mine", chat_id="G", kind="group", sent_ms=old)
        two = await world.says("theirs", user=GUEST, chat_id="G", kind="group", sent_ms=old)
        assert one.run_id == two.run_id
        assert await answered(world, clock) == ["all"]
        run = await world.database.read(lambda conn: runs.get(conn, one.run_id or ""))
        assert run.speaker.trust is Trust.GUEST


@pytest.mark.requirement("MSG-12", "MSG-17")
@pytest.mark.parametrize("word", ["/stop", "/new", "/plan"])
async def test_an_old_word_leaves_newer_things_alone(worlds: Worlds, word: str) -> None:
    gate = Gate()
    model = ScriptedModel([Said("whole", before=gate)])
    async with worlds(model, change=mode("followup")) as world:
        accepted = await world.says("work")
        await gate.reached.wait()
        await world.says(word, sent_ms=ago(world, HOUR_MS))
        (told,) = await world.sees(1)
        assert told.startswith(f"`{word}` arrived 60 minutes after you sent it")
        gate.open.set()
        assert (await world.sees(2))[1] == "whole"
        await reaches(world, accepted.run_id, RunState.COMPLETED)


@pytest.mark.requirement("MSG-12", "MSG-17")
async def test_an_old_stop_stops_what_is_older_still(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("never", before=gate)])
    async with worlds(model, change=mode("followup")) as world:
        accepted = await world.says("work", sent_ms=ago(world, 2 * HOUR_MS))
        await gate.reached.wait()
        await world.says("/stop", sent_ms=ago(world, HOUR_MS))
        assert await world.sees(1) == ["Stopped."]
        await reaches(world, accepted.run_id, RunState.CANCELLED)


@pytest.mark.requirement("APR-3", "MSG-17")
async def test_an_old_approval_decides_about_no_newer_card(worlds: Worlds) -> None:
    note = Note(command=True)
    model = ScriptedModel([Said(calls=(call("a"),)), "done"])
    async with worlds(model, change=both(mode("followup"), offering(note))) as world:
        # The request is older than the word, the card that it led to is not.
        accepted = await world.says("do a", sent_ms=ago(world, 2 * HOUR_MS))
        shown = await card(world)
        await world.says(f"/approve {shown.code}", sent_ms=ago(world, HOUR_MS))
        assert "newer than your words" in (await world.sees(2))[1]
        assert await state(world, accepted.run_id) is RunState.WAITING_FOR_APPROVAL
        assert note.begun == 0


@pytest.mark.requirement("MSG-2", "MSG-17")
async def test_an_old_message_that_is_delivered_twice_is_one(worlds: Worlds) -> None:
    model = ScriptedModel(["once"])
    async with worlds(model, change=mode("followup")) as world:
        old = ago(world, HOUR_MS)
        await world.says("hello", message_id="m-old", sent_ms=old)
        await world.sees(1)
        again = await world.says("hello", message_id="m-old", sent_ms=old)
        assert again.disposition == "duplicate"
        assert await world.database.read(_all_runs) == 1


def _all_runs(conn: Connection) -> int:
    return len(conn.exec_driver_sql("SELECT id FROM runs").all())
