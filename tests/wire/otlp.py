"""A collector of traces: OTLP over HTTP with protobuf, as the standard says, and strict."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

ERROR = 2
"""STATUS_CODE_ERROR"""


@dataclass(frozen=True)
class Span:
    """One span as it was received."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    links: tuple[str, ...]
    status: int
    facts: Mapping[str, object]
    service: str
    raw: str

    @property
    def operation(self) -> str:
        return str(self.facts["gen_ai.operation.name"])


@dataclass
class Collector:
    """What was received. While `refuses` is set, requests are answered with that status."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    refuses: int | None = None
    requests: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, amount: int) -> list[Span]:
        """The spans, once there are so many."""
        async with asyncio.timeout(180):
            while len(self.spans) < amount:
                self.changed.clear()
                await self.changed.wait()
        return self.spans

    async def asked(self, amount: int) -> None:
        """Return once so many requests came."""
        async with asyncio.timeout(180):
            while self.requests < amount:
                self.changed.clear()
                await self.changed.wait()

    async def _traces(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests += 1
        self.changed.set()
        if self.refuses is not None:
            return web.Response(status=self.refuses)
        assert request.content_type == "application/x-protobuf"
        # aiohttp unpacks what a client compressed, but not on every version.
        if body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        received = ExportTraceServiceRequest.FromString(body)
        self.headers.append(dict(request.headers))
        for resource in received.resource_spans:
            about = {one.key: _value(one.value) for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.append(
                        Span(
                            name=span.name,
                            kind=span.kind,
                            trace=span.trace_id.hex(),
                            id=span.span_id.hex(),
                            parent=span.parent_span_id.hex(),
                            links=tuple(link.span_id.hex() for link in span.links),
                            status=span.status.code,
                            facts={one.key: _value(one.value) for one in span.attributes},
                            service=str(about["service.name"]),
                            raw=str(span),
                        )
                    )
        answer = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=answer, content_type="application/x-protobuf")


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    found = getattr(value, str(kind))
    return json.loads(json.dumps(found))


@asynccontextmanager
async def collector() -> AsyncIterator[Collector]:
    """A collector on a port of this machine."""
    made = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", made._traces)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        await runner.cleanup()
