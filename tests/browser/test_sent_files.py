"""A file that the agent sent, on the page: a name and a link that saves it (MSG-19, WEB-1)."""

import json
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Chats, Visits
from tests.browser.test_chat import ready, write
from tests.fakes.model import Said
from tests.support.files import png

pytestmark = pytest.mark.asyncio(loop_scope="module")

HTML = "<!doctype html><title>gotcha</title><script>document.title = 'run'</script>"


def saved(path: Path) -> str:
    """What a download left on the disk."""
    return path.read_text()


@pytest.mark.requirement("MSG-19", "WEB-1", "WEB-2")
async def test_a_sent_file_is_saved_and_not_opened(chats: Chats, visits: Visits) -> None:
    calls = tuple(
        ("send_file", json.dumps({"path": name, "caption": caption}))
        for name, caption in (("page.html", "The **page** of June"), ("numbers.csv", ""))
    )
    async with chats(Said(calls=calls), "Both are above.") as gateway, visits(gateway) as page:
        (gateway.workspace / "files/page.html").write_text(HTML)
        (gateway.workspace / "files/numbers.csv").write_text("a,b\n" * 4000)
        await ready(page)
        await write(page, "send me the page and the numbers")
        await expect(page.locator("#log")).to_contain_text("Both are above.")
        files = page.get_by_role("list", name="Files to download")
        await expect(files).to_have_count(2)
        await expect(files.nth(1)).to_have_text("numbers.csv16 kB")
        await expect(page.locator(".kind-file strong")).to_have_text("page")
        async with page.expect_download() as download:
            await page.get_by_role("link", name="page.html").click()
        found = await download.value
        assert found.suggested_filename == "page.html"
        assert saved(await found.path()) == HTML
        assert await page.title() != "gotcha"


@pytest.mark.requirement("WEB-1")
async def test_on_a_phone_a_persons_files_stand_below_their_words(
    chats: Chats, visits: Visits, tmp_path: Path
) -> None:
    long, short = tmp_path / f"photo-{'x' * 90}.png", tmp_path / "b.txt"
    long.write_bytes(png(64, 48))
    short.write_text("words")
    async with chats("I see it.") as gateway, visits(gateway) as page:
        await page.set_viewport_size({"width": 375, "height": 800})
        await ready(page)
        await page.locator("input[type=file]").set_input_files([str(long), str(short)])
        await write(page, "look at these")
        await expect(page.locator("#log")).to_contain_text("I see it.")
        rights = [
            await page.locator(of).last.evaluate("one => one.getBoundingClientRect().right")
            for of in (".kind-user .bubble", ".kind-user .chips li")
        ]
        assert rights[0] == rights[1]
