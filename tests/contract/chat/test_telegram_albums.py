"""Pictures that a person sends at once are one message, however Telegram brings them."""

import pytest

from runtime.domain.messages import InboundMessage
from tests.contract.chat.telegram_support import Desk, desk
from tests.contract.chat.test_telegram_polling import FailsOnce
from tests.wire.telegram import Attachment, Chat

__all__ = ["desk"]

NAP = 0.7


def pictures(count: int) -> list[Attachment]:
    return [Attachment(f"picture {number}".encode(), "p.jpg", "photo") for number in range(count)]


def contents(desk: Desk, message: InboundMessage) -> list[bytes]:
    """What the files are that the message refers to."""
    files = desk.server.state.files
    return [files.find(one.reference).attachment.content for one in message.attachments]


async def pauses(desk: Desk, *numbers: int) -> None:
    """The pause with each number passes, once the adapter makes it."""
    for number in numbers:
        assert (await desk.clock.until_naps(number))[number - 1] == NAP
        await desk.clock.advance(NAP)


@pytest.mark.requirement("TEL-2", "MSG-1")
async def test_an_album_is_one_message_with_all_its_pictures(desk: Desk) -> None:
    desk.server.user_says(desk.chat, desk.ann, "look")
    sent = desk.server.user_sends(desk.chat, desk.ann, pictures(3), caption="our garden")
    desk.server.user_says(desk.chat, desk.ann, "nice?")
    async with desk.listening():
        await pauses(desk, 1)
        _, album, _ = await desk.hears(3)
    assert desk.gatehouse.texts == ["look", "our garden", "nice?"]
    assert contents(desk, album) == [b"picture 0", b"picture 1", b"picture 2"]
    assert album.message_id == str(sent[0].message_id)
    assert album.album == sent[0].media_group_id


@pytest.mark.requirement("TEL-2", "MSG-1")
async def test_parts_that_come_with_a_later_answer_are_waited_for(desk: Desk) -> None:
    async with desk.listening():
        desk.server.user_sends(desk.chat, desk.ann, pictures(1), caption="one", album="77")
        await desk.clock.until_naps(1)
        desk.server.user_sends(desk.chat, desk.ann, [Attachment(b"two", "q.jpg")], album="77")
        assert desk.gatehouse.offered == []
        await pauses(desk, 1, 2)
        (album,) = await desk.hears(1)
    assert contents(desk, album) == [b"picture 0", b"two"]
    assert album.text == "one"


@pytest.mark.requirement("TEL-2")
async def test_what_others_say_between_the_parts_is_a_message_of_its_own(desk: Desk) -> None:
    ben = desk.server.world.user("Ben")
    other = desk.server.world.private(ben)
    desk.server.user_sends(desk.chat, desk.ann, pictures(1), album="77")
    desk.server.user_says(other, ben, "hello")
    desk.server.user_sends(desk.chat, desk.ann, pictures(2)[1:], album="77")
    desk.server.user_sends(other, ben, pictures(1), album="77")
    async with desk.listening():
        await pauses(desk, 1)
        heard = await desk.hears(3)
    assert [(m.sender.name, len(m.attachments), m.text) for m in heard] == [
        ("Ann", 2, ""),
        ("Ben", 0, "hello"),
        ("Ben", 1, ""),
    ]


@pytest.mark.requirement("TEL-2", "MSG-1", "MSG-2")
async def test_an_album_that_was_stored_is_not_torn_when_the_store_fails_behind_it(
    desk: Desk,
) -> None:
    ben = desk.server.world.user("Ben")
    desk.server.user_sends(desk.chat, desk.ann, pictures(1), caption="ours", album="77")
    desk.server.user_says(desk.server.world.private(ben), ben, "hello")
    desk.server.user_sends(desk.chat, desk.ann, pictures(2)[1:], album="77")
    desk.gatehouse = FailsOnce("hello")
    async with desk.listening():
        await desk.clock.until_naps(1)
        await desk.clock.advance(NAP)
        await desk.clock.until_naps(2)
        assert [len(message.attachments) for message in desk.gatehouse.messages] == [2]
        assert len(desk.server.queue.pending) == 3, "nothing of the album is confirmed alone"
        await desk.clock.advance(1)
        await pauses(desk, 3)
        await desk.hears(2)
    assert [(m.text, len(m.attachments)) for m in desk.gatehouse.messages] == [
        ("ours", 2),
        ("hello", 0),
    ]


@pytest.mark.requirement("TEL-2", "MSG-2")
async def test_an_album_that_comes_again_after_a_restart_is_the_same_message(desk: Desk) -> None:
    desk.server.user_sends(desk.chat, desk.ann, pictures(3), caption="our garden")
    async with desk.listening():
        await desk.clock.until_naps(1)
        asking, confirming = desk.server.hold("getUpdates"), desk.server.hold("getUpdates")
        await desk.clock.advance(NAP)
        await asking.arrived.wait()
        asking.release()
        # The process dies between storing the album and confirming it.
        await confirming.arrived.wait()
        await desk.gatehouse.wait_for(1)
    assert len(desk.server.queue.pending) == 3
    async with desk.listening():
        await pauses(desk, 2)
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 2)
        await desk.until(lambda: not desk.server.queue.pending)
    assert [len(message.attachments) for message in desk.gatehouse.messages] == [3]


@pytest.mark.requirement("TEL-2")
async def test_an_album_behind_a_full_batch_is_left_whole_for_the_next(desk: Desk) -> None:
    for number in range(98):
        desk.server.user_says(desk.chat, desk.ann, str(number))
    desk.server.user_sends(desk.chat, desk.ann, pictures(4))
    async with desk.listening():
        await pauses(desk, 1, 2)
        heard = await desk.hears(99)
    assert [len(message.attachments) for message in heard] == [0] * 98 + [4]


@pytest.mark.requirement("TEL-2")
async def test_in_a_group_the_mention_in_the_caption_is_for_all_of_it(desk: Desk) -> None:
    desk.server.state.privacy = False
    group: Chat = desk.server.world.supergroup("Team", desk.ann)
    desk.server.user_sends(group, desk.ann, pictures(2), caption="@gatehouse_bot describe")
    async with desk.listening():
        await pauses(desk, 1)
        (album,) = await desk.hears(1)
    assert (album.text, album.mentions_bot, len(album.attachments)) == ("describe", True, 2)


@pytest.mark.requirement("TEL-2")
async def test_by_webhook_the_mention_of_one_part_holds_for_those_that_follow(
    desk: Desk,
) -> None:
    desk.server.state.privacy = False
    group: Chat = desk.server.world.supergroup("Team", desk.ann)
    async with desk.called():
        desk.server.user_sends(group, desk.ann, pictures(2), caption="@gatehouse_bot describe")
        desk.server.user_sends(group, desk.ann, pictures(2), caption="for you all")
        assert await desk.server.queue.deliver() == [200] * 4
    assert [one.mentions_bot for one in desk.gatehouse.messages] == [True, True, False, False]


@pytest.mark.requirement("TEL-2", "MSG-1")
async def test_by_webhook_each_part_is_stored_by_itself_and_says_where_it_belongs(
    desk: Desk,
) -> None:
    async with desk.called():
        sent = desk.server.user_sends(desk.chat, desk.ann, pictures(3), caption="our garden")
        assert await desk.server.queue.deliver() == [200] * 3
    assert {message.album for message in desk.gatehouse.messages} == {sent[0].media_group_id}
    assert [len(message.attachments) for message in desk.gatehouse.messages] == [1, 1, 1]
