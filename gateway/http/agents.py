"""`/v1/agents`: every agent as it stands (AGT-1), and the trees of subagents (AGT-2)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, get_args

from aiohttp import web

from gateway.http.operations import Listed, Operation, body, query
from gateway.http.problems import HttpProblem, invalid
from gateway.http.query_models import AgentsQuery, SnapshotsQuery
from gateway.http.request_bodies import idempotency_key
from gateway.http.responses import answer, listing, path_id
from gateway.http.services import HttpServices
from runtime.domain.errors import NotFound
from runtime.domain.value import JsonObject
from runtime.features.subagents.sidechains import SidechainPlan, Sidechains, SpawnRefused
from runtime.features.subagents.snapshots import ManagedAgentSnapshot, SnapshotReader
from runtime.features.subagents.spawn.agent_types import TypeBook
from runtime.features.subagents.spawn.sidechain_request import SpawnSidechainRequest
from runtime.features.subagents.status_words import AgentStatus
from runtime.features.subagents.views import AgentScope, AgentsReader, AgentSummary

_STATUSES: Final[tuple[AgentStatus, ...]] = get_args(AgentStatus)


class AgentSummaries(Listed[AgentSummary]):
    """Agents, and how many there are of each status."""

    counts: dict[AgentStatus, int]


class AgentRoutes:
    """Handlers of `/v1/agents`."""

    def __init__(self, services: HttpServices) -> None:
        self._agents = AgentsReader(services.views.database)
        self._snapshots = SnapshotReader(services.views.database)
        self._explainer = services.explainer
        self._sidechains = _sidechains(services)

    def operations(self) -> list[Operation]:
        return [
            Operation(
                *("GET", "/v1/agents", "List agents as they stand", self._list),
                query=SnapshotsQuery,
                answer=Listed[ManagedAgentSnapshot],
                errors=(404,),
            ),
            Operation(
                *("GET", "/v1/agents/summaries", "List agents in brief", self._summaries),
                query=AgentsQuery,
                answer=AgentSummaries,
                errors=(404,),
            ),
            Operation(
                *("GET", "/v1/agents/{agent_id}", "Show an agent", self._get),
                answer=ManagedAgentSnapshot,
            ),
            *self._spawning(),
        ]

    def _spawning(self) -> list[Operation]:
        path = "/v1/agents/{agent_id}/sidechains"
        if self._sidechains is None:
            return []
        return [
            Operation(
                *("POST", path, "Start a subagent for an agent", self._spawn),
                body=SpawnSidechainRequest,
                answer=ManagedAgentSnapshot,
                status=201,
                also=(200,),
                creates=True,
            ),
            Operation(
                *("POST", f"{path}/explain", "Say what would be started", self._explain),
                body=SpawnSidechainRequest,
                answer=SidechainPlan,
                errors=(409,),
            ),
        ]

    async def _spawn(self, request: web.Request) -> web.Response:
        """It works in the background, and its result is handed to the agent of the path."""
        asked, sidechains = _asked(request), self._sidechains
        if sidechains is None:
            raise NotFound("agent", request.match_info["agent_id"])
        try:
            key = asked.spawn_request_id or idempotency_key(request)
            asked = asked.model_copy(update={"spawn_request_id": key})
            with _agent(request) as parent:
                session_id, new = await sidechains.spawn(parent, asked)
        except SpawnRefused as refused:
            return invalid(refused.broken)
        found = await self._with_tools(await self._snapshots.snapshot(session_id))
        headers = {"Location": f"/v1/agents/{session_id}"}
        return answer(found, status=201 if new else 200, headers=headers)

    async def _explain(self, request: web.Request) -> web.Response:
        """Everything is checked as if it were started, and nothing is made."""
        asked, sidechains = _asked(request), self._sidechains
        if sidechains is None:
            raise NotFound("agent", request.match_info["agent_id"])
        try:
            with _agent(request) as parent:
                return answer(await sidechains.explain(parent, asked))
        except SpawnRefused as refused:
            return invalid(refused.broken)

    async def _list(self, request: web.Request) -> web.Response:
        """All agents, or with `session_id` those of the tree that it is in."""
        asked = query(request, SnapshotsQuery)
        page = await self._snapshots.snapshots(
            asked.session_id, limit=asked.limit, cursor=asked.after
        )
        items = [await self._with_tools(one) for one in page.items]
        return listing(replace(page, items=tuple(items)))

    async def _get(self, request: web.Request) -> web.Response:
        with _agent(request) as agent_id:
            found = await self._snapshots.snapshot(agent_id)
        return answer(await self._with_tools(found))

    async def _with_tools(self, found: ManagedAgentSnapshot) -> ManagedAgentSnapshot:
        if self._explainer is None:
            return found
        tools = await self._explainer.tools(found.session_id)
        return found.model_copy(update={"tool_surface": tools})

    async def _summaries(self, request: web.Request) -> web.Response:
        """`counts` are of all that the other filters leave."""
        asked = query(request, AgentsQuery)
        scope = AgentScope(
            session_id=asked.session_id or asked.root_agent_id or asked.root,
            status=asked.status,
            live=asked.has_runtime,
        )
        found = await self._agents.summaries(scope, limit=asked.limit, cursor=asked.after)
        counts: JsonObject = {status: found.counts.get(status, 0) for status in _STATUSES}
        return listing(found.page, counts=counts)


@contextmanager
def _agent(request: web.Request) -> Iterator[str]:
    """The agent of the path. Where there is no session with its id, there is no such agent."""
    agent_id = path_id(request, "agent_id", "agent")
    try:
        yield agent_id
    except NotFound:
        raise NotFound("agent", agent_id) from None


def _asked(request: web.Request) -> SpawnSidechainRequest:
    """What a request asks for. Raises `HttpProblem` where it contradicts itself."""
    asked = body(request, SpawnSidechainRequest)
    if asked.conflict:
        raise HttpProblem(400, "bad_request", asked.conflict)
    return asked


def _sidechains(services: HttpServices) -> Sidechains | None:
    known = services.explainer
    if known is None:
        return None
    units = services.control.units
    book = TypeBook(units.database, known.agent, services.children, known.workspace.agents)
    return Sidechains(
        units=units,
        book=book,
        registry=known.registry,
        policy=known.policy,
        root=known.workspace.root,
        assets=services.control.assets,
        roots=known.roots,
        routes=services.route_rules,
        worktrees=services.worktrees,
    )
