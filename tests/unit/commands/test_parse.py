"""Recognising a command: what is one, and what goes to the model as text (MSG-12)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.commands.parse import Unknown, Words, parse, unknown, unknown_of
from runtime.delivery.undeliverable_files import spelled
from runtime.domain.messages import Attachment, InboundMessage
from runtime.domain.people import Sender
from tests.support.kinds import COMMANDS


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize("name", sorted(COMMANDS.names))
def test_every_command_is_known_by_slash_mark_and_bare_word(name: str) -> None:
    words = Words(name, "")
    assert parse(f"/{name}", names=COMMANDS.names) == words
    assert parse(f"!{name}", names=COMMANDS.names) == words
    assert parse(f"/{name}@gatehouse_bot", names=COMMANDS.names) == words
    bare = None if name == "start" else words
    assert parse(name, names=COMMANDS.names, mentioned=True) == bare
    assert parse(name, names=COMMANDS.names) is None


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/APPROVE ABC123", Words("approve", "ABC123")),
        ("  /deny abc123  too\nrisky ", Words("deny", "abc123  too\nrisky")),
        ("/approve@bot abc123 session", Words("approve", "abc123 session")),
        ("!queue followup", Words("queue", "followup")),
        ("/stop now", Words("stop", "now")),
    ],
)
def test_what_stands_behind_the_word_is_kept(text: str, words: Words) -> None:
    assert parse(text, names=COMMANDS.names) == words


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize(
    "text",
    [
        "/unknown",
        "/etc/passwd",
        "/stopping",
        "/stop-it",
        "!important: read this",
        "please /stop",
        "//stop",
        "/ stop",
        "/",
        "",
        "/stop2",
        "/st\u043ep",
    ],
)
def test_other_text_is_no_command(text: str) -> None:
    assert parse(text, names=COMMANDS.names) is None
    assert parse(text, names=COMMANDS.names, mentioned=True) is None


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize(
    "text", ["stop the build please", "help me with this", "new idea", "status?"]
)
def test_a_sentence_after_a_mention_is_no_command(text: str) -> None:
    assert parse(text, names=COMMANDS.names, mentioned=True) is None


@pytest.mark.requirement("MSG-12")
def test_a_mention_with_an_argument_is_a_command_where_it_takes_one() -> None:
    assert parse("approve abc123", names=COMMANDS.names, mentioned=True) == Words(
        "approve", "abc123"
    )
    assert parse("deny abc123 no", names=COMMANDS.names, mentioned=True) == Words(
        "deny", "abc123 no"
    )


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize(
    ("text", "prefix", "found"),
    [
        ("/stpo", "/", Unknown("/stpo", ("stop",))),
        ("/stauts please", "/", Unknown("/stauts", ("status",))),
        ("/weather in Rome", "/", Unknown("/weather", ())),
        ("/Weather@gatehouse_bot\nin Rome", "/", Unknown("/Weather", ())),
        ("/weather", "!", Unknown("/weather", ())),
        ("!wow", "!", Unknown("!wow", ())),
        ("!aprove abc123", "!", Unknown("!aprove", ("approve",))),
        ("/" + "x" * 90, "/", Unknown("/" + "x" * 32, ())),
    ],
)
def test_what_begins_as_a_command_and_is_none_is_known_for_it(
    text: str, prefix: str, found: Unknown
) -> None:
    assert unknown(text, prefix, COMMANDS.names) == found


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize(
    "text",
    [
        "/etc/passwd",
        "/etc/hosts is wrong",
        "/home/x",
        "/stop-it",
        "/stop2",
        "//stop",
        "/ stop",
        "/",
        "",
        "see /weather",
        "that is !important",
        "!important: read this",
        "!important read this first",
        "!please do it",
        "!!",
        "!=",
        "/stop",
        "!stop",
    ],
)
@pytest.mark.parametrize("prefix", ["/", "!"])
def test_paths_sentences_and_commands_are_no_unknown_commands(text: str, prefix: str) -> None:
    assert unknown(text, prefix, COMMANDS.names) is None


@pytest.mark.requirement("MSG-12")
def test_another_sign_than_the_channels_own_begins_no_command() -> None:
    assert unknown("!wow", "/", COMMANDS.names) is None


@pytest.mark.requirement("MSG-12", "APR-10")
@pytest.mark.parametrize(
    ("changes", "answered"),
    [
        ({}, True),
        ({"chat_kind": "group"}, False),
        ({"chat_kind": "group", "mentions_bot": True}, True),
        ({"chat_kind": "group", "replies_to_bot": True}, True),
        ({"attachments": (Attachment(name="map.pdf"),)}, False),
        ({"authorship": "forwarded"}, False),
        ({"edited_at": "2"}, False),
        ({"sender": Sender(id="U1", name="Bot", is_bot=True)}, False),
        ({"said": ""}, False),
    ],
)
def test_only_what_a_person_says_to_the_bot_is_an_unknown_command(
    changes: dict[str, Any], answered: bool
) -> None:
    """What comes with files, or in the words of somebody else, is for the agent."""
    plain = InboundMessage(
        channel="test",
        account="A1",
        chat_id="C1",
        message_id="m1",
        sender=Sender(id="U1", name="Ann"),
        text="/weather in Rome",
        received_at_ms=0,
    )
    found = unknown_of(plain.model_copy(update=changes), names=COMMANDS.names)
    assert (found is not None) is answered


@pytest.mark.requirement("MSG-12")
def test_a_text_of_ours_names_commands_as_people_type_them() -> None:
    text = "Send `/approve abc123` or `/deny abc123 reason`, not `/etc/help` or /help."
    said = "Send `!approve abc123` or `!deny abc123 reason`, not `/etc/help` or /help."
    assert spelled(text, names=COMMANDS.names, prefix="!") == said
    assert spelled(text, names=COMMANDS.names, prefix="/") == text


@given(st.text(max_size=80), st.booleans())
def test_no_text_breaks_the_parser_and_only_known_names_come_out(text: str, said: bool) -> None:
    found = parse(text, names=COMMANDS.names, mentioned=said)
    assert found is None or found.name in COMMANDS.names
