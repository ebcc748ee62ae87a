"""A card in a pipe says what runs, byte for byte."""

import pytest

from adapters.terminal.conversation import Card
from adapters.terminal.entry_views import plain_card


def card(arguments: str) -> str:
    return plain_card(
        Card("req_1", "run_1", "abc", "approval", open=True, tool="exec", arguments=arguments)
    )


@pytest.mark.requirement("APR-9")
def test_calls_that_differ_by_a_space_have_cards_that_differ() -> None:
    assert card("""{"command": "sh 'a  b.sh'"}""") != card("""{"command": "sh 'a b.sh'"}""")
    assert "sh 'a  b.sh'" in card("""{"command": "sh 'a  b.sh'"}""")


@pytest.mark.requirement("APR-9")
def test_the_reason_with_folder_and_files_is_on_the_card() -> None:
    asked = Card("req_1", "run_1", "abc", "approval", open=True, tool="exec", reason="in sub: x.sh")
    assert "in sub: x.sh\n" in plain_card(asked)
