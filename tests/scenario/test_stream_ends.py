"""How a reply that grew ends after a crash, or where nobody answers: one whole message (REN-4)."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runtime.delivery.throttled_edits import opening
from runtime.domain.errors import DeliveryRejected, DeliveryUnknown
from runtime.domain.messages import OutboundMessage, Receipt
from runtime.ports.chat import Posted
from runtime.sessions import runs
from runtime.store import Connection, leases, open_database
from tests.fakes.chat import FakeStreams
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.engine import world
from tests.scenario.streams import FIRST, WHOLE, Stage, half, orphans, rows

POINTS = ("stream:begun", "stream:kept", "stream:closed")


@pytest.mark.requirement("REN-4", "MSG-11")
@pytest.mark.parametrize("findable", [False, True])
async def test_a_post_that_may_be_lost_never_holds_the_whole_answer(
    tmp_path: Path, *, findable: bool
) -> None:
    """The whole text is there when its post is opened, and the process dies before it knows it."""
    stage, gate, died = Stage(tmp_path, lookup=findable), Gate(), asyncio.Event()
    stage.streams.finds = findable

    async def hang() -> None:
        died.set()
        await asyncio.Event().wait()

    stage.streams.hold["opened"] = hang
    all_at_once = Said(WHOLE, chunk=len(WHOLE), middle=gate, at=1)
    async with world(await stage.setup(ScriptedModel([all_at_once])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(died.is_set)
    stage.streams.hold.clear()
    async with world(await stage.setup(ScriptedModel([WHOLE])), stage.chat) as at:
        await stage.settled(at)
    texts = stage.chat.texts()
    assert texts.count(WHOLE) == 1
    if not findable:
        assert len(texts) == 2
        assert texts[0].endswith("\N{HORIZONTAL ELLIPSIS}")
        assert len(texts[0]) < len(WHOLE) / 2 + 3


@pytest.mark.requirement("REN-4", "MSG-9")
@pytest.mark.parametrize("findable", [False, True])
async def test_a_run_that_ends_while_its_text_is_written_down_is_answered_without_a_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, findable: bool
) -> None:
    """The row of the growing text is kept, its post is not opened yet, and the reply is there."""
    stage, gate, kept = Stage(tmp_path, lookup=findable), Gate(), Gate()
    stage.streams.finds = findable
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        write = at.database.write

        async def slowly(work: Any, *, name: str, **more: Any) -> Any:
            done = await write(work, name=name, **more)
            if name == "stream-begin":
                await kept.wait()
            return done

        monkeypatch.setattr(at.database, "write", slowly)
        await at.says("tell me")
        await stage.until(kept.reached.is_set)
        gate.open.set()
        for _ in range(40):
            await stage.clock.advance(0.25)
        kept.open.set()
        began = stage.clock.monotonic()
        await stage.settled(at)
        assert stage.clock.monotonic() - began <= 2.0, "the reply waits for no sweep"
        assert stage.chat.texts() == [WHOLE]
        assert await orphans(at) == 0
        assert await rows(at) == [("final", "sent")]


@pytest.mark.requirement("MSG-11")
@pytest.mark.parametrize("text", ["", "Yes.", "\n\nOK", "a" * 30, "word " * 400])
def test_what_opens_a_text_that_cannot_be_found_again_is_less_than_half_of_it(text: str) -> None:
    shown = opening(text, findable=False)
    begun = shown.removesuffix("\N{HORIZONTAL ELLIPSIS}").rstrip()
    assert shown != begun
    assert text.strip().startswith(begun)
    assert len(begun) <= min(len(text.strip()) / 2, 80)
    assert opening(text, findable=True) == text


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
        assert texts == ([opening(FIRST, findable=False), WHOLE] if lost else [WHOLE])
        unknown = where == "stream:begun" or (where == "opened" and (drafts or not finds))
        assert await orphans(at) == int(unknown)
        assert await rows(at) == [("final", "sent")]


@pytest.mark.requirement("REN-4", "MSG-11")
@pytest.mark.parametrize("unanswered", [0, 3])
async def test_a_post_that_is_found_after_a_crash_may_be_half_and_is_made_whole(
    tmp_path: Path, unanswered: int
) -> None:
    """The run had ended, and the answer to the request that opened the stream never came."""
    stage, gate, held = Stage(tmp_path, lookup=True), Gate(), Gate()
    stage.streams.hold["opened"] = held.wait
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(held.reached.is_set)
        gate.open.set()
        while await rows(at) != [("final", "sending")]:
            await stage.clock.advance(0.5)
    stage.streams.hold.clear()
    assert stage.chat.texts() == [FIRST]
    stage.streams.failures["close"] = [DeliveryUnknown("time-out")] * unanswered
    async with world(await stage.setup(ScriptedModel([])), stage.chat) as at:
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert await rows(at) == [("final", "sent")]
        assert stage.did("close") == 1 + unanswered


@pytest.mark.requirement("REN-4", "MSG-11")
async def test_a_reply_sent_anew_is_not_sent_again_when_its_outcome_is_unknown(
    tmp_path: Path,
) -> None:
    """The post that grew is gone: what is under way is a new post, not a change of that one."""
    stage, gate = Stage(tmp_path), Gate()
    stage.streams.failures["close"] = [DeliveryRejected("the post is gone")]
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        stage.chat.sent.clear()
        stage.chat.unanswered = 1
        gate.open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert await rows(at) == [("final", "unknown")]


class LongStreams(FakeStreams):
    """A reply of two posts: the first is the one that grew, of the second nobody hears."""

    async def close(
        self,
        message: OutboundMessage,
        stream: str,
        *,
        posted: Sequence[str],
        on_posted: Posted,
        shown: OutboundMessage | None = None,
    ) -> Receipt:
        if not posted:
            await super().close(message, stream, posted=posted, on_posted=on_posted)
            await on_posted(stream)
        self.chat.post(message)
        raise DeliveryUnknown("time-out")


@pytest.mark.requirement("REN-4", "MSG-11")
async def test_a_post_behind_the_one_that_grew_is_not_sent_again_when_its_outcome_is_unknown(
    tmp_path: Path,
) -> None:
    stage, gate = Stage(tmp_path), Gate()
    stage.streams = stage.chat.streams = LongStreams(stage.chat)
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        gate.open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE] * 2
        assert await rows(at) == [("final", "unknown")]


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
