"""What every chat adapter does, whatever its platform: the specification for the next one.

Each check says what a person does and what they see. A platform is left out of a check only where
it has no such thing, which `drivers.DRIVERS` says with the reason. `docs/adapters.md` explains how
to write an adapter and its driver.

Here: what a person says, and texts; `test_conformance_parts.py` has cards, files and streams.
"""

from contextlib import suppress

import pytest

from runtime.domain.errors import (
    DeliveryError,
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
)
from tests.contract.chat.conformance import LONG, Kept, deliver, on, seen, send, words
from tests.contract.chat.drivers import DRIVERS, FEATURES
from tests.contract.chat.platform import Platform, message


@pytest.mark.parametrize("name", DRIVERS)
def test_what_a_platform_lacks_is_said_with_its_reason(name: str) -> None:
    lacks = DRIVERS[name].lacks
    assert set(lacks) <= set(FEATURES)
    assert all(lacks.values())


@pytest.mark.parametrize(
    ("platform", "name"), [(one, one) for one in DRIVERS], indirect=["platform"]
)
async def test_what_the_adapter_says_that_it_can_is_what_is_checked_here(
    platform: Platform, name: str
) -> None:
    adapter = platform.adapter
    can = adapter.capabilities
    claims = {
        "change": can.edits,
        "files out": can.files,
        "lookup": can.lookup,
        "streams": adapter.streams is not None,
    }
    assert {one for one, claimed in claims.items() if claimed} == DRIVERS[name].has & set(claims)


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
    for one in heard:
        # In Slack's agent view, each message begins a thread of its own.
        assert one.address.thread_id in (platform.target.thread_id, one.message_id)
        here = one.address.model_copy(update={"thread_id": platform.target.thread_id})
        assert here == platform.target
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


@pytest.mark.requirement("REN-1")
@on()
async def test_a_text_that_is_some_platforms_markup_is_read_as_it_was_written(
    platform: Platform,
) -> None:
    text = (
        "a <!channel> & <@U0ANN|Ann> <b>b</b> @everyone [c \u05e9\u05dc \U0001f469\u200d\U0001f52c"
    )
    await send(platform, text)
    (shown,) = await seen(platform, 1)
    # Escapes, and the character without width that parts a mention, are not seen.
    assert shown.replace("\\", "").replace("\u2060", "") == text


@pytest.mark.requirement("MSG-10")
@on()
async def test_a_long_message_is_whole_and_in_order(platform: Platform) -> None:
    receipt = await send(platform, LONG)
    shown = await seen(platform, len(receipt.message_ids))
    assert words(shown) == LONG.split() or "".join(shown) == LONG


@pytest.mark.requirement("MSG-10")
@on("long")
async def test_of_several_posts_each_but_the_last_is_kept_as_progress(platform: Platform) -> None:
    kept = Kept()
    receipt = await deliver(platform, message(platform, LONG), kept)
    assert len(receipt.message_ids) > 1
    assert tuple(kept.ids)[: len(receipt.message_ids) - 1] == receipt.message_ids[:-1]


@pytest.mark.requirement("MSG-10", "MSG-11")
@on()
async def test_what_is_complete_is_not_sent_again(platform: Platform) -> None:
    receipt = await send(platform, "Hello")
    again = await platform.adapter.send(
        message(platform, "Hello"), posted=receipt.message_ids, on_posted=Kept()
    )
    assert again == receipt
    assert await seen(platform, 1) == ["Hello"]


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
async def test_what_was_posted_is_found(platform: Platform) -> None:
    receipt = await send(platform, "Hello")
    await send(platform, "Another", "out_2")
    assert await platform.adapter.lookup(message(platform, "Hello"), posted=()) == receipt
    assert await seen(platform, 2) == ["Hello", "Another"]


@pytest.mark.requirement("MSG-11")
@on("absent")
async def test_what_was_never_posted_is_not_found(platform: Platform) -> None:
    await send(platform, "Another", "out_2")
    assert await platform.adapter.lookup(message(platform, "Hello"), posted=()) is None


@pytest.mark.requirement("APR-4")
@on("change")
async def test_a_post_is_changed_however_often_it_is_asked_for(platform: Platform) -> None:
    receipt = await send(platform, "Hello")
    for _ in range(2):
        await platform.adapter.edit(message(platform, "Changed"), receipt)
    await send(platform, "And then", "out_2")
    assert await seen(platform, 2) == ["Changed", "And then"]


@pytest.mark.requirement("REN-5")
@on()
async def test_typing_is_best_effort_and_posts_nothing(platform: Platform) -> None:
    for state in ("thinking", "tool", "done", "never heard of"):
        with suppress(DeliveryError):
            await platform.adapter.typing(platform.target, state)
    assert platform.seen() == []


@on()
async def test_it_may_be_closed_twice(platform: Platform) -> None:
    await platform.adapter.close()
    await platform.adapter.close()
    assert platform.seen() == []
