"""Logging in to the page: by a token, by a link, and out again (WEB-2)."""

import asyncio

import aiohttp
import pytest

from gateway.addresses import Addresses
from gateway.http.auth import COOKIE, CSRF_HEADER
from gateway.http.pages import FORM_COOKIE
from runtime.intake.logins import Credential, fingerprint
from tests.fakes.clock import FakeClock
from tests.scenario.harness import ADMIN, READER, Plan
from tests.scenario.http.conftest import Sites
from tests.scenario.http.entering import cookie_of, cookies, csrf_of_page, form, log_in
from tests.scenario.http.test_auth import status_of


@pytest.mark.requirement("WEB-2")
async def test_a_link_logs_one_browser_in_and_ends_after_ten_minutes(sites: Sites) -> None:
    clock = FakeClock()

    def timed(plan: Plan) -> None:
        plan.http_clock = clock

    async with sites(change=timed) as gateway:
        status, made = await gateway.ask("POST", "/v1/login-links")
        assert (status, made["expires_in_s"]) == (201, 600)
        path, _, code = str(made["path"]).partition("#code=")
        assert path == "/login"
        for _ in range(2):
            # A program that looks at the link in advance sends no fragment, and spends nothing.
            assert await status_of(gateway, "GET", "/login", {}) == 200
        async with await form(gateway, code=code) as response:
            cookie = await cookie_of(response)
        assert await status_of(gateway, "GET", "/v1/status", cookie) == 200
        async with await form(gateway, code=code) as response:
            assert response.status == 401
            assert "used already" in await response.text()
        _, late = await gateway.ask("POST", "/v1/login-links")
        await clock.advance(601)
        async with await form(gateway, code=str(late["path"]).partition("=")[2]) as response:
            assert response.status == 401
        gateway.admin_tokens[:] = ["another"]
        assert await status_of(gateway, "GET", "/v1/status", cookie) == 401


@pytest.mark.requirement("WEB-2")
async def test_a_gateway_that_others_reach_makes_a_link_for_them_too(sites: Sites) -> None:
    def reached(plan: Plan) -> None:
        found = Addresses("http://127.0.0.1:1", "http://192.0.2.7:1", "IPv4")
        plan.services["addresses"] = lambda: found

    async with sites(change=reached) as gateway:
        _, made = await gateway.ask("POST", "/v1/login-links")
        assert made["link"] == f"http://127.0.0.1:1{made['path']}"
        assert made["elsewhere"] == f"http://192.0.2.7:1{made['path']}"


@pytest.mark.requirement("WEB-2")
async def test_browsers_that_spend_a_code_at_once_get_one_login(sites: Sites) -> None:
    async with sites() as gateway:
        logins = gateway.services.logins
        code = await logins.new_code(Credential(role="admin", token=fingerprint(ADMIN)))
        spent = await asyncio.gather(*(logins.spend(code) for _ in range(5)))
        assert len([secret for secret in spent if secret]) == 1


@pytest.mark.requirement("WEB-2", "SEC-3")
async def test_the_login_form_works_for_the_browser_that_asked_for_it_alone(sites: Sites) -> None:
    async with sites() as gateway:
        url = f"{gateway.url}/login"
        for headers in ({}, {"Cookie": f"{FORM_COOKIE}="}, {"Cookie": f"{FORM_COOKIE}=x"}):
            for csrf in ("", "0" * 64):
                data = {"token": ADMIN, "csrf": csrf}
                async with gateway.client.post(url, data=data, headers=headers) as response:
                    assert response.status == 403
                    assert "The form was too old" in await response.text()
                    assert COOKIE not in str(response.headers)
        async with await form(gateway, token=ADMIN, csrf="0" * 64) as response:
            assert response.status == 403


@pytest.mark.requirement("WEB-2")
async def test_the_page_logs_in_writes_with_its_csrf_token_and_logs_out(sites: Sites) -> None:
    async with sites() as gateway:
        cookie, csrf = await log_in(gateway)
        path = "/v1/sessions"
        assert (await gateway.ask("GET", path, token=None, headers=cookie))[0] == 200
        body = {"channel": "web"}
        for given in ({}, {CSRF_HEADER: "0" * 64}, {CSRF_HEADER: "é"}):
            headers = {**cookie, **given}
            status, problem = await gateway.ask("POST", path, body, token=None, headers=headers)
            assert (status, problem["code"]) == (403, "csrf")
        headers = {**cookie, CSRF_HEADER: csrf}
        assert (await gateway.ask("POST", path, body, token=None, headers=headers))[0] == 201
        async with gateway.client.post(
            f"{gateway.url}/logout", data={"csrf": csrf}, headers=cookie, allow_redirects=False
        ) as response:
            assert response.status == 303
        assert (await gateway.ask("GET", path, token=None, headers=cookie))[0] == 401


@pytest.mark.requirement("WEB-2")
async def test_a_login_outlives_a_restart_and_ends_with_its_token(sites: Sites) -> None:
    async with sites() as gateway:
        cookie, _ = await log_in(gateway)
        reading, csrf = await log_in(gateway, READER)
        headers = {**reading, CSRF_HEADER: csrf}
        status, _ = await gateway.ask("POST", "/v1/sessions", {}, token=None, headers=headers)
        assert status == 403
    async with sites() as restarted:
        assert (await restarted.ask("GET", "/v1/status", token=None, headers=cookie))[0] == 200
        restarted.admin_tokens[:] = ["another"]
        assert (await restarted.ask("GET", "/v1/status", token=None, headers=cookie))[0] == 401


@pytest.mark.requirement("WEB-2")
async def test_a_wrong_token_at_the_form_is_told_and_kept_nowhere(sites: Sites) -> None:
    async with sites() as gateway:
        async with await form(gateway, token="no") as response:
            assert response.status == 401
            text = await response.text()
        assert "The token is wrong." in text
        assert COOKIE not in str(response.headers)


@pytest.mark.requirement("WEB-2")
async def test_a_public_address_is_the_one_origin_and_makes_cookies_for_tls(sites: Sites) -> None:
    def public(plan: Plan) -> None:
        plan.http["public_url"] = "https://chat.example"

    async with sites(change=public) as gateway:
        assert await status_of(gateway, "GET", "/login", {"Host": "chat.example"}) == 200
        async with gateway.client.get(f"{gateway.url}/login") as response:
            assert "Secure" in response.headers["Set-Cookie"]
        async with await form(gateway, token=ADMIN) as response:
            cookie = await cookie_of(response)
            assert all("Secure" in one or "Max-Age=0" in one for one in cookies(response))
        csrf = await csrf_of_page(gateway, cookie)
        for origin, wanted in (("https://chat.example", 201), ("https://evil.example", 403)):
            sent = {**cookie, CSRF_HEADER: csrf, "Origin": origin}
            status, _ = await gateway.ask("POST", "/v1/sessions", {}, token=None, headers=sent)
            assert status == wanted
        _, made = await gateway.ask("POST", "/v1/login-links")
        assert str(made["link"]).startswith("https://chat.example/login#code=")


async def test_a_login_page_leads_on_whoever_is_in_already(sites: Sites) -> None:
    async with sites() as gateway:
        cookie, _ = await log_in(gateway)
        assert await status_of(gateway, "GET", "/login", cookie) == 303
        async with aiohttp.ClientSession() as fresh, fresh.get(f"{gateway.url}/") as response:
            assert response.url.path == "/login"
