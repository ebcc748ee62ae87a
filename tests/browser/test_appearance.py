"""The page in both colour schemes, on a phone, and behind a login (WEB-1, WEB-2, UI-7)."""

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Chats, Visits
from tests.browser.test_chat import ready, write
from tests.fakes.model import Said
from tests.scenario.harness import ADMIN

pytestmark = pytest.mark.asyncio(loop_scope="module")

WIDE = Said(
    "| a | b |\n|---|---|\n| " + "wide" * 60 + " | x |\n\n```\n" + "code " * 80 + "\n```\n"
    "A-very-long-word-" + "x" * 300,
    calls=(("exec", '{"command": "' + "y" * 400 + '"}'),),
)
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.mark.requirement("UI-7", "WEB-1")
@pytest.mark.parametrize("width", [390, 320, 768, 1280])
async def test_nothing_makes_the_page_scroll_sideways(
    chats: Chats, visits: Visits, width: int
) -> None:
    async with (
        chats(WIDE) as gateway,
        visits(gateway, viewport={"width": width, "height": 780}) as page,
    ):
        await ready(page)
        await write(page, "z" * 300)
        await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
        await page.locator("details.step summary").click()
        assert await page.evaluate(FITS)
        scroller = "one => one.scrollWidth <= one.clientWidth"
        assert await page.locator("#scroller").evaluate(scroller)


@pytest.mark.requirement("UI-7", "WEB-1")
@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
async def test_the_page_follows_the_colour_scheme_and_can_be_read(
    chats: Chats, visits: Visits, scheme: str, dark: bool
) -> None:
    contrast = """() => {
      const light = (one) => {
        const parts = one.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
          .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
      };
      const ground = light(getComputedStyle(document.body).backgroundColor);
      return [...document.querySelectorAll('#log p, .title, .keys, .activity, .sessions time')]
        .map((one) => light(getComputedStyle(one).color))
        .map((ink) => (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05));
    }"""
    async with chats("Hello.") as gateway, visits(gateway, color_scheme=scheme) as page:
        await ready(page)
        await write(page, "hi")
        await expect(page.locator("#log")).to_contain_text("Hello.")
        ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(int(one) for one in ground[4:-1].split(",")) < 3 * 128) is dark
        ratios = await page.evaluate(contrast)
        assert len(ratios) >= 4
        assert min(ratios) >= 4.5


@pytest.mark.requirement("UI-7")
async def test_on_a_phone_the_list_opens_over_the_conversation(
    chats: Chats, visits: Visits
) -> None:
    async with chats("a", "b") as gateway:
        for text in ("first topic", "second topic"):
            session = await gateway.session()
            await gateway.state(await gateway.says(session, text), "completed")
        async with visits(gateway, viewport={"width": 390, "height": 780}) as page:
            await ready(page)
            await expect(page.locator("#sidebar")).to_be_hidden()
            await page.get_by_role("button", name="Conversations").click()
            await expect(page.locator("#close-sidebar")).to_be_focused()
            await page.keyboard.press("Escape")
            await expect(page.locator("#sidebar")).to_be_hidden()
            await expect(page.locator("#open-sidebar")).to_be_focused()
            await page.keyboard.press("Enter")
            await page.get_by_role("link", name="first topic").click()
            await expect(page.locator("#title")).to_have_text("first topic")
            await expect(page.locator("#sidebar")).to_be_hidden()


@pytest.mark.requirement("WEB-2")
async def test_a_person_logs_in_talks_and_logs_out(chats: Chats, visits: Visits) -> None:
    async with chats("Welcome.") as gateway, visits(gateway, logged_in=False) as page:
        await expect(page.get_by_label("Access token")).to_be_focused()
        await page.keyboard.type(ADMIN)
        await page.keyboard.press("Enter")
        await ready(page)
        await write(page, "hello")
        await expect(page.locator("#log")).to_contain_text("Welcome.")
        assert await page.evaluate("document.cookie") == ""
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_label("Access token")).to_be_visible()
        await page.goto(f"{gateway.url}/")
        await expect(page.get_by_label("Access token")).to_be_visible()


@pytest.mark.requirement("UI-7", "WEB-1")
async def test_every_control_has_a_name_for_a_screen_reader(chats: Chats, visits: Visits) -> None:
    asks = Said("", calls=(("exec", '{"command": "ls"}'),))
    async with chats(asks) as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "go")
        await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
        nameless = """() => [...document.querySelectorAll('button, input, select, textarea, a')]
          .filter((one) => one.checkVisibility())
          .filter((one) => !(one.ariaLabel || one.textContent.trim() || (one.labels || []).length))
          .map((one) => one.outerHTML)"""
        assert await page.evaluate(nameless) == []
        for role, name in (("log", None), ("navigation", "Conversations"), ("main", None)):
            await expect(page.get_by_role(role, name=name)).to_have_count(1)
        await expect(page.locator("#log")).to_have_attribute("aria-live", "polite")
