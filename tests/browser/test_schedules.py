"""Schedules on the page: their list and a reminder that came have buttons."""

import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Audit, Chats, Visits
from tests.browser.test_chat import ready, write

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.requirement("WEB-3", "MSG-12", "SCH-8"),
]


async def test_a_schedule_is_paused_and_a_reminder_snoozed_by_buttons(
    chats: Chats, visits: Visits, audit: Audit
) -> None:
    async with chats() as gateway, visits(gateway) as page:
        await ready(page)
        last = page.locator(".kind-notice").last
        await write(page, "/remind in 2 hours: water the plants")
        await expect(last).to_contain_text("I will remind you")
        for label, answer in (
            ("Pause", "Paused."),
            ("Resume", "It goes on: next on"),
        ):
            await write(page, "/schedules")
            buttons = last.get_by_role("group", name="Commands").get_by_role("button")
            await expect(buttons).to_have_text([re.compile(label), re.compile("Cancel")])
            listed = await page.locator(".kind-notice").count()
            await buttons.first.focus()
            await page.keyboard.press("Enter")
            await expect(page.locator(".kind-notice")).to_have_count(listed + 1)
            await expect(last).to_contain_text(answer)
        # The list of before keeps its buttons; the second press of one is answered plainly.
        old = page.get_by_role("button", name=re.compile("^Resume "))
        await old.click()
        await expect(last).to_contain_text("It is not paused.")

        code = str(await old.text_content()).removeprefix("Resume ")
        await write(page, f"/schedules trigger {code}")
        reminder = page.locator(".kind-notice").filter(has_text="Reminder")
        snoozes = reminder.get_by_role("group", name="Commands").get_by_role("button")
        await expect(snoozes).to_have_text(["Snooze 10 min", "Snooze 1 h"])
        assert await audit(page) == []
        await snoozes.last.click()
        await expect(last).to_contain_text("It comes again on")
        await snoozes.first.click()
        await expect(last).to_contain_text("It was snoozed already.")
