"""The message path where a promise hung on one line that no other test looked at."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from runtime.domain.errors import Conflict, IllegalTransition, ModelRetry, StoreUnavailable
from runtime.domain.messages import ChatKind, InboundMessage
from runtime.domain.people import Sender
from runtime.domain.runs import RunState
from runtime.domain.tools import Effect
from runtime.ports.bus import CANCEL
from runtime.sessions import approvals, open_calls, runs
from runtime.sessions.approvals import Answer
from runtime.tools.base import ToolContext, ToolOutput
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.clock import FakeClock, settle
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import both, call, card, offering, results, state
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OPEN, Setup
from tests.scenario.tools import Note, NoteArguments
from tests.support.kinds import unit_of


def timed(clock: FakeClock) -> Callable[[Setup], Setup]:
    """A setup under virtual time."""
    return lambda setup: replace(setup, clock=clock)


@pytest.mark.requirement("MSG-13", "MSG-21")
async def test_a_stop_whose_signal_is_lost_takes_effect_within_a_second(worlds: Worlds) -> None:
    clock, gate = FakeClock(), Gate()
    model = ScriptedModel([Said("half of it and more", chunk=7, middle=gate, at=1)])
    async with worlds(model, change=timed(clock)) as world:
        accepted = await world.says("tell me")
        await gate.reached.wait()
        publish = world.engine.parts.bus.publish

        def loses(topic: str, data: dict[str, object]) -> None:
            if topic != CANCEL:
                publish(topic, data)

        world.engine.parts.bus.publish = loses  # type: ignore[method-assign]  # the bus loses stops
        before = clock.monotonic()
        await world.says("/stop")
        async with asyncio.timeout(20):
            while await state(world, accepted.run_id) is RunState.RUNNING:
                await clock.advance(0.1)
        assert await state(world, accepted.run_id) is RunState.CANCELLED
        assert clock.monotonic() - before <= 1.0
        assert model.closed == 1


@pytest.mark.requirement("MSG-18", "REN-5")
async def test_while_a_model_is_tried_again_the_person_sees_that_it_works(worlds: Worlds) -> None:
    clock = FakeClock()
    chat = FakeChat(capabilities=replace(FAST, typing_interval_s=4.0))
    model = ScriptedModel([ModelRetry("503", after_s=30.0), "after all"])
    async with worlds(model, chat=chat, change=timed(clock)) as world:
        await world.says("hi")
        async with asyncio.timeout(20):
            while not chat.sent:
                await clock.advance(1.0)
        assert chat.texts() == ["after all"]
        working = [state for _, state in chat.typings if state == "thinking"]
        assert len(working) >= 30 // 5, "the signal is renewed as long as the wait lasts"
        assert chat.typings[-1][1] == "done"


@pytest.mark.requirement("MSG-5", "MSG-12")
async def test_a_switched_queue_mode_is_what_the_next_messages_meet(worlds: Worlds) -> None:
    gates = [Gate(), Gate()]
    model = ScriptedModel(
        [
            Said("first", before=gates[0]),
            "both",
            Said("fourth", before=gates[1]),
            "fifth",
            "sixth",
        ]
    )
    async with worlds(model, change=intake(queue_mode="followup", debounce_ms=0)) as world:
        await world.says("/queue collect")
        await world.says("1")
        await gates[0].reached.wait()
        second, third = await world.says("2"), await world.says("3")
        assert second.run_id == third.run_id
        gates[0].open.set()
        assert (await world.sees(3))[1:] == ["first", "both"]
        await world.says("/queue followup")
        await world.says("4")
        await gates[1].reached.wait()
        fifth, sixth = await world.says("5"), await world.says("6")
        assert fifth.run_id != sixth.run_id
        gates[1].open.set()
        assert (await world.sees(7))[4:] == ["fourth", "fifth", "sixth"]


@pytest.mark.requirement("MSG-3")
@pytest.mark.parametrize(
    ("kind", "scopes", "same_thread", "same_person"),
    [
        ("group", {}, True, True),
        ("channel", {}, False, True),
        ("channel", {"channel_scope": "room"}, True, True),
        ("group", {"group_scope": "user"}, True, False),
        ("group", {"group_scope": "thread"}, False, True),
    ],
)
async def test_the_operators_scope_decides_what_shares_a_session(
    worlds: Worlds, kind: ChatKind, scopes: dict[str, str], same_thread: bool, same_person: bool
) -> None:
    access = replace(OPEN, **scopes)
    model = ScriptedModel(lambda request: "ok")
    async with worlds(model, change=intake(access={"test": access})) as world:
        found = []
        for user, thread in (("U-owner", "1"), ("U-owner", "2"), ("U-x", "1")):
            said = InboundMessage(
                channel="test",
                account="A1",
                chat_id="G",
                chat_kind=kind,
                thread_id=thread,
                message_id=f"{user}-{thread}",
                sender=Sender(id=user, name=user),
                text="hi",
                mentions_bot=True,
                received_at_ms=1,
            )
            found.append((await world.engine.intake.accept(said)).session_id)
    assert (found[0] == found[1]) is same_thread
    assert (found[0] == found[2]) is same_person


@pytest.mark.requirement("MSG-6")
async def test_a_run_that_has_ended_is_moved_nowhere(worlds: Worlds) -> None:
    async with worlds(ScriptedModel(["fine"])) as world:
        accepted = await world.says("hi")
        await world.sees(1)
        run = await world.database.read(lambda conn: runs.get(conn, accepted.run_id or ""))
        for wanted in (RunState.QUEUED, RunState.RUNNING, RunState.CANCELLED):
            with pytest.raises(IllegalTransition):
                await world.database.write(
                    lambda conn, to=wanted: runs.move(conn, run, to), name="move"
                )
        assert await state(world, accepted.run_id) is RunState.COMPLETED


class Meeting(Note):
    """A tool whose calls end only once two of them are at work."""

    def __init__(self, name: str, effect: Effect) -> None:
        super().__init__(name, effect=effect)
        self.at_once = self.most = 0
        self.met = asyncio.Event()

    async def run(self, arguments: NoteArguments, context: ToolContext) -> ToolOutput:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        if self.effect is Effect.READ:
            if self.at_once == 2:
                self.met.set()
            await self.met.wait()
        else:
            await settle()
        self.at_once -= 1
        return await super().run(arguments, context)


@pytest.mark.requirement("TOOL-9")
async def test_two_reads_are_at_work_at_once_and_two_writes_never(worlds: Worlds) -> None:
    look, write = Meeting("look", Effect.READ), Meeting("write", Effect.ONCE)
    calls = (call("1", "look"), call("2", "look"), call("3", "write"), call("4", "write"))
    model = ScriptedModel([Said(calls=calls), "all done"])
    async with worlds(model, change=both(offering(look, write))) as world:
        await world.says("go")
        assert await world.sees(1) == ["all done"], "a read alone would wait for the other"
    assert (look.most, write.most) == (2, 1)
    assert write.kept == ["3", "4"]
    told = [one.content for one in results(model.requests[1])]
    assert told == ["kept 1", "kept 2", "kept 3", "kept 4"]


@pytest.mark.requirement("MSG-1")
async def test_a_store_that_goes_away_between_two_messages_takes_no_second(worlds: Worlds) -> None:
    async with worlds(ScriptedModel(["one"])) as world:
        await world.says("first")
        await world.sees(1)
        await world.database.close()
        with pytest.raises(StoreUnavailable):
            await world.says("second")
        with pytest.raises(StoreUnavailable):
            await world.presses("apr_00000000000000000000000000", "once")


@pytest.mark.requirement("APR-4")
async def test_of_two_replicas_that_saw_the_card_open_one_decides(worlds: Worlds) -> None:
    note = Note(command=True)
    async with worlds(
        ScriptedModel([Said(calls=(call("a"),)), "done"]), change=offering(note)
    ) as world:
        await world.says("go")
        part = await card(world)
        seen = await world.database.read(lambda conn: open_calls.get(conn, part.open_call_id))
        assert seen is not None
        allowed = Answer(by="per_one", name="One", choice="once")
        denied = Answer(by="per_two", name="Two", choice="deny")
        await world.database.write(
            unit_of(lambda unit: approvals.answer(unit, seen, allowed)), name="one"
        )
        with pytest.raises(Conflict) as caught:
            await world.database.write(
                unit_of(lambda unit: approvals.answer(unit, seen, denied)), name="two"
            )
        assert caught.value.state == "answered"
        await world.sees(2)
        assert note.kept == ["a"]
