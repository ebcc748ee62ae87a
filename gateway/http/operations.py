"""One declaration for each route of `/v1`: aiohttp's route and the OpenAPI document come from it.

An operation reads the query and the body by the models that the document shows, so a handler can
get nothing that is not documented. To add a route, add an `Operation` to its class and list the
class in `gateway.http.app`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from aiohttp import web

from gateway.http.problems import Handler
from gateway.http.query_models import NoQuery, read_query
from gateway.http.request_bodies import idempotency_key, read_body
from runtime.domain.value import Value

V = TypeVar("V", bound=Value)
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
JSON: Final = "application/json"
READS: Final = ("GET",)
"""The methods that a read-only token may use; `Guard` holds everybody to it."""
KEY: Final = "Idempotency-Key"
LAST_EVENT: Final = "Last-Event-ID"
_QUERY: Final = web.RequestKey("query", Value)
_BODY: Final = web.RequestKey("body", Value)
_PATTERN: Final = re.compile(r"\{(\w+)(?::[^{}]*(?:\{[^{}]*\})?[^{}]*)?\}")
"""A variable of a path, which may carry aiohttp's pattern behind a colon."""


class Pagination(Value):
    """Where a list goes on. ``next_cursor`` is absent at its end, ``total_count`` where counting
    would cost too much."""

    total_count: int | None = None
    next_cursor: str | None = None


class Listed(Value, Generic[V]):
    """A page of a list."""

    items: tuple[V, ...]
    pagination: Pagination


@dataclass(frozen=True, slots=True)
class Operation:
    """What a route takes, what it answers, and who handles it.

    `answer` is the type of the JSON, or None where the answer is no JSON or has no body; then
    `media_types` say what it is. `status` is that of success, `also` are further ones with the
    same body. `errors` are the refusals of its own, besides those which every route can give
    (`refusals`): 409 stands there where the present state may refuse it. `upload`: its body is
    bytes, and the handler reads it. `creates`: it takes an ``Idempotency-Key``, which may have been
    used for another request (409). `resumes`: it takes a ``Last-Event-ID``. `name` is that of
    aiohttp's route, by which `Guard` knows a page or a stream.
    """

    method: Method
    path: str
    summary: str
    handler: Handler
    answer: type[object] | None = None
    status: int = 200
    also: Sequence[int] = ()
    media_types: Sequence[str] = (JSON,)
    query: type[Value] = NoQuery
    body: type[Value] | None = None
    upload: bool = False
    errors: Sequence[int] = ()
    creates: bool = False
    resumes: bool = False
    name: str | None = None

    @property
    def documented_path(self) -> str:
        """The path as OpenAPI writes it."""
        return _PATTERN.sub(r"{\1}", self.path)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the path."""
        return tuple(_PATTERN.findall(self.path))

    @property
    def read_only(self) -> bool:
        """Whether a read-only token may use it."""
        return self.method in READS

    @property
    def refusals(self) -> tuple[int, ...]:
        """Every status of an error that it may answer with, but for defects of ours (500)."""
        found = {400, 401, 403, 408, 413, 421, 422, 429, 503, *self.errors}
        if self.variables:
            found.add(404)
        if self.creates:
            found.add(409)
        if self.body is not None or self.upload:
            found.add(415)
        return tuple(sorted(found))

    @property
    def description(self) -> str:
        """What the handler's docstring adds to the summary."""
        return " ".join((self.handler.__doc__ or "").split())

    def route(self) -> web.RouteDef:
        """The route of aiohttp."""
        return web.RouteDef(
            self.method, self.path, self._handle, {"name": self.name} if self.name else {}
        )

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        request[_QUERY] = read_query(request, self.query)
        if self.creates:
            # In front of the body, so that a key that is none is refused alike everywhere.
            idempotency_key(request)
        if self.body is not None:
            request[_BODY] = await read_body(request, self.body)
        return await self.handler(request)


def query(request: web.Request, model: type[V]) -> V:
    """The query of a request, which its operation has read."""
    return _read(request[_QUERY], model)


def body(request: web.Request, model: type[V]) -> V:
    """The body of a request, which its operation has read."""
    return _read(request[_BODY], model)


def _read(found: Value, model: type[V]) -> V:
    if not isinstance(found, model):
        raise TypeError(f"the operation declares {type(found).__name__}, not {model.__name__}")
    return found
