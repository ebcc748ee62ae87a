"""What every chat adapter does, whatever its platform: the specification for the next one.

Each check says what a person does and what they see. A platform is left out of a check only where
it has no such thing (`platforms.DRIVERS` says what each one has). `docs/adapters.md` explains how
to write an adapter and its driver.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from runtime.domain.errors import (
    DeliveryError,
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
)
from runtime.domain.messages import ApprovalPart, Receipt
from tests.contract.chat.platform import Platform, message
from tests.contract.chat.platforms import DRIVERS, that_have
from tests.fakes.clock import settle

LONG = "\n\n".join(f"Paragraph {number}. " + "word " * 240 for number in range(30))


@pytest_asyncio.fixture
async def platform(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Platform]:
    driver, _ = DRIVERS[request.param]
    async with driver(tmp_path) as made:
        yield made


def on(*features: str) -> pytest.MarkDecorator:
    """Run a check on every platform that has these."""
    return pytest.mark.parametrize("platform", that_have(*features), indirect=True)


class Kept:
    """`on_posted`: what the engine wrote down of a message's posts."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    async def __call__(self, message_id: str) -> None:
        self.ids.append(message_id)


async def send(platform: Platform, text: str, outbox_id: str = "out_1") -> Receipt:
    return await platform.adapter.send(
        message(platform, text, outbox_id), posted=(), on_posted=Kept()
    )


async def seen(platform: Platform, amount: int) -> list[str]:
    """What the person reads, once what is under way is there: the page hears of it by the bus."""
    async with asyncio.timeout(10):
        while len(platform.seen()) < amount:
            await settle()
    await settle()
    return platform.seen()


def words(texts: list[str]) -> list[str]:
    return " ".join(texts).split()


@on()
async def test_it_knows_itself_once_it_is_connected(platform: Platform) -> None:
    adapter = platform.adapter
    assert (adapter.channel, adapter.account) == (platform.target.channel, platform.target.account)
    status = adapter.status()
    assert status.connected or status.detail, "what is not connected says what to do"


@pytest.mark.requirement("MSG-1", "MSG-4")
@on("in")
async def test_what_is_said_arrives_in_order_with_its_sender_and_place(platform: Platform) -> None:
    ids = [await platform.says(text) for text in ("one", "two", "three")]
    heard = await platform.gatehouse.wait_for(3)
    assert [one.text for one in heard] == ["one", "two", "three"]
    assert [one.message_id for one in heard] == ids
    assert {one.address for one in heard} == {platform.target}
    assert all(one.sender.id and not one.sender.is_bot for one in heard)


@pytest.mark.requirement("MSG-1")
@on("in")
async def test_what_could_not_be_stored_is_not_acknowledged_and_comes_again(
    platform: Platform,
) -> None:
    platform.gatehouse.break_store()
    await platform.says("hello")
    assert platform.gatehouse.texts == []
    await platform.redelivers()
    assert platform.gatehouse.texts == ["hello"]


@pytest.mark.requirement("MSG-2")
@on("in")
async def test_what_comes_again_has_the_same_identity(platform: Platform) -> None:
    said = await platform.says("hello")
    await platform.repeats(said)
    assert len(platform.gatehouse.messages) == 1
    assert len({one.identity for one in platform.gatehouse.offered}) == 1


@pytest.mark.requirement("SLK-2", "TEL-2")
@on("edits")
async def test_an_edit_is_told_as_an_edit_of_that_message(platform: Platform) -> None:
    said = await platform.says("helo")
    await platform.edits(said, "hello")
    (first,), (edit,) = platform.gatehouse.messages, platform.gatehouse.revisions
    assert (edit.text, edit.message_id) == ("hello", said)
    assert edit.edited_at
    assert edit.sender.id == first.sender.id
    assert edit.model_copy(update={"edited_at": None}).identity == first.identity


@pytest.mark.requirement("SLK-2")
@on("deletes")
async def test_a_deletion_names_its_message(platform: Platform) -> None:
    said = await platform.says("oh no")
    await platform.deletes(said)
    (deletion,) = platform.gatehouse.deletions
    (heard,) = platform.gatehouse.messages
    assert (deletion.chat_id, deletion.message_id) == (heard.chat_id, said)


@on()
async def test_a_message_is_one_post_with_a_receipt(platform: Platform) -> None:
    receipt = await send(platform, "Hello there")
    await send(platform, "And again", "out_2")
    assert len(receipt.message_ids) == 1
    assert all(receipt.message_ids)
    assert await seen(platform, 2) == ["Hello there", "And again"]


@pytest.mark.requirement("MSG-10")
@on("long")
async def test_a_long_message_is_whole_in_order_and_its_progress_is_kept(
    platform: Platform,
) -> None:
    kept = Kept()
    receipt = await platform.adapter.send(message(platform, LONG), posted=(), on_posted=kept)
    assert len(receipt.message_ids) > 1
    assert words(platform.seen()) == LONG.split() or "".join(platform.seen()) == LONG
    assert tuple(kept.ids)[: len(receipt.message_ids) - 1] == receipt.message_ids[:-1]


@pytest.mark.requirement("MSG-10", "MSG-11")
@on("long")
async def test_an_attempt_goes_on_behind_what_was_posted(platform: Platform) -> None:
    class Stopped(Exception):
        pass

    async def stop(message_id: str) -> None:
        posted.append(message_id)
        raise Stopped

    posted: list[str] = []
    with pytest.raises(Stopped):
        await platform.adapter.send(message(platform, LONG), posted=(), on_posted=stop)
    assert len(platform.seen()) == len(posted) == 1
    receipt = await platform.adapter.send(
        message(platform, LONG), posted=tuple(posted), on_posted=Kept()
    )
    assert receipt.message_ids[0] == posted[0]
    assert len(platform.seen()) == len(receipt.message_ids)
    again = await platform.adapter.send(
        message(platform, LONG), posted=receipt.message_ids, on_posted=Kept()
    )
    assert again == receipt, "what is complete is not sent again"
    assert len(platform.seen()) == len(receipt.message_ids)


@pytest.mark.requirement("MSG-10")
@on("limit")
async def test_a_limit_says_when_to_try_again_and_nothing_was_posted(platform: Platform) -> None:
    platform.limit(7)
    with pytest.raises(DeliveryRetry) as caught:
        await send(platform, "Hello")
    assert caught.value.after_s == 7.0
    assert platform.seen() == []


@pytest.mark.requirement("MSG-10")
@on("refuse")
async def test_what_will_never_be_taken_is_refused_with_a_reason(platform: Platform) -> None:
    platform.refuse()
    with pytest.raises(DeliveryRejected) as caught:
        await send(platform, "Hello")
    assert str(caught.value)


@pytest.mark.requirement("MSG-11")
@on("lose")
async def test_an_answer_that_is_lost_is_unknown_and_nothing_repeats_it(
    platform: Platform,
) -> None:
    platform.lose()
    with pytest.raises(DeliveryUnknown):
        await send(platform, "Hello")
    assert platform.seen() == ["Hello"]
    if platform.adapter.capabilities.lookup:
        found = await platform.adapter.lookup(message(platform, "Hello"), posted=())
        assert found is not None
    else:
        with pytest.raises(DeliveryRejected):
            await platform.adapter.lookup(message(platform, "Hello"), posted=())
    assert platform.seen() == ["Hello"]


@pytest.mark.requirement("MSG-11")
@on("lookup")
async def test_what_was_posted_is_found_and_what_was_not_is_not(platform: Platform) -> None:
    assert platform.adapter.capabilities.lookup
    assert await platform.adapter.lookup(message(platform, "Hello"), posted=()) is None
    receipt = await send(platform, "Hello")
    await send(platform, "Another", "out_2")
    assert await platform.adapter.lookup(message(platform, "Hello"), posted=()) == receipt


@pytest.mark.requirement("APR-4")
@on("change")
async def test_a_post_is_changed_however_often_it_is_asked_for(platform: Platform) -> None:
    assert platform.adapter.capabilities.edits
    receipt = await send(platform, "Hello")
    for _ in range(2):
        await platform.adapter.edit(message(platform, "Changed"), receipt)
    assert await seen(platform, 1) == ["Changed"]


@pytest.mark.requirement("APR-1", "APR-4")
@on("buttons")
async def test_a_button_names_its_card_and_choice_and_a_decided_card_reads_so(
    platform: Platform,
) -> None:
    part = ApprovalPart(
        open_call_id="apr_01",
        code="q1w2e3",
        tool="exec",
        arguments='{"command": "make"}',
        reason="it runs a command",
    )
    card = message(platform, "").model_copy(update={"parts": (part,)})
    receipt = await platform.adapter.send(card, posted=(), on_posted=Kept())
    await platform.presses_deny(receipt.message_ids[-1])
    (press,) = platform.gatehouse.presses
    assert (press.open_call_id, press.choice) == ("apr_01", "deny")
    assert press.sender.id
    decided = part.model_copy(update={"outcome": "Denied by Ann"})
    changed = card.model_copy(update={"parts": (decided,)})
    await platform.adapter.edit(changed, receipt)
    assert "Denied by Ann" in "\n".join(platform.seen())


@pytest.mark.requirement("REN-5")
@on()
async def test_typing_is_best_effort_and_posts_nothing(platform: Platform) -> None:
    for state in ("thinking", "tool", "done", "never heard of"):
        with suppress(DeliveryError):
            await platform.adapter.typing(platform.target, state)
    assert platform.seen() == []


@pytest.mark.requirement("REN-4")
@on("streams")
async def test_a_text_that_grew_ends_as_one_message(platform: Platform) -> None:
    streams = platform.adapter.streams
    assert streams is not None
    assert streams.interval_s(platform.target)
    stream = await streams.open(message(platform, "The answer"))
    await streams.grow(message(platform, "The answer is long"), stream)
    final = message(platform, "The answer is short")
    receipt = await streams.close(final, stream, posted=(), on_posted=Kept())
    assert platform.seen() == ["The answer is short"]
    assert len(receipt.message_ids) == 1
    if stream:
        assert receipt.message_ids == (stream,)
        again = await streams.close(final, stream, posted=(), on_posted=Kept())
        assert again == receipt, "closing is safe to repeat"
        assert platform.seen() == ["The answer is short"]


@pytest.mark.requirement("REN-4")
@on("streams")
async def test_a_stream_that_nobody_opened_is_not_found(platform: Platform) -> None:
    streams = platform.adapter.streams
    assert streams is not None
    assert await streams.find(message(platform, "The answer", "out_never")) is None


@on()
async def test_it_may_be_closed_twice(platform: Platform) -> None:
    await platform.adapter.close()
    await platform.adapter.close()
    assert platform.seen() == []
