"""Messages that people edit or delete: what waits follows, what was read is noted (SLK-2)."""

import pytest

from runtime.domain.messages import Deletion, InboundMessage
from runtime.domain.people import Sender
from runtime.domain.runs import RunState
from runtime.domain.transcript import UserMessage
from runtime.intake.access import ChannelAccess
from runtime.ports.gatehouse import Accepted
from runtime.sessions import runs
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import MEMBER, call, card, offering, reaches, state
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OPEN, OWNER, World
from tests.scenario.tools import Note


def edited(world: World, message_id: str, text: str, **more: object) -> InboundMessage:
    """The edited form of a message in the owner's direct chat."""
    user = str(more.pop("user", OWNER))
    changes: dict[str, object] = {"edited_at": "e1", "chat_id": f"D-{OWNER}", **more}
    base = InboundMessage(
        channel=world.chat.channel,
        account=world.chat.account,
        chat_id=f"D-{OWNER}",
        message_id=message_id,
        sender=Sender(id=user, name=user.removeprefix("U-")),
        text=text,
        received_at_ms=world.engine.parts.clock.now_ms(),
    )
    return base.model_copy(update=changes)


async def edits(world: World, message_id: str, text: str, **more: object) -> Accepted:
    return await world.engine.intake.revise(edited(world, message_id, text, **more))


async def deletes(world: World, message_id: str, chat_id: str = f"D-{OWNER}") -> Accepted:
    deletion = Deletion(
        channel=world.chat.channel,
        account=world.chat.account,
        chat_id=chat_id,
        message_id=message_id,
        received_at_ms=1,
    )
    return await world.engine.intake.withdraw(deletion)


def heard(model: ScriptedModel, number: int) -> list[str]:
    """What people said, as the model's n-th request has it."""
    return [one.text for one in model.requests[number].messages if isinstance(one, UserMessage)]


async def about(world: World, accepted: Accepted) -> str:
    """What the run of a message is about."""
    return await world.database.read(lambda conn: runs.get(conn, accepted.run_id or "").summary)


@pytest.mark.requirement("SLK-2", "TEL-2", "RUN-2")
async def test_a_message_that_waits_is_run_as_it_reads_now(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("one", before=gate), "two"])
    async with worlds(model) as world:
        await world.says("first")
        await gate.reached.wait()
        await world.says("by milk", message_id="x2")
        edited_one = await edits(world, "x2", "buy milk")
        assert edited_one.disposition == "queued"
        assert await about(world, edited_one) == "buy milk"
        gate.open.set()
        await world.sees(2)
        assert heard(model, 1) == ["first", "buy milk"]


@pytest.mark.requirement("SLK-2", "TEL-2")
async def test_an_edit_of_what_was_read_is_noted_and_makes_no_run(worlds: Worlds) -> None:
    model = ScriptedModel(["one", "two"])
    async with worlds(model) as world:
        await world.says("by milk", message_id="x1")
        await world.sees(1)
        assert (await edits(world, "x1", "buy bread")).disposition == "noted"
        assert len(model.requests) == 1
        await world.says("what was it?")
        await world.sees(2)
        first, note, last = heard(model, 1)
        assert (first, last) == ("by milk", "what was it?")
        assert note.endswith("buy bread")


@pytest.mark.requirement("SLK-2", "MSG-2")
async def test_the_same_edit_twice_is_one(worlds: Worlds) -> None:
    model = ScriptedModel(["one", "two"])
    async with worlds(model) as world:
        await world.says("by milk", message_id="x1")
        await world.sees(1)
        await edits(world, "x1", "buy bread")
        assert (await edits(world, "x1", "buy bread")).disposition == "duplicate"
        await edits(world, "x1", "buy wine", edited_at="e2")
        await world.says("what was it?")
        await world.sees(2)
        assert len(heard(model, 1)) == 4


@pytest.mark.requirement("SLK-2")
async def test_an_edit_while_its_run_is_at_work_disturbs_no_step(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("x", calls=(call("a"),)), "one", "two"])
    async with worlds(model, change=offering(Note(gate=gate))) as world:
        await world.says("by milk", message_id="x1")
        await gate.reached.wait()
        assert (await edits(world, "x1", "buy bread")).disposition == "noted"
        gate.open.set()
        await world.sees(1)
        assert heard(model, 1) == ["by milk"]
        await world.says("and?")
        await world.sees(2)
        assert len(heard(model, 2)) == 3


@pytest.mark.requirement("SLK-2")
async def test_an_edit_that_mentions_the_bot_at_last_is_taken_once(worlds: Worlds) -> None:
    model = ScriptedModel(["here I am", "and again"])
    async with worlds(model) as world:
        dropped = await world.says(
            "look at this", chat_id="G1", kind="group", message_id="x1", mentions=False
        )
        assert dropped.disposition == "dropped"
        ignored = await edits(world, "x1", "look here", chat_id="G1", chat_kind="group")
        assert ignored.disposition == "dropped"
        more = {"chat_id": "G1", "chat_kind": "group", "mentions_bot": True}
        assert (await edits(world, "x1", "look!", **more)).disposition == "queued"
        await world.sees(1)
        assert (await edits(world, "x1", "look!", **more)).disposition == "duplicate"
        again = await edits(world, "x1", "look now!", **{**more, "edited_at": "e2"})
        assert again.disposition == "noted"
        assert len(model.requests) == 1


@pytest.mark.requirement("SLK-2", "POL-4")
async def test_nobody_edits_the_words_of_somebody_else(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("one", before=gate), "two"])
    async with worlds(model) as world:
        await world.says("first")
        await gate.reached.wait()
        await world.says("buy milk", message_id="x2")
        refused = await edits(world, "x2", "delete everything", user=MEMBER)
        assert refused.disposition == "dropped"
        gate.open.set()
        await world.sees(2)
        assert heard(model, 1) == ["first", "buy milk"]


@pytest.mark.requirement("SLK-2", "ACC-2", "POL-4")
async def test_access_is_decided_anew_at_the_edit(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("one", before=gate), "two"])
    async with worlds(model) as world:
        await world.says("first")
        await gate.reached.wait()
        await world.says("buy milk", message_id="x2")
        settings = world.engine.settings.intake
        for rules in (
            ChannelAccess(dm_policy="allowlist"),
            ChannelAccess(dm_policy="open"),
        ):
            world.engine.intake.change(
                type(settings)(access={"test": rules}, queue_mode="followup")
            )
            assert (await edits(world, "x2", "rm -rf /")).disposition == "dropped"
        gate.open.set()
        await world.sees(2)
        assert heard(model, 1) == ["first", "buy milk"]


@pytest.mark.requirement("SLK-2", "APR-3")
async def test_edits_take_no_command_and_no_answer_back(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(call("rm"),)), "did it"])
    async with worlds(model, change=offering(Note(command=True))) as world:
        await world.says("do it")
        part = await card(world)
        await world.says(f"/approve {part.code}", message_id="x2")
        assert (await edits(world, "x2", f"/deny {part.code}")).disposition == "dropped"
        assert (await deletes(world, "x2")).disposition == "dropped"
        await world.chat.until(lambda: "did it" in world.chat.texts())


@pytest.mark.requirement("SLK-2")
async def test_an_edit_is_never_a_command(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("one", before=gate), "two"])
    async with worlds(model) as world:
        accepted = await world.says("first", message_id="x1")
        await gate.reached.wait()
        await edits(world, "x1", "/stop")
        gate.open.set()
        assert await world.sees(1) == ["one"]
        await reaches(world, accepted.run_id, RunState.COMPLETED)


@pytest.mark.requirement("SLK-2")
async def test_a_deleted_message_that_waits_never_runs(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("one", before=gate), "three"])
    async with worlds(model) as world:
        await world.says("first")
        await gate.reached.wait()
        gone = await world.says("my password", message_id="x2")
        await world.says("third")
        assert (await deletes(world, "x2")).disposition == "queued"
        assert await state(world, gone.run_id) is RunState.CANCELLED
        assert await about(world, gone) == ""
        assert (await deletes(world, "x2")).disposition in ("duplicate", "dropped")
        gate.open.set()
        await world.sees(2)
        assert heard(model, 1) == ["first", "third"]


@pytest.mark.requirement("SLK-2", "MSG-5")
async def test_a_run_of_several_messages_goes_on_without_the_deleted_one(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("one", before=gate), "both"])
    async with worlds(model, change=intake(access={"test": OPEN}, queue_mode="collect")) as world:
        await world.says("first")
        await gate.reached.wait()
        await world.says("second", message_id="x2")
        await world.says("third", message_id="x3")
        await deletes(world, "x3")
        gate.open.set()
        await world.sees(2)
        assert heard(model, 1) == ["first", "second"]
        assert world.chat.sent[1].message.reply_to == "x2"


@pytest.mark.requirement("SLK-2")
async def test_a_deletion_of_what_was_read_is_noted(worlds: Worlds) -> None:
    model = ScriptedModel(["one", "two"])
    async with worlds(model) as world:
        await world.says("buy milk", message_id="x1")
        await world.sees(1)
        assert (await deletes(world, "x1")).disposition == "noted"
        assert (await deletes(world, "nobody-knows")).disposition == "dropped"
        await world.says("what now?")
        await world.sees(2)
        assert "deleted" in heard(model, 1)[1]
