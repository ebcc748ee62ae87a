"""Thoughts between tags are taken out of a text, however the text is cut into pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.models.thought_tags import ThoughtFilter, thinks_first


def shown(pieces: list[str], *, hold: bool = False) -> str:
    """What stands there in the end."""
    tags = ThoughtFilter(hold=hold)
    text = ""
    for part in [*map(tags.take, pieces), tags.finish()]:
        text = part.text if part.anew else text + part.text
    return text


CASES = [
    ("<think>Hm, let me see</think>Done.", "Done."),
    ("\n<thinking>\nHm.\n</thinking>\n\nDone.", "Done."),
    ("<think>one</think><think>two</think>Done.", "Done."),
    ("<reasoning>a < b, </think> is no end of it</reasoning>Done.", "Done."),
    ("<think></think>", ""),
    ("<think>It never ends", ""),
    ("Use `<think>` and </think>.", "Use `<think>` and </think>."),
    ("<thinner>than</thinner>", "<thinner>than</thinner>"),
    ("She wants the date.</think>\n\nIt is Tuesday.", "It is Tuesday."),
    ("She wants the date.\n</thinking>\nIt is Tuesday.", "It is Tuesday."),
    ("She wants the date.\n</think>", ""),
    ("It ends by </think> then.", "It ends by </think> then."),
    ("It ends by `</think>`\nalways.", "It ends by `</think>`\nalways."),
    ("Like so:\n```\nHm.\n</think>\nYes.\n```\n", "Like so:\n```\nHm.\n</think>\nYes.\n```\n"),
    ("Like so:\n\n    </think>\nYes.", "Like so:\n\n    </think>\nYes."),
    ("a < b </b>\nc", "a < b </b>\nc"),
    ("<th", "<th"),
    ("  plain", "  plain"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "answer"), CASES)
def test_the_answer_is_what_stands_behind_the_thoughts(text: str, answer: str) -> None:
    assert shown([text]) == answer
    assert shown(list(text)) == answer
    assert shown(list(text), hold=True) == answer


@given(st.sampled_from(CASES), st.lists(st.integers(0, 60)))
def test_where_the_pieces_are_cut_changes_nothing(case: tuple[str, str], cuts: list[int]) -> None:
    text, answer = case
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = [text[a:b] for a, b in pairwise(places)]
    assert shown(pieces) == answer
    assert shown(pieces, hold=True) == answer


def test_what_is_no_tag_is_not_held_back() -> None:
    tags = ThoughtFilter()
    assert tags.take("<t").text == ""
    assert tags.take("able>").text == "<table>"
    assert tags.take(" and so on").text == " and so on"
    assert tags.take(" to </p>").text == " to </p>"
    assert tags.take(" or </t").text == " or "
    assert tags.take("able>").text == "</table>"


def test_a_model_that_is_known_to_think_first_shows_nothing_of_it() -> None:
    tags = ThoughtFilter(hold=True)
    pieces = ["She wants", " the date.", "</think>", "\n\nIt is", " Tuesday."]
    assert [tags.take(piece).text for piece in pieces] == ["", "", "", "It is", " Tuesday."]
    assert tags.closed_alone


def test_thoughts_that_were_cut_are_no_answer_of_a_model_that_thinks_first() -> None:
    tags = ThoughtFilter(hold=True)
    assert tags.take("She wants the date").text == ""
    assert tags.waiting == len("She wants the date")
    assert tags.finish(cut=True).text == ""
    tags = ThoughtFilter(hold=True)
    tags.take("Hm.\n</think>\nIt is")
    assert tags.take(" Tues").text == " Tues"
    assert tags.finish(cut=True).text == ""
    assert tags.waiting == 0


def test_nothing_is_held_behind_thoughts_that_came_apart() -> None:
    tags = ThoughtFilter(hold=True)
    tags.release()
    assert tags.take("It is").text == "It is"


def test_what_was_shown_of_thoughts_is_taken_back() -> None:
    tags = ThoughtFilter()
    assert tags.take("She wants the date.").text == "She wants the date."
    found = tags.take("</think>\n\nIt is Tuesday.")
    assert (found.text, found.anew, tags.closed_alone) == ("It is Tuesday.", True, True)


@pytest.mark.parametrize(
    ("name", "thinks"),
    [
        ("compatible:deepseek-r1:14b", True),
        ("compatible:Qwen/QwQ-32B", True),
        ("compatible:qwen3-235b-thinking-2507", True),
        ("compatible:deepseek-reasoner", True),
        ("openai:gpt-6.1-terra", False),
        ("compatible:r10", False),
        ("compatible:llama3.2", False),
    ],
)
def test_a_name_says_of_some_models_that_they_think_first(name: str, thinks: bool) -> None:
    assert thinks_first(name) is thinks
