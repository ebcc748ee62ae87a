"""A group that becomes a supergroup has a new id: everything of it goes along (TEL-6)."""

from dataclasses import replace

import pytest

from runtime.domain.errors import DeliveryRetry
from runtime.domain.messages import Move
from runtime.domain.transcript import UserMessage
from runtime.sessions import sessions
from runtime.store import Connection
from tests.fakes.chat import FakeChat
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import audited, call, card, offering, outcome
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OPEN, OWNER, World
from tests.scenario.tools import Note

MOVE = Move(channel="test", account="A1", old_chat_id="-1", new_chat_id="-100")


async def keys(world: World) -> list[str]:
    def read(conn: Connection) -> list[str]:
        return sorted(one.key for one in sessions.listing(conn, limit=50))

    return await world.database.read(read)


@pytest.mark.requirement("TEL-6")
async def test_the_conversation_goes_on_in_the_new_chat(worlds: Worlds) -> None:
    model = ScriptedModel(["one", "two"])
    async with worlds(model) as world:
        await world.says("first", chat_id="-1", kind="group")
        await world.says("/status", chat_id="-2", kind="group")
        await world.sees(2)
        await world.engine.intake.move(MOVE)
        await world.engine.intake.move(MOVE)
        assert await keys(world) == ["test:A1:-100", "test:A1:-2"]
        await world.says("second", chat_id="-100", kind="group")
        await world.chat.until(lambda: world.chat.texts("-100") == ["two"])
        said = [one.text for one in model.requests[1].messages if isinstance(one, UserMessage)]
        assert said == ["first", "second"]
        assert len(await audited(world, "chat.moved")) == 1


@pytest.mark.requirement("TEL-6", "MSG-10")
async def test_what_waits_and_what_runs_is_told_in_the_new_chat(worlds: Worlds) -> None:
    gate, chat = Gate(), FakeChat()
    model = ScriptedModel([Said("one", before=gate), "two"])
    async with worlds(model, chat=chat) as world:
        await world.says("first", chat_id="-1", kind="group")
        await gate.reached.wait()
        await world.says("second", chat_id="-1", kind="group")
        chat.failures = [DeliveryRetry("it is a supergroup now", after_s=0.01)]
        await world.says("/status", chat_id="-1", kind="group")
        await world.engine.intake.move(MOVE)
        gate.open.set()
        await chat.until(lambda: len(chat.texts("-100")) == 3)
        assert chat.texts("-1") == []
        assert chat.texts("-100")[1:] == ["one", "two"]


@pytest.mark.requirement("TEL-6", "MSG-3")
async def test_what_waits_in_the_session_of_a_whole_account_goes_along(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("one", before=gate), "two", "three"])
    scope = replace(OPEN, group_scope="account", owners=frozenset({OWNER}))
    change = intake(access={"test": scope}, queue_mode="followup")
    async with worlds(model, change=change) as world:
        await world.says("first", chat_id="-1", kind="group")
        await gate.reached.wait()
        for chat_id in ("-1", "-2"):
            await world.says("next", chat_id=chat_id, kind="group")
        await world.engine.intake.move(MOVE)
        await world.engine.intake.move(MOVE)
        assert await keys(world) == ["test:A1"]
        gate.open.set()
        await world.sees(3)
        assert world.chat.texts("-1") == []
        assert world.chat.texts("-100") == ["one", "two"]
        assert world.chat.texts("-2") == ["three"], "another chat of the session stays where it is"
        moved = await world.database.read(lambda conn: sessions.listing(conn, limit=1))
        assert moved[0].address.chat_id == "-100"
        assert len(await audited(world, "chat.moved")) == 1, "the second move found nothing to do"


@pytest.mark.requirement("TEL-6", "APR-4")
async def test_an_open_card_is_answered_and_changed_in_the_new_chat(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(call("rm"),)), "did it"])
    async with worlds(model, change=offering(Note(command=True))) as world:
        await world.says("do it", chat_id="-1", kind="group")
        part = await card(world)
        await world.engine.intake.move(MOVE)
        await world.presses(part.open_call_id, "once")
        assert "Allowed" in await outcome(world)
        assert world.chat.edits[0].target.chat_id == "-100"
        await world.chat.until(lambda: world.chat.texts("-100") == ["did it"])


@pytest.mark.requirement("TEL-6", "MSG-3")
async def test_where_the_new_chat_has_a_session_already_the_old_one_says_where_it_went(
    worlds: Worlds,
) -> None:
    async with worlds(ScriptedModel(["one", "two", "three"])) as world:
        await world.says("first", chat_id="-1", kind="group")
        await world.says("early", chat_id="-100", kind="group")
        await world.sees(2)
        await world.engine.intake.move(MOVE)
        await world.engine.intake.move(MOVE)
        assert await keys(world) == ["test:A1:-100", "test:A1:-1:moved:-100"]
