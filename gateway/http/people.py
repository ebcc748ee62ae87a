"""`/v1/pairings`, `/v1/people` and the owner's code: who may speak to the agent (ACC-1, ACC-2)."""

from aiohttp import web

from gateway.http.operations import Listed, Operation, body, query
from gateway.http.query_models import Paging
from gateway.http.request_bodies import Nothing, PairingRequest
from gateway.http.responses import answer, listing, part_of, path_id
from gateway.http.services import HttpServices
from runtime.domain.people import Speaker
from runtime.intake.control import OwnerCode
from runtime.views.models import PairingView


class PeopleRoutes:
    """Handlers about people."""

    def __init__(self, services: HttpServices) -> None:
        self._views = services.views
        self._control = services.control

    def operations(self) -> list[Operation]:
        return [
            Operation(
                *("GET", "/v1/pairings", "List strangers who asked", self._pairings),
                query=Paging,
                answer=Listed[PairingView],
            ),
            *(
                Operation(
                    *("POST", path, "Make a code for a new owner", self._owner_code),
                    body=Nothing,
                    answer=OwnerCode,
                )
                for path in ("/v1/pairings/owner-code", "/v1/owner-code")
            ),
            Operation(
                *("POST", "/v1/pairings/{code}/approve", "Let a stranger in", self._approve),
                body=PairingRequest,
                answer=PairingView,
                errors=(409,),
            ),
            Operation(
                *("POST", "/v1/pairings/{code}/deny", "Turn a stranger away", self._deny),
                body=Nothing,
                answer=PairingView,
                errors=(409,),
            ),
            Operation(
                *("GET", "/v1/people", "List known accounts", self._people),
                query=Paging,
                answer=Listed[Speaker],
            ),
        ]

    async def _pairings(self, request: web.Request) -> web.Response:
        return listing(part_of(await self._views.pairings(), query(request, Paging)))

    async def _people(self, request: web.Request) -> web.Response:
        return listing(part_of(await self._views.people(), query(request, Paging)))

    async def _approve(self, request: web.Request) -> web.Response:
        asked = body(request, PairingRequest)
        code = path_id(request, "code", "pairing")
        return answer(await self._control.approve_pairing(code, trust=asked.trust))

    async def _deny(self, request: web.Request) -> web.Response:
        return answer(await self._control.deny_pairing(path_id(request, "code", "pairing")))

    async def _owner_code(self, _request: web.Request) -> web.Response:
        made = await self._control.new_owner_code()
        return answer({"code": made.code, "replaced": made.replaced})
