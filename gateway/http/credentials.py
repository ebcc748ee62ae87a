"""Which credential a request carries, and whether it holds (API-1, WEB-2, SEC-7).

A token of the settings and of the own home is known to the process. One of another home, and every
login of a page, is looked up in the database that the replicas share.
"""

import hashlib
import hmac
import math
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gateway.home_token import home_of
from gateway.http.problems import HttpProblem
from gateway.http.services import HttpServices
from runtime.intake.logins import Credential, Role, fingerprint
from runtime.ports.clock import Clock

LOCAL: Final = "a socket of the home"
MAX_FAILURES: Final = 10
WINDOW_S: Final = 60.0
MAX_ADDRESSES: Final = 4_096


class Credentials:
    """Checks tokens, cookies and one-time codes. Wrong ones are counted by where they come from; a
    right one is never refused for the wrong ones of others."""

    def __init__(self, services: HttpServices) -> None:
        self._settings = services.settings
        self._logins = services.logins
        self._limiter = FailureLimiter(services.clock)

    async def of_token(self, request: web.Request, token: str) -> Credential:
        """The credential that a token is. Raises `HttpProblem` for a wrong one."""
        home = home_of(token) or ""
        credential = Credential(role="read", token=fingerprint(token), home=home)
        role = self._role(token)
        if role is None and home and await self._logins.homes.holds(home, credential.token):
            role = "admin"
        if role is None:
            raise self.refused(request, "The token is wrong.")
        return credential.model_copy(update={"role": role})

    async def of_cookie(self, secret: str) -> Credential | None:
        """What a login was made with, while that still holds; None for no login."""
        login = await self._logins.find(secret)
        if login is None:
            return None
        credential = login.credential
        admin = credential.role == "admin"
        known = self._settings.admin_tokens() if admin else self._settings.read_tokens()
        if credential.token in [fingerprint(token) for token in known if token]:
            return credential
        home = credential.home
        holds = bool(home) and await self._logins.homes.holds(home, credential.token)
        return credential if holds else None

    def refused(self, request: web.Request, detail: str) -> HttpProblem:
        """Count a wrong credential; the answer to it. After too many of them from one place the
        answer names no reason, asks for a pause and ends the connection."""
        place = request.remote or LOCAL
        wait = self._limiter.blocked_s(place)
        if wait <= 0:
            self._limiter.failed(place)
            return unauthorized(detail)
        headers = {"Retry-After": str(math.ceil(wait)), "Connection": "close"}
        text = f"Too many wrong tokens came from your address. Wait {math.ceil(wait)} seconds."
        return HttpProblem(429, "too_many_failures", text, headers)

    def _role(self, token: str) -> Role | None:
        admin = _among(token, self._settings.admin_tokens())
        read = _among(token, self._settings.read_tokens())
        return "admin" if admin else "read" if read else None


class FailureLimiter:
    """Failed logins by remote address: after too many the address must wait (API-1).

    They are counted in memory: a restart forgives, an attacker gains one window by it.
    """

    def __init__(
        self, clock: Clock, *, most: int = MAX_FAILURES, window_s: float = WINDOW_S
    ) -> None:
        self._clock = clock
        self._most = most
        self._window_s = window_s
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def blocked_s(self, address: str) -> float:
        """Seconds until the address may try again; 0 when it may now."""
        times = self._failures.get(address)
        if times is None:
            return 0.0
        now = self._clock.monotonic()
        while times and times[0] <= now - self._window_s:
            times.popleft()
        if not times:
            del self._failures[address]
        return max(times[0] + self._window_s - now, 0.0) if len(times) >= self._most else 0.0

    def failed(self, address: str) -> None:
        """Count one failure."""
        times = self._failures.setdefault(address, deque(maxlen=self._most))
        times.append(self._clock.monotonic())
        self._failures.move_to_end(address)
        while len(self._failures) > MAX_ADDRESSES:
            self._failures.popitem(last=False)


def unauthorized(detail: str) -> HttpProblem:
    """The answer to a request without a credential that holds."""
    headers = {"WWW-Authenticate": 'Bearer realm="gatehouse"'}
    return HttpProblem(401, "unauthorized", detail, headers)


def _among(token: str, known: Sequence[str]) -> bool:
    """Compared in constant time, whichever token it is and wherever they differ."""
    given = hashlib.sha256(token.encode()).digest()
    found = False
    for one in known:
        same = hmac.compare_digest(given, hashlib.sha256(one.encode()).digest())
        found |= same and bool(one)
    return found
