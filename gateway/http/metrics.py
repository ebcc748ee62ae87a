"""`/metrics` in Prometheus' text format; what stands in the database is read at the scrape."""

from collections.abc import Mapping, Sequence
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from gateway.http.problems import Handler
from gateway.http.services import AdapterView, HttpServices
from runtime.domain.runs import RunState
from runtime.views.models import StatusView

OUTBOX_STATES: Final = ("pending", "sending", "streaming", "dead", "unknown")


class Metrics:
    """One server's numbers in a registry of its own."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "gatehouse_http_requests",
            "HTTP requests answered.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._inputs = self._gauge("inputs_total", "Inputs ever accepted into a session.")
        self._runs = self._gauge("runs", "Runs by state.", "state")
        self._outbox = self._gauge("outbox_messages", "Messages that are not sent.", "state")
        self._oldest = self._gauge(
            "outbox_oldest_seconds", "Age of the oldest message that waits to be sent."
        )
        self._lanes = self._gauge("lanes", "Sessions by what their lane does.", "state")
        self._turns = self._gauge("turns_running", "Turns that run in this process.")
        self._open_calls = self._gauge("open_calls", "Approvals and questions that wait.")
        self._adapters = self._gauge(
            "adapter_connected", "1 while the account is connected.", "channel", "account"
        )

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"gatehouse_{name}", text, labels, registry=self._registry)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count every answer, by the route's pattern and never by the path that was asked."""
        resource = request.match_info.route.resource
        route = resource.canonical if resource is not None else "none"
        try:
            response = await handler(request)
        except web.HTTPException as redirect:
            self._requests.labels(request.method, route, str(redirect.status)).inc()
            raise
        self._requests.labels(request.method, route, str(response.status)).inc()
        return response

    async def scrape(self, _request: web.Request) -> web.Response:
        """The answer to Prometheus. Raises `StoreUnavailable`."""
        self._take(await self._services.views.status())
        self._take_adapters(self._services.adapters())
        self._turns.set(self._services.turns_running())
        return web.Response(
            body=generate_latest(self._registry),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )

    def _take(self, status: StatusView) -> None:
        self._inputs.set(status.inputs)
        self._open_calls.set(status.open_calls)
        self._oldest.set(status.outbox_oldest_ms / 1000)
        _set(self._runs, status.runs, [state.value for state in RunState])
        _set(self._outbox, status.outbox, OUTBOX_STATES)
        idle = status.sessions - status.lanes_active - status.lanes_ready
        lanes = {"active": status.lanes_active, "ready": status.lanes_ready, "idle": idle}
        _set(self._lanes, lanes, list(lanes))

    def _take_adapters(self, adapters: Sequence[AdapterView]) -> None:
        self._adapters.clear()
        for one in adapters:
            self._adapters.labels(one.channel, one.account).set(int(one.connected))


def _set(gauge: Gauge, values: Mapping[str, int], states: Sequence[str]) -> None:
    for state in states:
        gauge.labels(state).set(values.get(state, 0))
