"""The chat page in headless Chromium, in front of a real gateway."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from shutil import which
from typing import Protocol

import pytest
from playwright.async_api import Browser, Page, async_playwright

from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.scenario.harness import Plan, Site, site

CHROMIUM = which("chromium") or which("chromium-browser") or which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]


class Chats(Protocol):
    """Makes gateways whose local owner needs no token."""

    def __call__(
        self, *script: Said | str, change: Callable[[Plan], None] = ...
    ) -> AbstractAsyncContextManager[Site]: ...


class Visits(Protocol):
    """Opens pages; leaving one checks that nothing went wrong on it."""

    def __call__(
        self, gateway: Site, path: str = "/", **context: object
    ) -> AbstractAsyncContextManager[Page]: ...


@pytest.fixture
def chats(tmp_path: Path) -> Chats:
    """Gateways on a database of their own."""

    def make(
        *script: Said | str, change: Callable[[Plan], None] = lambda plan: None
    ) -> AbstractAsyncContextManager[Site]:
        plan = Plan(tmp_path, ScriptedModels(ScriptedModel(script)))
        plan.http["loopback_owner"] = True
        change(plan)
        return site(plan)

    return make


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """Chromium, as the distribution ships it."""
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: install it (Debian: apt install chromium)")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            await browser.close()


@pytest.fixture
def visits(browser: Browser) -> Visits:
    """Pages that fail their test by an error, a refused script or a request to elsewhere."""

    @asynccontextmanager
    async def visit(gateway: Site, path: str = "/", **context: object) -> AsyncIterator[Page]:
        settings = {"viewport": {"width": 1280, "height": 800}, **context}
        opened = await browser.new_context(**settings)
        page = await opened.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if _is_defect(said) else None)
        page.on("request", lambda asked: wrong.append(asked.url) if _leaves(asked.url) else None)
        try:
            await page.goto(f"{gateway.url}{path}")
            yield page
            assert wrong == []
        finally:
            await opened.close()

    return visit


def _is_defect(said: object) -> bool:
    # A cut connection or a gateway that is away is reported too: some tests are about them.
    away = "net::ERR" in said.text or "status of 503" in said.text
    return said.type == "error" and not away


def _leaves(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "data:", "blob:"))
