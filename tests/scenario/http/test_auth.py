"""Who gets in: every route against every kind of caller (API-1, WEB-2, SEC-3)."""

import json
import re
from pathlib import Path

import aiohttp
import pytest

from gateway.http.app import build_app
from gateway.http.auth import COOKIE, CSRF_HEADER
from gateway.http.credentials import MAX_FAILURES, WINDOW_S
from gateway.http.server import serve
from gateway.http.services import HttpSettings
from runtime.domain.errors import InvalidInput
from tests.fakes.clock import FakeClock
from tests.scenario.harness import ADMIN, READER, Plan, Site
from tests.scenario.http.conftest import Sites
from tests.scenario.http.entering import form, log_in

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
    "agent_id": "ses_1",
    "schedule_id": "sch_1",
    "task_id": "tsk_1",
    "asset_id": "ast_1",
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


ALIASES = {("POST", "/v1/pairings/owner-code")}
PAGE = Path(__file__).parents[3] / "docs/http-api.md"


@pytest.mark.requirement("OPS-13", "API-1")
async def test_the_page_on_the_api_names_every_request(sites: Sites) -> None:
    async with sites() as gateway:
        every = set(routes(gateway)) - ALIASES
    served = {
        (method, re.sub(r"{[^/]*}", "ID", path))
        for method, path in every
        if path.startswith(("/v1/", "/metrics"))
    }
    table = PAGE.read_text(encoding="utf-8").partition("\n## All requests\n")[2]
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    named = [re.findall(r"`([A-Z]+) (/[^` ]+)`", row) for row in rows]
    assert all(named)
    assert {
        (method, re.sub(r"/[A-Z]+(?=/|$)", "/ID", path)) for row in named for method, path in row
    } == served


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
                assert status == (403 if method == "POST" else 200), (method, path, status)
            elif path in ("/", "/v1/docs"):
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


@pytest.mark.requirement("API-1", "SEC-7")
async def test_wrong_tokens_are_limited_and_hold_no_right_one_back(sites: Sites) -> None:
    clock = FakeClock()

    def timed(plan: Plan) -> None:
        plan.http_clock = clock

    async with sites(change=timed) as gateway:
        for _ in range(MAX_FAILURES):
            assert await status_of(gateway, "GET", "/v1/status", bearer("guess")) == 401
        status, problem = await gateway.ask("GET", "/v1/status", token="guess")
        assert (status, problem["code"]) == (429, "too_many_failures")
        async with gateway.client.get(f"{gateway.url}/v1/status", headers=bearer("no")) as refused:
            assert int(refused.headers["Retry-After"]) <= WINDOW_S
            assert refused.headers["Connection"] == "close"
        # Another address has attempts of its own.
        elsewhere = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))
        async with (
            aiohttp.ClientSession(connector=elsewhere) as other,
            other.get(f"{gateway.url}/v1/status", headers=bearer("guess")) as refused,
        ):
            assert refused.status == 401
        assert await status_of(gateway, "GET", "/v1/status", bearer(ADMIN)) == 200
        assert await status_of(gateway, "GET", "/v1/status", bearer(READER)) == 200
        cookie, _ = await log_in(gateway)
        assert await status_of(gateway, "GET", "/v1/status", cookie) == 200
        async with await form(gateway, token="guess") as page:
            assert page.status == 429
        async with await form(gateway, code="guess") as page:
            assert page.status == 429
        await clock.advance(WINDOW_S + 1)
        assert await status_of(gateway, "GET", "/v1/status", bearer("guess")) == 401


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


@pytest.mark.requirement("WEB-2")
async def test_a_refusal_is_a_page_for_a_person_and_a_document_for_a_program(sites: Sites) -> None:
    async with sites() as gateway:
        page = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        for path, more, status, told in (
            ("/v1/status", {}, 401, 'href="/login"'),
            ("/v1/status", {"Host": "unknown.example"}, 421, "http.public_hosts"),
            ("/nowhere", bearer(ADMIN), 404, "nothing at this path"),
        ):
            url = f"{gateway.url}{path}"
            async with gateway.client.get(url, headers={**page, **more}) as response:
                assert (response.status, response.content_type) == (status, "text/html")
                assert told in await response.text()
            async with gateway.client.get(url, headers=more) as response:
                assert (response.status, response.content_type) == (
                    status,
                    "application/problem+json",
                )


OTHERS = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:1"},
]
UNSAID = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
]
"""Over plain HTTP and behind a proxy that changes Host, our own page's requests look so too."""


@pytest.mark.requirement("WEB-2", "SEC-3")
@pytest.mark.parametrize("headers", OTHERS)
async def test_another_sites_page_can_neither_write_nor_read_nor_log_in(
    sites: Sites, headers: dict[str, str]
) -> None:
    async with sites() as gateway:
        cookie, csrf = await log_in(gateway)
        sent = {**cookie, CSRF_HEADER: csrf, **headers}
        every = (("POST", "/v1/sessions"), ("GET", "/v1/events"), ("GET", "/v1/sessions"))
        for method, path in every:
            status, problem = await gateway.ask(method, path, token=None, headers=sent)
            assert (status, problem["code"]) == (403, "cross_site")
        async with gateway.client.post(
            f"{gateway.url}/login", data={"token": ADMIN}, headers=headers
        ) as response:
            assert response.status == 403


@pytest.mark.requirement("WEB-2", "SEC-3")
@pytest.mark.parametrize("headers", UNSAID)
async def test_where_the_browser_says_nothing_of_use_the_csrf_token_decides(
    sites: Sites, headers: dict[str, str]
) -> None:
    async with sites() as gateway:
        cookie, csrf = await log_in(gateway)
        for given, wanted in (
            ({}, 403),
            ({CSRF_HEADER: "0" * 64}, 403),
            ({CSRF_HEADER: csrf}, 201),
        ):
            sent = {**cookie, **headers, **given}
            status, _ = await gateway.ask("POST", "/v1/sessions", {}, token=None, headers=sent)
            assert status == wanted


@pytest.mark.requirement("WEB-2", "SEC-3")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Host": "localhost"}, 401),
        ({"Host": "[::1]:80"}, 401),
        ({"Sec-Fetch-Site": "same-origin"}, 401),
        ({"Sec-Fetch-Site": "none"}, 401),
        ({"X-Forwarded-For": "127.0.0.1"}, 401),
        ({"Forwarded": "for=127.0.0.1"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "[::1].evil.test"}, 421),
        ({"Host": "localhost.."}, 421),
        ({"Host": ""}, 421),
    ],
)
async def test_nobody_is_let_in_for_where_they_come_from(
    sites: Sites, headers: dict[str, str], status: int
) -> None:
    async with sites() as gateway:
        assert await status_of(gateway, "GET", "/v1/sessions", headers) == status


@pytest.mark.requirement("WEB-2")
async def test_a_server_answers_to_addresses_and_to_the_names_that_it_was_told(
    sites: Sites,
) -> None:
    def named(plan: Plan) -> None:
        plan.http.update(host="0.0.0.0", public_hosts=("chat.example",))

    async with sites(change=named) as gateway:
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
                assert response.headers["Referrer-Policy"] == "same-origin"


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
