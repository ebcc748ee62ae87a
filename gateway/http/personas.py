"""`/v1/sessions/{id}/persona`: whose identity files a session has (CTX-11)."""

from aiohttp import web

from gateway.http.operations import Operation, body
from gateway.http.request_bodies import PersonaRequest
from gateway.http.responses import answer, session_of
from gateway.http.services import HttpServices
from runtime.features.personas.control import PersonaControl
from runtime.views.models import SessionView


class PersonaRoutes:
    """Handlers of a session's persona."""

    def __init__(self, services: HttpServices) -> None:
        control = services.control
        self._personas = PersonaControl(control.units, control.workspace, control.actor.id)

    def operations(self) -> list[Operation]:
        path = "/v1/sessions/{session_id}/persona"
        return [
            Operation(
                *("PUT", path, "Give a session a persona", self._bind),
                body=PersonaRequest,
                answer=SessionView,
                errors=(409,),
            ),
            Operation(
                *("DELETE", path, "Take a session's persona away", self._unbind),
                answer=SessionView,
                errors=(409,),
            ),
        ]

    async def _bind(self, request: web.Request) -> web.Response:
        session_id = session_of(request)
        asked = body(request, PersonaRequest)
        return answer(await self._personas.bind(session_id, asked.persona))

    async def _unbind(self, request: web.Request) -> web.Response:
        return answer(await self._personas.bind(session_of(request), None))
