"""A changed card never stands before a reply: neither in line nor with its failures (MSG-10)."""

from pathlib import Path

import pytest

from runtime.domain.errors import DeliveryRetry
from runtime.domain.messages import OutboundMessage, Receipt
from runtime.sessions import outbox
from runtime.sessions.outbox import FINAL_RANK, NewRow
from runtime.store import Connection
from tests.scenario.posting import GatedChat, Post, post


class Watched(GatedChat):
    """A chat that keeps edits and posts in one line; `edit_failures` are raised first."""

    def __init__(self, **capabilities: object) -> None:
        super().__init__(**capabilities)
        self.seen: list[str] = []
        self.edit_failures: list[DeliveryRetry] = []
        self.refused_at = -1.0

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        if self.edit_failures:
            self.refused_at = self.clock.monotonic() if self.clock else 0.0
            raise self.edit_failures.pop(0)
        await super().edit(message, receipt)
        self.seen.append(f"edit {message.parts[0].markdown}")

    async def send(self, message: OutboundMessage, **rest: object) -> Receipt:
        receipt = await super().send(message, **rest)
        self.seen.append(message.parts[0].markdown)
        return receipt


def row(at: Post, kind: str, text: str, chat: str) -> NewRow:
    """A row of the outbox; a card and its changes share an open call by their text."""
    rank = FINAL_RANK if kind == "final" else 0
    open_call = None if kind == "final" else f"apr_{text}"
    return NewRow(kind=kind, message=at.message(text, chat), rank=rank, open_call_id=open_call)


async def put(at: Post, *rows: NewRow) -> None:
    """Put rows into the outbox in one unit."""

    def unit(conn: Connection) -> None:
        for one in rows:
            outbox.add(conn, one)

    await at.database.write(unit, name="put")


@pytest.mark.requirement("MSG-10")
async def test_a_reply_goes_before_changed_cards_of_other_chats(tmp_path: Path) -> None:
    chat = Watched(account_rate=1.0, account_burst=1)
    async with post(tmp_path, chat) as at:
        await at.start()
        await put(at, row(at, "card", "a", "C1"), row(at, "card", "b", "C2"))
        await at.until(lambda: len(chat.sent) == 2)
        changes = row(at, "edit", "a", "C1"), row(at, "edit", "b", "C2")
        await put(at, *changes, row(at, "final", "reply", "C3"))
        await at.until(lambda: len(chat.seen) == 5)
        assert chat.seen[2:] == ["reply", "edit a", "edit b"]


@pytest.mark.requirement("MSG-10")
async def test_a_refused_change_of_a_card_keeps_its_chat_silent_as_long_as_was_asked(
    tmp_path: Path,
) -> None:
    """The platform asked for silence in that chat, whatever it was that it refused."""
    chat = Watched()
    async with post(tmp_path, chat) as at:
        await at.start()
        await put(at, row(at, "card", "card", "C"))
        await at.until(lambda: len(chat.sent) == 1)
        chat.edit_failures = [DeliveryRetry("429", after_s=30.0)]
        await put(at, row(at, "edit", "card", "C"))
        await at.until(lambda: chat.refused_at >= 0)
        await put(at, row(at, "final", "reply", "C"), row(at, "final", "elsewhere", "D"))
        await at.until(lambda: len(chat.seen) == 4)
        times = dict(chat.attempts)
        assert times["elsewhere"] - chat.refused_at < 5.0
        assert times["reply"] - chat.refused_at >= 30.0
        assert set(chat.seen[2:]) == {"reply", "edit card"}


@pytest.mark.requirement("MSG-10")
async def test_a_card_that_cannot_be_changed_holds_no_reply_up(tmp_path: Path) -> None:
    chat = Watched()
    async with post(tmp_path, chat) as at:
        await at.start()
        await put(at, row(at, "card", "card", "C"))
        await at.until(lambda: len(chat.sent) == 1)
        chat.edit_failures = [DeliveryRetry("503") for _ in range(4)]
        await put(at, row(at, "edit", "card", "C"))
        await at.until(lambda: chat.refused_at >= 0)
        await put(at, row(at, "final", "reply", "C"))
        await at.until(lambda: len(chat.seen) == 3)
        assert chat.seen == ["card", "reply", "edit card"]
