"""Reading updates: pure, and never an exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.telegram.ingress import Bot, Ignored, Joined, Pressing, album_of, as_one, read_update
from runtime.domain.messages import InboundMessage, Move
from runtime.domain.value import JsonObject
from tests.support.profiles import examples

BOT = Bot(123456, "gatehouse_bot", frozenset({"status"}))
PRIVATE: JsonObject = {"id": 5001, "type": "private"}
GROUP: JsonObject = {"id": -1001, "type": "supergroup", "title": "Team"}
ANN: JsonObject = {"id": 5001, "is_bot": False, "first_name": "Ann", "last_name": "Lee"}


def update(*kind: str, **fields: object) -> JsonObject:
    """An update of the `kind`, if given, else of a message."""
    message = {"message_id": 7, "date": 100, "chat": PRIVATE, "from": ANN, **fields}
    return {"update_id": 1, (kind or ("message",))[0]: message}  # type: ignore[dict-item]  # tests break the shape


def heard(found: JsonObject) -> InboundMessage:
    message = read_update(found, BOT, received_at_ms=1)
    assert isinstance(message, InboundMessage), message
    return message


def ignored(found: JsonObject) -> Ignored:
    reason = read_update(found, BOT, received_at_ms=1)
    assert isinstance(reason, Ignored), reason
    return reason


def entity(kind: str, offset: int, length: int, **more: object) -> dict[str, object]:
    return {"type": kind, "offset": offset, "length": length, **more}


def test_a_person_has_a_full_name() -> None:
    message = heard(update(text="hi"))
    assert (message.sender.id, message.sender.name) == ("5001", "Ann Lee")
    assert message.identity == "telegram:123456:5001:7"


def test_an_anonymous_administrator_speaks_as_the_group_and_is_no_bot() -> None:
    shown = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    message = heard(update(chat=GROUP, sender_chat=GROUP, text="hi", **{"from": shown}))
    assert (message.sender.id, message.sender.name) == ("-1001", "Team")
    assert not message.sender.is_bot


@pytest.mark.requirement("TEL-1")
@pytest.mark.parametrize("kind", ["callback_query", "my_chat_member"])
def test_a_kind_that_is_null_stands_in_front_of_no_message(kind: str) -> None:
    assert heard({kind: None, **update(text="hi")}).text == "hi"


@pytest.mark.requirement("APR-10")
@pytest.mark.parametrize("field", ["forward_origin", "forward_from", "via_bot", "quote"])
def test_a_field_that_is_null_says_nothing_of_a_message(field: str) -> None:
    assert heard(update(text="/approve abc123", **{field: None})).speaks_for_sender


@pytest.mark.requirement("APR-10")
@pytest.mark.parametrize(
    ("field", "value", "authorship"),
    [
        ("forward_origin", {"type": "user", "date": 1, "sender_user": ANN}, "forwarded"),
        (
            "forward_origin",
            {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"},
            "forwarded",
        ),
        ("forward_origin", {"type": "chat", "date": 1, "sender_chat": GROUP}, "forwarded"),
        ("forward_origin", {"type": "of the future"}, "forwarded"),
        ("forward_date", 1, "forwarded"),
        ("forward_from", ANN, "forwarded"),
        ("forward_from_chat", GROUP, "forwarded"),
        ("forward_sender_name", "Eve", "forwarded"),
        ("is_automatic_forward", True, "forwarded"),
        ("via_bot", {"id": 9, "is_bot": True, "first_name": "Gif"}, "inline_bot"),
        ("quote", {"text": "/approve x", "position": 0}, "own"),
        ("external_reply", {"origin": {"type": "user"}}, "own"),
    ],
)
def test_it_is_said_whose_words_a_message_carries(
    field: str, value: object, authorship: str
) -> None:
    message = heard(update(text="/approve abc123", **{field: value}))
    assert message.authorship == authorship
    assert message.speaks_for_sender == (authorship == "own")
    assert not heard(
        update("edited_message", text="/approve abc123", edit_date=101, **{field: value})
    ).speaks_for_sender


@pytest.mark.requirement("APR-10")
def test_what_is_quoted_is_told_from_what_is_said() -> None:
    text = "/deny x\nno, the \U0001f600 other one\n> old"
    first = entity("blockquote", 0, 7)
    last = entity("expandable_blockquote", len(text) + 1 - 5, 5)
    message = heard(update(text=text, entities=[first, last]))
    assert (message.text, message.said) == (text, "no, the \U0001f600 other one")
    assert message.own_words == "no, the \U0001f600 other one"
    whole = heard(update(text="/approve x", entities=[entity("blockquote", 0, 10)]))
    assert (whole.said, whole.own_words) == ("", "")
    assert heard(update(text="/approve x")).said is None


@pytest.mark.requirement("APR-10")
def test_an_album_with_a_part_that_is_passed_on_is_no_word_of_its_sender() -> None:
    own = heard(update(text="/approve x"))
    passed = heard(update(text="more", forward_date=1))
    assert as_one([own, passed]).authorship == "forwarded"
    assert as_one([own, own]).authorship == "own"


def test_a_bot_does_not_answer_itself() -> None:
    me = {"id": BOT.id, "is_bot": True, "first_name": "Gatehouse"}
    assert ignored(update(text="hi", **{"from": me})).reason == "our own message"
    other = me | {"id": 99}
    assert heard(update(text="hi", **{"from": other})).sender.is_bot


@pytest.mark.requirement("MSG-16")
def test_what_a_bot_wrote_for_a_person_is_a_bots() -> None:
    bot = {"id": 77, "is_bot": True, "first_name": "Secretary"}
    written = heard(update(text="hi", sender_business_bot=bot))
    assert (written.sender.id, written.sender.is_bot) == ("5001", True)
    assert not heard(update(text="hi", sender_business_bot={})).sender.is_bot


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [
        ("  <b>Ann</b>\n", "**Lee**", "<b>Ann</b> **Lee**"),
        ("\u202eevil\u202c", "", "evil"),
        (
            "\U0001f468\u200d\U0001f469\u200d\U0001f467",
            "\u05d0\u05d1",
            "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u05d0\u05d1",
        ),
        ("a\x00\x1b[31mb", "", "a[31mb"),
        ("x" * 500, "", "x" * 128),
    ],
)
def test_a_name_is_one_line_that_turns_nothing_around(first: str, last: str, shown: str) -> None:
    person = {"id": 5, "first_name": first, "last_name": last}
    assert heard(update(text="hi", **{"from": person})).sender.name == shown


@pytest.mark.parametrize(
    ("text", "entities", "expected"),
    [
        ("@gatehouse_bot", [entity("mention", 0, 14)], ""),
        ("@gatehouse_bot: @gatehouse_bot, go", [entity("mention", 0, 14)], "@gatehouse_bot, go"),
        (
            "@gatehouse_bot @gatehouse_bot go",
            [entity("mention", 15, 14), entity("mention", 0, 14)],
            "go",
        ),
        ("\U0001f600 @gatehouse_bot", [entity("mention", 3, 14)], "\U0001f600 @gatehouse_bot"),
        (
            "@gatehouse_bot /stop@Gatehouse_Bot now",
            [entity("mention", 0, 14), entity("bot_command", 15, 19)],
            "/stop now",
        ),
    ],
)
def test_only_the_address_is_taken_from_the_text(
    text: str, entities: list[object], expected: str
) -> None:
    message = heard(update(chat=GROUP, text=text, entities=entities))
    assert (message.text, message.mentions_bot) == (expected, True)


@pytest.mark.parametrize(
    ("text", "entities", "mentions"),
    [
        ("/status", [entity("bot_command", 0, 7)], True),
        ("see /status", [entity("bot_command", 4, 7)], False),
        # Another bot's, or nobody's.
        ("/weather", [entity("bot_command", 0, 8)], False),
        ("@gatehouse_bot2 hi", [entity("mention", 0, 15)], False),
        ("@gatehouse_bot", [entity("code", 0, 14)], False),
        ("Bob hi", [entity("text_mention", 0, 3, user={"id": 1})], False),
        ("\U0001f600hi", [entity("mention", 1, 2), entity("mention", 0, 99)], False),
    ],
)
def test_what_counts_as_addressed_in_a_group(
    text: str, entities: list[object], mentions: bool
) -> None:
    message = heard(update(chat=GROUP, text=text, entities=entities))
    assert (message.text, message.mentions_bot) == (text, mentions)


def test_a_command_for_another_bot_is_not_ours_except_in_private() -> None:
    command = {"text": "/stop@other_bot", "entities": [entity("bot_command", 0, 15)]}
    assert ignored(update(chat=GROUP, **command)).reason == "a command for another bot"
    assert heard(update(**command)).text == "/stop@other_bot"


def test_the_thread_of_a_reply_is_no_topic() -> None:
    replied = {"message_id": 3, "from": ANN}
    message = heard(update(chat=GROUP, text="hi", message_thread_id=3, reply_to_message=replied))
    assert (message.chat_kind, message.thread_id, message.reply_to) == ("group", None, "3")


def test_a_topic_of_a_private_chat_stays_direct() -> None:
    message = heard(update(text="hi", message_thread_id=3, is_topic_message=True))
    assert (message.chat_kind, message.thread_id) == ("direct", "3")


FILE = {"file_id": "F1", "file_size": 10}


@pytest.mark.parametrize(
    ("fields", "name", "media_type"),
    [
        ({"document": FILE | {"file_name": "a.pdf", "mime_type": "x/pdf"}}, "a.pdf", "x/pdf"),
        ({"animation": FILE, "document": FILE}, "animation-7.mp4", "video/mp4"),
        ({"video_note": FILE}, "video_note-7.mp4", "video/mp4"),
        ({"audio": FILE}, "audio-7.mp3", "audio/mpeg"),
        ({"voice": FILE}, "voice-7.oga", "audio/ogg"),
        ({"sticker": FILE}, "sticker-7.webp", "image/webp"),
        ({"sticker": FILE | {"is_video": True}}, "sticker-7.webm", "video/webm"),
    ],
)
def test_each_file_has_a_name_and_a_type(
    fields: dict[str, object], name: str, media_type: str
) -> None:
    (file,) = heard(update(**fields)).attachments
    assert (file.name, file.media_type, file.size_bytes, file.reference) == (
        name,
        media_type,
        10,
        "F1",
    )


def test_the_largest_size_of_a_photo_is_taken() -> None:
    sizes = [FILE | {"width": 90}, {"file_id": "F2", "width": 800}, FILE | {"width": 320}]
    assert [a.reference for a in heard(update(photo=sizes)).attachments] == ["F2"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"new_chat_members": [ANN]}, "no text and no file, but new_chat_members"),
        ({"location": {}, "venue": {}}, "no text and no file, but location, venue"),
        ({"text": " \n"}, "no text and no file, but nothing"),
    ],
)
def test_what_says_nothing_is_ignored_with_the_reason(
    fields: dict[str, object], reason: str
) -> None:
    assert ignored(update(**fields)) == Ignored(reason)


def test_other_kinds_of_updates_are_ignored_with_their_name() -> None:
    assert "channel_post" in ignored(update("channel_post", text="hi")).reason
    assert ignored({"update_id": 2, "poll": {}}).reason == "update of the kinds ['poll']"


@pytest.mark.parametrize(
    "fields",
    [{"chat": None}, {"chat": {"id": True, "type": "private"}}, {"from": 5}, {"message_id": "7"}],
)
def test_a_shape_that_is_not_of_the_bot_api_is_strange(fields: dict[str, object]) -> None:
    assert ignored(update(text="hi", **fields)).strange


def test_a_lone_surrogate_breaks_nothing() -> None:
    found = update(text="a\ud800b", entities=[entity("mention", 0, 2)])
    assert heard(found).text == "a?b"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
names = st.sampled_from(
    [
        *("text", "caption", "chat", "from", "sender_chat", "message_id", "date", "edit_date"),
        *("entities", "caption_entities", "photo", "document", "sticker", "reply_to_message"),
        *("message_thread_id", "is_topic_message", "media_group_id"),
        *("migrate_to_chat_id", "migrate_from_chat_id", "is_automatic_forward"),
        *("id", "data", "message", "old_chat_member", "new_chat_member"),
    ]
)
entities = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["mention", "text_mention", "bot_command", "bold"]),
            "offset": st.integers(-2, 12),
            "length": st.integers(-2, 12),
        }
    ),
    max_size=4,
)


@examples(50)
@given(st.dictionaries(names, json_values, max_size=6), st.text(max_size=10), entities)
def test_nothing_that_comes_raises(
    broken: dict[str, object], text: str, marks: list[dict[str, object]]
) -> None:
    for found in (
        update(text="/a@gatehouse_bot " + text, entities=marks, chat=GROUP),
        update(**{"text": text, "entities": marks, **broken}),
        update("edited_message", **broken),
        update("callback_query", **broken),
        update("my_chat_member", **broken),
    ):
        read = read_update(found, BOT, received_at_ms=1)
        assert isinstance(read, InboundMessage | Ignored | Pressing | Joined | Move)
        album_of(found)


@pytest.mark.requirement("TEL-4")
@pytest.mark.parametrize(
    ("fields", "kind", "seconds"),
    [
        ({"voice": FILE | {"duration": 12}}, "voice message", 12),
        ({"video_note": FILE | {"duration": 7}}, "video note", 7),
        ({"sticker": FILE}, "sticker", None),
        ({"document": FILE}, "", None),
        ({"audio": FILE | {"duration": "long"}}, "", None),
    ],
)
def test_what_a_file_is_called_and_how_long_it_lasts(
    fields: dict[str, object], kind: str, seconds: int | None
) -> None:
    (file,) = heard(update(**fields)).attachments
    assert (file.kind, file.duration_s) == (kind, seconds)


@pytest.mark.requirement("TEL-4", "TOOL-11")
@pytest.mark.parametrize(
    ("fields", "own"),
    [
        ({"voice": FILE}, True),
        ({"photo": [FILE]}, True),
        (
            {"voice": FILE, "forward_origin": {"type": "hidden_user", "sender_user_name": "M"}},
            False,
        ),
        ({"voice": FILE, "forward_date": 90}, False),
        ({"photo": [FILE], "forward_origin": {"type": "user"}}, False),
        ({"voice": FILE, "via_bot": {"id": 9, "is_bot": True, "first_name": "V"}}, False),
        ({"text": "look", "reply_to_message": {"message_id": 6, "voice": FILE}}, False),
        ({"voice": FILE, "reply_to_message": {"message_id": 6, "voice": FILE}}, True),
    ],
)
def test_what_is_passed_on_or_replied_to_is_not_its_senders_own(
    fields: dict[str, object], own: bool
) -> None:
    (file,) = heard(update(**fields)).attachments
    assert file.own is own


@pytest.mark.requirement("TEL-6")
def test_a_move_names_both_chats_whichever_tells_it() -> None:
    told = [
        update(chat=GROUP, migrate_from_chat_id=-7),
        update(chat=PRIVATE | {"id": -7, "type": "group"}, migrate_to_chat_id=-1001),
    ]
    moves = [read_update(one, BOT, received_at_ms=1) for one in told]
    assert moves[0] == moves[1]
    assert isinstance(moves[0], Move)
    assert (moves[0].old_chat_id, moves[0].new_chat_id) == ("-7", "-1001")
