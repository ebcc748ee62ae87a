"""A request is made to fit into what a model can read (MDL-5)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agent.context_fit import KnownSizes, Size, fit, newest_turn, request_tokens
from runtime.domain.tools import ToolCall, ToolResult
from runtime.domain.transcript import (
    AssistantMessage,
    ToolMessage,
    TranscriptMessage,
    UserMessage,
)
from runtime.ports.model import ModelRequest

pytestmark = pytest.mark.requirement("MDL-5")


def asking(*messages: TranscriptMessage, output: int = 1_000) -> ModelRequest:
    return ModelRequest(
        system="You are a test.",
        messages=messages,
        present="It is noon.",
        tools=(),
        max_output_tokens=output,
        run_id="run_test",
        step=1,
    )


def turn(number: int, length: int = 2_000) -> tuple[TranscriptMessage, ...]:
    """A question and its answer, of so many characters together."""
    half = length // 2
    asked = UserMessage(text=f"question {number} ".ljust(half, "q"))
    return asked, AssistantMessage(text=f"answer {number} ".ljust(half, "a"))


TURNS = tuple(message for number in range(10) for message in turn(number))
LAST = UserMessage(text="and now?")


def test_what_fits_stays_as_it_is() -> None:
    request = asking(*TURNS, LAST)
    assert fit(request, Size(100_000)).request is request


def test_the_oldest_turns_are_left_out() -> None:
    fitted = fit(asking(*TURNS, LAST), Size(4_000))
    assert request_tokens(fitted.request) <= 3_000
    assert fitted.request.messages == (*TURNS, LAST)[-len(fitted.request.messages) :]
    assert isinstance(fitted.request.messages[0], UserMessage)
    assert fitted.left_out == len(TURNS) + 1 - len(fitted.request.messages) > 0


def test_a_turn_that_is_too_large_alone_is_shortened_with_a_mark() -> None:
    long = UserMessage(text="begin " + "x" * 100_000 + " end")
    fitted = fit(asking(*TURNS, long), Size(4_000))
    (kept,) = fitted.request.messages
    assert isinstance(kept, UserMessage)
    assert kept.text.startswith("begin ")
    assert kept.text.endswith(" end")
    assert "characters were left out here" in kept.text
    assert request_tokens(fitted.request) <= 3_000
    assert fitted.left_out == len(TURNS) + 1


def test_results_of_tools_are_shortened_and_stay_with_their_calls() -> None:
    call = ToolCall(id="c1", name="read_file", arguments="{}")
    result = ToolResult(call_id="c1", name="read_file", status="ok", content="y" * 100_000)
    messages = (LAST, AssistantMessage(tool_calls=(call,)), ToolMessage(results=(result,)))
    fitted = fit(asking(*TURNS, *messages), Size(4_000)).request
    assert [message.role for message in fitted.messages] == ["user", "assistant", "tool"]
    assert request_tokens(fitted) <= 3_000


def test_an_answer_is_asked_for_that_leaves_room_for_the_prompt() -> None:
    fitted = fit(asking(LAST, output=8_192), Size(4_096))
    assert fitted.request.max_output_tokens == 1_024


@given(
    st.lists(st.integers(2, 20_000), min_size=1, max_size=30),
    st.integers(500, 20_000),
    st.floats(0.5, 4),
)
def test_it_fits_or_nothing_more_can_be_left_out(
    lengths: list[int], tokens: int, ratio: float
) -> None:
    messages = [one for at, length in enumerate(lengths) for one in turn(at, length)]
    size = Size(tokens, ratio)
    fitted = fit(asking(*messages, LAST), size).request
    assert fitted.messages[-1] == LAST
    assert request_tokens(fitted) <= size.room(1_000) or fitted.messages == (LAST,)


def test_the_newest_turn_begins_behind_the_last_answer() -> None:
    request = asking(*TURNS, UserMessage(text="one"), UserMessage(text="two"))
    found = newest_turn(request)
    assert found is not None
    assert [one.text for one in found.messages if isinstance(one, UserMessage)] == ["one", "two"]
    assert newest_turn(asking(LAST)) is None


def test_a_size_that_was_said_is_kept_for_its_model() -> None:
    sizes = KnownSizes()
    request = asking(*TURNS, LAST)
    assert sizes.of("a:m", None) is None
    learnt = sizes.learn("a:m", request, limit=4_096, asked=2 * request_tokens(request))
    assert learnt.tokens == 4_096
    assert learnt.ratio > 2
    assert sizes.of("a:m", None) == learnt
    assert sizes.of("a:m", 2_000) == replace(learnt, tokens=2_000), "a setting holds too"
    assert sizes.of("b:m", 2_000) == Size(2_000)
    assert sizes.of("b:m", None) is None


@pytest.mark.parametrize("limit", [0, 4_096])
def test_where_no_size_was_said_less_is_asked_each_time(limit: int) -> None:
    sizes, request = KnownSizes(), asking(*TURNS, LAST)
    costs = []
    for _ in range(4):
        costs.append(request_tokens(request) + request.max_output_tokens)
        request = fit(request, sizes.learn("a:m", request, limit=limit, asked=0)).request
    assert costs == sorted(set(costs), reverse=True)
