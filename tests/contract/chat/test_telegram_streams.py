"""A reply that grows while it is written: what people see on the way, and what stays."""

import asyncio

import pytest

from runtime.domain.errors import DeliveryRejected, DeliveryRetry, DeliveryUnknown
from runtime.domain.messages import ApprovalPart, Receipt
from runtime.ports.chat import Streams
from tests.contract.chat.telegram_support import Desk, desk, numbers, to
from tests.wire.telegram import Chat, Message

__all__ = ["desk"]

LONG = "\n\n".join(f"Paragraph {number}. " + "word " * 300 for number in range(8))


def streams(desk: Desk) -> Streams:
    found = desk.adapter.streams
    assert found is not None
    return found


def drafts(desk: Desk) -> list[list[str]]:
    """What each draft showed, one after the other."""
    return list(desk.server.state.drafts.values())


async def closed(
    desk: Desk, chat: Chat, text: str, stream: str, *, shown: str | None = None
) -> Receipt:
    return await streams(desk).close(
        to(chat, text),
        stream,
        posted=tuple(desk.progress.ids),
        on_posted=desk.progress,
        shown=None if shown is None else to(chat, shown),
    )


def in_group(desk: Desk) -> tuple[Chat, Message]:
    group = desk.server.world.supergroup("Team", desk.ann)
    return group, desk.server.user_says(group, desk.ann, "@gatehouse_bot go")


@pytest.mark.requirement("REN-4")
async def test_in_a_private_chat_a_draft_grows_and_the_reply_is_one_message(desk: Desk) -> None:
    assert streams(desk).interval_s(to(desk.chat, "").target) == 1.0
    stream = await streams(desk).open(to(desk.chat, "**Hel"))
    assert stream == ""
    assert desk.shown() == [], "a draft leaves no post"
    await streams(desk).grow(to(desk.chat, "**Hello** wor"), stream)
    (shown,) = drafts(desk)
    assert shown == ["**Hel", "Hello wor"]
    receipt = await closed(desk, desk.chat, "**Hello** world", stream)
    assert desk.shown() == ["Hello world"]
    assert receipt.message_ids == numbers(desk.server.from_bot(desk.chat))
    assert desk.server.state.showing == {}, "the reply took the draft's place"


@pytest.mark.requirement("REN-4")
async def test_a_post_that_reads_like_the_reply_is_not_edited_again(desk: Desk) -> None:
    group, _ = in_group(desk)
    whole = "The **plan** has three steps."
    stream = await streams(desk).open(to(group, "The"))
    await streams(desk).grow(to(group, whole), stream)
    assert streams(desk).ends_by_edit(to(group, whole), stream, shown=to(group, whole)) is False
    receipt = await closed(desk, group, whole, stream, shown=whole)
    (post,) = desk.server.from_bot(group)
    assert (post.text, receipt.message_ids) == ("The plan has three steps.", (stream,))
    assert len(desk.server.calls_to("editMessageText")) == 1
    # What reads otherwise is edited, and so is what nobody knows.
    await closed(desk, group, "It has **two**.", stream, shown=whole)
    await closed(desk, group, "It has **two**.", stream)
    assert len(desk.server.calls_to("editMessageText")) == 3
    assert desk.server.from_bot(group)[0].text == "It has two."


@pytest.mark.requirement("REN-4")
async def test_a_draft_shows_one_message_of_a_long_text_and_the_topic(desk: Desk) -> None:
    stream = await streams(desk).open(to(desk.chat, LONG))
    await streams(desk).grow(to(desk.chat, f"{LONG}\n\nThe end"), stream)
    (shown,) = drafts(desk)
    assert shown[1].endswith("The end")
    assert all(len(text) <= 4096 for text in shown)
    await closed(desk, desk.chat, LONG, stream)
    assert " ".join(desk.shown()).split() == LONG.split()
    # A text in which nothing can be seen yet is a sign of life.
    await streams(desk).open(to(desk.chat, " \n"))
    assert drafts(desk)[0][-1] == "\N{HORIZONTAL ELLIPSIS}"


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize("fenced", [False, True])
async def test_of_a_very_long_text_a_draft_shows_the_end_and_a_post_the_beginning(
    desk: Desk, fenced: bool
) -> None:
    group, _ = in_group(desk)
    lines = [f"line {number}" + "\n" * (number % 3) for number in range(20_000)]
    text = "\n".join(["The **start**", *(["```"] if fenced else []), *lines])
    await streams(desk).open(to(desk.chat, text))
    ((draft,),) = drafts(desk)
    assert draft.endswith("line 19999")
    (call,) = desk.server.calls_to("sendMessageDraft")
    kinds = {str(entity["type"]) for entity in call.arguments.mappings("entities")}
    assert kinds == ({"pre"} if fenced else set())
    await streams(desk).open(to(group, text))
    (post,) = desk.shown(group)
    assert post.startswith("The start")
    assert len(post) > 3_000


@pytest.mark.requirement("REN-4")
async def test_elsewhere_the_first_post_grows_and_becomes_the_reply(desk: Desk) -> None:
    group, question = in_group(desk)
    assert streams(desk).interval_s(to(group, "").target) == 3.0
    stream = await streams(desk).open(to(group, "Hel", reply_to=question))
    (post,) = desk.server.from_bot(group)
    assert (post.text, post.reply_to, stream) == ("Hel", question, str(post.message_id))
    await streams(desk).grow(to(group, "Hello wor"), stream)
    await streams(desk).grow(to(group, "Hello wor"), stream)
    assert post.text == "Hello wor"
    receipt = await closed(desk, group, f"Hello world\n\n{LONG}", stream)
    posts = desk.server.from_bot(group)
    assert posts[0] is post
    assert " ".join(desk.shown(group)).split() == ["Hello", "world", *LONG.split()]
    assert receipt.message_ids == numbers(posts)
    assert tuple(desk.progress.ids) == numbers(posts[:-1])
    assert len(desk.server.from_bot(group)) == len(posts) > 2


@pytest.mark.requirement("REN-4", "MSG-10")
async def test_a_close_that_was_stopped_goes_on_in_another_process(desk: Desk) -> None:
    group, _ = in_group(desk)
    stream = await streams(desk).open(to(group, "Paragraph"))
    hold = desk.server.hold("sendMessage")
    closing = asyncio.create_task(closed(desk, group, LONG, stream))
    await hold.arrived.wait()
    desk.server.rate_limit("sendMessage", retry_after=4)
    hold.release()
    with pytest.raises(DeliveryRetry):
        await closing
    assert desk.progress.ids[0] == stream
    await desk.adapter.close()
    desk.adapter = desk.another_adapter()
    receipt = await closed(desk, group, LONG, stream)
    assert receipt.message_ids == numbers(desk.server.from_bot(group))
    assert " ".join(desk.shown(group)).split() == LONG.split()


@pytest.mark.requirement("REN-4")
async def test_a_close_is_safe_to_repeat_and_mends_a_post_that_is_gone(desk: Desk) -> None:
    group, _ = in_group(desk)
    stream = await streams(desk).open(to(group, "Hel"))
    await closed(desk, group, "Hello", stream)
    await closed(desk, group, "Hello", stream)
    assert desk.shown(group) == ["Hello"]
    desk.server.from_bot(group)[0].deleted = True
    with pytest.raises(DeliveryRejected):
        await streams(desk).grow(to(group, "Hello wor"), stream)
    receipt = await closed(desk, group, "Hello world", stream)
    assert desk.shown(group) == ["Hello world"]
    assert receipt.message_ids == numbers(desk.server.from_bot(group))


@pytest.mark.requirement("REN-4")
async def test_a_reply_that_cannot_be_edited_in_takes_the_growing_post_away(desk: Desk) -> None:
    group, _ = in_group(desk)
    stream = await streams(desk).open(to(group, "Let me"))
    receipt = await closed(desk, group, " ", stream)
    assert (desk.shown(group), receipt.message_ids) == ([], ())


@pytest.mark.requirement("REN-4", "REN-3")
async def test_refused_formatting_is_shown_plain_on_the_way_and_at_the_end(desk: Desk) -> None:
    group, _ = in_group(desk)
    bad = "Bad Request: can't parse entities: in the test"
    desk.server.fail("sendMessage", 400, bad)
    stream = await streams(desk).open(to(group, "**Hel**"))
    desk.server.fail("editMessageText", 400, bad)
    await closed(desk, group, "**Hello**", stream)
    desk.server.fail("sendMessageDraft", 400, bad)
    await streams(desk).open(to(desk.chat, "**Hel**"))
    assert (desk.shown(group), drafts(desk)) == (["Hello"], [["Hel"]])


@pytest.mark.requirement("REN-4", "TEL-5")
async def test_flood_control_slows_the_edits_down(desk: Desk) -> None:
    group, _ = in_group(desk)
    stream = await streams(desk).open(to(group, "Hel"))
    desk.server.rate_limit("editMessageText", retry_after=6)
    with pytest.raises(DeliveryRetry) as flood:
        await streams(desk).grow(to(group, "Hello"), stream)
    assert flood.value.after_s == 6
    await closed(desk, group, "Hello", stream)
    assert desk.shown(group) == ["Hello"]


@pytest.mark.requirement("REN-4", "TEL-5")
async def test_flood_control_of_drafts_is_obeyed_and_keeps_no_reply_back(desk: Desk) -> None:
    stream = await streams(desk).open(to(desk.chat, "Hel"))
    desk.server.rate_limit("sendMessageDraft", retry_after=60)
    for _ in range(2):
        with pytest.raises(DeliveryRetry) as flood:
            await streams(desk).grow(to(desk.chat, "Hello"), stream)
        assert flood.value.after_s is None, "a time would hold the chat's replies back as well"
    assert len(desk.server.calls_to("sendMessageDraft")) == 2
    await closed(desk, desk.chat, "Hello", stream)
    assert desk.shown() == ["Hello"]
    await desk.clock.advance(60)
    await streams(desk).open(to(desk.chat, "Again"))
    assert desk.server.state.showing[desk.chat.id] == "Again"


@pytest.mark.requirement("REN-4", "TEL-5")
async def test_a_growing_text_leaves_room_for_replies_in_the_groups_minute(desk: Desk) -> None:
    group, _ = in_group(desk)
    stream = await streams(desk).open(to(group, "0"))
    for number in range(1, 14):
        await streams(desk).grow(to(group, str(number)), stream)
    with pytest.raises(DeliveryRetry) as full:
        await streams(desk).grow(to(group, "14"), stream)
    assert full.value.after_s is None, "a time would hold the group's replies back as well"
    for number in range(6):
        await desk.send(to(group, f"reply {number}"))
        desk.progress.ids.clear()
    with pytest.raises(DeliveryRetry):
        await desk.send(to(group, "one more"))


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (400, "Bad Request: TEXTDRAFT_PEER_INVALID"),
        (400, "Bad Request: nobody listed this"),
        (404, "Not Found: method not found"),
    ],
)
async def test_where_drafts_are_not_known_a_post_grows_instead(
    desk: Desk, code: int, reason: str
) -> None:
    desk.server.fail("sendMessageDraft", code, reason)
    assert not streams(desk).grows_by_edits(to(desk.chat, "").target, None)
    stream = await streams(desk).open(to(desk.chat, "Hel"))
    assert streams(desk).grows_by_edits(to(desk.chat, "").target, stream)
    assert streams(desk).grows_by_edits(to(desk.chat, "").target, None)
    await streams(desk).grow(to(desk.chat, "Hello"), stream)
    await closed(desk, desk.chat, "Hello world", stream)
    assert desk.shown() == ["Hello world"]
    await streams(desk).open(to(desk.chat, "again"))
    assert len(desk.server.calls_to("sendMessageDraft")) == 1, "it is not tried at every reply"
    # Of one chat it says nothing about the others, and after an hour it may be otherwise.
    other = desk.server.world.private(desk.server.world.user("Ben"))
    assert streams(desk).grows_by_edits(to(other, "").target, None) == (code == 404)
    await desk.clock.advance(3600)
    assert await streams(desk).open(to(desk.chat, "again")) == ""


@pytest.mark.requirement("REN-4", "MSG-11")
async def test_an_unknown_outcome_is_unknown_only_where_a_post_may_be(desk: Desk) -> None:
    group, _ = in_group(desk)
    desk.server.hang("sendMessageDraft")
    with pytest.raises(DeliveryRetry):
        await streams(desk).open(to(desk.chat, "Hel"))
    desk.server.hang("sendMessage")
    with pytest.raises(DeliveryUnknown):
        await streams(desk).open(to(group, "Hel"))
    assert await streams(desk).find(to(group, "Hel")) is None
    stream = await streams(desk).open(to(group, "Hel"))
    desk.server.hang("editMessageText")
    with pytest.raises(DeliveryRetry):
        await closed(desk, group, "Hello", stream)
    await closed(desk, group, "Hello", stream)
    assert desk.shown(group)[-1] == "Hello"


@pytest.mark.requirement("REN-4", "TEL-6")
async def test_a_group_that_moves_in_mid_stream_gets_the_whole_reply_in_its_new_place(
    desk: Desk,
) -> None:
    group = desk.server.world.group("Team", desk.ann)
    stream = await streams(desk).open(to(group, "Hel"))
    supergroup = desk.server.migrate(group)
    receipt = await closed(desk, group, "Hello world", stream)
    (post,) = desk.server.from_bot(supergroup)
    assert (post.text, receipt.message_ids) == (
        "Hello world",
        (f"{supergroup.id}:{post.message_id}",),
    )


async def test_a_blocked_bot_opens_no_stream(desk: Desk) -> None:
    desk.server.user_blocks(desk.ann)
    with pytest.raises(DeliveryRejected, match="blocked"):
        await streams(desk).open(to(desk.chat, "Hel"))


@pytest.mark.requirement("REN-4")
async def test_a_run_that_ends_in_a_card_puts_it_where_the_text_grew(desk: Desk) -> None:
    group, _ = in_group(desk)
    stream = await streams(desk).open(to(group, "I will"))
    card = ApprovalPart(
        open_call_id="apr_1", code="k7m2p9", tool="exec", arguments="make", reason=""
    )
    await streams(desk).close(
        to(group, "I will deploy.", card), stream, posted=(), on_posted=desk.progress
    )
    first, second = desk.server.from_bot(group)
    assert first.text == "I will deploy."
    assert second.buttons
