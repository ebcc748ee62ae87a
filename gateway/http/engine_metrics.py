"""The engine's work as Prometheus' numbers: one observer, counted in memory, never in a database.

No label grows without bound: names that come from outside (a model's, an adapter's) are counted by
name up to `MOST_NAMES` of them and as ``other`` beyond. Nothing here carries an id or a text.
"""

from functools import partial
from typing import Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram

from runtime.domain.decisions import Verdict
from runtime.domain.runs import RunState, Usage
from runtime.ports.metrics import DeliveryResult, ModelOutcome, Observer

MOST_NAMES: Final = 100
"""Combinations of label values of one metric that are told apart."""
OTHER: Final = "other"

M = TypeVar("M", Counter, Histogram)

_QUICK: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_SLOW: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)
_WAITING: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300)


class _Series(Generic[M]):
    """A metric whose children are found by one look-up; it knows what may be its labels."""

    def __init__(self, metric: M, labels: int) -> None:
        self._metric: M = metric
        self._labels = labels
        self._children: dict[tuple[str, ...], M] = {} if labels else {(): metric}

    def of(self, values: tuple[str, ...]) -> M:
        child = self._children.get(values)
        return self._child(values) if child is None else child

    def _child(self, values: tuple[str, ...]) -> M:
        if len(self._children) >= MOST_NAMES:
            values = (OTHER,) * self._labels
        child = self._children.get(values)
        if child is None:
            child = self._children[values] = self._metric.labels(*values)
        return child


class _Counts(_Series[Counter]):
    """A counter."""

    def __init__(
        self, registry: CollectorRegistry, name: str, text: str, labels: tuple[str, ...]
    ) -> None:
        metric = Counter(f"gatehouse_{name}", text, labels, registry=registry)
        super().__init__(metric, len(labels))

    def add(self, *values: str, amount: float = 1) -> None:
        # What a provider reports is not ours to trust, and a counter only grows.
        self.of(values).inc(max(amount, 0))


class _Times(_Series[Histogram]):
    """A histogram of seconds."""

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        text: str,
        buckets: tuple[float, ...],
        *labels: str,
    ) -> None:
        metric = Histogram(f"gatehouse_{name}", text, labels, registry=registry, buckets=buckets)
        super().__init__(metric, len(labels))

    def add(self, seconds: float, *values: str) -> None:
        # A clock of another machine may be ahead of this one's.
        self.of(values).observe(max(seconds, 0.0))


class EngineMetrics(Observer):
    """Counts what it hears; everything of one process is in `registry`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counts, times = partial(_Counts, self.registry), partial(_Times, self.registry)
        self._inbound = counts(
            "messages_in",
            "Messages that arrived, by what became of them.",
            ("channel", "disposition"),
        )
        self._queue = times(
            "queue_seconds",
            "From a message's acceptance to the start of its run, including the wait for more "
            "messages.",
            _WAITING,
        )
        self._replies = times(
            "reply_seconds",
            "From a message's acceptance to its posted reply, including the wait for people.",
            _SLOW,
            "channel",
        )
        self._deliveries = counts(
            "deliveries", "Attempts to deliver a message.", ("channel", "result")
        )
        self._step = times(
            "step_seconds",
            "From a step's request to the model until its results are kept, without people's time.",
            _SLOW,
        )
        self._ended = counts(
            "runs_ended", "Runs that ended while at work here, by their end.", ("state",)
        )
        self._spans = counts(
            "trace_spans", "Spans of traces, sent to the collector or not.", ("result",)
        )
        self._units = counts(
            "store_units", "Changes to the database by their end.", ("unit", "result")
        )
        self._unit_times = times(
            "store_unit_seconds", "Changes to the database, including their wait.", _QUICK
        )
        self._commits = counts("store_commits", "Transactions. Each holds one change or more.", ())
        self._calls = counts("model_calls", "Calls of a model by their end.", ("model", "outcome"))
        self._steps = times("model_seconds", "Calls of a model, answered or not.", _SLOW, "model")
        self._tokens = counts(
            "model_tokens", "Tokens; cached ones are input too.", ("model", "kind")
        )
        self._cost = counts("model_cost_usd", "US dollars, where the price is known.", ("model",))
        self._unpriced = counts(
            "model_unpriced_calls", "Responses whose price is not known.", ("model",)
        )
        self._decisions = counts(
            "tool_decisions", "Tool calls by what policy said.", ("tool", "verdict")
        )
        self._ran = counts("tool_calls", "Tool calls that ran.", ("tool", "status"))
        self._tool_times = times("tool_seconds", "Tool calls that ran.", _SLOW, "tool")

    def accepted(self, channel: str, disposition: str) -> None:
        self._inbound.add(channel, disposition)

    def started(self, waited: float) -> None:
        self._queue.add(waited)

    def stepped(self, took: float) -> None:
        self._step.add(took)

    def ended(self, state: RunState) -> None:
        self._ended.add(state.value)

    def asked(self, model: str, outcome: ModelOutcome, took: float) -> None:
        self._calls.add(model, outcome)
        self._steps.add(took, model)

    def used(self, model: str, usage: Usage) -> None:
        self._tokens.add(model, "input", amount=usage.input_tokens)
        self._tokens.add(model, "output", amount=usage.output_tokens)
        self._tokens.add(model, "cached", amount=usage.cached_tokens)
        if usage.cost_usd is None:
            self._unpriced.add(model)
        else:
            self._cost.add(model, amount=usage.cost_usd)

    def decided(self, tool: str, verdict: Verdict) -> None:
        self._decisions.add(tool, verdict)

    def called(self, tool: str, status: str, took: float) -> None:
        self._ran.add(tool, status)
        self._tool_times.add(took, tool)

    def delivered(self, channel: str, result: DeliveryResult) -> None:
        self._deliveries.add(channel, result)

    def replied(self, channel: str, took: float) -> None:
        self._replies.add(took, channel)

    def wrote(self, unit: str, took: float, *, kept: bool) -> None:
        self._units.add(unit, "kept" if kept else "failed")
        self._unit_times.add(took)

    def committed(self) -> None:
        self._commits.add()

    def traced(self, sent: bool, spans: int) -> None:
        """Count spans that were sent to a collector, or dropped. Called from any thread."""
        self._spans.add("sent" if sent else "dropped", amount=spans)
