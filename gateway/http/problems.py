"""Errors as `application/problem+json` (RFC 9457): the one place where an error gets a status.

What the engine raises says what the caller does next; this module says it in HTTP. A defect of
ours is logged whole and told as "internal error": its text may hold what is not the caller's.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, get_args

import structlog
from aiohttp import web
from aiohttp.http_exceptions import ContentEncodingError
from pydantic import JsonValue, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from runtime.domain.counts import counted
from runtime.domain.errors import (
    Conflict,
    Forbidden,
    GatehouseError,
    InvalidInput,
    NotFound,
    QueueFull,
    StaleLease,
    StoreFull,
    TooLarge,
    Unavailable,
)
from runtime.domain.value import Value

log = structlog.get_logger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
CONTENT_TYPE = "application/problem+json"
GONE = 499
"""Counted for a request whose sender went away, as by nginx: the standard has no word for it."""
RETRY_AFTER_S = "2"
FULL_RETRY_AFTER_S = "10"
"""A queue that is full needs longer: some of what waits must be worked off first."""
NOTHING_DONE = "Nothing was done; try again."
"""Where the database is, and why it is away, is for the log."""
FULL = (
    "There is no room left for the gateway's database. Nothing was done; make room and try again."
)
_TITLES = {
    "bad_request": "The request cannot be read",
    "invalid": "A value breaks a rule",
    "not_found": "There is no such thing",
    "conflict": "The state moved on",
    "forbidden": "This is not allowed",
    "unauthorized": "Authentication is needed",
    "cross_site": "Another site's page asked for this",
    "csrf": "The page or the form is too old",
    "misdirected": "Not known by this name",
    "too_many_failures": "Too many wrong tokens",
    "too_large": "More than is taken",
    "queue_full": "Too much waits already",
    "unavailable": "A part of the gateway is down",
    "internal": "Something went wrong inside",
}


class BrokenRule(Value):
    """One value that breaks a rule."""

    field: str
    rule: str


class Problem(Value):
    """An error (RFC 9457). ``code`` names what happened for programs, ``detail`` tells a person.

    ``field``, ``rule`` and ``errors`` come with 422, ``state`` with 409, ``kind`` with an id that
    is not known.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    rule: str | None = None
    errors: tuple[BrokenRule, ...] | None = None
    state: str | None = None
    kind: str | None = None


@dataclass(eq=False)
class HttpProblem(Exception):
    """A refusal that is HTTP's own matter: authentication, origin, a body that is no JSON."""

    status: int
    code: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.detail


@dataclass(eq=False)
class BrokenBody(Exception):
    """A query or a body, `given`, that breaks the rules of its `model`."""

    reason: ValidationError
    model: type[Value]
    given: JsonValue = None


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    extra: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """A problem document. `extra` are those members of `Problem` that not every one has."""
    made = Problem.model_validate(
        {
            "type": f"urn:gatehouse:problem:{code.replace('_', '-')}",
            "title": _TITLES.get(code, code.replace("_", " ").capitalize()),
            "status": status,
            "detail": detail,
            "code": code,
            **(extra or {}),
        }
    )
    text = made.model_dump_json(exclude_none=True)
    return web.Response(status=status, text=text, content_type=CONTENT_TYPE, headers=headers or {})


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn whatever a handler raises into its answer."""
    try:
        return await handler(request)
    except HttpProblem as error:
        return problem(error.status, error.code, error.detail, headers=error.headers)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _of_aiohttp(error)
    except (web.RequestPayloadError, ContentEncodingError):
        # What is left of the body cannot be told from the next request.
        ends = {"Connection": "close"}
        detail = "The body does not fit its Content-Encoding."
        return problem(400, "bad_request", detail, headers=ends)
    except BrokenBody as error:
        return _of_validation(error.reason, error.model, error.given)
    except ValidationError as error:
        return _of_validation(error)
    except GatehouseError as error:
        return _of_engine(error, request)
    except Exception as error:  # the worker root of a request: a defect must not end the connection
        if isinstance(error, ConnectionError) and request.transport is None:
            # Whoever asked went away in the middle of the request, and nobody reads the answer.
            log.debug("request_abandoned", path=request.path, reason=str(error))
            return web.Response(status=GONE, reason="Client Closed Request")
        log.exception("request_failed", method=request.method, path=request.path)
        return problem(500, "internal", "The gateway's log says more.")


def _of_engine(error: GatehouseError, request: web.Request) -> web.Response:
    match error:
        case InvalidInput(broken, rule):
            return invalid([(broken, rule)])
        case NotFound():
            return problem(404, "not_found", str(error), extra={"kind": error.kind})
        case Conflict():
            return problem(409, "conflict", str(error), extra={"state": error.state})
        case StaleLease():
            return problem(409, "conflict", str(error), extra={"state": "taken over"})
        case Forbidden():
            return problem(403, "forbidden", str(error))
        case TooLarge():
            # What is left of the body is not read, so the connection cannot go on.
            headers = {"Connection": "close"}
            return problem(413, "too_large", str(error), headers=headers)
        case QueueFull():
            headers = {"Retry-After": FULL_RETRY_AFTER_S}
            return problem(429, "queue_full", str(error), headers=headers)
        case Unavailable():
            log.warning("request_unavailable", path=request.path, reason=str(error))
            headers = {"Retry-After": RETRY_AFTER_S}
            full = isinstance(error, StoreFull)
            return problem(503, "unavailable", FULL if full else NOTHING_DONE, headers=headers)
        case _:
            log.error("request_failed", path=request.path, reason=str(error))
            return problem(500, "internal", "The gateway's log says more.")


def _of_validation(
    error: ValidationError, model: type[Value] | None = None, given: JsonValue = None
) -> web.Response:
    """`given` is the body, and `model` holds its rules."""
    whole = "query" if given is None else "body"
    found = error.errors(include_url=False, include_input=False)
    broken = [
        (".".join(_field(one, given)) or whole, _rule(one, known_keys(model, one["loc"], given)))
        for one in found
        if not _follows(one, found)
    ]
    return invalid(broken[:20])


def _follows(error: ErrorDetails, found: Sequence[ErrorDetails]) -> bool:
    """Whether a list is called too short only because pydantic left out its broken items."""
    way = error["loc"]
    return error["type"] == "too_short" and any(
        len(one["loc"]) > len(way) and one["loc"][: len(way)] == way for one in found
    )


def _field(error: ErrorDetails, given: JsonValue) -> list[str]:
    """The way to the value in what was given. pydantic also names the chosen model of a union by
    its ``type``, which is no field, and leaves out the ``type`` itself where it is wrong."""
    way: list[str] = []
    for place, part in enumerate(error["loc"], 1):
        inner = isinstance(given, dict) and given.get("type") == part
        if inner and place < len(error["loc"]):
            continue
        way.append(str(part))
        if isinstance(given, dict):
            given = given.get(str(part))
        elif isinstance(given, list) and isinstance(part, int):
            given = given[part]
    return [*way, "type"] if error["type"] in _WRONG_TYPE else way


_WRONG_TYPE: Final = ("union_tag_invalid", "union_tag_not_found")


def _rule(error: ErrorDetails, known: Sequence[str]) -> str:
    """`known` are the keys that there are beside one that is not known."""
    limits = error.get("ctx", {})
    match error["type"]:
        case "union_tag_invalid" | "union_tag_not_found":
            allowed = limits.get("expected_tags")
            return f"must be one of {allowed}" if allowed else "must be given"
        case "too_short":
            return f"must have at least {counted(limits['min_length'], 'item')}"
        case "too_long":
            return f"must have at most {counted(limits['max_length'], 'item')}"
        case "extra_forbidden":
            return f"is not a key; {_meant(str(error['loc'][-1]), known)}"
        case _:
            # pydantic puts words of its own before those of our validators.
            return error["msg"].removeprefix("Value error, ")


def _meant(key: str, known: Sequence[str]) -> str:
    near = get_close_matches(key, known, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"there {'is' if len(known) < 2 else 'are'} {', '.join(known) or 'none'}"


def known_keys(
    model: type[Value] | None, way: Sequence[str | int], given: JsonValue
) -> Sequence[str]:
    """The keys of the object in which the last key of a `way` stands, as pydantic names the way."""
    models = [] if model is None else [model]
    for part in way[:-1]:
        if isinstance(given, list) and isinstance(part, int):
            given = given[part]
            continue
        inner = given if isinstance(given, dict) else {}
        chosen = [one for one in models if part in get_args(_type_of(one))]
        if chosen and inner.get("type") == part:
            # The type of a union's member, which is no field.
            models = chosen
            continue
        named = [_keys(one)[part] for one in models if part in _keys(one)]
        models = [one for field in named for one in _models_in(field.annotation)]
        given = inner.get(str(part))
    return tuple(dict.fromkeys(str(key) for one in models for key in _keys(one)))


def _keys(model: type[Value]) -> Mapping[str | int, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _type_of(model: type[Value]) -> object:
    field = model.model_fields.get("type")
    return None if field is None else field.annotation


def _models_in(annotation: object) -> Iterator[type[Value]]:
    if isinstance(annotation, type) and issubclass(annotation, Value):
        yield annotation
    for one in get_args(annotation):
        yield from _models_in(one)


def invalid(broken: Sequence[tuple[str, str]]) -> web.Response:
    name, rule = broken[0]
    errors = [BrokenRule(field=one, rule=said) for one, said in broken]
    extra = {"field": name, "rule": rule, "errors": errors}
    return problem(422, "invalid", f"{name}: {rule}", extra=extra)


def _of_aiohttp(error: web.HTTPException) -> web.Response:
    kept = {key: value for key, value in error.headers.items() if key in ("Allow", "Location")}
    codes = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
    code = codes.get(error.status, "bad_request" if error.status < 500 else "internal")
    detail = error.text or error.reason
    if error.status == 405:
        detail = f"This path accepts {kept.get('Allow', 'other methods')}."
    elif error.status == 404:
        detail = "There is nothing at this path."
    return problem(error.status, code, detail, headers=kept)
