"""The route on which platforms call: open to them, and to nothing that their adapter refuses."""

import asyncio
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from gateway.http.hooks import HookRoutes
from gateway.http.problems import problems
from runtime.domain.errors import StoreUnavailable
from runtime.ports.chat import WebhookRequest, WebhookResponse
from runtime.ports.gatehouse import Gatehouse
from tests.fakes.gatehouse import FakeGatehouse
from tests.scenario.harness import ADMIN, Plan, Site
from tests.scenario.http.conftest import Sites


@dataclass
class Hook:
    """A webhook that keeps what it was called with."""

    path: str = "chat/one"
    calls: list[WebhookRequest] = field(default_factory=list)
    away: bool = False

    async def receive(self, request: WebhookRequest, gatehouse: Gatehouse) -> WebhookResponse:
        self.calls.append(request)
        if self.away:
            raise StoreUnavailable("the test broke the store")
        if request.headers.get("x-secret") != "made-up":
            return WebhookResponse(401)
        return WebhookResponse(200, '{"ok": 1}', "application/json")


def with_hook(hook: Hook) -> dict[str, object]:
    return {"hooks": [hook], "gatehouse": FakeGatehouse()}


async def post(
    site: Site, path: str = "/hooks/chat/one", **headers: str
) -> tuple[int, dict[str, str]]:
    async with site.client.post(f"{site.url}{path}", data=b"body", headers=headers) as answer:
        return answer.status, {**answer.headers, "body": await answer.text()}


@pytest.mark.requirement("SLK-1")
async def test_a_platform_needs_no_token_and_may_call_by_any_name(sites: Sites) -> None:
    hook = Hook()

    def change(plan: Plan) -> None:
        plan.services = with_hook(hook)

    async with sites(change=change) as site:
        status, answer = await post(site, **{"X-Secret": "made-up", "Host": "bot.example.org"})
        assert (status, answer["body"]) == (200, '{"ok": 1}')
        assert answer["Content-Type"].startswith("application/json")
        assert answer["X-Content-Type-Options"] == "nosniff"
        (call,) = hook.calls
        assert (call.body, call.headers["x-secret"]) == (b"body", "made-up")
        # Its path opens nothing else of this server.
        status, _ = await site.ask("GET", "/v1/sessions", token=None, headers={"Host": "x.test"})
        assert status == 421


@pytest.mark.requirement("SLK-1")
async def test_what_the_adapter_refuses_is_refused_whoever_asks(sites: Sites) -> None:
    hook = Hook()

    def change(plan: Plan) -> None:
        plan.services = with_hook(hook)

    async with sites(change=change) as site:
        page = {"Origin": "https://evil.test", "Sec-Fetch-Site": "cross-site"}
        assert (await post(site, **page))[0] == 401
        assert (await post(site, Authorization=f"Bearer {ADMIN}"))[0] == 401
        for path in ("/hooks/chat", "/hooks/chat/one/two", "/hooks/../v1/sessions", "/hooks/"):
            assert (await post(site, path))[0] in (401, 404)
        async with site.client.get(f"{site.url}/hooks/chat/one") as answer:
            assert answer.status in (401, 405)
        assert len(hook.calls) == 2


@pytest.mark.requirement("SLK-1", "MSG-1")
async def test_while_the_store_is_away_the_platform_is_told_to_come_again(sites: Sites) -> None:
    hook = Hook(away=True)

    def change(plan: Plan) -> None:
        plan.services = with_hook(hook)

    async with sites(change=change) as site:
        status, answer = await post(site)
        assert status == 503
        assert answer["Retry-After"]
        assert "the test broke" not in answer["body"]
        _, metrics = await site.ask("GET", "/metrics")
        counted = 'gatehouse_http_requests_total{method="POST",route="/hooks/{path}",status="503"}'
        assert f"{counted} 1.0" in str(metrics["text"])


@pytest.mark.requirement("SLK-1")
async def test_a_body_that_never_ends_is_not_waited_for() -> None:
    hook = Hook()
    app = web.Application(middlewares=[problems])
    app.add_routes(HookRoutes([hook], FakeGatehouse(), body_s=0.01).routes())
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        writer.write(b"POST /hooks/chat/one HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf")
        assert b" 408 " in await reader.readline()
        writer.close()
        await writer.wait_closed()
    finally:
        await runner.cleanup()
    assert hook.calls == []
