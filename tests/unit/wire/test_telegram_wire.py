"""The Telegram wire server answers the real client library as the real Bot API does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from aiohttp import ClientSession, FormData
from telegram import (
    Bot,
    BotCommand,
    BotCommandScopeChat,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaDocument,
    MessageEntity,
    ReplyParameters,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from tests.wire.telegram import Attachment, Chat, TelegramServer, User
from tests.wire.telegram.client import real_bot

PNG = b"\x89PNG\r\n\x1a\n picture"


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as running:
        yield running
    assert running.violations == []


@pytest.fixture
async def bot(server: TelegramServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bot]:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    async with real_bot(server) as connected:
        yield connected


@pytest.fixture
def ada(server: TelegramServer) -> User:
    return server.world.user("Ada", username="ada_l")


@pytest.fixture
def chat(server: TelegramServer, ada: User) -> Chat:
    return server.world.private(ada)


@contextmanager
def refused(kind: type[TelegramError], reason: str) -> Iterator[None]:
    """The library changes the case of what the server says, so the case is not looked at."""
    with pytest.raises(kind) as caught:
        yield
    assert reason.lower() in caught.value.message.lower()


@pytest.mark.parametrize(
    ("token", "status"), [("123456:OTHER-TOKEN", 401), ("made-up", 404), ("", 200)]
)
async def test_only_the_right_token_is_taken(server, token, status) -> None:
    async with ClientSession() as session:
        url = f"{server.url}/bot{token or server.token}/getMe"
        async with session.get(url) as response:
            assert response.status == status
            answer = await response.json()
    assert answer["ok"] is (status == 200)
    if answer["ok"]:
        assert answer["result"]["username"] == "gatehouse_bot"


async def test_the_length_counts_utf16_units_after_parsing(bot, chat) -> None:
    sent = await bot.send_message(chat.id, f"<b>{'🏟' * 2048}</b>", parse_mode="HTML")
    assert len(sent.text) == 2048
    with refused(BadRequest, "Message is too long"):
        await bot.send_message(chat.id, "🏟" * 2048 + "x")
    with refused(BadRequest, "Message text is empty"):
        await bot.send_message(chat.id, "")
    with refused(BadRequest, "Text must be non-empty"):
        await bot.send_message(chat.id, " \n ")


@pytest.mark.parametrize(
    ("offset", "length", "error"),
    [
        (0, 9, "ends after the end of the text at UTF-16 offset 9"),
        (1, 1, "begins in a middle of a UTF-16 symbol"),
        (0, 1, "ends in a middle of a UTF-16 symbol"),
    ],
)
async def test_entities_must_fit_the_text(bot, chat, offset, length, error) -> None:
    with refused(BadRequest, error):
        await bot.send_message(
            chat.id, "🏟 it", entities=[MessageEntity("bold", offset=offset, length=length)]
        )


async def test_each_way_a_chat_refuses_has_its_own_answer(server, bot, chat, ada) -> None:
    with refused(BadRequest, "Chat not found"):
        await bot.send_message(99, "hello")
    with refused(BadRequest, "Message to be replied not found"):
        await bot.send_message(chat.id, "x", reply_parameters=ReplyParameters(message_id=7777))
    server.user_blocks(ada)
    with refused(Forbidden, "bot was blocked by the user"):
        await bot.send_message(chat.id, "hello")
    stranger = server.world.private(server.world.user("Eve"), started=False)
    with refused(Forbidden, "bot can't initiate conversation with a user"):
        await bot.send_message(stranger.id, "hello")
    group = server.world.group("Team", ada)
    server.user_leaves(group, server.bot, by=ada)
    with refused(Forbidden, "bot was kicked from the group chat"):
        await bot.send_message(group.id, "hello")


async def test_a_group_that_became_a_supergroup_names_its_new_id(server, bot, ada) -> None:
    group = server.world.group("Team", ada)
    new = server.migrate(group)
    with pytest.raises(ChatMigrated) as error:
        await bot.send_message(group.id, "hello")
    assert error.value.new_chat_id == new.id
    first, second = await bot.get_updates()
    assert first.message.migrate_to_chat_id == new.id
    assert second.message.migrate_from_chat_id == group.id


async def test_a_message_is_edited_and_deleted_once(server, bot, chat, ada) -> None:
    sent = await bot.send_message(chat.id, "one")
    edited = await bot.edit_message_text("two", chat.id, sent.message_id)
    assert edited.edit_date is not None
    with refused(BadRequest, "Message is not modified: specified new message"):
        await bot.edit_message_text("two", chat.id, sent.message_id)
    theirs = server.user_says(chat, ada, "mine")
    with refused(BadRequest, "Message can't be edited"):
        await bot.edit_message_text("no", chat.id, theirs.message_id)
    assert await bot.delete_message(chat.id, sent.message_id)
    assert [m.text for m in server.messages(chat)] == ["mine"]
    with refused(BadRequest, "Message to edit not found"):
        await bot.edit_message_text("three", chat.id, sent.message_id)
    with refused(BadRequest, "Message to delete not found"):
        await bot.delete_message(chat.id, sent.message_id)


async def test_a_button_is_pressed_and_answered_once(server, bot, chat) -> None:
    row = [
        InlineKeyboardButton("Allow", callback_data="a1"),
        InlineKeyboardButton("No", url="x.de"),
    ]
    await bot.send_message(chat.id, "May I?", reply_markup=InlineKeyboardMarkup([row]))
    card = await server.wait_for_message(lambda m: m.text == "May I?")
    press = server.user_presses(card, "Allow")
    (update,) = await bot.get_updates()
    assert (update.callback_query.data, update.callback_query.message.text) == ("a1", "May I?")
    assert await update.callback_query.answer("noted")
    assert press.answer == {"text": "noted", "show_alert": False}
    with refused(BadRequest, "Query is too old and response timeout expired"):
        await update.callback_query.answer()
    await bot.edit_message_reply_markup(chat.id, card.message_id)
    assert card.markup is None
    long = InlineKeyboardMarkup([[InlineKeyboardButton("Allow", callback_data="é" * 33)]])
    with refused(BadRequest, "BUTTON_DATA_INVALID"):
        await bot.send_message(chat.id, "May I?", reply_markup=long)


async def test_files_go_both_ways(server, bot, chat, ada) -> None:
    server.user_sends_document(chat, ada, b"a,b", filename="t.csv", caption="look")
    server.user_sends_voice(chat, ada, b"OggS speech", duration=4)
    document, voice = await bot.get_updates()
    assert (document.message.caption, document.message.document.mime_type) == ("look", "text/csv")
    file = await bot.get_file(document.message.document.file_id)
    assert bytes(await file.download_as_bytearray()) == b"a,b"
    assert voice.message.voice.duration.total_seconds() == 4
    photo = await bot.send_photo(chat.id, PNG, caption="<b>p</b>", parse_mode="HTML")
    assert (photo.caption, len(photo.photo)) == ("p", 2)
    await bot.send_document(chat.id, b"report", filename="r.txt")
    await bot.send_voice(chat.id, b"OggS answer")
    sent = [next(iter(m.media)) for m in server.from_bot(chat)]
    assert sent == ["photo", "document", "voice"]
    with refused(BadRequest, "IMAGE_PROCESS_FAILED"):
        await bot.send_photo(chat.id, b"no picture")
    with refused(BadRequest, "file must be non-empty"):
        await bot.send_document(chat.id, b"", filename="r.txt")
    with refused(BadRequest, "Wrong file_id"):
        await bot.get_file("made-up")


async def test_albums_share_one_group_both_ways(server, bot, chat, ada) -> None:
    items = [Attachment(PNG, "1.png", "photo"), Attachment(PNG, "2.png", "photo")]
    server.user_sends(chat, ada, items, caption="both")
    one, two = (update.message for update in await bot.get_updates())
    assert one.media_group_id == two.media_group_id is not None
    assert (one.caption, two.caption) == ("both", None)
    sent = await bot.send_media_group(chat.id, [InputMediaDocument(b"a"), InputMediaDocument(b"b")])
    assert len({message.media_group_id for message in sent}) == 1


async def test_small_methods_do_what_they_say(server, bot, chat, ada) -> None:
    await bot.send_chat_action(chat.id, "typing")
    with refused(BadRequest, "Wrong parameter action"):
        await bot.send_chat_action(chat.id, "thinking")
    assert [action.action for action in server.state.actions] == ["typing"]
    message = server.user_says(chat, ada, "hello")
    await bot.set_message_reaction(chat.id, message.message_id, "👍")
    assert message.reactions == [{"type": "emoji", "emoji": "👍"}]
    with refused(BadRequest, "REACTION_INVALID"):
        await bot.set_message_reaction(chat.id, message.message_id, "x")
    await bot.send_message_draft(chat.id, 5, "half a")
    assert server.state.drafts == {(chat.id, 5): ["half a"]}
    team = server.world.supergroup("Team", ada)
    with refused(BadRequest, "TEXTDRAFT_PEER_INVALID"):
        await bot.send_message_draft(team.id, 5, "half a")
    scope = BotCommandScopeChat(team.id)
    await bot.set_my_commands([BotCommand("stop", "Stop the run")], scope=scope)
    assert [c.command for c in await bot.get_my_commands(scope=scope)] == ["stop"]
    assert await bot.get_my_commands() == ()
    with refused(BadRequest, "BOT_COMMAND_INVALID"):
        await bot.set_my_commands([BotCommand("Stop!", "Stop the run")])
    assert (await bot.get_chat(team.id)).title == "Team"
    assert (await bot.get_chat_member(team.id, ada.id)).status == "creator"
    assert await bot.leave_chat(team.id)
    with refused(Forbidden, "not a member of the supergroup chat"):
        await bot.send_message(team.id, "hello")


async def test_what_goes_wrong_on_command(server, bot, chat) -> None:
    server.rate_limit("sendMessage", times=1, retry_after=7)
    with refused(RetryAfter, "7"):
        await bot.send_message(chat.id, "flood")
    server.fail("sendMessage", 502, "Bad Gateway")
    with refused(NetworkError, "Bad Gateway"):
        await bot.send_message(chat.id, "lost")
    assert server.messages(chat) == [], "a refused call does nothing"
    server.hang("sendMessage")
    with pytest.raises(NetworkError):
        await bot.send_message(chat.id, "sent, but nobody said so")
    assert [m.text for m in server.messages(chat)] == ["sent, but nobody said so"]
    await server.down()
    with refused(NetworkError, "Connect"):
        await bot.send_message(chat.id, "nobody listens")
    await server.up()
    assert (await bot.send_message(chat.id, "again")).text == "again"
    assert len(server.calls_to("sendMessage")) == 4


async def test_a_call_is_held_until_it_is_released(server, bot, chat, fail_after) -> None:
    hold = server.hold("sendMessage")
    async with fail_after(), asyncio.TaskGroup() as group:
        sending = group.create_task(bot.send_message(chat.id, "late"), name="send")
        await hold.arrived.wait()
        await bot.send_message(chat.id, "early")
        hold.release()
    assert sending.result().message_id > server.messages(chat)[0].message_id


@pytest.mark.parametrize(
    ("method", "fields", "status", "violation"),
    [
        ("sendTelepathy", {}, 404, "unknown method 'sendTelepathy'"),
        ("sendmessage", {"chat_id": "0", "text": "x"}, 400, "no method is spelled 'sendmessage'"),
        ("sendMessage", {"chat_id": "1", "mood": "good"}, 400, "unknown argument 'mood'"),
        ("sendMessage", {"chat_id": "Ada"}, 400, "neither a chat id nor a @name"),
        ("sendMessage", {"entities": '[{"size": 1}]'}, 400, "has no field 'size'"),
        ("getUpdates", {"limit": "ten"}, 400, "'ten' is not int"),
        ("getUpdates", {"allowed_updates": '["gossip"]'}, 400, "no update is of the types"),
        ("sendDocument", {"chat_id": "1"}, 400, "argument 'document' is missing"),
        ("sendDocument", {"document": b"x", "extra": b"y"}, 400, "file part 'extra'"),
    ],
)
async def test_what_the_bot_api_does_not_know_is_noted(method, fields, status, violation) -> None:
    form = FormData()
    for name, value in fields.items():
        form.add_field(name, value, filename=name if isinstance(value, bytes) else None)
    async with TelegramServer() as server, ClientSession() as session:
        url = f"{server.url}/bot{server.token}/{method}"
        async with session.post(url, data=form) as response:
            assert response.status == status
            assert (await response.json())["ok"] is False
    assert len(server.violations) == 1
    assert violation in server.violations[0]
