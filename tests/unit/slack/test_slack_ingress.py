"""Slack's payloads, the usual and the strange, as messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from adapters.slack.ingress import (
    Bot,
    Heard,
    Ignored,
    inbound,
    read_command,
    read_event,
)
from runtime.domain.messages import InboundMessage
from runtime.domain.value import JsonObject
from tests.support.profiles import examples

BOT = Bot(team_id="T1", user_id="UBOT", bot_id="BBOT")
TS = "1700000000.000100"

NAMES = st.sampled_from(
    [
        "event",
        "type",
        "subtype",
        "channel",
        "channel_type",
        "ts",
        "user",
        "bot_id",
        "text",
        "thread_ts",
        "message",
        "previous_message",
        "edited",
        "files",
        "id",
        "size",
        "event_id",
    ]
)
WORDS = st.sampled_from(
    ["message", "app_mention", "message_changed", "file_share", "im", "D1", "C1", TS, "<@UBOT>"]
) | st.text(max_size=5)
SHAPES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=8),
    max_leaves=30,
)
OBJECTS: st.SearchStrategy[JsonObject] = st.dictionaries(NAMES, SHAPES, max_size=8)


def payload(**fields: JsonValue) -> JsonObject:
    event: JsonObject = {
        "type": "message",
        "channel": "C1",
        "channel_type": "channel",
        "user": "U1",
        "text": "hello",
        "ts": TS,
    }
    return {"event": {**event, **fields}, "event_id": "Ev1"}


def read(**fields: JsonValue) -> InboundMessage:
    heard = read_event(payload(**fields), BOT, reply_in_thread="channel-thread")
    assert isinstance(heard, Heard)
    return inbound(heard, BOT, names={}, takes_part=False, received_at_ms=1)


@examples(50)
@given(outer=OBJECTS, event=OBJECTS)
def test_no_shape_of_an_event_is_an_error(outer: JsonObject, event: JsonObject) -> None:
    bodies: list[JsonObject] = [
        outer,
        {**outer, "event": event},
        {"event": {**event, "type": "message"}},
    ]
    for body in bodies:
        heard = read_event(body, BOT, reply_in_thread="always")
        if isinstance(heard, Ignored):
            assert heard.reason
        else:
            message = inbound(heard, BOT, names={}, takes_part=False, received_at_ms=0)
            assert message.chat_id
            assert message.message_id
            assert message.sender.id


@examples(30)
@given(body=st.dictionaries(st.sampled_from(["channel_id", "user_id", "text"]), SHAPES))
def test_no_shape_of_a_command_is_an_error(body: JsonObject) -> None:
    heard = read_command(body, "envelope-1")
    assert isinstance(heard, Ignored) or heard.text.startswith("/")


@pytest.mark.parametrize(
    ("channel_type", "channel", "kind"),
    [
        ("im", "D1", "direct"),
        ("mpim", "C1", "group"),
        ("channel", "C1", "channel"),
        ("group", "C1", "channel"),
        (None, "D1", "direct"),
        (None, "C1", "channel"),
    ],
)
def test_the_kind_of_a_chat(channel_type: str | None, channel: str, kind: str) -> None:
    assert read(channel_type=channel_type, channel=channel).chat_kind == kind


def test_the_first_message_of_a_thread_is_no_reply() -> None:
    first, answer = read(thread_ts=TS), read(thread_ts="1600000000.000100")
    assert (first.reply_to, first.thread_id) == (None, TS)
    assert (answer.reply_to, answer.thread_id) == ("1600000000.000100", "1600000000.000100")


@pytest.mark.parametrize("text", ["<@UBOT> hi", "  <@UBOT>: hi", "<@UBOT|bot>, <@UBOT> hi"])
def test_the_mention_that_opens_a_message_is_not_a_part_of_it(text: str) -> None:
    message = read(text=text)
    assert (message.text, message.mentions_bot) == ("hi", True)


def test_a_mention_inside_a_sentence_stays_in_it() -> None:
    message = read(text="ask <@UBOT> tomorrow")
    assert (message.text, message.mentions_bot) == ("ask @UBOT tomorrow", True)


@pytest.mark.parametrize(
    "fields",
    [
        {"bot_id": "B9", "subtype": "bot_message", "user": None},
        {"bot_id": "B9"},
        {"user": "USLACKBOT"},
    ],
)
def test_what_a_bot_says_is_marked(fields: dict[str, JsonValue]) -> None:
    assert read(**fields).sender.is_bot


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"subtype": "channel_join"}, "subtype channel_join"),
        ({"subtype": "message_deleted"}, "deletion without a channel or a time"),
        ({"ts": "yesterday"}, "without a channel, a time or a sender"),
        ({"user": None}, "without a channel, a time or a sender"),
        ({"type": "reaction_added"}, "event reaction_added"),
        (
            {
                "subtype": "message_changed",
                "message": {"ts": TS, "user": "U1", "text": "b", "subtype": "channel_topic"},
            },
            "subtype channel_topic",
        ),
        (
            {"subtype": "message_changed", "message": {"ts": TS, "user": "U1", "text": "b"}},
            "without an edit by a person",
        ),
    ],
)
def test_what_is_ignored_is_ignored_with_a_reason(
    fields: dict[str, JsonValue], reason: str
) -> None:
    heard = read_event(payload(**fields), BOT, reply_in_thread="never")
    assert isinstance(heard, Ignored)
    assert reason in heard.reason


@pytest.mark.requirement("SLK-5", "TOOL-11")
@pytest.mark.parametrize(
    ("uploader", "own"), [("U1", True), ("U2", False), ("", False), (None, False)]
)
def test_a_file_that_is_shared_again_is_not_its_senders_own(
    uploader: str | None, own: bool
) -> None:
    clip: JsonObject = {"id": "F1", "subtype": "slack_audio", "user": uploader}
    (file,) = read(files=[clip]).attachments
    assert (file.kind, file.own) == ("voice message", own)


@pytest.mark.requirement("SLK-5", "TOOL-11")
def test_a_file_of_nobody_is_nobodys_own() -> None:
    (file,) = read(user="", bot_id="B1", files=[{"id": "F1", "user": ""}]).attachments
    assert not file.own
