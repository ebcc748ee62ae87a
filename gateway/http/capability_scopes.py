"""`/v1/sessions/{id}/capability-scope`: what the runs of a session may do at most (RUN-1)."""

from aiohttp import web

from gateway.explain import Explainer
from gateway.http.operations import Operation, body
from gateway.http.responses import answer, session_of
from gateway.http.services import HttpServices
from runtime.intake.capability_scopes import CapabilityScopeRequest, ScopeControl
from runtime.views.models import SessionView


class CapabilityScopeRoutes:
    """Handlers of a session's capability scope."""

    def __init__(self, services: HttpServices, explainer: Explainer) -> None:
        control = services.control

        def tools() -> list[str]:
            return [tool.name for tool in explainer.registry.tools]

        self._scopes = ScopeControl(control.units, control.workspace, tools, control.actor.id)

    def operations(self) -> list[Operation]:
        path = "/v1/sessions/{session_id}/capability-scope"
        return [
            Operation(
                *("PUT", path, "Narrow what a session may do", self._narrow),
                body=CapabilityScopeRequest,
                answer=SessionView,
                errors=(409,),
            ),
            Operation(
                *("DELETE", path, "Take a session's capability scope away", self._clear),
                answer=SessionView,
                errors=(409,),
            ),
        ]

    async def _narrow(self, request: web.Request) -> web.Response:
        """It takes the place of the one before. Subagents that are there already keep theirs."""
        session_id = session_of(request)
        asked = body(request, CapabilityScopeRequest)
        return answer(await self._scopes.narrow(session_id, asked))

    async def _clear(self, request: web.Request) -> web.Response:
        return answer(await self._scopes.narrow(session_of(request), None))
