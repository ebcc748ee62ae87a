"""How the gateway is: `/healthz`, `/readyz`, `/metrics`, `/v1/status`, `/v1/runtime` (API-5)."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from aiohttp import web
from pydantic import JsonValue

from gateway.http.metrics import Metrics
from gateway.http.responses import answer, cursor_of, limit_of, listing
from gateway.http.services import HttpServices
from runtime.domain.errors import StoreUnavailable
from runtime.domain.value import JsonObject

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


class HealthRoutes:
    """Handlers about the gateway itself."""

    def __init__(self, services: HttpServices, metrics: Metrics) -> None:
        self._services = services
        self._metrics = metrics

    def probes(self) -> list[web.RouteDef]:
        """What a supervisor asks any process, whatever its roles."""
        return [
            web.get("/healthz", self._healthz, name="healthz"),
            web.get("/readyz", self._readyz, name="readyz"),
            web.get("/metrics", self._metrics.scrape),
        ]

    def routes(self) -> list[web.RouteDef]:
        return [
            *self.probes(),
            web.get("/v1/status", self._status),
            web.get("/v1/runtime", self._runtime),
            web.get("/v1/deliveries/problems", self._problems),
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
        return answer(
            {
                "version": self._services.version,
                "url": self._services.url,
                "ready": all(checks.values()),
                "checks": dict(checks),
                "reasons": self._reasons(checks),
                "sandbox": self._services.sandbox,
                "workspace_problems": await self._workspace_problems(),
                "turns_running": self._services.turns_running(),
                "turns_limit": self._services.turns_limit,
                "adapters": [one.model_dump(mode="json") for one in self._services.adapters()],
                "tasks": [asdict(one) for one in self._services.tasks() if one.failures],
                **(numbers.model_dump(mode="json") if numbers else {}),
            }
        )

    async def _workspace_problems(self) -> list[JsonValue]:
        explainer = self._services.explainer
        return [] if explainer is None else list(await explainer.workspace_problems())

    async def _runtime(self, _request: web.Request) -> web.Response:
        return answer({**self._services.runtime(), "url": self._services.url})

    async def _problems(self, request: web.Request) -> web.Response:
        page = await self._services.views.delivery_problems(
            limit=limit_of(request), cursor=cursor_of(request)
        )
        return listing(page)

    def _reasons(self, checks: Mapping[str, bool]) -> JsonObject:
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
