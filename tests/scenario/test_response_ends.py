"""Why a response ended: what the person reads, and what the model is told (MDL-2)."""

import pytest
from structlog.testing import capture_logs

from runtime.domain.errors import ModelError
from runtime.domain.transcript import NoticeMessage
from runtime.ports.model import FinishReason
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.conftest import Worlds

pytestmark = pytest.mark.requirement("MDL-2")
CALL = (("list_dir", "{}"),)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("length", "cut at the length limit"),
        ("content_filter", "content filter ended this answer"),
        ("unknown", "for a reason that I do not know"),
        ("error", "with an error"),
    ],
)
async def test_a_half_answer_is_kept_and_says_why_it_ended(
    worlds: Worlds, reason: FinishReason, words: str
) -> None:
    half = Said("It is noo", finish_reason=reason)
    script: list[Said | str | ModelError] = (
        [half, half, "hello"] if reason == "error" else [half, "hello"]
    )
    model = ScriptedModel(script)
    async with worlds(model) as world:
        with capture_logs() as logged:
            await world.says("what time is it?")
            (answer,) = await world.sees(1)
        cut = [line["reason"] for line in logged if line["event"] == "response_cut"]
        assert cut == [reason]
        assert answer.startswith("It is noo\n\n(")
        assert words in answer
        await world.says("hello")
        assert (await world.sees(2))[-1] == "hello"
    assert "It is noo" in str(model.requests[-1].messages), "it stands in the next prompt"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("length", "used up its limit of "),
        ("content_filter", "content filter stopped the answer"),
        ("refusal", "refused to answer"),
        ("unknown", "for a reason that I do not know"),
    ],
)
async def test_an_end_without_words_is_said_at_once(
    worlds: Worlds, reason: FinishReason, words: str
) -> None:
    model = ScriptedModel([Said("", finish_reason=reason)])
    async with worlds(model) as world:
        await world.says("what time is it?")
        (answer,) = await world.sees(1)
    assert words in answer
    assert len(model.requests) == 1, "it is not asked again for what cannot help"


async def test_a_refusal_in_words_is_the_answer(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([Said("I cannot do that.", finish_reason="refusal")])) as world:
        await world.says("do it")
        assert await world.sees(1) == ["I cannot do that."]


async def test_an_error_in_the_middle_is_asked_once_more(worlds: Worlds) -> None:
    script: list[Said | str | ModelError] = [
        Said("It is noo", finish_reason="error"),
        "It is noon.",
    ]
    async with worlds(ScriptedModel(script)) as world:
        await world.says("what time is it?")
        assert await world.sees(1) == ["It is noon."]


@pytest.mark.parametrize("reason", ["length", "content_filter", "unknown"])
async def test_a_call_that_was_cut_does_not_run_and_the_model_is_told(
    worlds: Worlds, reason: FinishReason
) -> None:
    model = ScriptedModel([Said("I look.", calls=CALL, finish_reason=reason), "I see."])
    async with worlds(model) as world:
        await world.says("what is there?")
        assert await world.sees(1) == ["I see."]
    told = model.requests[1].messages[-1]
    assert isinstance(told, NoticeMessage)
    assert "was cut" in told.text
    assert "list_dir; nothing of it has run" in told.text
    if reason == "length":
        assert f"{model.requests[0].max_output_tokens:,} tokens" in told.text
    assert len(model.requests) == 2


async def test_calls_that_are_cut_again_and_again_end_the_run(worlds: Worlds) -> None:
    model = ScriptedModel([Said("", calls=CALL, finish_reason="length")] * 3)
    async with worlds(model) as world:
        await world.says("what is there?")
        (answer,) = await world.sees(1)
    assert "used up its limit of " in answer
