"""Ways in, as browsers really ask: by a link, by a token, on the local network, behind a proxy."""

import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from gateway.http.auth import COOKIE
from tests.browser.conftest import Chats
from tests.browser.visitors import MESSAGE, READY, REPLY, TOKEN, Arrive, Visitor, alert, button
from tests.scenario.harness import ADMIN, Plan, Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

_HOP: frozenset[str] = frozenset({"connection", "keep-alive", "transfer-encoding", "host"})


def everywhere(plan: Plan) -> None:
    plan.http["host"] = "0.0.0.0"


def local_network_address() -> str:
    """An address of this machine that is not loopback; asking for it sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
            found = str(probe.getsockname()[0])
        except OSError:
            found = "127.0.0.1"
    if ipaddress.ip_address(found).is_loopback:
        pytest.skip("this machine has no network: give an interface an address (ip addr add)")
    return found


async def talks(somebody: Visitor) -> None:
    """A message, and its answer."""
    await somebody.sees(READY)
    await somebody.types(MESSAGE, "hello")
    await somebody.presses_enter()
    await somebody.sees(f"{REPLY}[contains(., 'Welcome.')]")


async def logs_in_and_talks(somebody: Visitor) -> None:
    """By the token, then a message and its answer, then out again."""
    await somebody.types(TOKEN, ADMIN)
    await somebody.clicks(button("Log in"))
    await talks(somebody)
    cookie = await somebody.cookie(COOKIE)
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    await somebody.clicks(button("Log out"))
    await somebody.sees(TOKEN)
    assert await somebody.cookie(COOKIE) is None


@asynccontextmanager
async def proxy(upstream: Site, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """A reverse proxy as nginx is after `proxy_pass http://127.0.0.1:PORT;` and nothing else: it
    speaks to the upstream by the upstream's name and does not say for whom."""

    async def passes_on(request: web.Request) -> web.StreamResponse:
        headers = {name: one for name, one in request.headers.items() if name.lower() not in _HOP}
        async with client.request(
            request.method,
            f"{upstream.url}{request.path_qs}",
            data=await request.read() or None,
            headers={**headers, "Host": f"127.0.0.1:{upstream.port}", "Connection": "close"},
            allow_redirects=False,
        ) as answer:
            response = web.StreamResponse(status=answer.status)
            for name, one in answer.headers.items():
                if name.lower() not in {*_HOP, "content-length", "content-encoding"}:
                    response.headers.add(name, one)
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", passes_on)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client:
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, 0)
            await site.start()
            yield f"http://{host}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


@pytest.mark.requirement("WEB-2")
async def test_a_link_logs_in_by_a_button_and_leaves_no_code_behind(
    chats: Chats, arrives: Arrive
) -> None:
    async with chats("Welcome.") as gateway:
        _, made = await gateway.ask("POST", "/v1/login-links")
        link = f"{gateway.url}{made['path']}"
        async with arrives(link) as somebody:
            await somebody.sees(button("Log in"))
            assert await somebody.is_focused(button("Log in"))
            assert not await somebody.is_there(TOKEN)
            assert "code" not in await somebody.address()
            await somebody.reload()
            await somebody.sees(TOKEN)
        async with arrives(link) as somebody:
            # Nothing was spent by looking.
            await somebody.sees(button("Log in"))
            await somebody.presses_enter()
            await talks(somebody)
            assert "code" not in await somebody.address()
            await somebody.go(link)
            await somebody.sees(READY)
            assert "code" not in await somebody.address()
        async with arrives(link) as somebody:
            await somebody.clicks(button("Log in"))
            await somebody.sees(alert("used already"))


@pytest.mark.requirement("WEB-2")
async def test_a_person_logs_in_at_loopback(chats: Chats, arrives: Arrive) -> None:
    async with chats("Welcome.") as gateway, arrives(f"{gateway.url}/") as somebody:
        await logs_in_and_talks(somebody)


@pytest.mark.requirement("WEB-2")
async def test_a_person_logs_in_over_plain_http_on_the_local_network(
    chats: Chats, arrives: Arrive
) -> None:
    address = local_network_address()
    async with (
        chats("Welcome.", change=everywhere) as gateway,
        arrives(f"http://{address}:{gateway.port}/") as somebody,
    ):
        assert await somebody.evaluates("isSecureContext") is False
        await logs_in_and_talks(somebody)


@pytest.mark.requirement("WEB-2")
@pytest.mark.parametrize("network", ["loopback", "local"])
async def test_a_person_logs_in_behind_a_proxy_with_its_default_settings(
    chats: Chats, arrives: Arrive, network: str
) -> None:
    host = "127.0.0.1" if network == "loopback" else local_network_address()
    async with (
        chats("Welcome.") as gateway,
        proxy(gateway, host) as url,
        arrives(f"{url}/") as somebody,
    ):
        await logs_in_and_talks(somebody)


@pytest.mark.requirement("WEB-2")
async def test_a_refusal_is_a_page_that_says_what_to_do(chats: Chats, arrives: Arrive) -> None:
    async with chats() as gateway, arrives(f"{gateway.url}/v1/status") as somebody:
        await somebody.sees("//h2[.='Authentication is needed']")
        await somebody.clicks("//a[.='Log in']")
        await somebody.types(TOKEN, "wrong")
        await somebody.clicks(button("Log in"))
        await somebody.sees(alert("The token is wrong."))
        await somebody.types(TOKEN, ADMIN)
        await somebody.clicks(button("Log in"))
        await somebody.sees(READY)
