"""What a run is about: one short line without a secret (RUN-2)."""

import pytest

from runtime.domain.messages import Attachment, InboundMessage
from runtime.domain.people import Sender
from runtime.domain.summaries import MOST_BYTES, said_in, summary

TOKEN = "xoxb-" + "1234567890-abcdef"
"""Looks like one of Slack's, and is none."""


@pytest.mark.requirement("RUN-2")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("  deploy \n\n the page\t now ", "deploy the page now"),
        ("a" * 200, "a" * 200),
        ("a" * 201, "a" * 197 + "…"),
        # 66 characters of three bytes each are 198.
        ("日" * 66, "日" * 66),
        ("日" * 67, "日" * 65 + "…"),
        ("x" + "😀" * 50, "x" + "😀" * 49 + "…"),
        # The mark belongs to the letter in front of it, which goes as well.
        ("a" * 196 + "e\u0301" + "b" * 9, "a" * 196 + "…"),
        ("words   " * 40, ("words " * 40)[:197].rstrip() + "…"),
    ],
)
def test_it_is_one_line_of_at_most_200_bytes_that_ends_with_a_whole_character(
    text: str, shown: str
) -> None:
    found = summary(text)
    assert found == shown
    assert len(found.encode()) <= MOST_BYTES == 200


@pytest.mark.requirement("RUN-2")
@pytest.mark.parametrize("marked", ["\u202e", "\u200b", "\x1b", "\u2028"])
def test_nothing_in_it_steers_a_screen(marked: str) -> None:
    assert marked not in summary(f"look{marked}here")


@pytest.mark.requirement("RUN-2")
def test_what_looks_like_a_token_is_masked_before_anything_is_cut() -> None:
    assert summary(f"use {TOKEN} now") == "use [secret] now"
    long = summary("a" * 190 + f" {TOKEN}")
    assert "xoxb" not in long


@pytest.mark.requirement("RUN-2")
def test_a_message_without_words_is_about_its_files() -> None:
    message = InboundMessage(
        channel="web",
        account="local",
        chat_id="c",
        message_id="m",
        sender=Sender(id="owner", name="Owner"),
        attachments=(Attachment(name="a.png"), Attachment(name="b.pdf")),
        received_at_ms=1,
    )
    assert said_in(message) == "a.png, b.pdf"
    assert said_in(message.model_copy(update={"text": " look "})) == "look"
