"""A model, a tool or a platform that hangs keeps nobody waiting but who asked it (SCALE-5)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.delivery import deliverer
from runtime.domain.messages import OutboundMessage, Receipt
from runtime.domain.runs import RunState
from runtime.domain.transcript import ToolMessage, UserMessage
from runtime.ports.chat import Posted
from runtime.ports.model import Model, ModelRequest
from runtime.process.lease_keeper import LeaseSettings
from runtime.store import leases
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.fakes.chat import FAST, FakeChat, FakeStreams
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import call, offering, reaches, state
from tests.scenario.conftest import engine
from tests.scenario.engine import Setup, World, setup_at, world
from tests.scenario.posting import DAY_MS, GatedChat, LoneDeliverer, post
from tests.scenario.replicas import Replica, beside, hands
from tests.scenario.test_card_edits import put, row
from tests.scenario.tools import Note
from tests.support.templates import make_database

TTL_S = LeaseSettings().ttl_s
STOP_S = 1.0
TURNS = 2


class Stuck(FakeChat):
    """A platform where sends to one chat, and typing there, hang at a gate."""

    def __init__(self, chat_id: str = "D-stuck", **more: object) -> None:
        super().__init__(capabilities=replace(FAST, typing_interval_s=4.0, **more))
        self.stuck = chat_id
        self.sends, self.signals = Gate(), Gate()

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        if message.target.chat_id == self.stuck:
            await self.sends.wait()
        return await super().send(message, posted=posted, on_posted=on_posted)

    async def typing(self, target: object, state: str) -> None:
        if getattr(target, "chat_id", "") == self.stuck:
            await self.signals.wait()
        await super().typing(target, state)  # type: ignore[arg-type]  # as it came


@asynccontextmanager
async def at_work(
    path: Path, model: Model, chat: FakeChat | None = None, tools: Sequence[Note] = ()
) -> AsyncIterator[World]:
    """A world under a clock that moves on command."""
    url = f"sqlite:///{path}/gatehouse.db"
    await make_database(url)
    setup = setup_at(path, url, ScriptedModels(model), clock=FakeClock())
    async with world(offering(*tools)(setup) if tools else setup, chat) as running:
        yield running


def clock_of(running: World) -> FakeClock:
    clock = running.engine.parts.clock
    assert isinstance(clock, FakeClock)
    return clock


def said(request: ModelRequest) -> str:
    """What the person asks."""
    return [one.text for one in request.messages if isinstance(one, UserMessage)][-1]


@pytest.mark.requirement("SCALE-5", "MSG-13")
async def test_a_model_that_hangs_keeps_nobody_else_waiting_and_stop_ends_it(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    gate = Gate()
    model = ScriptedModel(lambda one: Said("ok", before=gate if said(one) == "hang" else None))
    async with fail_after(), at_work(tmp_path, model) as running:
        hung = await running.says("hang", chat_id="D-stuck")
        await gate.reached.wait()
        behind = await running.says("and then", chat_id="D-stuck")
        await running.says("hello", chat_id="D-other")
        assert await running.sees(1, "D-other") == ["ok"]

        # Leases are renewed and what was accepted stays so, for as long as it hangs.
        await clock_of(running).advance(2 * TTL_S)
        assert running.engine.ready
        await running.says("and again", chat_id="D-other")
        assert await running.sees(2, "D-other") == ["ok", "ok"]

        assert await state(running, hung.run_id) is RunState.RUNNING
        await running.says("/stop", chat_id="D-stuck")
        await clock_of(running).advance(STOP_S)
        assert await state(running, hung.run_id) is RunState.CANCELLED
        await reaches(running, behind.run_id, RunState.COMPLETED)


@pytest.mark.requirement("SCALE-5", "MSG-13")
async def test_a_tool_that_hangs_keeps_nobody_else_waiting_and_stop_ends_it(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    slow, quick = Note("slow", gate=Gate()), Note("quick")

    def script(request: ModelRequest) -> Said | str:
        if isinstance(request.messages[-1], ToolMessage):
            return "kept"
        return Said(calls=(call("x", said(request)),))

    async with fail_after(), at_work(tmp_path, ScriptedModel(script), None, (slow, quick)) as one:
        hung = await one.says("slow", chat_id="D-stuck")
        assert slow.gate is not None
        await slow.gate.reached.wait()
        await one.says("quick", chat_id="D-other")
        assert await one.sees(1, "D-other") == ["kept"]
        await clock_of(one).advance(2 * TTL_S)
        assert await state(one, hung.run_id) is RunState.RUNNING
        await one.says("/stop", chat_id="D-stuck")
        await clock_of(one).advance(STOP_S)
        assert await state(one, hung.run_id) is RunState.CANCELLED


@pytest.mark.requirement("SCALE-5")
async def test_a_send_that_hangs_keeps_neither_other_chats_nor_its_own_lane_waiting(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    chat = Stuck()
    async with fail_after(), at_work(tmp_path, ScriptedModel(lambda one: "ok"), chat) as running:
        first = await running.says("one", chat_id="D-stuck")
        await chat.sends.reached.wait()
        second = await running.says("two", chat_id="D-stuck")
        await running.says("hello", chat_id="D-other")
        assert await running.sees(1, "D-other") == ["ok"]
        for one in (first, second):
            await reaches(running, one.run_id, RunState.COMPLETED)
        await clock_of(running).advance(2 * TTL_S)
        assert chat.texts("D-stuck") == []
        chat.sends.open.set()
        assert await running.sees(2, "D-stuck") == ["ok", "ok"]


@pytest.mark.requirement("SCALE-5")
async def test_a_typing_signal_that_hangs_keeps_no_other_signal_and_no_reply_waiting(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    chat, gate = Stuck(), Gate()
    model = ScriptedModel(lambda one: Said("ok", before=gate))
    async with fail_after(), at_work(tmp_path, model, chat) as running:
        await running.says("hello", chat_id="D-stuck")
        await chat.signals.reached.wait()
        await running.says("hello", chat_id="D-other")
        await chat.until(lambda: ("D-other", "thinking") in chat.typings)
        gate.open.set()
        chat.sends.open.set()
        await running.sees(1, "D-stuck")
        await running.sees(1, "D-other")
        await chat.until(lambda: ("D-other", "done") in chat.typings)
        chat.signals.open.set()
        await chat.until(lambda: ("D-stuck", "done") in chat.typings)


@pytest.mark.requirement("SCALE-5")
async def test_a_stream_that_hangs_keeps_no_other_chat_waiting(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    chat, opening = FakeChat(), Gate()
    chat.streams = streams = FakeStreams(chat)
    held = [opening.wait]

    async def first_only() -> None:
        if held:
            await held.pop()()

    streams.hold["open"] = first_only
    gate = Gate()

    def script(request: ModelRequest) -> Said:
        if said(request) == "long":
            return Said("a long answer", middle=gate, at=1)
        return Said("ok")

    async with fail_after(), at_work(tmp_path, ScriptedModel(script), chat) as running:
        await running.says("long", chat_id="D-stuck")
        await gate.reached.wait()
        await clock_of(running).advance(2.0)
        await opening.reached.wait()
        await running.says("short", chat_id="D-other")
        while chat.texts("D-other") != ["ok"]:
            await clock_of(running).advance(0.1)
        gate.open.set()
        opening.open.set()
        while chat.texts("D-stuck") != ["a long answer"]:
            await clock_of(running).advance(0.1)


@pytest.mark.requirement("SCALE-5")
async def test_changed_cards_that_hang_in_many_chats_keep_no_other_chat_waiting(
    tmp_path: Path,
) -> None:
    """More of them than the outbox gives at once, each with a reply behind it."""
    places = [f"C{number}" for number in range(deliverer.BATCH + 1)]
    gate = Gate()

    class StuckEdits(GatedChat):
        async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
            await gate.wait()
            await super().edit(message, receipt)

    async with post(tmp_path, StuckEdits()) as at:
        await at.start()
        await put(at, *(row(at, "card", place, place) for place in places))
        await at.until(lambda: len(at.chat.sent) == len(places))
        await put(at, *(row(at, "edit", place, place) for place in places))
        await at.until(lambda: gate.reached.is_set())
        await at.clock.advance(5.0)
        await put(at, *(row(at, "final", f"reply {place}", place) for place in places))
        await at.put("elsewhere", "D")
        await at.until(lambda: at.chat.texts("D") == ["elsewhere"])
        gate.open.set()
        await at.until(lambda: len(at.chat.sent) == 2 * len(places) + 1)


@pytest.mark.requirement("SCALE-5")
async def test_an_account_that_hangs_keeps_no_other_account_waiting(tmp_path: Path) -> None:
    stuck = GatedChat()
    stuck.before = {"never": Gate()}
    async with post(tmp_path, stuck) as at:
        await at.start()
        await at.put("never", "C")
        await at.until(lambda: stuck.before["never"].reached.is_set())
        other = FakeChat(account="A2")
        deliverer = LoneDeliverer(other, at.services)
        fence = await at.database.write(
            lambda conn: leases.acquire(
                conn, name=leases.delivery("test", "A2"), holder=at.worker, ttl_ms=DAY_MS
            ),
            name="lease",
        )
        task = asyncio.create_task(deliverer.run(fence or 0), name="other account")
        message = at.message("hello", "C")
        target = message.target.model_copy(update={"account": "A2"})
        there = replace(
            row(at, "final", "hello", "C"), message=message.model_copy(update={"target": target})
        )
        await put(at, there)
        await at.until(lambda: other.texts() == ["hello"])
        assert stuck.texts() == []
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.requirement("SCALE-5")
async def test_an_account_that_answers_nobody_fills_the_outbox_and_not_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliverer, "MOST", 3)
    stuck = GatedChat()
    texts = [f"reply {number}" for number in range(8)]
    stuck.before = {text: Gate() for text in texts}
    async with post(tmp_path, stuck) as at:
        await at.start()
        ids = [await at.put(text, f"C{text}") for text in texts]
        await at.clock.advance(5.0)
        states = [(await at.row(one)).state for one in ids]
        assert states == ["sending"] * 3 + ["pending"] * 5
        assert len(stuck.attempts) == 3
        assert at.deliverer.offer(at.message("x", "elsewhere").target) is None
        for gate in stuck.before.values():
            gate.open.set()
        await at.until(lambda: len(stuck.sent) == len(texts))
        assert at.deliverer.offer(at.message("x", "elsewhere").target) is not None


@pytest.mark.requirement("SCALE-3")
async def test_two_engines_carry_twice_as_many_turns_as_one(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    def few(setup: Setup) -> Setup:
        return engine(turns=TURNS)(setup)

    gate = Gate()
    model = ScriptedModel(lambda request: Said("done", before=gate))
    rooms = [f"G{number}" for number in range(2 * TURNS + 1)]
    async with (
        fail_after(120),
        beside(tmp_path, postgres_server()) as place,
        place.replica("one", model, few) as one,
    ):
        for room in rooms:
            await one.world.says("hello", chat_id=room, kind="group")

        async def running(amount: int) -> bool:
            return len((await hands(one)).runs) == amount

        await place.until(lambda: running(TURNS), within=5)
        await place.clock.advance(5.0)
        assert await running(TURNS), "one engine takes no more than its turns"
        async with place.replica("two", model, few) as two:
            await place.until(lambda: running(2 * TURNS), within=5)
            workers = list((await hands(one)).runs.values())
            assert {workers.count(each.worker) for each in (one, two)} == {TURNS}
            gate.open.set()
            await place.until(lambda: _answered(one, rooms), within=30)


async def _answered(one: Replica, rooms: Sequence[str]) -> bool:
    return all(one.chat.texts(room) == ["done"] for room in rooms)
