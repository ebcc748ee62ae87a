"""`send_message` itself: whom it offers, what it refuses, and what it puts out (TOOL-14)."""

import pytest

from runtime.domain.errors import ToolError
from runtime.domain.messages import ChatAddress, Dispatch, TextPart
from runtime.domain.tools import Effect
from runtime.sessions.recipients import Recipient
from tests.unit.tools.support import Desk, call

pytestmark = pytest.mark.requirement("TOOL-14")


def recipient(name: str) -> Recipient:
    address = ChatAddress(channel="slack", account="T1", chat_id=name, chat_kind="channel")
    return Recipient(f"slack:T1:{name}", f"ses_{name}", address)


async def refused(desk: Desk, **arguments: str) -> str:
    with pytest.raises(ToolError) as caught:
        await desk.run("send_message", **arguments)
    return str(caught.value)


async def test_it_puts_out_one_message_for_the_other_conversation(desk: Desk) -> None:
    desk.recipients = (recipient("C1"), recipient("C2"))
    desk.redact = lambda text: text.replace("secret", "[...]")
    desk.__post_init__()
    output = await desk.run("send_message", to=" slack:T1:C2 ", text=" The *secret*. ")
    there = desk.recipients[1]
    assert output.sends == Dispatch(
        parts=(TextPart(markdown="The *[...]*."),), target=there.address, session_id="ses_C2"
    )
    assert output.content == "it is on its way to slack:T1:C2"


async def test_nothing_is_said_without_words_or_to_whom_the_person_does_not_reach(
    desk: Desk,
) -> None:
    desk.recipients = (recipient("C1"),)
    assert "say what is to be sent" in await refused(desk, to="slack:T1:C1", text=" ")
    told = await refused(desk, to="slack:T1:C9", text="hello")
    assert "slack:T1:C9 is not another conversation here" in told
    assert told.endswith("These may be written to:\n- slack:T1:C1 (channel)")
    desk.recipients = ()
    assert "no other conversation that may" in await refused(desk, to="slack:T1:C9", text="hello")


async def test_without_a_key_it_lists_those_there_are(desk: Desk) -> None:
    desk.recipients = tuple(recipient(f"C{number}") for number in range(25))
    listed = (await desk.run("send_message")).content.split("\n")
    assert listed[:2] == ["These may be written to:", "- slack:T1:C0 (channel)"]
    assert (len(listed), listed[-1]) == (22, "and 5 older ones")
    desk.recipients = desk.recipients[:20]
    assert (await desk.run("send_message")).content.endswith("- slack:T1:C19 (channel)")


def test_a_listing_reads_and_a_message_is_a_send_to_its_key(desk: Desk) -> None:
    listing = desk.registry.prepare(call("send_message", {}))
    assert (listing.effect, listing.touches(desk.context()).sends) == (Effect.READ, ())
    sent = desk.registry.prepare(call("send_message", {"to": "slack:T1:C1", "text": "x"}))
    touches = sent.touches(desk.context())
    assert (sent.effect, touches.sends) == (Effect.IDEMPOTENT, ("slack:T1:C1",))
    assert touches.subject == "slack:T1:C1"
    with pytest.raises(ToolError, match="to"):
        desk.registry.prepare(call("send_message", {"to": "two words", "text": "x"}))
