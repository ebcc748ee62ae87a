"""What every chat adapter does with cards, files and texts that grow: the specification, part two.

See `test_conformance.py`.
"""

from pathlib import Path

import pytest

from runtime.domain.decisions import Risk, Touch
from runtime.domain.messages import ApprovalPart, FilePart, OutboundMessage, TextPart
from runtime.ports.gatehouse import Pressed
from tests.contract.chat.conformance import Kept, deliver, on, seen, send
from tests.contract.chat.platform import Platform, Sharing, message

ASKED = ApprovalPart(
    open_call_id="apr_01",
    code="q1w2e3",
    tool="exec",
    arguments='{"command": "make"}',
    reason="it runs a command",
    risk=Risk(level="medium", touches=(Touch.CODE,), words="Some risk: it runs code."),
)


def asking(platform: Platform, part: ApprovalPart = ASKED) -> OutboundMessage:
    """A card that asks whether a call may run."""
    return message(platform, "").model_copy(update={"parts": (part,), "final": False})


@pytest.mark.requirement("APR-1", "APR-4", "UI-8")
@on("cards")
async def test_a_card_says_what_may_run_and_once_decided_who_decided(platform: Platform) -> None:
    receipt = await deliver(platform, asking(platform))
    shown = "\n".join(await seen(platform, len(receipt.message_ids)))
    words = ("exec", "make", "it runs a command", "Some risk: it runs code.")
    assert all(word in shown for word in words)
    decided = ASKED.model_copy(update={"outcome": "Denied by Ann"})
    for _ in range(2):
        await platform.adapter.edit(asking(platform, decided), receipt)
    await send(platform, "And then", "out_2")
    await seen(platform, len(receipt.message_ids) + 1)
    assert "\n".join(platform.seen()).count("Denied by Ann") == 1


@pytest.mark.requirement("APR-1")
@on("presses")
async def test_a_press_names_its_card_and_choice(platform: Platform) -> None:
    receipt = await deliver(platform, asking(platform))
    await platform.presses_deny(receipt.message_ids[-1])
    (press,) = platform.gatehouse.presses
    assert (press.open_call_id, press.choice) == ("apr_01", "deny")
    assert press.sender.id


@pytest.mark.requirement("APR-2")
@on("strangers")
async def test_a_press_names_who_pressed_and_only_they_read_the_answer(platform: Sharing) -> None:
    receipt = await deliver(platform, asking(platform))
    shown = platform.seen()
    platform.gatehouse.pressed = Pressed(accepted=False, text="Only the owner may decide this.")
    stranger = await platform.stranger_presses(receipt.message_ids[-1])
    (press,) = platform.gatehouse.presses
    assert (press.sender.id, press.choice) == (stranger, "deny")
    assert await platform.answered() == "Only the owner may decide this."
    assert platform.seen() == shown, "the card stands as it stood, for everybody"


@pytest.mark.requirement("MSG-19", "SLK-5", "TEL-4")
@on("files in")
async def test_a_file_that_is_sent_arrives_with_its_message_and_can_be_fetched(
    platform: Sharing,
) -> None:
    await platform.shares("notes.txt", b"milk, and bread")
    (said,) = platform.gatehouse.messages
    (attachment,) = said.attachments
    assert attachment.name == "notes.txt"
    files = platform.adapter.files
    if files is None:
        assert attachment.path, "what cannot be fetched came along"
        content = platform.brought(attachment.path)
    else:
        content = b"".join([piece async for piece in files.fetch(attachment)])
    assert content == b"milk, and bread"


def with_file(platform: Platform, path: Path, *words: str) -> OutboundMessage:
    """A message with words and a file, as a tool sends it."""
    content = path.read_bytes() if path.exists() else b""
    part = FilePart(
        name="report.txt", path=str(path), media_type="text/plain", size_bytes=len(content)
    )
    texts = tuple(TextPart(markdown=one) for one in words)
    return message(platform, "").model_copy(update={"parts": (*texts, part), "final": False})


@pytest.mark.requirement("MSG-19", "SLK-5", "TEL-4")
@on("files out")
async def test_a_file_of_ours_arrives_whole_with_its_words_once(
    platform: Sharing, tmp_path: Path
) -> None:
    path = tmp_path / "a-copy-of-another-name"
    path.write_bytes(b"a report")
    sent = with_file(platform, path, "Here it is")
    kept = Kept()
    receipt = await deliver(platform, sent, kept)
    shown = await seen(platform, 1)
    assert await platform.files() == [("report.txt", b"a report")]
    assert "it is" in " ".join(shown)
    assert [*kept.ids, receipt.message_ids[-1]] == list(receipt.message_ids)
    again = await platform.adapter.send(sent, posted=receipt.message_ids, on_posted=Kept())
    assert again == receipt
    assert len(await platform.files()) == 1, "what is there is not sent again"


@pytest.mark.requirement("MSG-19")
@on("files out")
async def test_a_file_that_cannot_be_had_is_named_in_its_place(
    platform: Sharing, tmp_path: Path
) -> None:
    receipt = await deliver(platform, with_file(platform, tmp_path / "gone", "Look:"))
    assert receipt.message_ids
    said = " ".join(await seen(platform, 1))
    assert await platform.files() == []
    assert "Look:" in said
    assert "report.txt" in said
    assert str(tmp_path) not in said


@pytest.mark.requirement("REN-4")
@on("streams")
async def test_a_text_that_grew_ends_as_one_message(platform: Platform) -> None:
    streams = platform.adapter.streams
    assert streams is not None
    assert streams.interval_s(platform.target)
    stream = await streams.open(message(platform, "The answer"))
    await streams.grow(message(platform, "The answer is long"), stream)
    final = message(platform, "The answer is short")
    receipt = await streams.close(final, stream, posted=(), on_posted=Kept())
    assert platform.seen() == ["The answer is short"]
    assert len(receipt.message_ids) == 1
    if stream:
        assert receipt.message_ids == (stream,)
        again = await streams.close(final, stream, posted=(), on_posted=Kept())
        assert again == receipt, "closing is safe to repeat"
        assert platform.seen() == ["The answer is short"]


@pytest.mark.requirement("REN-4")
@on("streams")
async def test_a_stream_that_nobody_opened_is_not_found(platform: Platform) -> None:
    streams = platform.adapter.streams
    assert streams is not None
    assert await streams.find(message(platform, "The answer", "out_never")) is None
