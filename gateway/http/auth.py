"""Who asks: a bearer token, the page's cookie, or the owner on this machine (API-1, WEB-2).

Every route passes through `Guard.middleware` and is closed unless its name is in `OPEN`.
"""

import hashlib
import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from aiohttp import web

from gateway.http.limiter import FailureLimiter
from gateway.http.origin import host_allowed, is_local_owner, same_origin
from gateway.http.problems import Handler, HttpProblem
from gateway.http.services import HttpServices
from runtime.intake.logins import Role, fingerprint

COOKIE: Final = "gatehouse_session"
CSRF_HEADER: Final = "X-CSRF-Token"
CSRF_FIELD: Final = "csrf"
HEALTH: Final = frozenset({"healthz", "readyz"})
HOOK: Final = "hook"
"""Platforms call it; each request proves itself by a signature or a secret that its adapter checks,
so neither a token nor the name that it was sent to matters."""
OPEN: Final = HEALTH | {"login", "login-form", "static"}
"""Routes that need no authentication; the last three are the way to it."""
PAGES: Final = frozenset({"chat"})
STREAM: Final = "events"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. `csrf` is what writes must carry when the browser authenticates by itself."""

    role: Role
    via: Literal["token", "cookie", "loopback"]
    csrf: str | None = None


PRINCIPAL: Final = web.RequestKey("principal", Principal)
"""Where a handler finds who asks."""


class Guard:
    """Lets requests in, or says why not."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services
        self._settings = services.settings
        self._limiter = FailureLimiter(services.clock)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check host, origin, authentication, role and CSRF, in this order."""
        name = request.match_info.route.name or ""
        if name in HEALTH or name == HOOK:
            return await handler(request)
        self._check_place(request, name)
        if name in OPEN:
            return await handler(request)
        principal = await self.principal(request)
        if principal is None:
            if name in PAGES:
                raise web.HTTPSeeOther("/login")
            raise _unauthorized("A bearer token is needed.")
        if request.method not in _SAFE:
            await self._check_write(request, principal)
        request[PRINCIPAL] = principal
        return await handler(request)

    def _check_place(self, request: web.Request, name: str) -> None:
        if not host_allowed(request.headers.get("Host", ""), self._settings):
            raise HttpProblem(421, "misdirected", "This server is not called by that name.")
        if (request.method not in _SAFE or name == STREAM) and not same_origin(request.headers):
            raise HttpProblem(403, "cross_site", "Pages of other sites may not do this.")

    async def principal(self, request: web.Request) -> Principal | None:
        """Who asks, or None. Raises `HttpProblem` for a wrong token and for too many of them."""
        header = request.headers.get("Authorization")
        if header is not None:
            scheme, _, token = header.partition(" ")
            if scheme.lower() != "bearer":
                raise _unauthorized("The scheme must be Bearer.")
            return Principal(self.check_token(request, token.strip()), "token")
        secret = request.cookies.get(COOKIE)
        role = None if not secret else await self._role_of(secret)
        if secret and role is not None:
            return Principal(role, "cookie", csrf_of(secret))
        if is_local_owner(request.headers, request.remote, self._settings):
            return Principal("admin", "loopback")
        return None

    def check_token(self, request: web.Request, token: str) -> Role:
        """The role of a token. Raises `HttpProblem`; failures are counted by remote address."""
        address = request.remote or "unknown"
        wait = self._limiter.blocked_s(address)
        if wait > 0:
            headers = {"Retry-After": str(math.ceil(wait))}
            raise HttpProblem(429, "too_many_failures", "Too many wrong tokens.", headers)
        admin = _among(token, self._settings.admin_tokens())
        read = _among(token, self._settings.read_tokens())
        if not admin and not read:
            self._limiter.failed(address)
            raise _unauthorized("The token is wrong.")
        return "admin" if admin else "read"

    async def _role_of(self, secret: str) -> Role | None:
        login = await self._services.logins.find(secret)
        if login is None:
            return None
        admin = login.role == "admin"
        tokens = self._settings.admin_tokens() if admin else self._settings.read_tokens()
        return login.role if login.token in [fingerprint(one) for one in tokens] else None

    async def _check_write(self, request: web.Request, principal: Principal) -> None:
        if principal.csrf is not None:
            given = request.headers.get(CSRF_HEADER) or await _form_field(request)
            if not hmac.compare_digest(given.encode(), principal.csrf.encode()):
                raise HttpProblem(403, "csrf", f"The header {CSRF_HEADER} is missing or wrong.")
        if principal.role != "admin" and request.match_info.route.name != "logout":
            raise HttpProblem(403, "read_only", "This token may only read.")


def csrf_of(secret: str) -> str:
    """The CSRF token of a login: only who can read the page knows it."""
    return hashlib.sha256(f"csrf\0{secret}".encode()).hexdigest()


async def _form_field(request: web.Request) -> str:
    if request.content_type != "application/x-www-form-urlencoded":
        return ""
    found = (await request.post()).get(CSRF_FIELD, "")
    return found if isinstance(found, str) else ""


def _among(token: str, known: Sequence[str]) -> bool:
    """Compared in constant time, whichever token it is and wherever they differ."""
    given = hashlib.sha256(token.encode()).digest()
    found = False
    for one in known:
        same = hmac.compare_digest(given, hashlib.sha256(one.encode()).digest())
        found |= same and bool(one)
    return found


def _unauthorized(detail: str) -> HttpProblem:
    headers = {"WWW-Authenticate": 'Bearer realm="gatehouse"'}
    return HttpProblem(401, "unauthorized", detail, headers)
