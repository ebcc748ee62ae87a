"""Rich messages: their words as a text, and what in them speaks to a bot."""

import json

import pytest
from pydantic import JsonValue

from adapters.telegram.ingress import Bot, Ignored, read_update
from adapters.telegram.rich_text import MOST_CHARACTERS, words_of_rich
from runtime.domain.messages import InboundMessage
from runtime.domain.value import JsonObject

pytestmark = pytest.mark.requirement("TEL-2")

BOT = Bot(id=123456, username="gatehouse_bot")


def rich(*blocks: JsonValue) -> JsonObject:
    return {"rich_message": {"blocks": [*blocks]}}


def paragraph(text: JsonValue) -> JsonObject:
    return {"type": "paragraph", "text": text}


def read(*blocks: JsonValue, kind: str = "supergroup", **fields: JsonValue) -> InboundMessage:
    """The message with these blocks, as Ann sends it."""
    message: JsonObject = {
        "message_id": 7,
        "date": 100,
        "chat": {"id": -100, "type": kind},
        "from": {"id": 5001, "is_bot": False, "first_name": "Ann"},
        **rich(*blocks),
        **fields,
    }
    heard = read_update({"update_id": 1, "message": message}, BOT, received_at_ms=1)
    assert isinstance(heard, InboundMessage), heard
    return heard


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (paragraph("plain"), "plain"),
        (paragraph(["one ", {"type": "bold", "text": ["two", " three"]}]), "one two three"),
        (paragraph({"type": "url", "text": "docs", "url": "https://x.test"}), "docs"),
        (paragraph({"type": "custom_emoji", "alternative_text": "\U0001f600"}), "\U0001f600"),
        (paragraph({"type": "mathematical_expression", "expression": "x^2"}), "x^2"),
        ({"type": "heading", "size": 1, "text": "Plan"}, "Plan"),
        ({"type": "pre", "text": "a = 1\nb = 2", "language": "python"}, "a = 1\nb = 2"),
        ({"type": "divider"}, "---"),
        ({"type": "mathematical_expression", "expression": "e"}, "e"),
        ({"type": "details", "summary": "More", "blocks": [paragraph("inside")]}, "More\ninside"),
        ({"type": "pullquote", "text": "so", "credit": "Ann"}, "so Ann"),
        ({"type": "blockquote", "blocks": [paragraph("a"), paragraph("b")]}, "a\nb"),
        (
            {"type": "photo", "photo": [], "caption": {"text": "a cat", "credit": "Ben"}},
            "[photo] a cat Ben",
        ),
        ({"type": "of tomorrow", "text": "and its words"}, "and its words"),
        ({"type": "of tomorrow", "blocks": [paragraph("inside")]}, "inside"),
        (
            {
                "type": "list",
                "items": [
                    {"label": "1.", "blocks": [paragraph("one")]},
                    {"label": "2.", "blocks": [paragraph("two")], "has_checkbox": True},
                    {"blocks": [paragraph("three")], "has_checkbox": True, "is_checked": True},
                ],
            },
            "1. one\n2. [ ] two\n- [x] three",
        ),
        (
            {"type": "table", "cells": [[{"text": "a"}, {"text": "b"}], [{}, {"text": "d"}]]},
            "a | b\n | d",
        ),
    ],
)
def test_the_words_of_every_block_are_read(block: JsonObject, text: str) -> None:
    assert words_of_rich(rich(block))[0] == text


def test_blocks_stand_one_below_the_other() -> None:
    assert read(paragraph("one"), {"type": "divider"}, paragraph("two")).text == "one\n---\ntwo"


def test_a_mention_in_a_rich_message_is_for_the_bot_and_a_command_is_one() -> None:
    name: JsonValue = {"type": "mention", "text": "@gatehouse_bot", "username": "gatehouse_bot"}
    mentioned = read(paragraph([name, " look:"]), paragraph("\U0001f600 here"))
    assert (mentioned.text, mentioned.mentions_bot) == ("look:\n\U0001f600 here", True)
    late = read(paragraph("\U0001f600\U0001f600"), paragraph([name]))
    assert late.mentions_bot
    by_id: JsonValue = {"type": "text_mention", "text": "you", "user": {"id": BOT.id}}
    assert read(paragraph(by_id)).mentions_bot
    command: JsonValue = {"type": "bot_command", "text": "/status@gatehouse_bot"}
    obeyed = read(paragraph([command, " now"]))
    assert (obeyed.text, obeyed.mentions_bot) == ("/status now", True)
    assert not read(paragraph("@gatehouse_bot is no entity")).mentions_bot


@pytest.mark.requirement("APR-10")
@pytest.mark.parametrize("kind", ["blockquote", "expandable_blockquote"])
def test_what_a_rich_message_quotes_is_no_word_of_its_sender(kind: str) -> None:
    quoted: JsonValue = {"type": kind, "blocks": [paragraph("/approve x")]}
    assert read(quoted).own_words == ""
    message = read(quoted, paragraph("what is that?"))
    assert (message.text, message.own_words) == ("/approve x\nwhat is that?", "what is that?")


@pytest.mark.requirement("APR-10")
def test_a_forwarded_rich_message_is_nobodys_own() -> None:
    assert read(paragraph("/approve x"), forward_origin={"type": "user"}).authorship == "forwarded"


def test_a_plain_text_beside_it_comes_first() -> None:
    assert read(paragraph("rich"), text="plain").text == "plain"


@pytest.mark.parametrize(
    "content", [{}, {"blocks": None}, {"blocks": [3, [], {}]}, {"blocks": [paragraph("")]}, [], 3]
)
def test_a_rich_message_without_words_is_nothing_to_answer(content: JsonValue) -> None:
    message: JsonObject = {
        "message_id": 7,
        "date": 100,
        "chat": {"id": 5001, "type": "private"},
        "from": {"id": 5001, "first_name": "Ann"},
        "rich_message": content,
    }
    heard = read_update({"update_id": 1, "message": message}, BOT, received_at_ms=1)
    assert isinstance(heard, Ignored)
    assert "rich_message" in heard.reason


def test_deep_long_and_broken_shapes_are_cut_and_are_no_error() -> None:
    deep: JsonValue = paragraph("bottom")
    for _ in range(200):
        deep = {"type": "blockquote", "blocks": [deep]}
    assert words_of_rich(rich(paragraph("top"), deep))[0].startswith("top")
    text: JsonValue = "x"
    for _ in range(200):
        text = [text]
    assert words_of_rich(rich(paragraph(text)))[0] == ""
    long, _ = words_of_rich(rich(*[paragraph("y" * 50_000)] * 100))
    assert len(long) == MOST_CHARACTERS
    strange = {"type": 3, "text": {"type": [], "text": 7}, "cells": [[3], 4], "items": [{}], "x": 1}
    words, entities = words_of_rich(rich(strange))
    assert json.dumps([words, entities])
    assert words_of_rich(rich(paragraph("\ud83d")))[0] == "?"
