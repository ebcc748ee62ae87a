"""`/v1/agents`: the trees of subagents (AGT-2)."""

from typing import Final, get_args

from aiohttp import web

from gateway.http.responses import choice_of, cursor_of, flag_of, limit_of, listing, query_id
from gateway.http.services import HttpServices
from runtime.domain.value import JsonObject
from runtime.features.subagents.views import AgentScope, AgentsReader, AgentStatus

_STATUSES: Final[tuple[AgentStatus, ...]] = get_args(AgentStatus)


class AgentRoutes:
    """Handlers of `/v1/agents`."""

    def __init__(self, services: HttpServices) -> None:
        self._agents = AgentsReader(services.views.database)

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v1/agents/summaries", self._summaries)]

    async def _summaries(self, request: web.Request) -> web.Response:
        """``session_id`` is any session of a tree, ``root`` the one at its top; without either,
        every tree in which somebody is at work. ``counts`` are of the whole scope."""
        scope = AgentScope(
            session_id=query_id(request, "session_id") or query_id(request, "root"),
            status=choice_of(request, "status", _STATUSES),
            live=flag_of(request, "has_runtime"),
        )
        found = await self._agents.summaries(
            scope, limit=limit_of(request), cursor=cursor_of(request)
        )
        counts: JsonObject = {status: found.counts.get(status, 0) for status in _STATUSES}
        return listing(found.page, counts=counts)
