"""`/v1/sessions/{id}/route-policy`: which model answers in a session, and how it writes (RUN-1)."""

from aiohttp import web

from gateway.http.operations import Operation, body
from gateway.http.problems import HttpProblem
from gateway.http.request_bodies import RoutePolicyRequest
from gateway.http.responses import answer, session_of
from gateway.http.services import HttpServices
from runtime.intake.route_policies import RouteControl
from runtime.views.models import SessionView


class RoutePolicyRoutes:
    """Handlers of a session's route policy."""

    def __init__(self, services: HttpServices) -> None:
        self._routes = RouteControl(services.control, services.route_rules)

    def operations(self) -> list[Operation]:
        path = "/v1/sessions/{session_id}/route-policy"
        return [
            Operation(
                *("PUT", path, "Choose the model of a session and how it writes", self._choose),
                body=RoutePolicyRequest,
                answer=SessionView,
            ),
            Operation(
                *("DELETE", path, "Go back to the default model", self._clear),
                answer=SessionView,
            ),
        ]

    async def _choose(self, request: web.Request) -> web.Response:
        """It takes the place of the policy before: what is left out is as it is by default."""
        session_id, asked = session_of(request), body(request, RoutePolicyRequest)
        if asked.conflict:
            raise HttpProblem(400, "bad_request", asked.conflict)
        return answer(await self._routes.change(session_id, asked))

    async def _clear(self, request: web.Request) -> web.Response:
        return answer(await self._routes.change(session_of(request), None))
