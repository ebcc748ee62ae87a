"""The web page tells with each message where the clocks of its person are."""

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Chats, Visits
from tests.browser.test_chat import ready, write

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.requirement("SCH-8")
async def test_a_message_is_sent_though_the_gateway_does_not_know_the_zone(
    chats: Chats, visits: Visits
) -> None:
    async with chats() as gateway, visits(gateway) as page:
        await ready(page)
        await page.evaluate(
            "Intl.DateTimeFormat.prototype.resolvedOptions = () => ({ timeZone: 'Mars/Olympus' })"
        )
        await write(page, "/timezone")
        answer = page.locator("#log .kind-notice").last
        await expect(answer).to_contain_text("I do not know your time zone")


@pytest.mark.requirement("SCH-8")
async def test_a_message_carries_the_time_zone_of_the_browser(chats: Chats, visits: Visits) -> None:
    async with chats() as gateway, visits(gateway) as page:
        await ready(page)
        zone = await page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
        await write(page, "/timezone")
        answer = page.locator("#log .kind-notice").last
        await expect(answer).to_contain_text(f"Your time zone is {zone}, as your profile")
