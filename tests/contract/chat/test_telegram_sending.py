"""What the engine sends, and what a person reads in Telegram."""

import asyncio

import pytest

from runtime.domain.errors import (
    DeliveryError,
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
)
from runtime.domain.messages import Button, Receipt, TextPart
from tests.contract.chat.telegram_support import Desk, desk, numbers, to
from tests.wire.telegram import Chat

__all__ = ["desk"]

LONG = "\n\n".join(f"Paragraph {number}. " + "word " * 300 for number in range(8))


def words(texts: list[str]) -> list[str]:
    return " ".join(texts).split()


@pytest.mark.requirement("REN-1")
async def test_markdown_is_read_as_formatted_text_without_previews(desk: Desk) -> None:
    receipt = await desk.send(to(desk.chat, "**Done**: see [the log](https://ci.example/1) & <ok>"))
    (post,) = desk.server.from_bot(desk.chat)
    assert post.text == "Done: see the log & <ok>"
    assert [(e.type, e.url) for e in post.content.entities] == [
        ("bold", ""),
        ("text_link", "https://ci.example/1"),
    ]
    assert post.preview == {"is_disabled": True}
    assert receipt == Receipt(message_ids=numbers([post]))
    assert desk.progress.ids == [], "the last post is in the receipt"


@pytest.mark.requirement("REN-2", "MSG-10")
async def test_a_long_message_goes_on_after_a_429_where_it_stopped(desk: Desk) -> None:
    message = to(desk.chat, LONG)
    hold = desk.server.hold("sendMessage")
    attempt = asyncio.create_task(desk.send(message))
    await hold.arrived.wait()
    # The first call took its turn with the faults already: this one is for the second post.
    desk.server.rate_limit("sendMessage", retry_after=11)
    hold.release()
    with pytest.raises(DeliveryRetry) as flood:
        await attempt
    assert flood.value.after_s == 11
    assert desk.progress.ids == list(numbers(desk.server.from_bot(desk.chat)))
    assert len(desk.progress.ids) == 1

    receipt = await desk.send(message)
    posts = desk.server.from_bot(desk.chat)
    assert len(posts) == 4
    assert receipt.message_ids == numbers(posts)
    assert tuple(desk.progress.ids) == numbers(posts[:-1])
    assert words(desk.shown()) == words([LONG])
    assert all(len(post.text) <= 4096 for post in posts)


@pytest.mark.requirement("MSG-11")
async def test_a_connection_cut_after_the_request_left_is_unknown_and_not_repeated(
    desk: Desk,
) -> None:
    await desk.adapter.connect()
    desk.server.hang("sendMessage")
    with pytest.raises(DeliveryUnknown):
        await desk.send(to(desk.chat, "once"))
    assert desk.shown() == ["once"]
    assert len(desk.server.calls_to("sendMessage")) == 1
    with pytest.raises(DeliveryRejected, match="cannot be asked"):
        await desk.adapter.lookup(to(desk.chat, "once"), posted=())
    assert not desk.adapter.capabilities.lookup


@pytest.mark.requirement("MSG-11")
async def test_no_answer_in_time_is_unknown(desk: Desk) -> None:
    hurried = desk.another_adapter(request_timeout_s=0.5)
    await hurried.connect()
    desk.server.hold("sendMessage")
    try:
        with pytest.raises(DeliveryUnknown):
            await hurried.send(to(desk.chat, "once"), posted=(), on_posted=desk.progress)
    finally:
        await hurried.close()
        desk.server.release_all()


async def test_what_never_left_is_sent_again(desk: Desk) -> None:
    await desk.server.down()
    with pytest.raises(DeliveryRetry) as away:
        await desk.send(to(desk.chat, "later"))
    assert desk.server.token not in str(away.value)
    await desk.server.up()
    desk.server.fail("sendMessage", 502, "Bad Gateway")
    with pytest.raises(DeliveryRetry):
        await desk.send(to(desk.chat, "later"))
    await desk.send(to(desk.chat, "later"))
    assert desk.shown() == ["later"]


@pytest.mark.requirement("REN-3")
async def test_refused_formatting_goes_out_plain_with_its_addresses(desk: Desk) -> None:
    desk.server.fail("sendMessage", 400, "Bad Request: can't parse entities: in the test")
    receipt = await desk.send(to(desk.chat, "**Done**: [log](https://ci.example/1)"))
    (post,) = desk.server.from_bot(desk.chat)
    assert post.text == "Done: log (https://ci.example/1)"
    assert not {"bold", "text_link"} & {entity.type for entity in post.content.entities}
    assert receipt.message_ids == numbers([post])


@pytest.mark.requirement("REN-3")
@pytest.mark.parametrize(
    "description",
    [
        "Bad Request: A_CODE_OF_NEXT_YEAR",
        "Bad Request: can't parse inline keyboard button: in the test",
        "Bad Request: BUTTON_DATA_INVALID",
        "Bad Request: message to be replied not found",
    ],
)
@pytest.mark.parametrize("times", [1, 2])
async def test_a_refusal_that_nobody_listed_is_answered_by_plainer_forms(
    desk: Desk, description: str, times: int
) -> None:
    """Without formatting first, without buttons at last; the words say what can be pressed."""
    desk.server.fail("sendMessage", 400, description, times=times)
    part = TextPart(markdown="It **runs**.", buttons=(Button(label="Stop", command="stop"),))
    await desk.send(to(desk.chat, "").model_copy(update={"parts": (part,)}))
    (post,) = desk.server.from_bot(desk.chat)
    assert post.text == "It runs."
    assert not post.content.entities
    assert bool(post.markup) is (times == 1)


@pytest.mark.requirement("REN-3")
async def test_a_text_found_too_long_goes_out_in_pieces_and_resumes_between_them(
    desk: Desk,
) -> None:
    text = " ".join(f"word{number}" for number in range(500))
    message = to(desk.chat, text, "The end.")
    desk.server.fail("sendMessage", 400, "Bad Request: message is too long")
    receipt = await desk.send(message)
    pieces = desk.server.from_bot(desk.chat)
    assert [len(post.text) <= 2048 for post in pieces] == [True] * 3
    assert words([post.text for post in pieces]) == words([text, "The end."])
    assert list(receipt.message_ids) == [f"{pieces[0].message_id}+", *numbers(pieces[1:])]

    # An attempt that ended after the first piece goes on with the second.
    desk.progress.ids = desk.progress.ids[:1]
    await desk.send(message)
    again = desk.server.from_bot(desk.chat)[3:]
    assert [post.text for post in again] == [post.text for post in pieces[1:]]


def _blocked(desk: Desk) -> Chat:
    desk.server.user_blocks(desk.ann)
    return desk.chat


def _kicked(desk: Desk) -> Chat:
    group = desk.server.world.group("Team", desk.ann)
    desk.server.user_leaves(group, desk.server.bot, by=desk.ann)
    return group


def _muted(desk: Desk) -> Chat:
    group = desk.server.world.supergroup("Team", desk.ann)
    group.muted = True
    return group


def _unknown(_: Desk) -> Chat:
    return Chat(404, "private")


def _never_started(desk: Desk) -> Chat:
    return desk.server.world.private(desk.server.world.user("Ben"), started=False)


@pytest.mark.requirement("TEL-6")
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (_blocked, "the person blocked the bot"),
        (_kicked, "the bot was removed from the chat"),
        (_muted, "let an administrator allow it"),
        (_unknown, "Telegram knows no such chat"),
        (_never_started, "the person has to write to the bot first"),
    ],
)
async def test_where_the_bot_may_not_write_the_reason_is_plain(
    desk: Desk, place: object, reason: str
) -> None:
    assert callable(place)
    with pytest.raises(DeliveryRejected, match=reason) as refused:
        await desk.send(to(place(desk), "hello"))
    assert not refused.value.account_wide


async def test_a_revoked_token_stops_every_send(desk: Desk) -> None:
    desk.server.fail("sendMessage", 401, "Unauthorized")
    with pytest.raises(DeliveryRejected) as refused:
        await desk.send(to(desk.chat, "hello"))
    assert refused.value.account_wide


@pytest.mark.requirement("TEL-6")
async def test_a_group_that_became_a_supergroup_is_followed(desk: Desk) -> None:
    group = desk.server.world.group("Team", desk.ann)
    question = desk.server.user_says(group, desk.ann, "@gatehouse_bot hi")
    supergroup = desk.server.migrate(group)
    while desk.server.messages(supergroup)[-1].message_id < question.message_id:
        desk.server.user_says(supergroup, desk.ann, "something else")
    receipt = await desk.send(to(group, LONG, reply_to=question))
    posts = desk.server.from_bot(supergroup)
    assert words(desk.shown(supergroup)) == words([LONG])
    assert receipt.message_ids == tuple(f"{supergroup.id}:{n}" for n in numbers(posts))
    # The old number would name another message of the new chat.
    assert [post.reply_to for post in posts] == [None] * 4

    await desk.adapter.typing(to(group, "").target, "thinking")
    assert [action.chat for action in desk.server.state.actions] == [supergroup]
    await desk.adapter.edit(to(group, "Short."), receipt)
    assert desk.shown(supergroup) == ["Short."]


async def test_an_answer_in_a_group_hangs_on_its_question_even_when_that_is_gone(
    desk: Desk,
) -> None:
    group = desk.server.world.supergroup("Team", desk.ann)
    question = desk.server.user_says(group, desk.ann, "@gatehouse_bot hi")
    await desk.send(to(group, LONG, reply_to=question))
    posts = desk.server.from_bot(group)
    assert [post.reply_to for post in posts] == [question, None, None, None]

    question.deleted = True
    desk.progress.ids.clear()
    await desk.send(to(group, "still here", reply_to=question))
    assert desk.shown(group)[-1] == "still here"


async def test_in_a_private_chat_nothing_is_quoted(desk: Desk) -> None:
    question = desk.server.user_says(desk.chat, desk.ann, "hi")
    await desk.send(to(desk.chat, "hello", reply_to=question))
    assert desk.server.from_bot(desk.chat)[0].reply_to is None


@pytest.mark.requirement("TEL-5")
async def test_a_group_gets_twenty_posts_a_minute_and_the_rest_waits(desk: Desk) -> None:
    group = desk.server.world.supergroup("Team", desk.ann)
    for number in range(20):
        desk.progress.ids.clear()
        await desk.send(to(group, str(number)))
        await desk.clock.advance(1)
    desk.progress.ids.clear()
    with pytest.raises(DeliveryRetry) as full:
        await desk.send(to(group, "20"))
    assert full.value.after_s == 40
    await desk.send(to(desk.chat, "a private chat is not concerned"))
    desk.progress.ids.clear()
    await desk.clock.advance(40)
    await desk.send(to(group, "20"))
    assert desk.shown(group) == [str(number) for number in range(21)]


@pytest.mark.requirement("REN-5")
async def test_typing_shows_in_the_chat_and_in_the_topic(desk: Desk) -> None:
    forum, topic = desk.topic()
    await desk.adapter.typing(to(desk.chat, "").target, "thinking")
    await desk.adapter.typing(to(forum, "", topic=topic).target, "exec")
    await desk.adapter.typing(to(desk.chat, "").target, "done")
    actions = [(a.chat, a.action, a.thread_id) for a in desk.server.state.actions]
    assert actions == [(desk.chat, "typing", 0), (forum, "typing", topic)]
    assert desk.adapter.capabilities.typing_interval_s == 4.0

    desk.server.user_blocks(desk.ann)
    with pytest.raises(DeliveryError):
        await desk.adapter.typing(to(desk.chat, "").target, "thinking")
