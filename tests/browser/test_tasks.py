"""The tasks of a conversation on the page: their list has buttons."""

import json
import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Audit, Chats, Visits
from tests.browser.test_chat import ready, write
from tests.fakes.model import Said

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.requirement("WEB-3", "MSG-12", "TSK-1")
async def test_a_task_is_stopped_by_its_button(chats: Chats, visits: Visits, audit: Audit) -> None:
    noted = Said(
        calls=(
            (
                "call_tool",
                json.dumps({"tool": "task_create", "arguments": {"title": "water the plants"}}),
            ),
        )
    )
    async with chats(noted, "Noted.") as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "note it")
        await expect(page.locator("#log")).to_contain_text("Noted.")
        await write(page, "/tasks")
        notice = page.locator(".kind-notice")
        await expect(notice).to_contain_text("water the plants: to be done")
        assert await audit(page) == []
        button = notice.get_by_role("group", name="Commands").get_by_role("button")
        await expect(button).to_have_text(re.compile(r"Stop \w{6}"))
        await button.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator(".kind-notice").last).to_contain_text("is cancelled.")
        await expect(page.locator(".kind-user").last).to_contain_text("/tasks stop")
        await notice.first.get_by_role("button").click()
        await expect(page.locator(".kind-notice").last).to_contain_text(
            "is over already: cancelled"
        )


@pytest.mark.requirement("WEB-1", "REN-5")
async def test_what_is_switched_on_looks_like_no_part_of_a_command(
    chats: Chats, visits: Visits
) -> None:
    command = '{"command": "for i in 1 2; do ls; done", "background": true, "network": false}'
    asks = Said("I will look.", calls=(("exec", command),))
    async with chats(asks, "There.") as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "What is there?")
        await expect(page.locator("details.step .brief")).to_have_text(
            "for i in 1 2; do ls; done (in the background)"
        )
