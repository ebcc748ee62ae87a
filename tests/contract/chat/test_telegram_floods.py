"""Telegram's limits: who obeys them loses nothing, and who does not is found out."""

import pytest

from runtime.domain.errors import DeliveryRetry
from runtime.domain.messages import Receipt
from tests.contract.chat.telegram_support import Desk, desk, to
from tests.wire.telegram import Chat

__all__ = ["desk"]


async def sent(desk: Desk, chat: Chat, text: str) -> Receipt:
    """As the engine sends: not before the time that the platform named."""
    desk.progress.ids.clear()
    while True:
        try:
            return await desk.send(to(chat, text))
        except DeliveryRetry as error:
            # Without a time it would come at once, and the server would find it out.
            await desk.clock.advance(error.after_s or 0.0)


@pytest.mark.requirement("TEL-5", "MSG-10")
async def test_with_a_third_of_all_calls_refused_each_post_arrives_once_and_in_order(
    desk: Desk,
) -> None:
    group = desk.server.world.supergroup("Team", desk.ann)
    desk.server.floods.refuse(1 / 3, seed=11, retry_after=4, now=desk.clock.monotonic)
    for number in range(30):
        for chat in (desk.chat, group):
            await sent(desk, chat, f"post {number}")
    wanted = [f"post {number}" for number in range(30)]
    assert (desk.shown(), desk.shown(group)) == (wanted, wanted)
    assert desk.server.floods.refused > 15, "a third of sixty calls and more"


@pytest.mark.requirement("TEL-5")
async def test_a_group_never_sees_the_servers_own_limit_of_twenty_a_minute(desk: Desk) -> None:
    group = desk.server.world.supergroup("Team", desk.ann)
    desk.server.floods.enforce(desk.clock.monotonic)
    for number in range(50):
        receipt = await sent(desk, group, f"post {number}")
        if number % 5 == 0:
            # Edits count as well.
            await desk.clock.advance(3)
            await edited(desk, group, receipt)
        await desk.clock.advance(1)
    assert desk.server.floods.refused == 0
    assert len(desk.shown(group)) == 50


async def edited(desk: Desk, group: Chat, receipt: Receipt) -> None:
    while True:
        try:
            await desk.adapter.edit(to(group, "edited"), receipt)
        except DeliveryRetry as error:
            await desk.clock.advance(error.after_s or 1.0)
        else:
            return
