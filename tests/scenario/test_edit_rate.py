"""Edits of a chat keep their distance, whatever is edited there (REN-4)."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from runtime.domain.messages import OutboundMessage
from runtime.ports.bus import OUTBOX
from runtime.ports.clock import Clock
from runtime.ports.model import ModelRequest, ModelResponse, TextChunk
from runtime.sessions import outbox
from runtime.sessions.outbox import NewRow
from runtime.store import Connection
from tests.fakes.chat import FAST, FakeChat, FakeStreams
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import call, cards
from tests.scenario.engine import world
from tests.scenario.posting import Post, post
from tests.scenario.streams import Stage
from tests.scenario.tools import Note

PAUSE_S = 3.0
LONG = ("word " * 120).strip()


class TimedChat(FakeChat):
    """Notes when something in a chat was edited."""

    def __init__(self, clock: Clock, **capabilities: object) -> None:
        super().__init__(capabilities=replace(FAST, edit_interval_s=PAUSE_S, **capabilities))
        self.clock = clock
        self.times: dict[str, list[float]] = {}
        self.shows_edits = True

    def change(self, identifier: str, message: OutboundMessage) -> bool:
        """As `FakeChat.change`."""
        chat = message.target.chat_id
        self.times.setdefault(chat, []).append(self.clock.monotonic())
        return super().change(identifier, message)

    @property
    def gaps(self) -> list[float]:
        """Seconds between two edits that follow each other in one chat."""
        return [later - one for times in self.times.values() for one, later in pairwise(times)]


class SlowModel(ScriptedModel):
    """Writes a word every tenth of a second."""

    clock: Clock

    async def respond(
        self, request: ModelRequest
    ) -> AsyncGenerator[TextChunk | ModelResponse, None]:
        """As `Model.respond`."""
        async for item in super().respond(request):
            if isinstance(item, TextChunk):
                await self.clock.sleep(0.1)
            yield item


def staged(path: Path, model: SlowModel) -> Stage:
    stage = Stage(path)
    model.clock = stage.clock
    stage.chat = TimedChat(stage.clock)
    stage.streams = stage.chat.streams = FakeStreams(stage.chat)
    return stage


@pytest.mark.requirement("REN-4")
async def test_a_text_that_grows_by_edits_is_edited_no_more_often_than_its_chat_takes(
    tmp_path: Path,
) -> None:
    model = SlowModel([Said(LONG, chunk=5)])
    stage = staged(tmp_path, model)
    async with world(await stage.setup(model), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [LONG])
        await stage.settled(at)
    assert isinstance(stage.chat, TimedChat)
    assert stage.did("grow") >= 2
    assert stage.did("close") == 1
    assert len(stage.chat.gaps) == stage.did("grow"), "the last edit is the reply"
    assert min(stage.chat.gaps) >= PAUSE_S


@pytest.mark.requirement("REN-4")
async def test_texts_and_cards_of_one_chat_share_its_edits_and_all_end_whole(
    tmp_path: Path,
) -> None:
    def plays(request: ModelRequest) -> Said:
        if request.messages[0].text == "note this" and request.step == 1:
            return Said(calls=(call("a"),))
        return Said(LONG, chunk=5)

    model = SlowModel(plays)
    stage = staged(tmp_path, model)
    setup = replace(await stage.setup(model), tools=(Note(command=True),))
    async with world(setup, stage.chat) as at:
        for number, text in enumerate(("one", "two", "note this")):
            await at.says(text, chat_id="C", kind="channel", thread=f"t{number}")
        await at.says("elsewhere", chat_id="D", kind="channel", thread="t9")
        await stage.until(lambda: bool(cards(at)) and stage.did("open") == 2)
        ((_, part),) = cards(at)
        assert (await at.presses(part.open_call_id, "once")).accepted
        await stage.settled(at)
        await stage.until(lambda: stage.chat.texts().count(LONG) == 4)
        await stage.settled(at)
    assert isinstance(stage.chat, TimedChat)
    assert stage.chat.edits, "the card was changed"
    assert set(stage.chat.times) == {"C", "D"}
    assert min(stage.chat.gaps) >= PAUSE_S


async def shown(here: Post, call: str) -> None:
    """A card that was posted."""
    row = NewRow(kind="card", message=here.message(call), open_call_id=call)
    await here.database.write(lambda conn: outbox.add(conn, row), name="card")
    here.bus.publish(OUTBOX, {})
    await here.until(lambda: call in here.chat.texts())


def changes(here: Post, call: str) -> NewRow:
    """An edit of a card."""
    return NewRow(kind="edit", message=here.message(f"{call} changed"), open_call_id=call)


@pytest.mark.requirement("REN-4", "MSG-10")
async def test_edits_that_come_together_follow_each_other_and_hold_no_message_up(
    tmp_path: Path,
) -> None:
    async with post(tmp_path) as here:
        chat = TimedChat(here.clock)
        here.serve(chat)
        await here.start()
        for call in ("one", "two", "three"):
            await shown(here, call)
        edits = [changes(here, call) for call in ("one", "two", "three")]

        def add(conn: Connection) -> None:
            for row in edits:
                outbox.add(conn, row)

        await here.database.write(add, name="edits")
        here.bus.publish(OUTBOX, {})
        await here.until(lambda: len(chat.edits) == 1, step=0.1)
        answer = await here.put("answer", final=True)
        assert (await here.ends(answer, step=0.1)).state == "sent"
        waiting = [(await here.row(row.message.outbox_id)).state for row in edits]
        assert sorted(waiting) == ["pending", "pending", "sent"]
        for row in edits:
            assert (await here.ends(row.message.outbox_id, step=0.1)).state == "sent"
        assert chat.texts() == ["one changed", "two changed", "three changed", "answer"]
        assert len(chat.gaps) == 2
        assert min(chat.gaps) >= PAUSE_S
