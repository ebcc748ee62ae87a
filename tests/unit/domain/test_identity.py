"""The identity of a message: the same for every delivery, another for everything else (MSG-2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.messages import InboundMessage, escape_component
from runtime.domain.people import Sender

PARTS = st.text(alphabet="ab:%/ dmuser\u00e9", max_size=6)


def message(chat: str = "C", number: str = "1", **changes: object) -> InboundMessage:
    """A message as some platform delivered it."""
    base = InboundMessage(
        channel="slack",
        account="T1",
        chat_id=chat,
        message_id=number,
        sender=Sender(id="U1"),
        received_at_ms=1,
    )
    return base.model_copy(update=changes)


@pytest.mark.requirement("MSG-2")
def test_what_a_delivery_adds_changes_no_identity() -> None:
    again = message(received_at_ms=99, text="same", thread_id="t")
    assert again.identity == message().identity


@pytest.mark.requirement("MSG-2")
def test_an_edit_is_another_message() -> None:
    assert message(edited_at="5").identity != message().identity
    assert message(edited_at="5").identity != message(edited_at="6").identity


@pytest.mark.requirement("MSG-2")
@given(PARTS, PARTS, PARTS, PARTS)
def test_two_messages_never_share_an_identity(a: str, b: str, c: str, d: str) -> None:
    same = message(a, b).identity == message(c, d).identity
    assert same is ((a, b) == (c, d))


@pytest.mark.requirement("MSG-3")
@given(st.lists(PARTS, min_size=1, max_size=4), st.lists(PARTS, min_size=1, max_size=4))
def test_escaped_components_never_join_to_the_same_key(one: list[str], other: list[str]) -> None:
    joined = [":".join(map(escape_component, parts)) for parts in (one, other)]
    assert (joined[0] == joined[1]) is (one == other)
