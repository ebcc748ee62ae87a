"""`/v1/pairings`, `/v1/people` and the owner's code: who may speak to the agent (ACC-1, ACC-2)."""

from aiohttp import web

from gateway.http.request_bodies import PairingRequest, body
from gateway.http.responses import answer, listing, path_id
from gateway.http.services import HttpServices


class PeopleRoutes:
    """Handlers about people."""

    def __init__(self, services: HttpServices) -> None:
        self._views = services.views
        self._control = services.control

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/pairings", self._pairings),
            web.post("/v1/pairings/owner-code", self._owner_code),
            web.post("/v1/owner-code", self._owner_code),
            web.post("/v1/pairings/{code}/approve", self._approve),
            web.post("/v1/pairings/{code}/deny", self._deny),
            web.get("/v1/people", self._people),
        ]

    async def _pairings(self, _request: web.Request) -> web.Response:
        return listing(await self._views.pairings())

    async def _people(self, _request: web.Request) -> web.Response:
        return listing(await self._views.people())

    async def _approve(self, request: web.Request) -> web.Response:
        asked = await body(request, PairingRequest)
        code = path_id(request, "code", "pairing")
        return answer(await self._control.approve_pairing(code, trust=asked.trust))

    async def _deny(self, request: web.Request) -> web.Response:
        return answer(await self._control.deny_pairing(path_id(request, "code", "pairing")))

    async def _owner_code(self, _request: web.Request) -> web.Response:
        made = await self._control.new_owner_code()
        return answer({"code": made.code, "replaced": made.replaced})
