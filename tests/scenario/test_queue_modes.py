"""Steering and interrupting: what a message does to the run that is at work (MSG-5)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from runtime.domain.events import Event
from runtime.domain.messages import TextPart
from runtime.domain.runs import Holder, RunState
from runtime.domain.transcript import AssistantMessage, NoticeMessage, ToolMessage, UserMessage
from runtime.domain.value import JsonObject
from runtime.ports.model import ModelRequest
from runtime.sessions import events, listings, runs, transcripts
from runtime.sessions.claims import Claimed
from runtime.sessions.listings import RunFilter
from runtime.sessions.runs import Run
from runtime.sessions.tables import outbox
from runtime.store import Connection
from runtime.views.reader import Views
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.fakes.chat import FakeChat
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import GUEST, both, call, card, offering, reaches, state
from tests.scenario.conftest import Worlds, agent, engine, intake
from tests.scenario.engine import OWNER, Setup, World, setup_at, world
from tests.scenario.tools import Note
from tests.support.templates import postgres_database

ONE_CALL = Said(calls=(call("a"),))


def mode(name: str) -> Callable[[Setup], Setup]:
    return intake(queue_mode=name, debounce_ms=0)


def told(request: ModelRequest) -> list[tuple[str, str]]:
    """(role, text) of each message of a request; results by their statuses."""
    found = []
    for message in request.messages:
        if isinstance(message, ToolMessage):
            text = " ".join(result.status for result in message.results)
        elif isinstance(message, UserMessage | AssistantMessage | NoticeMessage):
            text = message.text
        found.append((message.role, text))
    return found


async def run_of(world: World, run_id: str | None) -> Run:
    return await world.database.read(lambda conn: runs.get(conn, run_id or ""))


async def history(world: World, run_id: str | None) -> list[Event]:
    return list(await world.database.read(lambda conn: events.after(conn, 0, run_id=run_id or "")))


async def runs_of(world: World, session_id: str | None) -> list[str]:
    wanted = RunFilter(session_id, None)

    def work(conn: Connection) -> list[str]:
        return list(listings.run_ids(conn, wanted, limit=10, before=None))

    return await world.database.read(work)


async def kinds_sent(world: World, run_id: str | None) -> list[str]:
    """The kinds of what a run put into the outbox, in order."""
    query = select(outbox.c.kind).where(outbox.c.run_id == run_id).order_by(outbox.c.position)
    return await world.database.read(lambda conn: list(conn.execute(query).scalars()))


async def said_in(world: World, session_id: str | None) -> list[str]:
    """What people said, by the transcript."""
    lines = await world.database.read(
        lambda conn: transcripts.since(conn, session_id or "", transcript=1, first=1)
    )
    return [line.message.text for line in lines if isinstance(line.message, UserMessage)]


def replies_to(world: World) -> dict[str, str | None]:
    """The message that each text hangs on."""
    return {
        part.markdown: sent.message.reply_to
        for sent in world.chat.sent
        for part in sent.message.parts
        if isinstance(part, TextPart)
    }


@pytest.mark.requirement("MSG-5")
async def test_a_message_reaches_the_run_at_its_next_step(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([ONE_CALL, "both of it"])
    async with worlds(model, change=both(mode("steer"), offering(Note(gate=gate)))) as world:
        first = await world.says("do a", message_id="m-first")
        await gate.reached.wait()
        second = await world.says("and b", message_id="m-second")
        third = await world.says("and c", message_id="m-third")
        assert second.run_id == third.run_id == first.run_id
        gate.open.set()
        assert await world.sees(1) == ["both of it"]
        assert told(model.requests[1]) == [
            ("user", "do a"),
            ("assistant", ""),
            ("tool", "ok"),
            ("user", "and b"),
            ("user", "and c"),
        ]
        assert replies_to(world) == {"both of it": "m-third"}
        await reaches(world, first.run_id, RunState.COMPLETED)
        taken = [e for e in await history(world, first.run_id) if e.kind == "input.taken"]
        assert [e.data["input_ids"] for e in taken] == [[second.input_id, third.input_id]]


@pytest.mark.requirement("MSG-5", "MSG-9", "RUN-4")
async def test_what_comes_while_the_answer_is_being_written_is_answered_by_the_same_run(
    worlds: Worlds,
) -> None:
    gate = Gate()
    model = ScriptedModel([Said("first", before=gate), "second"])
    async with worlds(model, change=mode("steer")) as world:
        first = await world.says("one", message_id="m-one")
        await gate.reached.wait()
        second = await world.says("two", message_id="m-two")
        third = await world.says("three", message_id="m-three")
        assert second.run_id == third.run_id == first.run_id
        gate.open.set()
        assert await world.sees(2) == ["first", "second"]
        assert [text for _, text in told(model.requests[1])] == ["one", "first", "two", "three"]
        assert replies_to(world) == {"first": "m-one", "second": "m-three"}
        await reaches(world, first.run_id, RunState.COMPLETED)
        run = await run_of(world, first.run_id)
        assert (run.steered, run.step) == (False, 2)
        assert await runs_of(world, first.session_id) == [first.run_id]
        assert await kinds_sent(world, first.run_id) == ["said", "final"]


@pytest.mark.requirement("MSG-7", "RUN-4")
async def test_a_run_that_goes_on_behind_its_answer_survives_its_process(worlds: Worlds) -> None:
    gate, held = Gate(), Gate()
    model = ScriptedModel([Said("first", before=gate), Said("lost", before=held)])
    async with worlds(model, change=mode("steer")) as before:
        first = await before.says("one")
        await gate.reached.wait()
        await before.says("two")
        gate.open.set()
        await held.reached.wait()
        await before.sees(1)
        await before.says("three")
    model = ScriptedModel(["second"])
    async with worlds(model, change=mode("steer"), chat=before.chat) as after:
        assert await after.sees(2) == ["first", "second"]
        assert [text for _, text in told(model.requests[0])] == ["one", "first", "two", "three"]
        await reaches(after, first.run_id, RunState.COMPLETED)
        assert await kinds_sent(after, first.run_id) == ["said", "final"]


@pytest.mark.requirement("MSG-5")
async def test_a_run_that_waits_for_a_person_is_steered_when_it_goes_on(worlds: Worlds) -> None:
    model = ScriptedModel([ONE_CALL, "done"])
    change = both(mode("steer"), offering(Note(command=True)))
    async with worlds(model, change=change) as world:
        first = await world.says("do a")
        shown = await card(world)
        second = await world.says("with care")
        assert second.run_id == first.run_id
        assert "First somebody must decide" in (await world.sees(2))[1]
        await world.says(f"/approve {shown.code}")
        await world.chat.until(lambda: "done" in world.chat.texts())
        assert told(model.requests[1])[-2:] == [("tool", "ok"), ("user", "with care")]


@pytest.mark.requirement("MSG-5", "MSG-13")
async def test_what_a_stopped_run_never_heard_comes_next(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("never", before=gate), "heard"])
    async with worlds(model, change=mode("steer")) as world:
        first = await world.says("one")
        await gate.reached.wait()
        await world.says("two")
        await world.says("/stop")
        texts = await world.sees(2)
        assert set(texts) == {"Stopped. 1 waiting message will be answered next.", "heard"}
        assert await state(world, first.run_id) is RunState.CANCELLED
        assert told(model.requests[1])[-1] == ("user", "two")
        after = [run for run in await runs_of(world, first.session_id) if run != first.run_id]
        assert [(await Views(world.database).run(first.run_id or "")).passed_on_to] == after


@pytest.mark.requirement("MSG-5")
async def test_nobody_steers_a_run_of_somebody_trusted_otherwise(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([ONE_CALL, "for the owner", "for the guest", "and again"])
    change = both(mode("steer"), offering(Note(gate=gate)))
    async with worlds(model, change=change) as world:
        first = await world.says("do a", chat_id="G", kind="group")
        await gate.reached.wait()
        guest = await world.says("and b", user=GUEST, chat_id="G", kind="group")
        late = await world.says("and c", chat_id="G", kind="group")
        assert len({first.run_id, guest.run_id, late.run_id}) == 3, "nothing passes what waits"
        gate.open.set()
        assert await world.sees(3) == ["for the owner", "for the guest", "and again"]
        assert told(model.requests[1])[-1] == ("tool", "ok")


@pytest.mark.requirement("MSG-5", "MSG-7")
async def test_what_was_said_to_a_run_survives_its_process(worlds: Worlds) -> None:
    gate = Gate()
    change = both(mode("steer"), offering(Note(gate=gate)))
    async with worlds(ScriptedModel([ONE_CALL]), change=change) as before:
        first = await before.says("do a")
        await gate.reached.wait()
        await before.says("and b")
    model = ScriptedModel(["done"])
    async with worlds(model, change=both(mode("steer"), offering(Note()))) as after:
        assert await after.sees(1) == ["done"]
        assert told(model.requests[0])[-2:] == [("tool", "unknown"), ("user", "and b")]
        await reaches(after, first.run_id, RunState.COMPLETED)
        assert await runs_of(after, first.session_id) == [first.run_id]


@pytest.mark.requirement("MSG-5", "MSG-15", "RUN-4")
async def test_what_people_say_gives_a_run_as_many_steps_again(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([ONE_CALL, Said("half", calls=(call("b"),))])
    change = both(mode("steer"), offering(Note(gate=gate)), agent(max_steps=1))
    async with worlds(model, change=change) as world:
        first = await world.says("do a")
        await gate.reached.wait()
        second = await world.says("and b")
        assert second.run_id == first.run_id
        gate.open.set()
        (stopped,) = await world.sees(1)
        assert "half" in stopped
        assert "I stopped here: this took more than 1 step.)" in stopped
        assert told(model.requests[1])[-1] == ("user", "and b")
        assert await said_in(world, first.session_id) == ["do a", "and b"]
        assert await runs_of(world, first.session_id) == [first.run_id]


@pytest.mark.requirement("MSG-5", "MSG-6", "MSG-13")
async def test_an_interrupted_run_keeps_what_it_wrote_and_the_new_one_starts(
    worlds: Worlds,
) -> None:
    gate = Gate()
    model = ScriptedModel([Said("half of it and more", chunk=7, middle=gate, at=1), "the new"])
    async with worlds(model, change=mode("interrupt")) as world:
        first = await world.says("tell me")
        await gate.reached.wait()
        second = await world.says("no, this")
        assert await world.sees(1) == ["the new"]
        assert second.run_id != first.run_id
        assert model.closed == 1
        assert told(model.requests[1]) == [
            ("user", "tell me"),
            ("assistant", "half of"),
            ("user", "no, this"),
        ]
        run = await run_of(world, first.run_id)
        assert (run.state, run.cancel) == (RunState.INTERRUPTED, "replaced by a newer message")
        last = (await history(world, first.run_id))[-1]
        assert (last.kind, last.data["reason"]) == ("run.interrupted", run.cancel)


@pytest.mark.requirement("MSG-5")
async def test_an_interrupted_tool_ends_and_its_call_has_a_result(worlds: Worlds) -> None:
    gate, note = Gate(), Note()
    note.gate = gate
    model = ScriptedModel([ONE_CALL, "the new"])
    async with worlds(model, change=both(mode("interrupt"), offering(note))) as world:
        first = await world.says("do a")
        await gate.reached.wait()
        await world.says("leave that")
        assert await world.sees(1) == ["the new"]
        assert note.kept == []
        assert await state(world, first.run_id) is RunState.INTERRUPTED
        assert told(model.requests[1])[1:] == [
            ("assistant", ""),
            ("tool", "unknown"),
            ("user", "leave that"),
        ]


@pytest.mark.requirement("MSG-5")
async def test_messages_that_wait_for_the_interrupted_run_to_end_share_the_new_one(
    worlds: Worlds,
) -> None:
    gate = Gate()
    model = ScriptedModel([Said("never", before=gate), "both"])
    clock = FakeClock()

    def still(setup: Setup) -> Setup:
        return mode("interrupt")(replace(setup, clock=clock))

    async with worlds(model, change=still) as world:
        await world.says("one")
        await gate.reached.wait()
        bus, held = world.engine.parts.bus, list[tuple[str, JsonObject]]()
        publish = bus.publish
        bus.publish = lambda topic, data: held.append((topic, data))  # type: ignore[method-assign]  # the bus is slow, and the clock stands still
        second, third = await world.says("two"), await world.says("three")
        bus.publish = publish  # type: ignore[method-assign]  # as it was
        assert second.run_id == third.run_id
        for topic, data in held:
            publish(topic, data)
        await world.chat.until(lambda: "both" in world.chat.texts())
        assert [text for _, text in told(model.requests[1])] == ["one", "two", "three"]


@pytest.mark.requirement("MSG-5", "MSG-13", "RUN-4")
async def test_a_run_that_is_replaced_before_its_first_step_ends_all_the_same(
    worlds: Worlds,
) -> None:
    """The worker hears of it between the claim and the first step of the turn."""
    model = ScriptedModel(["the new"])
    async with worlds(model, change=mode("interrupt")) as world:
        turns, stopped = world.engine.turns, list[str]()
        start = turns._start

        def meets(group: asyncio.TaskGroup, claimed: Claimed, holder: Holder) -> None:
            start(group, claimed, holder)
            if not stopped:
                stopped.append(claimed.run.id)
                assert not turns._live[claimed.run.id].begun
                turns._stop(claimed.run.id, "replaced by a newer message")

        turns._start = meets  # type: ignore[method-assign]  # the signal comes at that moment
        first = await world.says("tell me")
        await reaches(world, first.run_id, RunState.CANCELLED)
        assert stopped == [first.run_id]
        await world.says("no, this")
        assert await world.sees(1) == ["the new"]


@pytest.mark.requirement("MSG-5", "POL-4")
async def test_a_guest_interrupts_nobody_who_is_trusted_more(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("for the owner", before=gate), "for the guest"])
    async with worlds(model, change=mode("interrupt")) as world:
        await world.says("one", chat_id="G", kind="group")
        await gate.reached.wait()
        await world.says("two", user=GUEST, chat_id="G", kind="group")
        gate.open.set()
        assert await world.sees(2) == ["for the owner", "for the guest"]


@pytest.mark.requirement("MSG-4", "MSG-5")
async def test_a_run_that_waits_for_a_person_is_not_interrupted(worlds: Worlds) -> None:
    model = ScriptedModel([ONE_CALL, "done", "next"])
    change = both(mode("interrupt"), offering(Note(command=True)))
    async with worlds(model, change=change) as world:
        first = await world.says("do a")
        shown = await card(world)
        await world.says("then b")
        assert "First somebody must decide" in (await world.sees(2))[1]
        assert await state(world, first.run_id) is RunState.WAITING_FOR_APPROVAL
        await world.says(f"/approve {shown.code}")
        await world.chat.until(lambda: "next" in world.chat.texts())
        assert "done" in world.chat.texts()


@pytest.mark.requirement("MSG-5", "MSG-12")
@pytest.mark.parametrize("wanted", ["steer", "interrupt"])
async def test_the_mode_is_switched_in_the_chat(worlds: Worlds, wanted: str) -> None:
    gate = Gate()
    model = ScriptedModel([Said("one", before=gate), "two"])
    async with worlds(model, change=mode("collect")) as world:
        await world.says(f"/queue {wanted}")
        assert await world.sees(1) == [f"The queue mode is {wanted} now."]
        first = await world.says("1")
        await gate.reached.wait()
        second = await world.says("2")
        assert (second.run_id == first.run_id) == (wanted == "steer")
        gate.open.set()
        await world.chat.until(lambda: "two" in world.chat.texts())


@pytest.fixture
async def shared_url() -> AsyncIterator[str]:
    """A migrated PostgreSQL database for two replicas."""
    server = postgres_server()
    async with postgres_database(server) as name:
        yield server.url(name)


@pytest.mark.requirement("MSG-5", "MSG-21", "SCALE-1")
@pytest.mark.parametrize("wanted", ["steer", "interrupt"])
async def test_a_message_that_another_replica_accepts_reaches_the_run(
    shared_url: str, tmp_path: Path, fail_after: FailAfter, wanted: str
) -> None:
    """Neither hears the other's bus: the rows alone say it."""
    gate = Gate()
    note = Note(gate=gate)
    model = ScriptedModel([ONE_CALL, "the end"])

    def replica(name: str) -> Setup:
        setup = setup_at(tmp_path / name, shared_url, ScriptedModels(model), alone=False)
        return both(mode(wanted), offering(note))(setup)

    async with (
        fail_after(),
        world(engine(turns=0)(replica("door")), FakeChat(account="A2")) as door,
        world(replica("works"), FakeChat(account="A1")) as works,
    ):
        first = await works.says("do a")
        await gate.reached.wait()
        door.chat.account = works.chat.account
        second = await door.says("and b", user=OWNER, message_id="m-other")
        if wanted == "steer":
            assert second.run_id == first.run_id
            gate.open.set()
        else:
            await reaches(works, first.run_id, RunState.INTERRUPTED)
            assert note.kept == []
        await reaches(works, second.run_id, RunState.COMPLETED)
        assert told(model.requests[1])[-1] == ("user", "and b")


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
