"""Somebody at a browser, whichever it is.

What they look at is named by XPath, because Chromium and Firefox read it alike.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from playwright.async_api import Browser, Page, expect

from tests.browser.marionette import ENTER, Marionette, new_window

SHOWN = "[not(ancestor-or-self::*[@hidden])]"
TOKEN = f"//input[@id=//label[normalize-space()='Access token']/@for]{SHOWN}"
MESSAGE = "//textarea[@id='message']"
READY = "//body[@data-ready='yes']//*[@id='connection'][normalize-space()='Connected']"
REPLY = "//*[@id='log']//*[contains(@class, 'kind-assistant')]"


def button(name: str) -> str:
    """The button of this name that is shown."""
    return f"//button[normalize-space()='{name}']{SHOWN}"


def alert(words: str) -> str:
    """A message that something went wrong."""
    return f"//*[@role='alert'][contains(., '{words}')]{SHOWN}"


class Visitor(Protocol):
    """What a person does at a browser. Whatever they look for is waited for."""

    async def go(self, url: str) -> None: ...

    async def reload(self) -> None: ...

    async def address(self) -> str: ...

    async def sees(self, path: str) -> None: ...

    async def is_there(self, path: str) -> bool:
        """Whether it is there now."""

    async def is_focused(self, path: str) -> bool: ...

    async def types(self, path: str, text: str) -> None: ...

    async def clicks(self, path: str) -> None: ...

    async def presses_enter(self) -> None: ...

    async def evaluates(self, expression: str) -> object: ...

    async def cookie(self, name: str) -> dict[str, object] | None: ...


Arrive = Callable[[str], AbstractAsyncContextManager[Visitor]]
"""Somebody who was never here opens this address."""


class InChromium:
    """A visitor by Playwright."""

    def __init__(self, page: Page) -> None:
        self._page = page

    async def go(self, url: str) -> None:
        await self._page.goto(url)

    async def reload(self) -> None:
        await self._page.reload()

    async def address(self) -> str:
        return self._page.url

    async def sees(self, path: str) -> None:
        await expect(self._page.locator(f"xpath={path}")).to_be_visible()

    async def is_there(self, path: str) -> bool:
        return bool(await self._page.locator(f"xpath={path}").count())

    async def is_focused(self, path: str) -> bool:
        found = self._page.locator(f"xpath={path}")
        return bool(await found.evaluate("one => one === document.activeElement"))

    async def types(self, path: str, text: str) -> None:
        await self._page.locator(f"xpath={path}").press_sequentially(text)

    async def clicks(self, path: str) -> None:
        await self._page.locator(f"xpath={path}").click()

    async def presses_enter(self) -> None:
        await self._page.keyboard.press("Enter")

    async def evaluates(self, expression: str) -> object:
        return await self._page.evaluate(expression)

    async def cookie(self, name: str) -> dict[str, object] | None:
        return next(
            (one for one in await self._page.context.cookies() if one["name"] == name), None
        )


class InFirefox:
    """A visitor by Marionette."""

    def __init__(self, firefox: Marionette) -> None:
        self._firefox = firefox

    async def go(self, url: str) -> None:
        await self._firefox.ask("WebDriver:Navigate", url=url)

    async def reload(self) -> None:
        await self._firefox.ask("WebDriver:Refresh")

    async def address(self) -> str:
        return str(await self._firefox.ask("WebDriver:GetCurrentURL"))

    async def sees(self, path: str) -> None:
        found = await self._firefox.find(path)
        assert await self._firefox.ask("WebDriver:IsElementDisplayed", id=found)

    async def is_there(self, path: str) -> bool:
        return bool(
            await self.evaluates(f'document.evaluate("boolean({path})", document).booleanValue')
        )

    async def is_focused(self, path: str) -> bool:
        return await self._firefox.find(path) == await self._active()

    async def types(self, path: str, text: str) -> None:
        found = await self._firefox.find(path)
        await self._firefox.ask("WebDriver:ElementSendKeys", id=found, text=text)

    async def clicks(self, path: str) -> None:
        await self._firefox.ask("WebDriver:ElementClick", id=await self._firefox.find(path))

    async def presses_enter(self) -> None:
        active = await self._active()
        await self._firefox.ask("WebDriver:ElementSendKeys", id=active, text=ENTER)

    async def evaluates(self, expression: str) -> object:
        script = f"return {expression}"
        return await self._firefox.ask("WebDriver:ExecuteScript", script=script, args=[])

    async def cookie(self, name: str) -> dict[str, object] | None:
        cookies = await self._firefox.ask("WebDriver:GetCookies")
        return next((one for one in cookies if one["name"] == name), None)

    async def _active(self) -> str:
        (active,) = (await self._firefox.ask("WebDriver:GetActiveElement")).values()
        return str(active)


def chromium_visitors(browser: Browser) -> Arrive:
    """Visitors in contexts of their own."""

    @asynccontextmanager
    async def arrive(url: str) -> AsyncIterator[Visitor]:
        context = await browser.new_context()
        try:
            somebody = InChromium(await context.new_page())
            await somebody.go(url)
            yield somebody
        finally:
            await context.close()

    return arrive


def firefox_visitors(port: int) -> Arrive:
    """Visitors in windows of their own, without the cookies of those before them."""

    @asynccontextmanager
    async def arrive(url: str) -> AsyncIterator[Visitor]:
        async with new_window(port) as firefox:
            somebody = InFirefox(firefox)
            await somebody.go(url)
            yield somebody

    return arrive
