"""The page as a chat: what is sent is published, kept elsewhere, and never in doubt."""

import pytest

from adapters.web.adapter import WebAdapter
from adapters.web.egress import MAX_PARTS, message_event
from runtime.bus.memory import MemoryBus
from runtime.domain.messages import ChatAddress, FilePart, OutboundMessage, Receipt, TextPart
from runtime.ports.bus import LIVE

PLACE = ChatAddress(channel="web", account="local", chat_id="c1")


def message(text: str = "hello") -> OutboundMessage:
    return OutboundMessage(
        outbox_id="out_1", target=PLACE, parts=(TextPart(markdown=text),), session_id="ses_1"
    )


async def posted(message_id: str) -> None:
    raise AssertionError(message_id)


async def test_a_message_is_published_and_its_receipt_is_its_own_id() -> None:
    bus = MemoryBus()
    adapter = WebAdapter(bus)
    async with bus.subscribe(LIVE) as signals:
        receipt = await adapter.send(message(), posted=(), on_posted=posted)
        assert receipt == Receipt(message_ids=("out_1",))
        await adapter.edit(message("changed"), receipt)
        assert await adapter.lookup(message(), posted=()) == receipt
        seen = [(await anext(signals)).data for _ in range(3)]
    assert [one["changed"] for one in seen] == [False, True, False]
    assert seen[0]["parts"] == [{"kind": "text", "markdown": "hello"}]
    assert {one["session_id"] for one in seen} == {"ses_1"}


def test_what_is_too_long_for_a_bus_is_only_announced() -> None:
    event = message_event(message("x" * MAX_PARTS))
    assert (event["complete"], event["parts"]) == (False, [])
    assert message_event(message())["complete"] is True


async def test_it_is_connected_until_it_is_closed() -> None:
    adapter = WebAdapter(MemoryBus(), channel="terminal")
    assert (adapter.channel, adapter.account) == ("terminal", "local")
    assert not adapter.status().connected
    await adapter.connect()
    assert adapter.status().connected
    await adapter.close()
    assert not adapter.status().connected


def test_only_local_channels_are_served() -> None:
    with pytest.raises(ValueError, match="slack is no local channel"):
        WebAdapter(MemoryBus(), channel="slack")


@pytest.mark.requirement("MSG-19")
def test_a_file_is_told_by_where_it_is_downloaded_and_never_by_its_path() -> None:
    part = FilePart(name="a.txt", path="/home/gatehouse/x", size_bytes=1, digest="d")
    event = message_event(message().model_copy(update={"parts": (TextPart(markdown="a"), part)}))
    assert event["parts"] == [
        {"kind": "text", "markdown": "a"},
        {
            "kind": "file",
            "name": "a.txt",
            "media_type": "application/octet-stream",
            "size_bytes": 1,
            "url": "/v1/files/out_1/1",
        },
    ]
