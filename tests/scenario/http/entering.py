"""Logging in as the login page does it."""

from http.cookies import SimpleCookie

import aiohttp

from gateway.http.auth import COOKIE
from gateway.http.pages import FORM_COOKIE
from tests.scenario.harness import ADMIN, Site


async def form(gateway: Site, **fields: str) -> aiohttp.ClientResponse:
    """The answer to the login form, as the page sends it; with `csrf`, to another form than that
    of this browser."""
    async with gateway.client.get(f"{gateway.url}/login") as response:
        (text,) = response.headers.getall("Set-Cookie")
        page = await response.text()
    gateway.client.cookie_jar.clear()
    cookie = SimpleCookie(text)[FORM_COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/login")
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    answer = await gateway.client.post(
        f"{gateway.url}/login",
        data={"csrf": csrf, **fields},
        headers={"Cookie": f"{FORM_COOKIE}={cookie.value}"},
        allow_redirects=False,
    )
    gateway.client.cookie_jar.clear()
    return answer


async def cookie_of(response: aiohttp.ClientResponse) -> dict[str, str]:
    """The login's cookie as a header, from the answer that sets it."""
    assert (response.status, response.headers["Location"]) == (303, "/")
    text = next(one for one in response.headers.getall("Set-Cookie") if one.startswith(COOKIE))
    cookie = SimpleCookie(text)[COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    return {"Cookie": f"{COOKIE}={cookie.value}"}


async def csrf_of_page(gateway: Site, cookie: dict[str, str]) -> str:
    """The CSRF token that the chat page carries."""
    async with gateway.client.get(f"{gateway.url}/", headers=cookie) as response:
        page = await response.text()
    csrf = page.partition('name="csrf-token" content="')[2].partition('"')[0]
    assert len(csrf) == 64
    return csrf


async def log_in(gateway: Site, token: str = ADMIN) -> tuple[dict[str, str], str]:
    """(the cookie as a header, the CSRF token of the page) after a login by the form."""
    async with await form(gateway, token=token) as response:
        cookie = await cookie_of(response)
    return cookie, await csrf_of_page(gateway, cookie)


def cookies(response: aiohttp.ClientResponse) -> list[str]:
    return response.headers.getall("Set-Cookie")
