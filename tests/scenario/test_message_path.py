"""A message comes in and a reply goes out: order, lanes, queue modes, duplicates, bots."""

import asyncio
from dataclasses import replace

import pytest

from runtime.domain.errors import StoreUnavailable
from runtime.domain.messages import ChatKind, InboundMessage
from runtime.domain.people import Sender
from runtime.domain.runs import RunState
from runtime.ports.gatehouse import Accepted
from runtime.sessions import events, runs
from tests.fakes.chat import FakeChat
from tests.fakes.clock import FakeClock, settle
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.conftest import Worlds, engine, intake
from tests.scenario.engine import OPEN, World


def last_text(request) -> str:
    """What the newest message of a request says."""
    return request.messages[-1].text


@pytest.mark.requirement("MSG-1")
async def test_what_accept_returns_for_is_stored_and_answered_after_a_crash(
    worlds: Worlds,
) -> None:
    gate = Gate()
    async with worlds(ScriptedModel([Said("never sent", before=gate)])) as before:
        accepted = await before.says("are you there?")
        assert accepted.disposition == "queued"
        await gate.reached.wait()
    async with worlds(ScriptedModel(["here I am"])) as after:
        assert await after.sees(1) == ["here I am"]


@pytest.mark.requirement("MSG-1")
async def test_a_message_is_not_accepted_while_the_store_is_down(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([])) as world:
        await world.database.close()
        with pytest.raises(StoreUnavailable):
            await world.says("hello?")


@pytest.mark.requirement("MSG-2")
async def test_a_message_delivered_again_is_answered_once(worlds: Worlds) -> None:
    chat_texts: list[str] = []
    async with worlds(ScriptedModel(["one", "two"])) as world:
        first = await world.says("hi", message_id="m-7")
        await world.sees(1)
        again = await world.says("hi", message_id="m-7")
        assert again.disposition == "duplicate"
        assert again.input_id == first.input_id
    async with worlds(ScriptedModel(["two"])) as restarted:
        late = await restarted.says("hi", message_id="m-7")
        assert late.disposition == "duplicate"
        await restarted.says("another", message_id="m-8")
        chat_texts = await restarted.sees(1)
    assert chat_texts == ["two"]


@pytest.mark.requirement("MSG-4")
async def test_one_run_at_a_time_in_a_lane_in_order_of_arrival(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel(
        lambda request: (
            Said(f"re {last_text(request)}", before=gate)
            if last_text(request) == "1"
            else f"re {last_text(request)}"
        )
    )
    async with worlds(model) as world:
        for text in ("1", "2", "3"):
            await world.says(text)
        await gate.reached.wait()
        await settle()
        assert len(model.requests) == 1
        gate.open.set()
        assert await world.sees(3) == ["re 1", "re 2", "re 3"]


@pytest.mark.requirement("MSG-4")
async def test_lanes_run_side_by_side_up_to_the_limit(worlds: Worlds) -> None:
    gates = {str(n): Gate() for n in range(3)}
    model = ScriptedModel(lambda request: Said("ok", before=gates[last_text(request)]))
    async with worlds(model, change=engine(turns=2)) as world:
        for text in gates:
            await world.says(text, chat_id=f"D{text}")
        await gates["0"].reached.wait()
        await gates["1"].reached.wait()
        await settle()
        assert len(model.requests) == 2
        gates["0"].open.set()
        await gates["2"].reached.wait()
        gates["1"].open.set()
        gates["2"].open.set()
        await world.sees(3)


@pytest.mark.requirement("MSG-5")
async def test_collect_makes_one_run_of_what_arrives_while_a_run_is_active(
    worlds: Worlds,
) -> None:
    gate, clock = Gate(), FakeClock()
    model = ScriptedModel([Said("first", before=gate), "both"])
    change = intake(queue_mode="collect", debounce_ms=700)
    async with worlds(model, change=lambda s: replace(change(s), clock=clock)) as world:
        await world.says("a")
        await gate.reached.wait()
        second = await world.says("b")
        third = await world.says("c")
        assert second.run_id == third.run_id
        gate.open.set()
        await world.sees(1)
        await clock.advance(0.6)
        assert len(model.requests) == 1, "the debounce is not over"
        async with asyncio.timeout(120):
            while len(world.chat.sent) < 2:
                await clock.advance(0.5)
        assert world.chat.texts() == ["first", "both"]
        said = [m.text for m in model.requests[1].messages if m.role == "user"]
        assert said == ["a", "b", "c"]


@pytest.mark.requirement("MSG-5")
async def test_collect_never_delays_an_idle_lane_and_followup_never_joins(
    worlds: Worlds,
) -> None:
    clock = FakeClock()
    model = ScriptedModel(["at once"])
    change = intake(queue_mode="collect", debounce_ms=60_000)
    async with worlds(model, change=lambda s: replace(change(s), clock=clock)) as world:
        await world.says("a")
        assert await world.sees(1) == ["at once"]
        assert clock.monotonic() == 0


@pytest.mark.requirement("MSG-6")
async def test_every_transition_of_a_run_is_an_event(worlds: Worlds) -> None:
    async with worlds(ScriptedModel(["fine"])) as world:
        accepted = await world.says("hi")
        await world.sees(1)
        found = await world.database.read(
            lambda conn: events.after(conn, 0, run_id=accepted.run_id or "")
        )
        kinds = [event.kind.value for event in found]
        assert kinds[:3] == ["run.queued", "run.started", "run.completed"]
        run = await world.database.read(lambda conn: runs.get(conn, accepted.run_id or ""))
        assert run.state is RunState.COMPLETED
        assert [event.seq for event in found] == sorted(event.seq for event in found)


@pytest.mark.requirement("MSG-16")
async def test_bots_are_dropped_by_default(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([])) as world:
        accepted = await world.says("beep", user="U-bot", kind="group", is_bot=True)
        assert (accepted.disposition, accepted.reason) == ("dropped", "from a bot")


@pytest.mark.requirement("MSG-16")
async def test_two_bots_stop_after_six_turns_until_a_person_speaks(worlds: Worlds) -> None:
    rules = replace(OPEN, allow_bots=True)
    model = ScriptedModel(lambda request: "beep back")
    async with worlds(model, change=intake(access={"test": rules})) as world:

        async def beep() -> str:
            said = await world.says("beep", user="U-bot", kind="group", chat_id="G", is_bot=True)
            return said.disposition

        assert [await beep() for _ in range(8)] == ["queued"] * 6 + ["dropped"] * 2
        assert len(await world.sees(7, "G")) == 7
        told = [text for text in world.chat.texts("G") if text.startswith("I answered 6 messages")]
        assert len(told) == 1
        await world.says("carry on", kind="group", chat_id="G")
        assert await beep() == "queued"
        assert len(await world.sees(9, "G")) == 9


@pytest.mark.requirement("MSG-16")
@pytest.mark.parametrize("words", ["/status", "/no-such-command"])
async def test_what_reads_like_a_command_of_a_bot_is_one_of_its_turns(
    worlds: Worlds, words: str
) -> None:
    change = intake(access={"test": replace(OPEN, allow_bots=True)})
    async with worlds(ScriptedModel(lambda _: "beep back"), change=change) as world:
        said = [
            (await world.says(words, user="U-bot", kind="group", chat_id="G", is_bot=True))
            for _ in range(8)
        ]
        assert [one.disposition for one in said] == ["queued"] * 6 + ["dropped"] * 2
        assert len(await world.sees(7, "G")) == 7


@pytest.mark.requirement("MSG-16")
async def test_the_end_of_an_exchange_of_bots_holds_over_a_restart_and_is_told_once(
    worlds: Worlds,
) -> None:
    change = intake(access={"test": replace(OPEN, allow_bots=True)})
    chat = FakeChat()

    async def beep(world: World, number: int) -> Accepted:
        return await world.says(
            "beep",
            user="U-bot",
            kind="group",
            chat_id="G",
            is_bot=True,
            message_id=f"b{number}",
        )

    async with worlds(ScriptedModel(lambda _: "beep back"), chat=chat, change=change) as world:
        for number in range(7):
            last = await beep(world, number)
        assert (last.disposition, last.reason) == (
            "dropped",
            "6 turns between bots without a person",
        )
        await world.sees(7, "G")
    chat = FakeChat()
    model = ScriptedModel(lambda _: "beep again")
    async with worlds(model, chat=chat, change=change) as world:
        again = [(await beep(world, number)).disposition for number in (7, 8, 5)]
        assert again == ["dropped", "dropped", "duplicate"]
        await world.says("/status", kind="group", chat_id="G")
        (text,) = await world.sees(1, "G")
        assert text.startswith("Gatehouse"), "nobody was told a second time"
        assert (await beep(world, 9)).disposition == "queued", "a person's word began a new count"


@pytest.mark.requirement("MSG-16")
async def test_one_chat_of_bots_says_nothing_about_another(worlds: Worlds) -> None:
    change = intake(access={"test": replace(OPEN, allow_bots=True)})
    async with worlds(ScriptedModel(lambda _: "beep back"), change=change) as world:

        async def beep(chat_id: str) -> str:
            said = await world.says("b", user="U-bot", kind="group", chat_id=chat_id, is_bot=True)
            return said.disposition

        assert [await beep("G") for _ in range(7)][-1] == "dropped"
        assert await beep("H") == "queued"


@pytest.mark.requirement("MSG-21")
async def test_a_lost_wake_up_delays_a_run_by_at_most_one_tick(worlds: Worlds) -> None:
    clock = FakeClock()
    async with worlds(
        ScriptedModel(["found it"]), change=lambda s: replace(s, clock=clock)
    ) as world:
        world.engine.parts.bus.publish = lambda topic, data: None  # type: ignore[method-assign]  # the bus loses everything
        await world.says("hello")
        async with asyncio.timeout(120):
            while not world.chat.sent:
                await clock.advance(0.5)
        assert clock.monotonic() <= 3.0, "a tick for the run and one for the delivery"


async def test_an_empty_and_an_emoji_message_are_answered(worlds: Worlds) -> None:
    model = ScriptedModel(lambda request: f"got {last_text(request)!r}")
    async with worlds(model) as world:
        await world.says("🧑‍🤝‍🧑")
        await world.says("")
        assert await world.sees(2) == ["got '🧑\\u200d🤝\\u200d🧑'", "got ''"]


async def test_a_message_of_a_hundred_thousand_characters_is_kept_whole(worlds: Worlds) -> None:
    model = ScriptedModel(lambda request: str(len(last_text(request))))
    async with worlds(model) as world:
        await world.says("x" * 100_000)
        assert await world.sees(1) == ["100000"]


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
