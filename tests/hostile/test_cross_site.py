"""A page of another origin, in the browser of somebody who is logged in, gains nothing (SEC-3).

The origins are another site, the same site on another port (another user's server, whose pages the
browser sends the cookie along with), and a name that its owner points at this machine.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, async_playwright

from gateway.http.auth import COOKIE
from runtime.store import Connection
from tests.browser.conftest import ARGUMENTS, CHROMIUM, login_cookie
from tests.conftest import FailAfter
from tests.fakes.model import ScriptedModels
from tests.scenario.harness import ADMIN, Plan, Site, site
from tests.support import audit_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

REBOUND = "rebound.test"
FORMS = (
    "/v1/sessions",
    "/v1/login-links",
    "/v1/tokens/reload",
    "/v1/pairings/owner-code",
    "/logout",
)
SCRIPT = """
async ([target, forms]) => {
  const said = {};
  const attempt = async (name, work) => {
    try { said[name] = await work(); } catch (error) { said[name] = "refused"; }
  };
  const text = async (answer) => `${answer.type} ${answer.status} ${await answer.text()}`;
  for (const mode of ["no-cors", "cors"]) {
    for (const path of ["/", "/v1/sessions", "/v1/status", "/v1/events", "/login"]) {
      await attempt(`read ${mode} ${path}`, async () =>
        text(await fetch(target + path, { mode, credentials: "include" })));
    }
    for (const path of forms) {
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"]) {
        await attempt(`write ${mode} ${path} ${type}`, async () =>
          text(await fetch(target + path, {
            method: "POST", mode, credentials: "include", body: "{}",
            headers: { "Content-Type": type } })));
      }
    }
    await attempt(`beacon ${mode}`, async () =>
      String(navigator.sendBeacon(target + "/v1/sessions", "{}") && ""));
  }
  for (const path of forms) {
    await attempt(`form ${path}`, () => new Promise((done) => {
      const frame = document.createElement("iframe");
      frame.name = `frame${path}`;
      frame.onload = () => {
        try { done(frame.contentDocument.body.textContent); } catch { done("refused"); }
      };
      document.body.append(frame);
      const form = document.createElement("form");
      Object.assign(form, { method: "POST", action: target + path, target: frame.name });
      form.enctype = "text/plain";
      document.body.append(form);
      form.submit();
    }));
  }
  await attempt("events", () => new Promise((done) => {
    const source = new EventSource(target + "/v1/events", { withCredentials: true });
    source.onmessage = source.onopen = () => done("open");
    source.onerror = () => { source.close(); done("refused"); };
  }));
  for (const [tag, path] of [["img", "/static/mark.svg"], ["script", "/static/chat.js"],
                             ["img", "/v1/status"], ["script", "/v1/sessions"]]) {
    await attempt(`${tag} ${path}`, () => new Promise((done) => {
      const element = document.createElement(tag);
      element.onload = () => done("loaded");
      element.onerror = () => done("refused");
      element.src = target + path;
      document.body.append(element);
    }));
  }
  await attempt("frame", () => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.onload = () => {
      try { done(frame.contentDocument.body.textContent); } catch { done("refused"); }
    };
    frame.src = target + "/";
    document.body.append(frame);
  }));
  return said;
}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Chromium, for which a name of the attacker's leads to this machine."""
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: install it (Debian: apt install chromium)")
    arguments = [*ARGUMENTS, f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def attacker(host: str) -> AsyncIterator[str]:
    """A page of somebody else's."""

    async def page(_request: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>Evil</title>", content_type="text/html")

    app = web.Application()
    app.add_routes([web.get("/", page)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://{host}:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def done(gateway: Site) -> list[str]:
    """What the gateway did for anybody."""

    def work(conn: Connection) -> list[str]:
        return [row.action for row in audit_log.entries(conn)]

    return await gateway.database.read(work)


@pytest.mark.requirement("SEC-3", "WEB-2")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_page_of_another_origin_neither_reads_nor_does_anything(
    tmp_path: Path, browser: Browser, host: str, fail_after: FailAfter
) -> None:
    async with (
        fail_after(90),
        site(Plan(tmp_path, ScriptedModels())) as gateway,
        attacker(host) as evil,
    ):
        context = await browser.new_context()
        await context.add_cookies([await login_cookie(gateway)])
        before = await done(gateway)
        page = await context.new_page()
        await page.goto(evil)
        said = await page.evaluate(SCRIPT, [gateway.url, list(FORMS)])
        for name, answer in said.items():
            assert answer in ("refused", "opaque 0 ", "", None), (name, answer)
        assert len(said) > 50
        assert await done(gateway) == before
        _, listed = await gateway.ask("GET", "/v1/sessions")
        assert listed["items"] == []
        # The person is still who they were.
        own = await context.new_page()
        answer = await own.goto(f"{gateway.url}/")
        assert answer is not None
        assert (answer.status, own.url) == (200, f"{gateway.url}/")
        await context.close()


@pytest.mark.requirement("SEC-3", "WEB-2")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_another_page_cannot_log_a_browser_in_as_somebody_else(
    tmp_path: Path, browser: Browser, host: str, fail_after: FailAfter
) -> None:
    """Whoever were logged in so would talk to a conversation of the attacker's."""
    async with (
        fail_after(60),
        site(Plan(tmp_path, ScriptedModels())) as gateway,
        attacker(host) as evil,
    ):
        _, made = await gateway.ask("POST", "/v1/login-links")
        code = str(made["path"]).partition("=")[2]
        for field, secret in (("token", ADMIN), ("code", code)):
            context = await browser.new_context()
            page = await context.new_page()
            # As after a visit: the form's cookie is there, and its other half is not known.
            await page.goto(f"{gateway.url}/login")
            await page.goto(evil)
            async with page.expect_navigation():
                await page.evaluate(
                    """([target, field, secret]) => {
                        const form = document.createElement("form");
                        Object.assign(form, { method: "POST", action: `${target}/login` });
                        for (const [name, value] of [[field, secret], ["csrf", "0".repeat(64)]]) {
                            const input = document.createElement("input");
                            Object.assign(input, { name, value });
                            form.append(input);
                        }
                        document.body.append(form);
                        form.submit();
                    }""",
                    [gateway.url, field, secret],
                )
            text = await page.locator("main").inner_text()
            assert "Open Gatehouse by its own address" in text.replace("\n", " ")
            assert COOKIE not in [one["name"] for one in await context.cookies()]
            await context.close()


@pytest.mark.requirement("SEC-3", "WEB-2")
async def test_a_name_that_was_pointed_here_gets_a_refusal_that_says_why(
    tmp_path: Path, browser: Browser, fail_after: FailAfter
) -> None:
    async with fail_after(60), site(Plan(tmp_path, ScriptedModels())) as gateway:
        context = await browser.new_context()
        await context.add_cookies([await login_cookie(gateway)])
        page = await context.new_page()
        for path in ("/static/chat.js", "/", "/login", "/v1/status"):
            answer = await page.goto(f"http://{REBOUND}:{gateway.port}{path}")
            assert answer is not None
            if not path.startswith("/static/"):
                assert answer.status == 421
                assert "http.public_hosts" in await answer.text()
        said = await page.evaluate(
            """async () => Promise.all(["/v1/status", "/v1/sessions"].map(async (path) =>
                (await fetch(path)).status))"""
        )
        assert said == [421, 421]
        await context.close()
