"""Cards are asked, decided and changed in place."""

import pytest

from runtime.domain.errors import DeliveryRejected, DeliveryRetry
from runtime.domain.messages import ApprovalPart, QuestionPart, Receipt
from tests.contract.chat.telegram_support import Desk, desk, to

__all__ = ["desk"]

ARGUMENTS = '{"command": "make deploy"}'


def approval(*, arguments: str = ARGUMENTS, outcome: str = "") -> ApprovalPart:
    return ApprovalPart(
        open_call_id="apr_1",
        code="k7m2p9",
        tool="exec",
        arguments=arguments,
        reason="It writes outside the workspace.",
        outcome=outcome,
    )


async def test_a_decided_card_says_who_decided_and_no_longer_asks(desk: Desk) -> None:
    receipt = await desk.send(to(desk.chat, approval()))
    (card,) = desk.shown()
    assert "Approval needed for exec" in card
    assert "It writes outside the workspace." in card
    assert ARGUMENTS in card
    assert "/approve k7m2p9 (once)" in card
    assert "/approve k7m2p9 session (for this session)" in card
    assert "/deny k7m2p9 reason" in card

    await desk.adapter.edit(to(desk.chat, approval(outcome="Approved once by Ann.")), receipt)
    (card,) = desk.shown()
    assert card.endswith("Approved once by Ann.")
    assert "/approve" not in card


async def test_long_arguments_are_all_readable_as_code(desk: Desk) -> None:
    arguments = "\n".join(f"line {number} " + "x" * 80 for number in range(200))
    receipt = await desk.send(to(desk.chat, approval(arguments=arguments)))
    posts = desk.server.from_bot(desk.chat)
    assert len(posts) == len(receipt.message_ids) > 3
    assert all("pre" in {entity.type for entity in post.content.entities} for post in posts)
    shown = "\n".join(post.text for post in posts)
    assert [line for line in shown.splitlines() if line.startswith("line ")] == (
        arguments.splitlines()
    )
    assert "/approve k7m2p9" in posts[-1].text


@pytest.mark.requirement("REN-4", "APR-4")
async def test_of_a_long_card_only_the_end_is_edited_when_it_is_decided(desk: Desk) -> None:
    arguments = "\n".join(f"line {number} " + "x" * 80 for number in range(200))
    receipt = await desk.send(to(desk.chat, approval(arguments=arguments)))
    before = desk.shown()
    decided = approval(arguments=arguments, outcome="Approved once by Ann.")
    for edits in (1, 2):
        await desk.adapter.edit(to(desk.chat, decided), receipt)
        assert len(desk.server.calls_to("editMessageText")) == edits, "safe to repeat"
    assert desk.shown()[:-1] == before[:-1]
    assert desk.shown()[-1].endswith("Approved once by Ann.")


async def test_a_question_lists_its_options(desk: Desk) -> None:
    question = QuestionPart(
        open_call_id="que_1", code="abc123", question="Which one?", options=("blue", "green")
    )
    await desk.send(to(desk.chat, question))
    (card,) = desk.shown()
    assert "Which one?" in card
    assert "1. blue" in card
    assert "2. green" in card
    assert "the number of an option" in card


@pytest.mark.requirement("TEL-6")
async def test_the_same_words_again_are_no_error(desk: Desk) -> None:
    receipt = await desk.send(to(desk.chat, "as it is"))
    await desk.adapter.edit(to(desk.chat, "as it is"), receipt)
    assert desk.shown() == ["as it is"]


@pytest.mark.requirement("TEL-6")
async def test_a_deleted_post_is_left_alone(desk: Desk) -> None:
    receipt = await desk.send(to(desk.chat, "short lived"))
    desk.server.from_bot(desk.chat)[0].deleted = True
    await desk.adapter.edit(to(desk.chat, "too late"), receipt)
    assert desk.shown() == []


async def test_posts_that_are_left_over_disappear(desk: Desk) -> None:
    receipt = await desk.send(to(desk.chat, "one", "two"))
    await desk.adapter.edit(to(desk.chat, "both"), receipt)
    assert desk.shown() == ["both"]
    # The same edit again, as after a crash: what it would delete is gone already.
    await desk.adapter.edit(to(desk.chat, "both"), receipt)
    with pytest.raises(DeliveryRejected, match="needs 2 posts"):
        await desk.adapter.edit(to(desk.chat, "one", "two"), Receipt(message_ids=("1",)))


@pytest.mark.requirement("REN-3")
async def test_an_edit_whose_formatting_is_refused_is_plain(desk: Desk) -> None:
    receipt = await desk.send(to(desk.chat, "before"))
    desk.server.fail("editMessageText", 400, "Bad Request: can't parse entities: in the test")
    await desk.adapter.edit(to(desk.chat, "[after](https://ci.example)"), receipt)
    assert desk.shown() == ["after (https://ci.example)"]


async def test_a_post_that_went_out_in_pieces_is_edited_in_pieces(desk: Desk) -> None:
    text = " ".join(f"word{number}" for number in range(500))
    desk.server.fail("sendMessage", 400, "Bad Request: message is too long")
    receipt = await desk.send(to(desk.chat, text))
    assert len(desk.shown()) == 2
    await desk.adapter.edit(to(desk.chat, text.replace("word", "WORD")), receipt)
    assert " ".join(desk.shown()) == text.replace("word", "WORD")


async def test_an_edit_with_an_unknown_outcome_may_run_again(desk: Desk) -> None:
    receipt = await desk.send(to(desk.chat, "before"))
    desk.server.hang("editMessageText")
    with pytest.raises(DeliveryRetry):
        await desk.adapter.edit(to(desk.chat, "after"), receipt)
    await desk.adapter.edit(to(desk.chat, "after"), receipt)
    assert desk.shown() == ["after"]


async def test_flood_control_of_an_edit_is_obeyed(desk: Desk) -> None:
    receipt = await desk.send(to(desk.chat, "before"))
    desk.server.rate_limit("editMessageText", retry_after=9)
    with pytest.raises(DeliveryRetry) as flood:
        await desk.adapter.edit(to(desk.chat, "after"), receipt)
    assert flood.value.after_s == 9
