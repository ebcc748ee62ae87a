"""Messages on their way out: order, limits, retries, ends, and never twice (MSG-10, MSG-11)."""

from itertools import pairwise
from pathlib import Path

import pytest

from runtime.delivery import outbox_units
from runtime.delivery.deliverer import HAND_OVER_MS
from runtime.domain.errors import (
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
    StoreUnavailable,
)
from runtime.domain.messages import ChatAddress
from runtime.domain.runs import Holder
from runtime.sessions import outbox
from runtime.store import leases
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate
from tests.scenario.posting import DAY_MS, LEASE, WORKER, GatedChat, Post, post

HOUR_MS = 3_600_000
TWO_SECONDS = 2.0 - 1e-6
"""Of a clock whose tenths add up as floats do."""


@pytest.mark.requirement("MSG-10")
async def test_a_chat_keeps_its_order_while_its_first_message_is_tried_again(
    tmp_path: Path,
) -> None:
    chat = GatedChat()
    chat.by_text["1"] = [DeliveryRetry("503"), DeliveryRetry("503")]
    async with post(tmp_path, chat) as at:
        for text in ("1", "2", "3"):
            await at.put(text)
        await at.put("other", "D")
        await at.start()
        await at.until(lambda: len(chat.sent) == 4)
        assert chat.texts("C") == ["1", "2", "3"]
        assert chat.texts()[0] == "other", "another chat does not wait"


@pytest.mark.requirement("MSG-10")
async def test_retry_after_is_honoured_and_nothing_goes_to_that_chat_before(
    tmp_path: Path,
) -> None:
    chat = GatedChat()
    chat.by_text["1"] = [DeliveryRetry("429", after_s=30.0)]
    async with post(tmp_path, chat) as at:
        await at.start()
        await at.put("1")
        await at.put("2")
        await at.until(lambda: len(chat.sent) == 2)
        (first, again, second) = [moment for _, moment in chat.attempts]
        assert again - first >= 30.0
        assert again - first < 33.0
        assert second >= again


@pytest.mark.requirement("MSG-10")
async def test_failures_are_retried_with_growing_waits_and_jitter(tmp_path: Path) -> None:
    chat = GatedChat()
    chat.by_text["1"] = [DeliveryRetry("503") for _ in range(5)]
    async with post(tmp_path, chat) as at:
        await at.start()
        outbox_id = await at.put("1")
        await at.until(lambda: len(chat.sent) == 1, step=0.25)
        moments = [moment for _, moment in chat.attempts]
        waits = [later - earlier for earlier, later in pairwise(moments)]
        for wait, least in zip(waits, (2.25, 4.5, 9.0, 18.0, 36.0), strict=True):
            assert least <= wait <= least + 2.0
        assert (await at.ends(outbox_id)).state == "sent"


@pytest.mark.requirement("MSG-10")
async def test_a_permanent_error_keeps_its_reason_and_blocks_nobody(tmp_path: Path) -> None:
    chat = GatedChat()
    chat.by_text["1"] = [DeliveryRejected("the bot was removed from the chat")]
    async with post(tmp_path, chat) as at:
        await at.start()
        dead = await at.put("1")
        await at.put("2")
        row = await at.ends(dead)
        assert (row.state, row.error) == ("dead", "the bot was removed from the chat")
        await at.until(lambda: chat.texts() == ["2"])
        assert [text for text, _ in chat.attempts] == ["1", "2"]


@pytest.mark.requirement("MSG-10")
async def test_a_message_is_given_up_after_its_time(tmp_path: Path) -> None:
    chat = GatedChat()
    chat.by_text["1"] = [DeliveryRetry("503") for _ in range(100)]
    async with post(tmp_path, chat) as at:
        await at.start(give_up_after_s=20.0)
        row = await at.ends(await at.put("1"), step=1.0)
        assert (row.state, row.error) == ("dead", "given up: 503")


@pytest.mark.requirement("MSG-10")
async def test_a_refused_account_keeps_its_messages(tmp_path: Path) -> None:
    chat = GatedChat()
    error = DeliveryRejected("token_revoked", account_wide=True)
    chat.by_text = {"1": [error], "2": [error], "3": [error]}
    async with post(tmp_path, chat) as at:
        ids = [await at.put(text, f"C{text}") for text in ("1", "2", "3")]
        await at.start()
        await at.until(lambda: bool(chat.attempts))
        await at.clock.advance(3.0)
        assert "dead" not in [(await at.row(one)).state for one in ids]


@pytest.mark.requirement("MSG-10")
async def test_a_final_reply_goes_before_notices_of_other_chats(tmp_path: Path) -> None:
    chat = GatedChat(account_rate=1.0, account_burst=1)
    async with post(tmp_path, chat) as at:
        await at.put("notice 1", "C1")
        await at.put("notice 2", "C2")
        await at.put("reply", "C3", final=True)
        await at.start()
        await at.until(lambda: len(chat.sent) == 3)
        assert chat.texts() == ["reply", "notice 1", "notice 2"]


@pytest.mark.requirement("MSG-10")
async def test_a_chat_and_an_account_are_held_to_their_rates(tmp_path: Path) -> None:
    chat = GatedChat(chat_rate=0.5, chat_burst=1, account_rate=2.0, account_burst=2)
    async with post(tmp_path, chat) as at:
        for text in ("a1", "a2", "a3"):
            await at.put(text, "A")
        for text in ("b1", "b2"):
            await at.put(text, "B")
        await at.start()
        await at.until(lambda: len(chat.sent) == 5, step=0.1)
        moments = dict(chat.attempts)
        assert moments["a2"] - moments["a1"] >= TWO_SECONDS
        assert moments["a3"] - moments["a2"] >= TWO_SECONDS
        assert moments["b2"] - moments["b1"] >= TWO_SECONDS


@pytest.mark.requirement("MSG-11")
@pytest.mark.parametrize("arrived", [True, False])
async def test_an_ambiguous_send_is_looked_up_where_the_platform_can_be_asked(
    tmp_path: Path, arrived: bool
) -> None:
    chat = GatedChat(lookup=True)
    if arrived:
        chat.after["1"] = Gate()
    else:
        chat.by_text["1"] = [DeliveryUnknown("timeout")]
    async with post(tmp_path, chat) as at:
        await at.start()
        outbox_id = await at.put("1")
        if arrived:
            await chat.after["1"].reached.wait()
            chat.after.clear()
            await at.stop()
            await at.start("wrk_next")
        row = await at.ends(outbox_id)
        assert row.state == "sent"
        assert row.posted == (chat.sent[0].id,)
        assert chat.texts() == ["1"]


@pytest.mark.requirement("MSG-11")
async def test_an_ambiguous_send_that_cannot_be_looked_up_is_unknown_and_not_resent(
    tmp_path: Path,
) -> None:
    chat = GatedChat()
    chat.by_text["1"] = [DeliveryUnknown("timeout")]
    async with post(tmp_path, chat) as at:
        await at.start()
        row = await at.ends(await at.put("1"))
        assert row.state == "unknown"
        assert row.error
        await at.put("2")
        await at.until(lambda: chat.texts() == ["2"])
        await at.clock.advance(120.0)
        assert [text for text, _ in chat.attempts] == ["1", "2"]
        counts = await at.database.read(outbox.counts)
        assert counts["unknown"] == 1


@pytest.mark.requirement("MSG-11")
async def test_the_operator_may_choose_to_resend(tmp_path: Path) -> None:
    chat = GatedChat()
    chat.by_text["1"] = [DeliveryUnknown("timeout")]
    async with post(tmp_path, chat) as at:
        await at.start(resend_unknown=True)
        assert (await at.ends(await at.put("1"))).state == "sent"
        assert [text for text, _ in chat.attempts] == ["1", "1"]


@pytest.mark.requirement("MSG-10")
async def test_a_receipt_outlives_an_outage_of_the_store(tmp_path: Path) -> None:
    failures = ["receipt:begin"] * 3

    def point(name: str) -> None:
        if name in failures:
            failures.remove(name)
            raise StoreUnavailable("the disk is away")

    chat = GatedChat()
    async with post(tmp_path, chat, point=point) as at:
        await at.start()
        row = await at.ends(await at.put("1"))
        assert row.state == "sent"
        assert failures == []
        assert chat.texts() == ["1"]


@pytest.mark.requirement("MSG-9", "MSG-10")
async def test_a_deliverer_that_lost_its_lease_writes_nothing_more(tmp_path: Path) -> None:
    chat = GatedChat()
    chat.after["1"] = Gate()
    async with post(tmp_path, chat) as at:
        await at.start()
        outbox_id = await at.put("1")
        await chat.after["1"].reached.wait()
        await at.lose()
        fence = await at.database.write(
            lambda conn: leases.acquire(conn, name=LEASE, holder="wrk_next", ttl_ms=DAY_MS),
            name="lease",
        )
        row, new = await at.row(outbox_id), Holder("wrk_next", fence or 0)
        adopted = await at.database.write(
            lambda conn: outbox_units.adopt(conn, [row], new), name="adopt"
        )
        assert len(adopted) == 1
        await at.put("2", "D")
        chat.after["1"].open.set()
        await at.clock.advance(3.0)
        row = await at.row(outbox_id)
        assert (row.state, row.worker) == ("sending", "wrk_next")
        assert chat.texts() == ["1"], "nothing new is begun under the old fence"


@pytest.mark.requirement("MSG-9")
async def test_a_reply_that_was_claimed_but_never_handed_over_is_sent_once(tmp_path: Path) -> None:
    chat = GatedChat()
    async with post(tmp_path, chat) as at:
        await at.start()
        await at.clock.advance(0.1)
        claim = at.deliverer.offer(at.message("x").target)
        assert claim == Holder(WORKER, at.fence or 0)
        outbox_id = await at.put("reply", final=True, claim=claim)
        await at.clock.advance(HAND_OVER_MS / 1000 - 1)
        assert chat.sent == [], "it may be on its way here"
        assert (await at.ends(outbox_id, step=1.0)).state == "sent"
        assert chat.texts() == ["reply"]


@pytest.mark.requirement("MSG-9")
async def test_a_sweep_and_a_hand_over_of_one_reply_send_it_once(tmp_path: Path) -> None:
    chat = GatedChat()
    chat.before["reply"] = Gate()
    async with post(tmp_path, chat) as at:
        await at.start()
        await at.clock.advance(0.1)
        outbox_id = await at.put("reply", final=True, claim=at.deliverer.offer(_place(at)))
        await at.until(lambda: chat.before["reply"].reached.is_set(), step=1.0)
        at.deliverer.hand((await at.row(outbox_id)).message)
        await at.clock.advance(30.0)
        chat.before["reply"].open.set()
        assert (await at.ends(outbox_id)).state == "sent"
        at.deliverer.hand((await at.row(outbox_id)).message)
        await at.clock.advance(30.0)
        assert [text for text, _ in chat.attempts] == ["reply"]


@pytest.mark.requirement("MSG-9")
async def test_a_slow_hand_over_is_not_sent_again_by_the_sweep(tmp_path: Path) -> None:
    chat = GatedChat()
    chat.before["reply"] = Gate()
    async with post(tmp_path, chat) as at:
        await at.start()
        await at.clock.advance(0.1)
        outbox_id = await at.put("reply", final=True, claim=at.deliverer.offer(_place(at)))
        at.deliverer.hand((await at.row(outbox_id)).message)
        await chat.before["reply"].reached.wait()
        await at.clock.advance(60.0)
        chat.before["reply"].open.set()
        assert (await at.ends(outbox_id)).state == "sent"
        assert [text for text, _ in chat.attempts] == ["reply"]


@pytest.mark.requirement("MSG-9", "MSG-11")
async def test_a_send_that_a_lost_lease_cut_off_is_settled_under_the_next_one(
    tmp_path: Path,
) -> None:
    chat = GatedChat(lookup=True)
    chat.after["reply"] = Gate()
    async with post(tmp_path, chat) as at:
        await at.start()
        await at.clock.advance(0.1)
        outbox_id = await at.put("reply", final=True, claim=at.deliverer.offer(_place(at)))
        at.deliverer.hand((await at.row(outbox_id)).message)
        await chat.after["reply"].reached.wait()
        chat.after.clear()
        await at.stop()
        await at.start()
        for _ in range(60):
            await at.clock.advance(1.0)
        assert (await at.row(outbox_id)).state == "sent"
        assert chat.texts() == ["reply"]


@pytest.mark.requirement("MSG-9", "SCALE-2")
@pytest.mark.parametrize("hours", [-1, 1])
async def test_what_was_in_hand_is_swept_up_although_the_clock_of_the_process_is_an_hour_off(
    tmp_path: Path, hours: int
) -> None:
    """Rows carry the store's time. The next lease may be the same process's."""
    chat = GatedChat()
    async with post(tmp_path, chat) as at:
        at.tell_time(SkewedClock(at.clock, hours * HOUR_MS))
        await at.start()
        await at.clock.advance(0.1)
        waiting = await at.put("waiting", final=True, claim=at.deliverer.offer(_place(at)))
        await at.clock.advance(HAND_OVER_MS / 1000 - 1)
        assert chat.sent == [], "it may be on its way here"
        await at.clock.advance(HAND_OVER_MS / 1000 + 2)
        assert (await at.row(waiting)).state == "sent"
        behind = await at.put("behind", "D", final=True, claim=Holder(WORKER, at.fence or 0))
        await at.stop()
        await at.start()
        await at.clock.advance(1.0)
        assert (await at.row(behind)).state == "sent"
        assert chat.texts() == ["waiting", "behind"]


@pytest.mark.requirement("MSG-10", "SCALE-2")
async def test_a_reply_is_not_given_up_early_by_a_clock_that_is_an_hour_ahead(
    tmp_path: Path,
) -> None:
    chat = GatedChat()
    chat.by_text["1"] = [DeliveryRetry("503"), DeliveryRetry("503")]
    async with post(tmp_path, chat) as at:
        at.tell_time(SkewedClock(at.clock, HOUR_MS))
        await at.start(give_up_after_s=600.0)
        outbox_id = await at.put("1")
        assert (await at.ends(outbox_id)).state == "sent"


class SkewedClock(FakeClock):
    """A replica's clock: the time of day is wrong by so much, timers are those of `right`."""

    def __init__(self, right: FakeClock, by_ms: int) -> None:
        super().__init__()
        self._right, self._by_ms = right, by_ms
        self.monotonic = right.monotonic
        self.sleep = right.sleep
        self.call_later = right.call_later

    def now_ms(self) -> int:
        """The wrong time of day."""
        return self._right.now_ms() + self._by_ms


def _place(at: Post) -> ChatAddress:
    return at.message("").target
