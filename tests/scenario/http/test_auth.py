"""Who gets in: every route against every kind of caller (API-1, WEB-2, SEC-3)."""

import json
from http.cookies import SimpleCookie

import aiohttp
import pytest

from gateway.http.app import build_app
from gateway.http.auth import COOKIE, CSRF_HEADER
from gateway.http.limiter import MAX_FAILURES, WINDOW_S
from gateway.http.server import serve
from gateway.http.services import HttpSettings
from runtime.domain.errors import InvalidInput
from tests.fakes.clock import FakeClock
from tests.scenario.harness import ADMIN, READER, Plan, Site
from tests.scenario.http.conftest import Sites

OPEN = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("GET", "/static/{name}"),
}
IDS = {
    "session_id": "ses_1",
    "run_id": "run_1",
    "code": "ABC123",
    "name": "page.css",
    "outbox_id": "out_1",
    "place": "0",
}


def routes(gateway: Site) -> list[tuple[str, str]]:
    """(method, pattern) of everything that the application serves."""
    found = set()
    for route in build_app(gateway.services).router.routes():
        if route.resource is not None and route.method != "HEAD":
            found.add((route.method, route.resource.canonical))
    return sorted(found)


async def status_of(gateway: Site, method: str, path: str, headers: dict[str, str]) -> int:
    """The status of a request that follows no redirect and reads no body."""
    url = f"{gateway.url}{path.format(**IDS)}"
    async with gateway.client.request(
        method, url, headers=headers, allow_redirects=False
    ) as response:
        return response.status


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.requirement("SEC-3", "API-1")
async def test_no_route_works_without_authentication(sites: Sites) -> None:
    async with sites() as gateway:
        every = routes(gateway)
        assert len(every) > 30
        for method, path in every:
            status = await status_of(gateway, method, path, {})
            if (method, path) in OPEN:
                assert status in (200, 401), (method, path, status)
            elif path == "/":
                assert status == 303
            else:
                assert status == 401, (method, path, status)


@pytest.mark.requirement("SEC-3")
async def test_what_is_open_says_nothing_more_than_up(sites: Sites) -> None:
    async with sites() as gateway:
        for path in ("/healthz", "/readyz"):
            assert await gateway.ask("GET", path, token=None) == (200, {"status": "ok"})
        await gateway.database.close()
        assert await gateway.ask("GET", "/readyz", token=None) == (503, {"status": "not ready"})
        assert await gateway.ask("GET", "/healthz", token=None) == (200, {"status": "ok"})


@pytest.mark.requirement("API-1")
async def test_a_reading_token_reads_everything_and_changes_nothing(sites: Sites) -> None:
    async with sites() as gateway:
        for method, path in routes(gateway):
            if (method, path) in OPEN or path in ("/v1/events", "/logout"):
                continue
            status = await status_of(gateway, method, path, bearer(READER))
            if method == "GET":
                assert status in (200, 404), (method, path, status)
            else:
                assert status == 403, (method, path, status)


@pytest.mark.requirement("API-1")
@pytest.mark.parametrize(
    "headers",
    [
        bearer("wrong"),
        bearer(""),
        bearer(ADMIN + "x"),
        bearer(ADMIN[:-1]),
        {"Authorization": "Basic YWRtaW46eA=="},
        {"Authorization": ADMIN},
        {"Cookie": f"{COOKIE}=made-up"},
    ],
)
async def test_a_wrong_credential_is_refused(sites: Sites, headers: dict[str, str]) -> None:
    async with sites() as gateway:
        assert await status_of(gateway, "GET", "/v1/status", headers) == 401


@pytest.mark.requirement("API-1")
async def test_tokens_hold_and_end_without_a_restart(sites: Sites) -> None:
    async with sites() as gateway:
        assert await status_of(gateway, "GET", "/v1/status", bearer("next")) == 401
        gateway.admin_tokens[:] = ["next"]
        assert await status_of(gateway, "GET", "/v1/status", bearer("next")) == 200
        assert await status_of(gateway, "GET", "/v1/status", bearer(ADMIN)) == 401


@pytest.mark.requirement("API-1")
async def test_an_empty_token_lets_nobody_in(sites: Sites) -> None:
    async with sites() as gateway:
        gateway.admin_tokens[:] = [""]
        assert await status_of(gateway, "GET", "/v1/status", bearer("")) == 401


@pytest.mark.requirement("API-1")
async def test_failed_logins_are_limited(sites: Sites) -> None:
    clock = FakeClock()

    def timed(plan: Plan) -> None:
        plan.http_clock = clock

    async with sites(change=timed) as gateway:
        for _ in range(MAX_FAILURES):
            assert await status_of(gateway, "GET", "/v1/status", bearer("guess")) == 401
        status, problem = await gateway.ask("GET", "/v1/status")
        assert (status, problem["code"]) == (429, "too_many_failures")
        async with gateway.client.post(f"{gateway.url}/login", data={"token": ADMIN}) as page:
            assert page.status == 429
            assert int(page.headers["Retry-After"]) <= WINDOW_S
        await clock.advance(WINDOW_S + 1)
        assert await status_of(gateway, "GET", "/v1/status", bearer(ADMIN)) == 200


@pytest.mark.requirement("API-1")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "gateway.example"])
async def test_an_open_address_without_a_token_is_refused(sites: Sites, host: str) -> None:
    async with sites() as gateway:
        app = build_app(gateway.services)
        for tokens in ([], [""]):
            settings = HttpSettings(admin_tokens=lambda tokens=tokens: tokens, host=host, port=0)
            with pytest.raises(InvalidInput, match="admin token is needed"):
                async with serve(app, settings):
                    pass


async def log_in(gateway: Site, token: str = ADMIN) -> tuple[dict[str, str], str]:
    """(the cookie as a header, the CSRF token of the page) after a login by the form."""
    async with gateway.client.post(
        f"{gateway.url}/login", data={"token": token}, allow_redirects=False
    ) as response:
        assert (response.status, response.headers["Location"]) == (303, "/")
        (text,) = response.headers.getall("Set-Cookie")
    gateway.client.cookie_jar.clear()
    cookie = SimpleCookie(text)[COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    headers = {"Cookie": f"{COOKIE}={cookie.value}"}
    async with gateway.client.get(f"{gateway.url}/", headers=headers) as response:
        page = await response.text()
    csrf = page.partition('name="csrf-token" content="')[2].partition('"')[0]
    assert len(csrf) == 64
    return headers, csrf


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
        async with gateway.client.post(f"{gateway.url}/login", data={"token": "no"}) as response:
            assert response.status == 401
            text = await response.text()
        assert "The token is wrong." in text
        assert "Set-Cookie" not in response.headers


CROSS = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://127.0.0.1:1"},
]


@pytest.mark.requirement("WEB-2", "SEC-3")
@pytest.mark.parametrize("headers", CROSS)
async def test_a_cross_site_page_can_neither_write_nor_listen(
    sites: Sites, headers: dict[str, str]
) -> None:
    async with sites() as gateway:
        cookie, csrf = await log_in(gateway)
        for known in ({**cookie, CSRF_HEADER: csrf}, bearer(ADMIN)):
            sent = {**known, **headers}
            for method, path in (("POST", "/v1/sessions"), ("GET", "/v1/events")):
                status, problem = await gateway.ask(method, path, token=None, headers=sent)
                assert (status, problem["code"]) == (403, "cross_site")
        async with gateway.client.post(
            f"{gateway.url}/login", data={"token": ADMIN}, headers=headers
        ) as response:
            assert response.status == 403


@pytest.mark.requirement("WEB-2", "SEC-3")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Host": "localhost"}, 200),
        ({"Host": "[::1]:80"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Sec-Fetch-Site": "cross-site"}, 401),
        ({"Origin": "https://evil.example"}, 401),
        ({"X-Forwarded-For": "203.0.113.9"}, 401),
        ({"Forwarded": "for=203.0.113.9"}, 401),
    ],
)
async def test_the_local_owner_needs_no_token_and_nobody_else_is_one(
    sites: Sites, headers: dict[str, str], status: int
) -> None:
    def local(plan: Plan) -> None:
        plan.http["loopback_owner"] = True

    async with sites(change=local) as gateway:
        assert await status_of(gateway, "GET", "/v1/sessions", headers) == status


@pytest.mark.requirement("WEB-2")
async def test_a_server_for_others_has_no_local_owner(sites: Sites) -> None:
    def open_to_all(plan: Plan) -> None:
        plan.http.update(loopback_owner=True, host="0.0.0.0", public_hosts=("chat.example",))

    async with sites(change=open_to_all) as gateway:
        assert await status_of(gateway, "GET", "/v1/sessions", {}) == 401
        for host, status in (
            ("chat.example", 200),
            ("192.0.2.7:80", 200),
            ("other.example", 421),
        ):
            headers = {**bearer(ADMIN), "Host": host}
            assert await status_of(gateway, "GET", "/v1/sessions", headers) == status


@pytest.mark.requirement("WEB-2")
async def test_every_answer_carries_the_policy(sites: Sites) -> None:
    async with sites() as gateway:
        for path in ("/login", "/v1/status", "/static/chat.js", "/nowhere"):
            async with gateway.client.get(f"{gateway.url}{path}") as response:
                policy = response.headers["Content-Security-Policy"]
                assert "script-src 'self'" in policy
                assert "unsafe" not in policy
                assert "frame-ancestors 'none'" in policy
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert response.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.requirement("WEB-1", "WEB-2")
async def test_the_first_view_is_small_and_asks_no_other_host(sites: Sites) -> None:
    async with sites() as gateway:
        cookie, _ = await log_in(gateway)
        async with gateway.client.get(f"{gateway.url}/", headers=cookie) as response:
            page = await response.text()
        total, scripts = len(page), 0
        for name in ("page.css", "chat.css", "chat.js", "api.js", "composer.js", "feed.js"):
            async with gateway.client.get(f"{gateway.url}/static/{name}") as response:
                total += len(await response.read())
        for name in ("items.js", "sidebar.js", "mark.svg"):
            async with gateway.client.get(f"{gateway.url}/static/{name}") as response:
                total += len(await response.read())
        assert total < 100_000
        scripts = page.count("<script")
        assert (scripts, page.count('<script type="module" src="/static/')) == (1, 1)
        assert "style=" not in page
        assert "http" not in page


async def test_static_files_are_looked_up_and_never_opened(sites: Sites) -> None:
    async with sites() as gateway:
        for path in ("/static/..%2fapp.py", "/static/chat.html", "/static/x.css"):
            url = f"{gateway.url}{path}"
            async with gateway.client.get(url, headers=bearer(ADMIN)) as response:
                assert response.status == 404
                assert json.loads(await response.text())["code"] == "not_found"


async def test_a_login_page_leads_on_whoever_is_in_already(sites: Sites) -> None:
    async with sites() as gateway:
        cookie, _ = await log_in(gateway)
        assert await status_of(gateway, "GET", "/login", cookie) == 303
        async with aiohttp.ClientSession() as fresh, fresh.get(f"{gateway.url}/") as response:
            assert response.url.path == "/login"
