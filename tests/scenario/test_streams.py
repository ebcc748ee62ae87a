"""Replies that are shown while they grow: one message in the end, whatever breaks (REN-4)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.errors import DeliveryRejected, DeliveryRetry, DeliveryUnknown, ModelRejected
from runtime.domain.runs import RunState
from runtime.store import Connection, Point, audit, leases, no_point, open_database, outbox, runs
from runtime.store.migrate import migrate
from runtime.store.tables import outbox as outbox_rows
from runtime.workers.sending import DeliverySettings
from tests.fakes.chat import FAST, FakeChat, FakeStreams
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import asks, call, cards
from tests.scenario.engine import OWNER, Setup, World, setup_at, world
from tests.scenario.tools import Note

CHAT = f"D-{OWNER}"
FIRST = "This is the first half of it, "
WHOLE = FIRST + "and this is the other half of it."


class Stage:
    """One database and one platform, and engines on them, one after another."""

    def __init__(self, path: Path, *, drafts: bool = False, **capabilities: object) -> None:
        self.path, self.clock = path, FakeClock()
        self.url = f"sqlite:///{path}/gatehouse.db"
        self.capabilities = replace(FAST, **capabilities)
        self.chat = FakeChat(capabilities=self.capabilities)
        self.streams = FakeStreams(self.chat, drafts=drafts)
        self.chat.streams = self.streams
        self.point: Point = no_point
        self.quiet = frozenset[str]()
        self.made = False

    async def setup(self, model: ScriptedModel) -> Setup:
        if not self.made:
            await migrate(self.url)
            self.made = True
        self.chat.listening.clear()
        base = setup_at(self.path, self.url, ScriptedModels(model))
        delivery = DeliverySettings(quiet=self.quiet)
        return replace(
            base,
            clock=self.clock,
            tools=(Note(),),
            point=self.point,
            settings=replace(base.settings, delivery=delivery),
        )

    async def until(self, condition: Callable[[], bool], step: float = 0.25) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await self.clock.advance(step)

    async def settled(self, at: World) -> None:
        """Let time pass until every row of the outbox has its end."""
        async with asyncio.timeout(30):
            while set(await at.database.read(outbox.counts)) - {"oldest_ms", "unknown", "dead"}:
                await self.clock.advance(0.5)

    def did(self, operation: str) -> int:
        return [one for one, _ in self.streams.calls].count(operation)


def half(gate: Gate, text: str = WHOLE) -> Said:
    """A response that stops after its first half until the gate is open."""
    return Said(text, chunk=len(FIRST), middle=gate, at=1)


async def rows(at: World) -> list[tuple[str, str]]:
    def read(conn: Connection) -> list[tuple[str, str]]:
        query = outbox_rows.select().order_by(outbox_rows.c.position)
        return [(row.kind, row.state) for row in conn.execute(query)]

    return await at.database.read(read)


async def orphans(at: World) -> int:
    found = await at.database.read(lambda conn: audit.listing(conn, limit=100))
    return [row.action for row in found].count("delivery.orphaned")


@pytest.mark.requirement("REN-4", "MSG-9")
async def test_a_reply_grows_in_its_chat_and_ends_as_one_message(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        assert await rows(at) == [("stream", "streaming")]
        gate.open.set()
        await stage.until(lambda: stage.chat.texts() == [WHOLE])
        await stage.settled(at)
        assert await rows(at) == [("final", "sent")]
        assert stage.did("open") == stage.did("close") == 1


@pytest.mark.requirement("REN-4")
async def test_nothing_is_shown_of_a_short_answer_before_a_second_has_passed(
    tmp_path: Path,
) -> None:
    stage, gate = Stage(tmp_path), Gate()
    said = Said("Yes, it is.", chunk=4, middle=gate, at=1)
    async with world(await stage.setup(ScriptedModel([said])), stage.chat) as at:
        await at.says("is it?")
        await gate.reached.wait()
        await stage.clock.advance(0.5)
        assert stage.streams.calls == []
        await stage.until(lambda: stage.chat.texts() == ["Yes,"])
        gate.open.set()
        await stage.until(lambda: stage.chat.texts() == ["Yes, it is."])


@pytest.mark.requirement("REN-4")
async def test_an_answer_that_is_there_at_once_is_sent_plainly(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    async with world(await stage.setup(ScriptedModel(["Yes."])), stage.chat) as at:
        await at.says("is it?")
        await stage.until(lambda: stage.chat.texts() == ["Yes."])
        await stage.settled(at)
        assert stage.streams.calls == []


@pytest.mark.requirement("REN-4", "MSG-10")
async def test_edits_keep_their_interval_and_take_no_token_of_a_message(tmp_path: Path) -> None:
    stage, gates = Stage(tmp_path, chat_rate=0.5, chat_burst=2), [Gate() for _ in range(2)]
    model = ScriptedModel([half(gates[0]), half(gates[1])])
    async with world(await stage.setup(model), stage.chat) as at:
        await at.says("one")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        began = stage.clock.monotonic()
        gates[0].open.set()
        await stage.until(lambda: stage.chat.texts() == [WHOLE], step=0.1)
        assert stage.clock.monotonic() - began <= 0.5, "its token was left for it"
        assert stage.did("grow") == 0
        gates[1].open.set()
        await stage.settled(at)


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize("why", ["no streams", "quiet", "no interval", "refused"])
async def test_without_a_stream_the_reply_is_sent_whole(tmp_path: Path, why: str) -> None:
    stage, gate = Stage(tmp_path), Gate()
    match why:
        case "no streams":
            stage.chat.streams = None
        case "quiet":
            stage.quiet = frozenset({"test"})
        case "no interval":
            stage.streams.interval = None
        case _:
            stage.streams.failures["open"] = [DeliveryRejected("not here")]
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await gate.reached.wait()
        await stage.clock.advance(3.0)
        assert stage.chat.texts() == []
        gate.open.set()
        await stage.until(lambda: stage.chat.texts() == [WHOLE])
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert stage.did("close") == 0
        assert await orphans(at) == 0


@pytest.mark.requirement("REN-4")
async def test_a_rate_limit_slows_the_text_down_and_the_reply_wins(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    stage.streams.failures["open"] = [DeliveryRetry("429", after_s=5.0)]
    stage.streams.failures["close"] = [DeliveryRetry("429", after_s=5.0)]
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.did("open") == 1)
        tried = stage.clock.monotonic()
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        assert stage.clock.monotonic() - tried >= 4.7
        gate.open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert stage.did("close") == 2


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize("error", [DeliveryUnknown("time-out"), DeliveryRejected("gone")])
async def test_a_stream_that_breaks_ends_in_one_complete_message(
    tmp_path: Path, error: Exception
) -> None:
    stage, gates = Stage(tmp_path), [Gate()]
    said = Said(WHOLE * 3, chunk=len(FIRST), middle=gates[0], at=2)
    assert isinstance(error, DeliveryUnknown | DeliveryRejected)
    stage.streams.failures["grow"] = [error]
    stage.streams.failures["close"] = [DeliveryUnknown("time-out")]
    async with world(await stage.setup(ScriptedModel([said])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: len(stage.chat.texts()) == 1)
        gates[0].open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE * 3]
        assert await rows(at) == [("final", "sent")]


@pytest.mark.requirement("REN-4")
async def test_the_text_of_a_step_is_replaced_by_the_next_and_the_reply_is_the_last(
    tmp_path: Path,
) -> None:
    stage, gates = Stage(tmp_path), [Gate(), Gate()]
    first = Said("I will look into that for you.", calls=(call("x"),), middle=gates[0], at=3)
    async with world(await stage.setup(ScriptedModel([first, half(gates[1])])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == ["I will look into that fo"])
        gates[0].open.set()
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        gates[1].open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert await rows(at) == [("final", "sent")]


@pytest.mark.requirement("REN-4", "APR-6")
async def test_a_run_that_asks_closes_what_it_said_before_its_card(tmp_path: Path) -> None:
    stage, gates = Stage(tmp_path), [Gate(), Gate()]
    said = "I need to know one thing first."
    first = Said(said, calls=(asks("Which?"),), chunk=24, middle=gates[0], at=1)
    stage.chat.streams = stage.streams
    setup = await stage.setup(ScriptedModel([first, half(gates[1])]))
    async with world(replace(setup, tools=()), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [said[:24]])
        gates[0].open.set()
        await stage.until(lambda: stage.chat.texts() == [said, "question"])
        ((_, card),) = cards(at)
        await at.says(f"/answer {card.code} that one")
        await stage.until(lambda: len(stage.chat.texts()) == 4)
        gates[1].open.set()
        await stage.settled(at)
        assert stage.chat.texts()[:2] == [said, "question"]
        assert WHOLE in stage.chat.texts()
        assert FIRST not in stage.chat.texts()


@pytest.mark.requirement("REN-4", "MSG-13")
async def test_a_stopped_run_keeps_what_it_had_said(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        await at.says("/stop")
        await stage.settled(at)
        assert sorted(stage.chat.texts()) == [
            "Stopped.",
            f"{FIRST.strip()}\n\n(I was stopped here.)",
        ]
        assert sorted(await rows(at)) == [("notice", "sent"), ("said", "sent")]


@pytest.mark.requirement("REN-4", "MSG-14")
async def test_a_failed_run_says_so_in_the_place_of_its_text(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    said = Said(
        WHOLE, chunk=len(FIRST), middle=gate, at=1, error=ModelRejected("bad", "I may not.")
    )
    async with world(await stage.setup(ScriptedModel([said])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        gate.open.set()
        await stage.settled(at)
        (told,) = stage.chat.texts()
        assert told.startswith("I may not.")


@pytest.mark.requirement("REN-4", "MSG-12")
async def test_commands_are_answered_while_a_text_grows(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        await at.says("/status")
        await stage.until(lambda: len(stage.chat.texts()) == 2)
        assert stage.chat.texts()[0] == FIRST
        gate.open.set()
        await stage.settled(at)
        assert stage.chat.texts()[0] == WHOLE


@pytest.mark.requirement("REN-4")
async def test_a_draft_leaves_no_post_and_the_reply_is_sent(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path, drafts=True), Gate()
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.did("open") == 1)
        assert stage.chat.texts() == []
        gate.open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]


@pytest.mark.requirement("REN-4")
async def test_the_reply_waits_for_an_edit_that_is_on_its_way(tmp_path: Path) -> None:
    stage, gate, held = Stage(tmp_path), Gate(), Gate()
    stage.streams.hold["opened"] = held.wait
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        accepted = await at.says("tell me")
        await stage.until(held.reached.is_set)
        gate.open.set()
        done = False
        while not done:
            await stage.clock.advance(0.5)
            run = await at.database.read(lambda conn: runs.get(conn, accepted.run_id or ""))
            done = run.state is RunState.COMPLETED
        await stage.clock.advance(3.0)
        assert stage.did("close") == 0
        held.open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert await orphans(at) == 0


POINTS = ("stream:begun", "stream:kept", "stream:closed")


@pytest.mark.requirement("REN-4", "MSG-9", "MSG-11")
@pytest.mark.parametrize("drafts", [False, True])
@pytest.mark.parametrize("finds", [False, True])
@pytest.mark.parametrize("where", ["opened", *POINTS, "growing"])
async def test_a_crash_in_mid_stream_ends_in_one_complete_message(
    tmp_path: Path, where: str, *, finds: bool, drafts: bool
) -> None:
    stage, gate, died = Stage(tmp_path, drafts=drafts), Gate(), asyncio.Event()
    stage.streams.finds = finds

    async def hang() -> None:
        died.set()
        await asyncio.Event().wait()

    if where == "opened":
        stage.streams.hold["opened"] = hang

    def point(name: str) -> None:
        if name == where and not died.is_set():
            died.set()
            # What hangs here until the world is left is what a killed process never did.
            raise asyncio.CancelledError

    stage.point = point
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        if where == "growing":
            await stage.until(lambda: stage.did("open") == 1)
        elif where == "stream:closed":
            await stage.until(lambda: stage.did("open") == 1)
            gate.open.set()
            await stage.until(died.is_set)
        else:
            await stage.until(died.is_set)
    stage.streams.hold.clear()
    shown = len(stage.chat.texts())
    async with world(await stage.setup(ScriptedModel([WHOLE])), stage.chat) as at:
        await stage.settled(at)
        texts = stage.chat.texts()
        if where == "stream:closed" and drafts:
            # The post of a draft is a send like any other: nobody can look it up here.
            assert texts == [WHOLE]
            return
        assert texts.count(WHOLE) == 1
        lost = shown == 1 and where in ("opened",) and not finds
        assert texts == ([FIRST, WHOLE] if lost else [WHOLE])
        unknown = where == "stream:begun" or (where == "opened" and (drafts or not finds))
        assert await orphans(at) == int(unknown)
        assert await rows(at) == [("final", "sent")]


@pytest.mark.requirement("REN-4")
async def test_a_run_that_is_stopped_while_nobody_runs_it_closes_its_text(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        accepted = await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
    database = open_database(stage.url, clock=stage.clock)
    await database.start()

    def end(conn: Connection) -> None:
        leases.void_all(conn)
        runs.change(conn, accepted.run_id or "", {"state": "cancelled", "ended_ms": 1})

    await database.write(end, name="end")
    await database.close()
    async with world(await stage.setup(ScriptedModel([])), stage.chat) as at:
        await stage.settled(at)
        assert stage.chat.texts() == ["(I was stopped here.)"]
        assert await rows(at) == [("said", "sent")]
