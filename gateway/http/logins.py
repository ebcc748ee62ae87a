"""Ways in that an owner makes: one-time links to the page, and a token that takes another's place
(WEB-2)."""

from typing import Literal

from aiohttp import web

from gateway.http.auth import PRINCIPAL
from gateway.http.operations import Operation
from gateway.http.request_bodies import Nothing
from gateway.http.responses import answer
from gateway.http.services import HttpServices
from runtime.domain.value import JsonObject, Value
from runtime.intake.logins import CODE_LIFE_MS


class LoginLink(Value):
    """A way in for one browser; ``elsewhere`` is for those of other machines."""

    link: str
    path: str
    expires_in_s: int
    elsewhere: str | None = None


class Done(Value):
    """It was done."""

    status: Literal["ok"] = "ok"


class LoginRoutes:
    """Handlers for the command line of the home."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [
            Operation(
                *("POST", "/v1/login-links", "Make a link that logs in once", self._make_link),
                body=Nothing,
                answer=LoginLink,
                status=201,
            ),
            Operation(
                *("POST", "/v1/tokens/reload", "Read the tokens' files", self._reload_tokens),
                body=Nothing,
                answer=Done,
            ),
        ]

    async def _make_link(self, request: web.Request) -> web.Response:
        """A link that logs one browser in, once, within ten minutes; and one to the same from other
        machines, where that is another."""
        code = await self._services.logins.new_code(request[PRINCIPAL].credential)
        path, services = login_path(code), self._services
        elsewhere = "" if services.settings.public_url else services.addresses().elsewhere
        made: JsonObject = {
            "link": f"{services.url}{path}",
            "path": path,
            "expires_in_s": CODE_LIFE_MS // 1000,
        }
        if elsewhere:
            made["elsewhere"] = f"{elsewhere}{path}"
        return answer(made, status=201)

    async def _reload_tokens(self, _request: web.Request) -> web.Response:
        """Hold to the tokens that the files have now; logins of those that went end."""
        await self._services.reload_tokens()
        return answer(Done())


def login_path(code: str) -> str:
    """Where a code is spent. It stands behind the `#`, so that no server or proxy logs it, and a
    program that looks at links in advance does not spend it."""
    return f"/login#code={code}"
