"""`/metrics` in Prometheus' text format (OPS-8).

What this process did was counted as it happened; what stands in the database, the same for every
replica, is read at the scrape. While the database is away its numbers are missing and everything
else is still said, because that is when somebody looks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from aiohttp import web
from prometheus_client import (
    CollectorRegistry,
    Counter,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.http.problems import Handler
from gateway.http.services import AdapterView, HttpServices
from runtime.domain.errors import StoreUnavailable
from runtime.domain.runs import ACTIVE, TERMINAL, WAITING, RunState
from runtime.features.schedules import rows
from runtime.process.supervisor import TaskHealth
from runtime.views.models import LoadView

OUTBOX_STATES: Final = ("pending", "sending", "streaming", "dead", "unknown")
SCHEDULES: Final = "Schedules that are active, of these due now, paused, and that failed last."
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER: Final = "other"


class Metrics:
    """One server's numbers, beside those of the engine that it stands in front of."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services
        # When each series began is of no use here, and would double their number.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library left it so
        self._registry = CollectorRegistry()
        self._registry.register(services.metrics.registry)
        self._requests = Counter(
            "gatehouse_http_requests",
            "HTTP requests answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._gauges = Gauges(services)
        self._registry.register(self._gauges)
        ProcessCollector(registry=self._registry)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count every answer, by the route's pattern and never by the path that was asked."""
        resource = request.match_info.route.resource
        route = resource.canonical if resource is not None else "none"
        method = request.method if request.method in METHODS else OTHER
        try:
            response = await handler(request)
        except web.HTTPException as redirect:
            self._requests.labels(method, route, str(redirect.status)).inc()
            raise
        self._requests.labels(method, route, str(response.status)).inc()
        return response

    def route(self) -> web.RouteDef:
        return web.get("/metrics", self.scrape)

    async def scrape(self, _request: web.Request) -> web.Response:
        """The answer to Prometheus."""
        services = self._services
        try:
            self._gauges.load = await services.views.load()
            self._gauges.schedules = await services.control.units.database.read(rows.standing)
        except StoreUnavailable:
            self._gauges.load = None
        return web.Response(
            body=generate_latest(self._registry),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )


class Gauges(Collector):
    """What holds at the moment of a scrape. `load` and `schedules` are what the database said;
    `load` is None if that was nothing."""

    def __init__(self, services: HttpServices) -> None:
        self.load: LoadView | None = None
        self.schedules: Mapping[str, int] = {}
        self._services = services

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked of the parts before the first scrape."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Every family, those of the database only while it answers."""
        services, load = self._services, self.load
        adapters = services.adapters()
        yield from self._process()
        yield _labelled(
            "adapter_connected",
            "1 while the account is connected.",
            ("channel", "account"),
            {(one.channel, one.account): one.connected for one in adapters},
        )
        yield from _tasks(services.tasks())
        yield _gauge("database_up", "1 while the database answers.", int(load is not None))
        if load is not None:
            yield from _work(load)
            yield _states("schedules", SCHEDULES, self.schedules, tuple(self.schedules))
            yield self._leases(load, adapters)

    def _process(self) -> Iterator[Metric]:
        services = self._services
        yield _labelled("build_info", "This version.", ("version",), {(services.version,): 1})
        yield _labelled(
            "sandbox_info", "What confines commands.", ("name",), {(services.sandbox,): 1}
        )
        yield _gauge("turns_running", "Turns that run in this process.", services.turns_running())
        yield _gauge("turns_limit", "Turns that may run in this process.", services.turns_limit)
        yield _gauge(
            "store_units_waiting",
            "Changes to the database that were requested and have not ended.",
            services.writes_waiting(),
        )
        yield _gauge(
            "bus_connected",
            "1 while signals reach the other replicas.",
            int(services.bus.connected),
        )
        yield _labelled(
            "part_up",
            "1 while a part that readiness asks for is up.",
            ("part",),
            {(name,): check() for name, check in services.checks.items()},
        )

    def _leases(self, load: LoadView, adapters: Iterable[AdapterView]) -> Metric:
        """By the name of what is held, never by the holder's: each process has a new one."""
        names = {"timers": 0}
        for one in adapters:
            if one.account:
                place = f"{one.channel}:{one.account}"
                names |= {f"deliver:{place}": 0, f"listen:{place}": 0}
        for lease in load.leases:
            name = "process" if lease.name.startswith("process:") else lease.name
            names[name] = names.get(name, 0) | int(lease.holder == self._services.worker)
        return _labelled(
            "lease_held",
            "1 while this process holds the lease.",
            ("lease",),
            {(name,): held for name, held in names.items()},
        )


def _tasks(tasks: Sequence[TaskHealth]) -> Iterator[Metric]:
    yield _labelled(
        "task_up",
        "1 while a long-lived task runs.",
        ("task",),
        {(one.name,): one.up for one in tasks},
    )
    failures = CounterMetricFamily(
        "gatehouse_task_failures",
        "Ends of a long-lived task that was started again.",
        labels=("task",),
    )
    for one in tasks:
        failures.add_metric((one.name,), one.failures)
    yield failures


def _work(load: LoadView) -> Iterator[Metric]:
    states = [state.value for state in RunState if state not in TERMINAL]
    yield _states("runs", "Runs that have not ended, by state.", load.runs, states)
    yield _states("outbox_messages", "Messages that are not sent.", load.outbox, OUTBOX_STATES)
    yield _gauge(
        "outbox_oldest_seconds",
        "Age of the oldest message that waits to be sent.",
        load.outbox_oldest_ms / 1000,
    )
    lanes = {
        "active": sum(load.runs.get(state.value, 0) for state in ACTIVE),
        "waiting": sum(load.runs.get(state.value, 0) for state in WAITING),
        "ready": load.lanes_ready,
    }
    text = "Sessions with a run that works, that waits for somebody, or that is due."
    yield _states("lanes", text, lanes, tuple(lanes))
    yield _gauge(
        "lane_depth", "Runs that wait in the session with the most of them.", load.lane_deepest
    )
    yield _gauge("open_calls", "Approvals and questions that wait.", load.open_calls)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"gatehouse_{name}", text, value=value)


def _states(name: str, text: str, values: Mapping[str, int], states: Iterable[str]) -> Metric:
    """Every state, those with nothing in them as well: a graph has no holes then."""
    return _labelled(name, text, ("state",), {(state,): values.get(state, 0) for state in states})


def _labelled(
    name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]
) -> Metric:
    family = GaugeMetricFamily(f"gatehouse_{name}", text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family
