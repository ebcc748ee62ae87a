"""A file that a person sent, on the page: what was made of it stands there without a reload."""

import asyncio
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.conftest import Chats, Visits
from tests.browser.test_chat import ready, write
from tests.fakes.model import Gate, Said
from tests.support.files import png

pytestmark = pytest.mark.asyncio(loop_scope="module")

READS = "**/v1/sessions/*/messages?*"
COMES_BACK = "() => document.dispatchEvent(new Event('visibilitychange'))"
"""The person looks at the page again, so that it reads again."""


async def attach(page: Page, *files: Path) -> None:
    """Choose files for the next message."""
    await page.locator("input[type=file]").set_input_files([str(file) for file in files])


@dataclass
class Slow:
    """A gateway that takes long over files: until `done`, nothing is said about them."""

    done: bool = False
    reads: int = 0
    open: int = 0

    async def answer(self, route: Route) -> None:
        """The list of messages, as it was before the files were read."""
        self.reads += 1
        self.open += 1
        stripped = not self.done
        response = await route.fetch()
        found = await response.json()
        if stripped:
            found["items"] = [one for one in found["items"] if one["kind"] != "system"]
        await route.fulfill(response=response, body=json.dumps(found))
        self.open -= 1

    async def quiet(self, page: Page) -> None:
        """Return once the page has read what it was told of so far."""
        while True:
            before = self.reads
            await page.evaluate("() => fetch('/healthz').then((one) => one.text())")
            if self.reads == before and not self.open:
                return


@pytest.mark.requirement("MSG-19", "WEB-1")
async def test_what_was_made_of_a_file_is_shown_while_the_answer_is_written(
    chats: Chats, visits: Visits, tmp_path: Path
) -> None:
    notes, asked, writing = tmp_path / "notes.txt", Gate(), Gate()
    notes.write_text("milk and honey")
    answer = Said("Milk and honey, I read.", before=asked, middle=writing, at=1)
    async with chats(answer) as gateway, visits(gateway) as page:
        slow = Slow()
        await page.route(READS, slow.answer)
        await ready(page)
        await attach(page, notes)
        await write(page, "what do I need?")
        await asked.reached.wait()
        await expect(page.locator("#activity")).to_have_text(re.compile("Thinking|Working"))
        await expect(page.locator(".kind-user .chips li")).to_have_text("notes.txt, 14 B")
        await expect(page.locator(".system")).to_have_count(0)
        await slow.quiet(page)
        slow.done = True
        asked.open.set()
        await expect(page.locator("#live-text")).to_have_text("Milk and")
        await expect(page.locator(".system")).to_have_text("notes.txt: text/plain, 14 bytes")
        writing.open.set()
        await expect(page.locator("#log .kind-assistant")).to_contain_text("I read.")
        await expect(page.locator(".system")).to_have_count(1)
        await page.unroute_all(behavior="ignoreErrors")


@pytest.mark.requirement("MSG-19", "WEB-1")
async def test_a_gateway_that_was_away_when_the_answer_came_is_read_again(
    chats: Chats, visits: Visits, tmp_path: Path
) -> None:
    photo, thinks = tmp_path / "photo.png", Gate()
    photo.write_bytes(png(64, 48))

    async def refuse(route: Route) -> None:
        problem = json.dumps({"status": 503, "detail": "Nothing was done; try again."})
        await route.fulfill(status=503, content_type="application/problem+json", body=problem)

    async with chats(Said("I see it.", before=thinks)) as gateway, visits(gateway) as page:
        await ready(page)
        await attach(page, photo)
        await write(page, "look at this")
        await thinks.reached.wait()
        await page.route(READS, refuse)
        async with gateway.feed() as feed:
            thinks.open.set()
            await feed.until("delivery.sent")
        for _ in range(2):
            # By itself: nothing happens in the conversation any more.
            await page.wait_for_event("request", lambda asked: "/messages?" in asked.url)
        await page.unroute(READS)
        await expect(page.locator("#log .kind-assistant")).to_contain_text("I see it.")
        await expect(page.locator(".system")).to_contain_text("photo.png: image/png, 64 x 48")


@pytest.mark.requirement("WEB-1", "REN-5")
async def test_a_run_that_began_does_not_read_as_one_that_waits(
    chats: Chats, visits: Visits
) -> None:
    """A reading of before its beginning may arrive behind the word that it thinks."""
    thinks = Gate()
    early = asyncio.Event()

    async def answer(route: Route) -> None:
        response = await route.fetch()
        found = await response.json()
        if early.is_set():
            found["state"] = "queued"
        await route.fulfill(response=response, body=json.dumps(found))

    async with chats(Said("I see it.", before=thinks)) as gateway, visits(gateway) as page:
        activity = page.locator("#activity")
        await page.route(re.compile(r"/v1/sessions/ses_\w+$"), answer)
        await ready(page)
        await write(page, "look at this")
        await thinks.reached.wait()
        # The word of a reading may overwrite the one that the stream told of.
        await expect(activity).to_have_text(re.compile("^(Thinking|Working)$"))
        early.set()
        await page.evaluate(COMES_BACK)
        await expect(activity).to_have_text("Waiting to start")
        early.clear()
        await page.evaluate(COMES_BACK)
        await expect(activity).to_have_text("Working")
        thinks.open.set()
        await expect(page.locator("#log .kind-assistant")).to_contain_text("I see it.")
        await page.unroute_all(behavior="ignoreErrors")
