"""Our adapter on somebody else's idea of Slack's Web API: what both sides read alike.

By HTTP, because `emulate` has no Socket Mode. People look with tokens of their own.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr

from adapters.slack.adapter import SlackAdapter
from adapters.slack.settings import SlackSettings
from runtime.domain.errors import DeliveryRejected, Forbidden
from runtime.domain.messages import Attachment, FilePart, OutboundMessage, Receipt, TextPart
from tests.contract.chat.slack_support import Progress, StoppedClock, installed, reply
from tests.wire.emulate import BOT_TOKEN, CHANNEL, Emulated, running

LONG = "\n\n".join(f"Paragraph {number}. " + "word " * 200 for number in range(30))


@pytest.fixture(scope="module")
def emulated() -> Iterator[Emulated]:
    """One server for the module, with the scopes of our own manifest."""
    with running(sorted(installed().scopes or ())) as server:
        yield server


def settings(server: Emulated, token: str = BOT_TOKEN) -> SlackSettings:
    return SlackSettings(
        bot_token=SecretStr(token),
        signing_secret=SecretStr("0" * 32),
        app_token=None,
        api_url=f"{server.url}/api/",
    )


@pytest_asyncio.fixture
async def adapter(emulated: Emulated) -> AsyncIterator[SlackAdapter]:
    made = SlackAdapter(settings(emulated), StoppedClock())
    await made.connect()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def lobby(emulated: Emulated) -> str:
    """The id of the channel."""
    found = await emulated.listed("conversations.list", "channels")
    (channel,) = [one for one in found if one["name"] == CHANNEL]
    return str(channel["id"])


async def send(adapter: SlackAdapter, message: OutboundMessage) -> Receipt:
    return await adapter.send(message, posted=(), on_posted=Progress())


async def thread(server: Emulated, chat: str, ts: str) -> Sequence[Mapping[str, object]]:
    """A message and its replies, as a person sees them."""
    return await server.listed("conversations.replies", "messages", channel=chat, ts=ts)


@pytest.mark.requirement("SLK-1", "SLK-8")
async def test_a_bot_learns_who_it_is_and_a_wrong_token_is_named(
    emulated: Emulated, adapter: SlackAdapter
) -> None:
    assert adapter.status().connected
    assert adapter.account.startswith("T")
    stranger = SlackAdapter(settings(emulated, "xoxb-somebody-elses"), StoppedClock())
    try:
        with pytest.raises(Forbidden):
            await stranger.connect()
    finally:
        await stranger.close()


@pytest.mark.requirement("REN-1", "REN-2", "SLK-3")
async def test_a_long_answer_stands_whole_in_its_thread(
    emulated: Emulated, adapter: SlackAdapter, lobby: str
) -> None:
    question = await send(adapter, reply("Use **tabs** <!channel>", chat=lobby, outbox_id="out_1"))
    root = question.message_ids[0]
    answer = await send(adapter, reply(LONG, chat=lobby, thread=root, outbox_id="out_2"))
    first, *rest = await thread(emulated, lobby, root)
    assert "<!channel" not in str(first["text"])
    assert str(first["text"]).startswith("Use *tabs*")
    assert [one["ts"] for one in rest] == list(answer.message_ids)
    assert " ".join(str(one["text"]) for one in rest).split() == LONG.split()


@pytest.mark.requirement("SLK-8")
async def test_a_channel_that_is_not_there_is_permanent(adapter: SlackAdapter) -> None:
    with pytest.raises(DeliveryRejected):
        await send(adapter, reply("hello", chat="C0NOWHERE"))


@pytest.mark.requirement("MSG-11")
async def test_a_post_whose_answer_was_lost_is_found_by_its_row(
    adapter: SlackAdapter, lobby: str
) -> None:
    message = reply("Only once.", chat=lobby, outbox_id="out_lost")
    receipt = await send(adapter, message)
    assert await adapter.lookup(message, posted=()) == receipt
    other = reply("Never sent.", chat=lobby, outbox_id="out_never")
    assert await adapter.lookup(other, posted=()) is None


async def test_a_message_is_changed_in_its_place(
    emulated: Emulated, adapter: SlackAdapter, lobby: str
) -> None:
    message = reply("Working.", chat=lobby, outbox_id="out_edit")
    receipt = await send(adapter, message)
    changed = message.model_copy(update={"parts": (TextPart(markdown="It is done."),)})
    await adapter.edit(changed, receipt)
    (post,) = await thread(emulated, lobby, receipt.message_ids[0])
    assert post["text"] == "It is done."


@pytest.mark.requirement("SLK-5")
async def test_a_file_goes_up_and_comes_down_as_it_was(
    emulated: Emulated, adapter: SlackAdapter, lobby: str, tmp_path: Path
) -> None:
    path = tmp_path / "made-by-a-tool"
    path.write_bytes(b"a report")
    file = FilePart(name="report.txt", path=str(path))
    parts = (TextPart(markdown="Here it is."), file)
    message = reply(chat=lobby, outbox_id="out_file").model_copy(update={"parts": parts})
    receipt = await send(adapter, message)
    (shared,) = await emulated.listed("files.list", "files", channel=lobby)
    assert (shared["id"], shared["title"]) == (receipt.message_ids[-1], "report.txt")
    assert adapter.files is not None
    for reference in (str(shared["url_private"]), f"slack-file:{shared['id']}"):
        asked = Attachment(name="report.txt", media_type="text/plain", reference=reference)
        pieces = [piece async for piece in adapter.files.fetch(asked)]
        assert b"".join(pieces) == b"a report"
