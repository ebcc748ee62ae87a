"""OpenTelemetry traces, sent by OTLP over HTTP (OPS-8). Imported only where they are configured.

Spans are put into a bounded queue and sent by a thread of the library's own; what does not fit, or
what the collector does not take, is counted and forgotten. Nothing here waits for the network but
`close`, and that for `CLOSE_S` at most. Nothing that was said is in a span unless `content` is set.

All spans of a run are of one trace, whichever processes it was in: the ids of the trace and of the
run's first turn are made of the run's id. A later turn hangs on the first and links to it.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from runtime.ports import tracing
from runtime.ports.tracing import Value

MOST_WAITING: Final = 2048
"""Spans that wait to be sent; the library's own default."""
CLOSE_S: Final = 3.0
"""How long the end of the process waits for the last spans."""
MOST_CONTENT: Final = 16_000
"""Characters of one thing that was said."""

Count = Callable[[bool, int], None]
"""Hears of spans that were `sent` or dropped, and how many; from any thread."""
_KINDS: Final[Mapping[tracing.SpanKind, SpanKind]] = {
    "invoke_agent": SpanKind.INTERNAL,
    "chat": SpanKind.CLIENT,
    "execute_tool": SpanKind.INTERNAL,
    "deliver": SpanKind.CLIENT,
}


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """`endpoint` is the collector's base address; None leaves it to ``OTEL_EXPORTER_OTLP_*``."""

    endpoint: str | None
    content: bool
    version: str
    worker: str = ""


class Telemetry(tracing.Tracer):
    """Tells a collector of the spans."""

    def __init__(
        self, settings: TelemetrySettings, count: Count, *, exporter: SpanExporter | None = None
    ) -> None:
        self._content = settings.content
        self._ids = _Ids()
        self._turns: dict[str, Span] = {}
        self._provider = TracerProvider(
            resource=Resource.create(
                {"service.name": "gatehouse", "service.version": settings.version}
            ),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        base = settings.endpoint
        traces = None if base is None else f"{base.rstrip('/')}/v1/traces"
        sends = exporter or OTLPSpanExporter(endpoint=traces)
        self._provider.add_span_processor(_Bounded(sends, count))
        self._tracer = self._provider.get_tracer("gatehouse", settings.version)

    @contextmanager
    def span(
        self,
        kind: tracing.SpanKind,
        run_id: str,
        name: str,
        facts: Mapping[str, Value],
        /,
        *,
        resumed: bool = False,
    ) -> Iterator[tracing.Span]:
        span = self._begin(kind, run_id, f"{kind} {name}", resumed=resumed)
        span.set_attribute("gen_ai.operation.name", kind)
        span.set_attributes(dict(facts))
        if kind == "invoke_agent":
            self._turns[run_id] = span
        try:
            yield _Told(span, keep=self._content)
        except BaseException as error:
            # Its type alone: a message may hold what somebody said.
            _fail(span, type(error).__name__)
            raise
        finally:
            if self._turns.get(run_id) is span:
                del self._turns[run_id]
            span.end()

    def _begin(self, kind: tracing.SpanKind, run_id: str, name: str, *, resumed: bool) -> Span:
        first = self._first_turn(run_id)
        if kind == "invoke_agent" and not resumed:
            with self._ids.given(first):
                return self._tracer.start_span(name, kind=_KINDS[kind], record_exception=False)
        parent = self._turns.get(run_id) if kind != "invoke_agent" else None
        return self._tracer.start_span(
            name,
            context=set_span_in_context(parent or NonRecordingSpan(first)),
            kind=_KINDS[kind],
            links=[Link(first)] if kind == "invoke_agent" else None,
        )

    def _first_turn(self, run_id: str) -> SpanContext:
        digest = hashlib.sha256(f"gatehouse {run_id}".encode()).digest()
        # Zero is no id; that a digest begins so is not worth more than this.
        trace = int.from_bytes(digest[:16], "big") or 1
        span = int.from_bytes(digest[16:24], "big") or 1
        sampled = self._provider.sampler.should_sample(None, trace, "invoke_agent").decision
        chosen = sampled is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags(TraceFlags.SAMPLED if chosen else TraceFlags.DEFAULT)
        return SpanContext(trace, span, is_remote=True, trace_flags=flags)

    def close(self) -> None:
        """Send what waits, for `CLOSE_S` at most. Blocks."""
        ending = threading.Thread(target=self._provider.shutdown, name="traces end", daemon=True)
        ending.start()
        ending.join(CLOSE_S)


class _Told(tracing.Span):
    """One that the library keeps."""

    def __init__(self, span: Span, *, keep: bool) -> None:
        self._span = span
        self._keep = keep

    def note(self, name: str, value: Value) -> None:
        """As `Span.note`; the reasons of a finish are a list by convention."""
        if name == tracing.FINISH_REASON:
            self._span.set_attribute(name, [str(value)])
        else:
            self._span.set_attribute(name, value)

    def content(self, name: str, text: Callable[[], str]) -> None:
        if self._keep and self._span.is_recording():
            self._span.set_attribute(name, text()[:MOST_CONTENT])

    def failed(self, kind: str) -> None:
        _fail(self._span, kind)


class _Ids(IdGenerator):
    """Random ids, but for a span that was given its own."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()
        self._given = threading.local()

    @contextmanager
    def given(self, context: SpanContext) -> Iterator[None]:
        """The next root span of this thread has these ids."""
        self._given.context = context
        try:
            yield
        finally:
            self._given.context = None

    def generate_span_id(self) -> int:
        context = getattr(self._given, "context", None)
        return context.span_id if context else self._random.generate_span_id()

    def generate_trace_id(self) -> int:
        context = getattr(self._given, "context", None)
        return context.trace_id if context else self._random.generate_trace_id()


class _Bounded(SpanProcessor):
    """A queue of `MOST_WAITING` spans, those in the collector's hands included, that counts."""

    def __init__(self, exporter: SpanExporter, count: Count) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._waiting = 0
        self._batches = BatchSpanProcessor(
            _Counting(exporter, self._left), max_queue_size=MOST_WAITING
        )

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span, or drop it where too many wait."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        with self._lock:
            full = self._waiting >= MOST_WAITING
            self._waiting += not full
        if full:
            self._count(False, 1)
        else:
            self._batches.on_end(span)

    def _left(self, spans: int, *, sent: bool) -> None:
        with self._lock:
            self._waiting -= spans
        self._count(sent, spans)

    def shutdown(self) -> None:
        """Send what waits, and end."""
        self._batches.shutdown()  # type: ignore[no-untyped-call]  # the library left it so

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits now."""
        return self._batches.force_flush(timeout_millis)


class _Counting(SpanExporter):
    """Passes batches on and tells what became of them."""

    def __init__(self, exporter: SpanExporter, left: Callable[..., None]) -> None:
        self._exporter = exporter
        self._left = left

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        sent = False
        try:
            result = self._exporter.export(spans)
            sent = result is SpanExportResult.SUCCESS
            return result
        finally:
            self._left(len(spans), sent=sent)

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))
