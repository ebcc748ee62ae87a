"""The page in both colour schemes, on a phone, behind a login, and as axe sees it (WEB-1, UI-7)."""

from dataclasses import replace
from itertools import pairwise

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import Audit, Chats, Visits
from tests.browser.test_chat import ASKS, LONG, ready, write
from tests.browser.test_received_files import COMES_BACK
from tests.fakes.model import Gate, Said
from tests.scenario.harness import ADMIN, READER

pytestmark = pytest.mark.asyncio(loop_scope="module")

STAYS = """() => document.querySelector('.logout').addEventListener(
  'submit', (event) => event.preventDefault())"""
WIDE = Said(
    "| a | b |\n|---|---|\n| "
    + "wide" * 60
    + " | `0041_invoices.py` |\n\n```\n"
    + "code " * 80
    + "\n```\n"
    "A-very-long-word-" + "x" * 300,
    calls=(("exec", '{"command": "' + "y" * 400 + '"}'),),
)
RICH = Said(
    "# Title\n\nSee `code` and [it](https://example.com).\n\n> so\n\n| a |\n|---|\n| 1 |\n\n"
    "```python\ndef f(x): return 'a' + 1  # c\n```\n\n```diff\n-a\n+b\n```",
    calls=(("exec", '{"command": "rm -rf build"}'),),
)
# Of every text that is shown, against what is really behind it (WCAG 2.2, 1.4.3).
CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = (top, below) => {
    const part = top[3] / 255;
    return [...[0, 1, 2].map((at) => top[at] * part + below[at] * (1 - part)), 255];
  };
  const behind = (one) => {
    const own = rgba(getComputedStyle(one).backgroundColor);
    if (own[3] === 255 || !one.parentElement) return own;
    return over(own, behind(one.parentElement));
  };
  const light = (parts) => {
    const [r, g, b] = parts.slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const isWord = (node) => node instanceof Text && node.data.trim();
  const says = (one) => [...one.childNodes].some(isWord);
  return [...document.body.querySelectorAll('*')]
    .filter((one) => says(one) && one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => !one.closest('.sr, .skip, svg, [disabled]'))
    .map((one) => {
      const ground = behind(one);
      const [ink, below] = [light(over(rgba(getComputedStyle(one).color), ground)), light(ground)];
      const ratio = (Math.max(ink, below) + 0.05) / (Math.min(ink, below) + 0.05);
      return { name: one.className || one.tagName, ratio };
    });
}"""
SCROLLING = """() => [...document.querySelectorAll('*')]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }))
  .filter((one) => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)
  .filter((one) => /auto|scroll/.test(getComputedStyle(one).overflow))
  .map((one) => ({
    name: one.className || one.tagName,
    reached: one.tabIndex >= 0 || !!one.querySelector('a[href], button, input, [tabindex="0"]'),
  }))"""
# A list to choose from does not tell of a text that it cuts, so it is held against a free one.
WHOLE = """(one) => {
  const free = one.cloneNode(true);
  free.style.cssText = 'position: absolute; width: auto; max-width: none';
  one.parentElement.append(free);
  const width = free.offsetWidth;
  free.remove();
  return one.offsetWidth >= width;
}"""
# What a screen reader says by itself: whatever is put into a live region.
LISTENS = """() => {
  window.heard = [];
  const live = '[aria-live]:not([aria-live=off]), [role=status], [role=alert]';
  for (const region of document.querySelectorAll(live)) {
    new MutationObserver((changes) => {
      for (const one of changes.flatMap((change) => [...change.addedNodes])) {
        window.heard.push(one.textContent);
      }
    }).observe(region, { childList: true, subtree: true });
  }
}"""
ENDS = "one => one.getBoundingClientRect().right"
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
        assert await page.locator("#mode").evaluate(WHOLE)
        edge = await page.locator("#composer").evaluate(ENDS)
        assert await page.get_by_role("button", name="Stop").evaluate(ENDS) < edge
        assert await page.locator("#send").evaluate(ENDS) < edge


@pytest.mark.requirement("UI-7", "WEB-1")
@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
async def test_the_page_follows_the_colour_scheme_and_can_be_read(
    chats: Chats, visits: Visits, audit: Audit, scheme: str, dark: bool
) -> None:
    async with chats(RICH) as gateway, visits(gateway, color_scheme=scheme) as page:
        await ready(page)
        await write(page, "hi")
        await expect(page.get_by_role("button", name="Deny...")).to_be_visible()
        await expect(page.locator(".sessions .state")).to_have_text("Needs your approval")
        await page.locator("details.step summary").click()
        ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(int(one) for one in ground[4:-1].split(",")) < 3 * 128) is dark
        ratios = await page.evaluate(CONTRASTS)
        assert {"state", "brief", "hl-comment", "language"} <= {one["name"] for one in ratios}
        assert [one for one in ratios if one["ratio"] < 4.5] == []
        assert await audit(page) == []
        levels = await page.evaluate(
            "[...document.querySelectorAll('h1, h2, h3, h4')]"
            ".filter((one) => one.checkVisibility()).map((one) => Number(one.tagName[1]))"
        )
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        for role, name in (("log", None), ("navigation", "Conversations"), ("main", None)):
            await expect(page.get_by_role(role, name=name)).to_have_count(1)


@pytest.mark.requirement("UI-7")
async def test_whatever_scrolls_is_reached_by_the_keyboard(
    chats: Chats, visits: Visits, audit: Audit
) -> None:
    narrow = {"width": 390, "height": 700}
    async with chats(WIDE) as gateway, visits(gateway, viewport=narrow) as page:
        await ready(page)
        await write(page, "z" * 300)
        await expect(page.get_by_role("button", name="Deny...")).to_be_visible()
        await page.locator("details.step summary").click()
        scrolling = await page.evaluate(SCROLLING)
        assert {"table-scroll", "scroller"} <= {one["name"] for one in scrolling}
        assert [one for one in scrolling if not one["reached"]] == []
        assert await audit(page) == []
        lines = "one => one.getClientRects().length"
        assert await page.locator("td code").evaluate(lines) == 1


@pytest.mark.requirement("UI-7")
async def test_on_a_phone_the_list_opens_over_the_conversation(
    chats: Chats, visits: Visits, audit: Audit
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
            assert await audit(page) == []
            await page.keyboard.press("Escape")
            await expect(page.locator("#sidebar")).to_be_hidden()
            await expect(page.locator("#open-sidebar")).to_be_focused()
            await page.keyboard.press("Enter")
            await page.get_by_role("link", name="first topic").click()
            await expect(page.locator("#title")).to_have_text("first topic")
            await expect(page.locator("#sidebar")).to_be_hidden()


@pytest.mark.requirement("WEB-2")
async def test_a_person_logs_in_talks_and_logs_out(
    chats: Chats, visits: Visits, audit: Audit
) -> None:
    async with chats("Welcome.", ASKS) as gateway, visits(gateway, logged_in=False) as page:
        await expect(page.get_by_label("Access token")).to_be_focused()
        assert await audit(page) == []
        await page.keyboard.type(ADMIN)
        await page.keyboard.press("Enter")
        await ready(page)
        assert await audit(page) == []
        await write(page, "hello")
        await expect(page.locator("#log")).to_contain_text("Welcome.")
        assert await page.evaluate("document.cookie") == ""
        await write(page, "look")
        await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_label("Access token")).to_be_visible()
        await page.goto(f"{gateway.url}/")
        await page.get_by_label("Access token").fill(READER)
        await page.keyboard.press("Enter")
        await ready(page)
        await expect(page.locator(".card")).to_contain_text("May I run exec?")
        for name in ("Allow once", "Deny...", "Edit and send again", "Attach a file", "Stop"):
            await expect(page.get_by_role("button", name=name)).to_have_count(0)


@pytest.mark.requirement("WEB-1")
async def test_a_page_that_is_being_left_asks_nothing_more(chats: Chats, visits: Visits) -> None:
    """The gateway has ended the session before the browser shows the next page."""
    asked: list[str] = []
    async with chats("Welcome.") as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "hello")
        await expect(page.locator("#log")).to_contain_text("Welcome.")
        # As long as the answer to the logout takes, the page stands.
        await page.evaluate(STAYS)
        await page.evaluate("document.querySelector('.logout button').click()")
        page.on("request", lambda request: asked.append(request.url))
        await page.evaluate(COMES_BACK)
        await page.evaluate("fetch('/healthz').then((answer) => answer.status)")
    assert asked == [f"{gateway.url}/healthz"]


@pytest.mark.requirement("UI-7")
async def test_axe_finds_what_is_wrong(browser: Browser, audit: Audit) -> None:
    page = await browser.new_page()
    await page.set_content("<html lang=en><title>a</title><main><h1>a</h1><button></button></main>")
    found = await audit(page)
    await page.close()
    assert [one.partition(" ")[0] for one in found] == ["button-name"]


@pytest.mark.requirement("WEB-1", "UI-7")
async def test_a_screen_reader_says_each_new_thing_once(chats: Chats, visits: Visits) -> None:
    gate = Gate()
    script = (replace(ASKS, text=LONG, chunk=3, before=gate), "There are **three**.")
    async with chats(*script) as gateway, visits(gateway) as page:
        await ready(page)
        await page.evaluate(LISTENS)
        await write(page, "What is there?")
        await expect(page.locator("#spoken")).to_have_text("Gatehouse is at work.")
        gate.open.set()
        await page.get_by_role("button", name="Allow once").click()
        await expect(page.locator("#spoken")).to_contain_text("There are three.")
        heard = await page.evaluate("window.heard")
    plain = LONG.replace("**", "")
    assert heard[:2] == ["Gatehouse is at work.", f"Gatehouse said\n{plain}"]
    assert heard[2].startswith("May I run exec?\nLow risk: it only reads files.\n")
    assert heard[3].startswith("exec Allowed by the owner")
    assert heard[4:] == ["Gatehouse said\nThere are three."]
