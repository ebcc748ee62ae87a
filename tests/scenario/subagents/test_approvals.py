"""A child's approval and question stand in the chat of its root, under its path (APR-7)."""

from pathlib import Path

import pytest

from runtime.domain.messages import ApprovalPart, OutboundPart, QuestionPart
from runtime.features.subagents.tools import SessionsSpawn
from runtime.ports.model import ModelRequest
from runtime.tools.builtin.ask import AskUser
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Said
from tests.scenario.cards import MEMBER, asks, call, offering
from tests.scenario.engine import World
from tests.scenario.subagents.children import Script, name_of, spawn, told
from tests.scenario.subagents.family import grown, results
from tests.scenario.tools import Note

__all__ = ["dialect", "migrated_url", "schema_templates"]
PATH = "root > top > below"


def deep(*wanted: tuple[str, str], mode: str = "await") -> Script:
    """Root, child and grandchild, which makes the calls."""

    def script(request: ModelRequest) -> Said | str:
        name = name_of(request)
        if name == "below":
            return Said("", calls=wanted) if request.step == 1 else "\n".join(results(request))
        if name == "top":
            back = "completed after" in told(request)
            return told(request)[-900:] if back else spawn(task="x", type="general", id="below")
        if "completed after" in told(request):
            return f"Result: {told(request)[-900:]}"
        if "accepted" in told(request):
            return "Sent."
        return spawn(task="x", type="general", id="top", mode=mode)

    return script


async def card(at: World, amount: int = 1) -> OutboundPart:
    def parts() -> list[OutboundPart]:
        found = [part for one in at.chat.sent for part in one.message.parts]
        return [one for one in found if isinstance(one, ApprovalPart | QuestionPart)]

    await at.chat.until(lambda: len(parts()) >= amount)
    return parts()[amount - 1]


@pytest.mark.requirement("APR-7")
@pytest.mark.parametrize("by", ["button", "code", "reply"])
async def test_an_approval_names_the_path_and_is_given_in_the_chat(
    tmp_path: Path, migrated_url: str, by: str
) -> None:
    note = Note(command=True)
    change = offering(note, SessionsSpawn())
    async with grown(tmp_path, migrated_url, deep(call("make")), change) as at:
        await at.says("go")
        shown = await card(at)
        assert isinstance(shown, ApprovalPart)
        assert shown.reason.startswith(f'Subagent "{PATH}" asks. ')
        assert {one.message.target.chat_id for one in at.chat.sent} == {"D-U-owner"}
        # A message behind the root, which waits for its child, is told of the child's card.
        await at.says("and?")
        await at.chat.until(lambda: any(f"/approve {shown.code}" in t for t in at.chat.texts()))
        await at.says("/status")
        await at.chat.until(
            lambda: any(f'(approval of `note`, for "{PATH}")' in t for t in at.chat.texts())
        )
        if by == "button":
            assert not (await at.presses(shown.open_call_id, "once", user=MEMBER)).accepted
            assert (await at.presses(shown.open_call_id, "once")).accepted
        else:
            posted = next(one.id for one in at.chat.sent if shown in one.message.parts)
            word = f"/approve {shown.code}" if by == "code" else "/approve"
            await at.says(word, reply_to=None if by == "code" else posted)
        await at.chat.until(lambda: any("ok: kept make" in text for text in at.chat.texts()))
        assert note.kept == ["make"]


@pytest.mark.requirement("APR-7")
async def test_a_denial_after_a_restart_is_told_to_the_child(
    tmp_path: Path, migrated_url: str
) -> None:
    note = Note(command=True)
    change, script = offering(note, SessionsSpawn()), deep(call("make"), mode="background")
    async with grown(tmp_path, migrated_url, script, change) as at:
        await at.says("go")
        shown = await card(at)
        assert isinstance(shown, ApprovalPart)
    async with grown(tmp_path, migrated_url, script, change) as at:
        await at.says(f"/deny {shown.code}", message_id="later")
        await at.chat.until(lambda: any("Result" in text for text in at.chat.texts()))
        (text,) = [text for text in at.chat.texts() if "Result" in text]
        assert "denied: A person denied this call." in text
        assert note.kept == []


@pytest.mark.requirement("APR-7")
@pytest.mark.parametrize("by", ["button", "word", "plain words"])
async def test_a_childs_question_is_asked_and_answered_in_the_chat(
    tmp_path: Path, migrated_url: str, by: str
) -> None:
    change = offering(AskUser(), SessionsSpawn())
    async with grown(tmp_path, migrated_url, deep(asks("Which?", "red", "blue")), change) as at:
        await at.says("go")
        shown = await card(at)
        assert isinstance(shown, QuestionPart)
        assert shown.question == f'Subagent "{PATH}" asks: Which?'
        if by == "button":
            await at.presses(shown.open_call_id, "blue")
        else:
            await at.says("2" if by == "plain words" else f"/answer {shown.code} 2")
        await at.chat.until(lambda: any("ok: blue" in text for text in at.chat.texts()))
