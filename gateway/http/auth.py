"""Who asks: a bearer token, or the page's cookie (API-1, WEB-2). Nobody is let in for where they
come from.

Every route passes through `Guard.middleware` and is closed unless its name is in `OPEN`.
"""

import asyncio
import hashlib
import hmac
from dataclasses import dataclass
from typing import Final, Literal

from aiohttp import web

from gateway.http.credentials import Credentials, unauthorized
from gateway.http.operations import READS
from gateway.http.origin import Origin, host_allowed, origin_of
from gateway.http.problems import Handler, HttpProblem
from gateway.http.services import HttpServices
from runtime.intake.logins import Credential, Role

COOKIE: Final = "gatehouse_session"
CSRF_HEADER: Final = "X-CSRF-Token"
CSRF_FIELD: Final = "csrf"
HEALTH: Final = frozenset({"healthz", "readyz"})
HOOK: Final = "hook"
"""Platforms call it; each request proves itself by a signature or a secret that its adapter checks,
so neither a token nor the name that it was sent to matters."""
STATIC: Final = "static"
OPEN: Final = HEALTH | {"login", "login-form", STATIC}
"""Routes that need no authentication; the last three are the way to it."""
PAGES: Final = frozenset({"chat", "docs"})
STREAM: Final = "events"
UPLOAD: Final = "upload"
"""Its handler reads the body itself, piece by piece, and minds the time."""
FORM_S: Final = 10.0
"""How long the login form may take to come in: its sender is nobody yet."""
BODY_S: Final = 120.0
"""The same for any other body, which may be an upload."""
_SAFE: Final = frozenset({*READS, "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. `csrf` is what writes must carry when the browser authenticates by itself."""

    credential: Credential
    via: Literal["token", "cookie"]
    csrf: str | None = None

    @property
    def role(self) -> Role:
        """What it may do."""
        return self.credential.role


PRINCIPAL: Final = web.RequestKey("principal", Principal)
"""Where a handler finds who asks."""


class Guard:
    """Lets requests in, or says why not."""

    def __init__(self, services: HttpServices) -> None:
        self._settings = services.settings
        self.credentials = Credentials(services)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check host, origin, authentication, role and CSRF, in this order."""
        name = request.match_info.route.name or ""
        if name in HEALTH or name == HOOK:
            return await handler(request)
        if name != STATIC:
            # They say nothing, and a refusal is a page that uses them.
            self._check_place(request, name)
        if name in OPEN:
            await _take_body(request, FORM_S)
            return await handler(request)
        principal = await self.principal(request)
        if principal is None:
            if name in PAGES:
                raise web.HTTPSeeOther("/login")
            raise unauthorized("A token is needed, or a login at /login.")
        if principal.via == "cookie" and not _navigates(request):
            self._check_origin(request)
        if name != UPLOAD:
            await _take_body(request, BODY_S)
        if request.method not in _SAFE:
            await self._check_write(request, principal)
        request[PRINCIPAL] = principal
        return await handler(request)

    def _check_place(self, request: web.Request, name: str) -> None:
        hosts = request.headers.getall("Host", [])
        if len(hosts) != 1 or not host_allowed(hosts[0], self._settings):
            raise HttpProblem(
                421,
                "misdirected",
                "Gatehouse does not know the name that it was called by. Open it by its address, "
                "or let whoever runs it add the name to http.public_hosts.",
            )
        if request.method not in _SAFE or name == STREAM:
            self._check_origin(request)

    def _check_origin(self, request: web.Request) -> None:
        if origin_of(request.headers, self._settings) is not Origin.OTHER:
            return
        ours = self._settings.public_url
        where = f"at {ours}" if ours else "by its own address"
        raise HttpProblem(
            403,
            "cross_site",
            f"Another site's page asked for this, so it was not done. Open Gatehouse {where} and "
            "do it there.",
        )

    async def principal(self, request: web.Request) -> Principal | None:
        """Who asks, or None. Raises `HttpProblem` for a wrong token."""
        header = request.headers.get("Authorization")
        if header is not None:
            scheme, _, token = header.partition(" ")
            if scheme.lower() != "bearer":
                raise unauthorized("The scheme must be Bearer.")
            return Principal(await self.credentials.of_token(request, token.strip()), "token")
        secret = request.cookies.get(COOKIE)
        credential = await self.credentials.of_cookie(secret) if secret else None
        if secret is None or credential is None:
            return None
        return Principal(credential, "cookie", csrf_of(secret))

    async def _check_write(self, request: web.Request, principal: Principal) -> None:
        if principal.csrf is not None:
            given = request.headers.get(CSRF_HEADER) or ""
            if not given and request.match_info.route.name != UPLOAD:
                given = await _form_field(request)
            if not same_csrf(given, principal.csrf):
                raise HttpProblem(403, "csrf", f"The header {CSRF_HEADER} is missing or wrong.")
        if principal.role != "admin" and request.match_info.route.name != "logout":
            raise HttpProblem(403, "read_only", "This token may only read.")


def csrf_of(secret: str) -> str:
    """The CSRF token of a cookie: only who can read the page knows it."""
    return hashlib.sha256(f"csrf\0{secret}".encode()).hexdigest()


def same_csrf(given: str, wanted: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def _navigates(request: web.Request) -> bool:
    """Whether a person goes to this address; a page cannot read what they get to see."""
    return request.method in _SAFE and request.headers.get("Sec-Fetch-Mode") == "navigate"


async def _take_body(request: web.Request, within_s: float) -> None:
    """Read the body, which the handler finds then. Raises `HttpProblem` for a slow sender."""
    if not request.can_read_body:
        return
    try:
        async with asyncio.timeout(within_s):
            await request.read()
    except TimeoutError:
        detail = f"The body must come within {within_s:g} seconds."
        raise HttpProblem(408, "too_slow", detail, {"Connection": "close"}) from None


async def _form_field(request: web.Request) -> str:
    if request.content_type != "application/x-www-form-urlencoded":
        return ""
    found = (await request.post()).get(CSRF_FIELD, "")
    return found if isinstance(found, str) else ""
