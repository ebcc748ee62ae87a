"""How the gateway is: `/healthz`, `/readyz`, `/v1/status`, `/v1/runtime` (API-5)."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web
from pydantic import Field

from gateway.http.operations import Listed, Operation, query
from gateway.http.query_models import Paging
from gateway.http.responses import answer, listing
from gateway.http.services import AdapterView, HttpServices
from gateway.runtime_view import RuntimeView
from runtime.domain.errors import StoreUnavailable
from runtime.domain.value import Value
from runtime.process.supervisor import TaskHealth
from runtime.views.models import DeliveryProblemView, LeaseView

WHY: Final[Mapping[str, str]] = {
    "database": "The database cannot be read; see writes, and the log.",
    "bus": "Signals do not reach the other replicas, so work may wait for a second.",
    "engine": "This process does not hold its lease, so it may not work; the log says why.",
    "adapters": "No chat platform is connected; see adapters.",
    "taking": "The gateway is stopping and takes nothing new.",
}
"""What the name of a check does not say by itself."""
BACK: Final = "It was down a moment ago, and is up again."
"""A part may come back between its check and the question why."""


class GatewayStatus(Value):
    """The gateway in numbers. Those of the database are missing while it is away; ``checks`` says
    so, and ``reasons`` why. ``tasks`` are the long-lived ones that have failed."""

    version: str
    url: str
    ready: bool
    checks: dict[str, bool]
    reasons: dict[str, str]
    sandbox: str
    workspace_problems: tuple[str, ...]
    turns_running: int
    turns_limit: int
    adapters: tuple[AdapterView, ...]
    tasks: tuple[TaskHealth, ...]
    leases: tuple[LeaseView, ...] = ()
    runs: dict[str, int] = Field(default_factory=dict)
    outbox: dict[str, int] = Field(default_factory=dict)
    outbox_oldest_ms: int = 0
    sessions: int = 0
    lanes_active: int = 0
    lanes_ready: int = 0
    inputs: int = 0
    open_calls: int = 0
    last_position: int = 0


class HealthRoutes:
    """Handlers about the gateway itself."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    def probes(self) -> list[web.RouteDef]:
        """What a supervisor asks any process, whatever its roles."""
        return [
            web.get("/healthz", self._healthz, name="healthz"),
            web.get("/readyz", self._readyz, name="readyz"),
        ]

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "GET", "/v1/status", "How the gateway is", self._status, answer=GatewayStatus
            ),
            Operation(
                *("GET", "/v1/runtime", "The effective settings, no secrets", self._runtime),
                answer=RuntimeView,
            ),
            Operation(
                *("GET", "/v1/deliveries/problems", "What did not arrive", self._problems),
                query=Paging,
                answer=Listed[DeliveryProblemView],
            ),
        ]

    async def _healthz(self, _request: web.Request) -> web.Response:
        return answer({"status": "ok"})

    async def _readyz(self, _request: web.Request) -> web.Response:
        """Up or not, and nothing more: anybody may ask (SEC-3)."""
        ready = all((await self._checks()).values())
        return answer({"status": "ok" if ready else "not ready"}, status=200 if ready else 503)

    async def _status(self, _request: web.Request) -> web.Response:
        """Also while the database is away: then its numbers are missing, and ``checks`` says so."""
        checks, numbers = await self._checks(), None
        if checks["database"]:
            try:
                numbers = await self._services.views.status()
            except StoreUnavailable:
                # One look may come through where the next does not, as on a damaged file.
                checks["database"] = False
        services = self._services
        status = GatewayStatus(
            version=services.version,
            url=services.url,
            ready=all(checks.values()),
            checks=checks,
            reasons=self._reasons(checks),
            sandbox=services.sandbox,
            workspace_problems=await self._workspace_problems(),
            turns_running=services.turns_running(),
            turns_limit=services.turns_limit,
            adapters=tuple(services.adapters()),
            tasks=tuple(one for one in services.tasks() if one.failures),
            **({} if numbers is None else dict(numbers)),
        )
        return answer(status.model_dump(mode="json", exclude_unset=True))

    async def _workspace_problems(self) -> tuple[str, ...]:
        explainer = self._services.explainer
        return () if explainer is None else await explainer.workspace_problems()

    async def _runtime(self, _request: web.Request) -> web.Response:
        view = self._services.runtime()
        return answer(view.model_copy(update={"url": self._services.url}))

    async def _problems(self, request: web.Request) -> web.Response:
        asked = query(request, Paging)
        page = await self._services.views.delivery_problems(limit=asked.limit, cursor=asked.after)
        return listing(page)

    def _reasons(self, checks: Mapping[str, bool]) -> dict[str, str]:
        """Why the gateway is not ready, for its operator; empty while it is."""
        known = self._services.reasons
        return {
            name: (known[name]() or BACK) if name in known else WHY.get(name, "It is not up.")
            for name, up in checks.items()
            if not up
        }

    async def _checks(self) -> dict[str, bool]:
        try:
            await self._services.views.last_position()
            database = True
        except StoreUnavailable:
            database = False
        named = {name: check() for name, check in self._services.checks.items()}
        return {"database": database, **named}
