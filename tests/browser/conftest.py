"""The pages in headless browsers, in front of a real gateway."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from shutil import which
from typing import Protocol

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from gateway.http.auth import COOKIE
from runtime.intake.logins import Credential, fingerprint
from tests.browser.marionette import FIREFOX, running_firefox
from tests.browser.visitors import Arrive, chromium_visitors, firefox_visitors
from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.scenario.harness import ADMIN, Plan, Site, site
from tests.support.compiled_statements import compiled_once

__all__ = ["compiled_once"]

# A bound against hanging: playwright's own 5 s are too few on a slow machine.
expect.set_options(timeout=120_000)

CHROMIUM = which("chromium") or which("chromium-browser") or which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]

Audit = Callable[[Page], Awaitable[list[str]]]
"""What is wrong with a page as it stands, one line for each place."""


class Chats(Protocol):
    """Makes gateways."""

    def __call__(
        self, *script: Said | str, change: Callable[[Plan], None] = ...
    ) -> AbstractAsyncContextManager[Site]: ...


class Visits(Protocol):
    """Opens pages; leaving one checks that nothing went wrong on it."""

    def __call__(
        self, gateway: Site, path: str = "/", *, logged_in: bool = True, **context: object
    ) -> AbstractAsyncContextManager[Page]: ...


@pytest.fixture
def chats(tmp_path: Path) -> Chats:
    """Gateways on a database of their own."""

    def make(
        *script: Said | str, change: Callable[[Plan], None] = lambda plan: None
    ) -> AbstractAsyncContextManager[Site]:
        plan = Plan(tmp_path, ScriptedModels(ScriptedModel(script)))
        change(plan)
        return site(plan)

    return make


async def login_cookie(gateway: Site) -> dict[str, str]:
    """The cookie of a person who logged in before."""
    credential = Credential(role="admin", token=fingerprint(ADMIN))
    secret = await gateway.services.logins.create(credential)
    return {"name": COOKIE, "value": secret, "url": gateway.url, "sameSite": "Strict"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Chromium, as the distribution ships it. One for all tests of a file: each has a context of
    its own, as in a private window, and starting one costs more than most of them."""
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: install it (Debian: apt install chromium)")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            await browser.close()


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of Firefox, as the distribution ships it."""
    if FIREFOX is None:
        pytest.skip("Firefox is missing: install it (Debian: apt install firefox-esr)")
    with running_firefox(tmp_path_factory.mktemp("firefox")) as port:
        yield port


@pytest.fixture(params=["chromium", "firefox"])
def arrives(request: pytest.FixtureRequest) -> Arrive:
    """Visitors by each of the browsers that people come with."""
    if request.param == "chromium":
        return chromium_visitors(request.getfixturevalue("browser"))
    return firefox_visitors(request.getfixturevalue("firefox"))


@pytest.fixture
def visits(browser: Browser) -> Visits:
    """Pages that fail their test by an error, a refused script or a request to elsewhere."""

    @asynccontextmanager
    async def visit(
        gateway: Site, path: str = "/", *, logged_in: bool = True, **context: object
    ) -> AsyncIterator[Page]:
        settings = {"viewport": {"width": 1280, "height": 800}, **context}
        opened = await browser.new_context(**settings)
        if logged_in:
            await opened.add_cookies([await login_cookie(gateway)])
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


@pytest.fixture(scope="module")
def audit() -> Audit:
    """axe-core, with all its rules: what it calls serious or critical."""
    package = pytest.importorskip(
        "axe_playwright_python.async_playwright",
        reason="axe-playwright-python is missing: run make, it installs the test tools",
    )
    axe = package.Axe()

    async def look(page: Page) -> list[str]:
        found = await axe.run(page, options={"resultTypes": ["violations"], "preload": False})
        return [
            f"{rule['id']} ({rule['impact']}) at {node['target']}: {node['failureSummary']}"
            for rule in found.response["violations"]
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]

    return look


def _is_defect(said: object) -> bool:
    # A cut connection or a gateway that is away is reported too: some tests are about them.
    away = "net::ERR" in said.text or "status of 503" in said.text
    # The page asks which part of a generation a model refuses by trying it, and whether the gateway
    # knows the zone of the browser.
    asks = ("/route-policy", "/runs")
    tried = "status of 422" in said.text and said.location["url"].endswith(asks)
    return said.type == "error" and not (away or tried)


def _leaves(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "data:", "blob:"))
