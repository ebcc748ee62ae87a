"""Replicas on one database whose signals to each other are all lost: how late anything may be."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from runtime.domain.runs import RunState
from runtime.process.lease_keeper import LeaseSettings
from runtime.sessions import runs
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.conftest import engine
from tests.scenario.engine import Setup
from tests.scenario.replicas import STEP_S, Beside, Replica, beside, hands

TTL_S = LeaseSettings().ttl_s
STOP_S = 1.0
TICK_S = 1.0
"""How long a run may go on that somebody stopped, and how late a lost wake-up is noticed."""
LONG_S = 600.0
LIMIT_S = 240.0
ROOMS = ("G1", "G2", "G3")
SINGLETONS = {"timers", "deliver:test:A1", "listen:test:A1"}


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Beside]:
    async with beside(tmp_path, postgres_server()) as made:
        yield made


def held(gate: Gate, text: str = "never said") -> ScriptedModel:
    """A model whose answers wait at a gate."""
    return ScriptedModel(lambda request: Said(text, before=gate))


def answering(text: str) -> ScriptedModel:
    """A model that always says this."""
    return ScriptedModel(lambda request: text)


async def begun(replica: Replica, amount: int) -> None:
    """Until so many runs run; no time passes."""
    while len((await hands(replica)).runs) < amount:
        pass


async def state(replica: Replica, run_id: str | None) -> RunState:
    """A run's state."""
    return (await replica.line.read(lambda conn: runs.get(conn, run_id or ""))).state


@pytest.mark.requirement("SCALE-2", "MSG-7", "MSG-9")
async def test_all_that_a_dead_replica_held_changes_hands_within_two_lease_periods(
    two: Beside, fail_after: FailAfter
) -> None:
    """It dies in the moment after a renewal, which leaves the others the longest wait."""
    async with (
        fail_after(LIMIT_S),
        two.replica("one", held(Gate())) as one,
        two.replica("two", answering("done")) as other,
    ):
        for room in ROOMS:
            await one.world.says("hello", chat_id=room, kind="group")
        await begun(one, len(ROOMS))
        await two.clock.advance(2 * TTL_S)
        before = await hands(other)
        assert set(before.leases) == SINGLETONS
        assert before.all_of(one.worker), "what is renewed stays where it is"

        await one.dies()
        died = two.clock.monotonic()
        await two.clock.advance(TTL_S - STEP_S)
        assert await hands(other) == before, "nobody is taken for dead before the lease is over"
        assert not other.chat.listening.is_set()

        async def taken_over() -> bool:
            now = await hands(other)
            ended = len(before.runs) - len(now.runs)
            held = set(now.leases) == SINGLETONS and now.all_of(other.worker)
            begun = ended + sum(worker == other.worker for worker in now.runs.values())
            return held and begun == len(before.runs) and other.chat.listening.is_set()

        await two.until(taken_over, within=died + 2 * TTL_S - two.clock.monotonic())

        async def answered() -> bool:
            return len(other.chat.sent) >= len(ROOMS)

        await two.until(answered, within=LONG_S)
        assert other.chat.texts() == ["done"] * len(ROOMS)
        assert one.chat.texts() == []


@pytest.mark.requirement("SCALE-2")
async def test_what_a_replica_gives_back_in_order_is_not_waited_for(
    two: Beside, fail_after: FailAfter
) -> None:
    """A stop in order leaves the others a third of a lease to find it, not two."""
    async with (
        fail_after(LIMIT_S),
        two.replica("one", answering("done")) as first,
        two.replica("two", answering("done")) as other,
    ):
        await two.clock.advance(TTL_S)
        first.task.cancel()
        await two.clock.advance(0)

        async def taken_over() -> bool:
            now = await hands(other)
            return set(now.leases) == SINGLETONS and now.all_of(other.worker)

        await two.until(taken_over, within=TTL_S / 3)


@pytest.mark.requirement("MSG-13", "MSG-21", "SCALE-1")
async def test_a_stop_that_is_asked_at_another_replica_takes_effect_within_a_second(
    two: Beside, fail_after: FailAfter
) -> None:
    gate = Gate()
    streaming = ScriptedModel([Said("half of it and more", chunk=7, middle=gate, at=1)])
    async with (
        fail_after(LIMIT_S),
        two.replica("one", streaming) as one,
        two.replica("two", answering("never asked")) as other,
    ):
        accepted = await one.world.says("tell me")
        await gate.reached.wait()
        await two.clock.advance(TICK_S)
        await other.world.says("/stop")
        await two.clock.advance(0)
        assert await state(other, accepted.run_id) is RunState.RUNNING, "the signal was lost"

        async def stopped() -> bool:
            return await state(other, accepted.run_id) is RunState.CANCELLED

        await two.until(stopped, within=STOP_S)
        assert streaming.closed == 1


@pytest.mark.requirement("SCALE-1", "MSG-4", "MSG-21")
async def test_without_any_signal_another_replica_has_a_message_and_its_reply_within_a_tick(
    two: Beside, fail_after: FailAfter
) -> None:
    """The first has no room, and the second no deliverer: each finds the other's work by itself."""
    gate, change = Gate(), one_turn()
    async with (
        fail_after(LIMIT_S),
        two.replica("one", held(gate, "late"), change) as one,
        two.replica("two", answering("early")) as other,
    ):
        await one.world.says("hello", chat_id="G1", kind="group")
        await gate.reached.wait()
        waits = await one.world.says("hello", chat_id="G2", kind="group")
        await two.clock.advance(0)
        assert await state(one, waits.run_id) is RunState.QUEUED

        async def claimed() -> bool:
            return await state(one, waits.run_id) is not RunState.QUEUED

        async def delivered() -> bool:
            return one.chat.texts("G2") == ["early"]

        await two.until(claimed, within=TICK_S)
        while await state(one, waits.run_id) is not RunState.COMPLETED:
            pass
        await two.until(delivered, within=TICK_S)
        assert other.chat.texts() == []
        gate.open.set()

        async def finished() -> bool:
            return one.chat.texts("G1") == ["late"]

        await two.until(finished, within=LONG_S)


def one_turn() -> Callable[[Setup], Setup]:
    """A replica with room for one turn."""
    return engine(turns=1)
