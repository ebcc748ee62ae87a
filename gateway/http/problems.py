"""Errors as `application/problem+json` (RFC 9457): the one place where an error gets a status.

What the engine raises says what the caller does next; this module says it in HTTP. A defect of
ours is logged whole and told as "internal error": its text may hold what is not the caller's.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import structlog
from aiohttp import web
from aiohttp.http_exceptions import ContentEncodingError
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from runtime.domain.errors import (
    Conflict,
    Forbidden,
    GatehouseError,
    InvalidInput,
    NotFound,
    QueueFull,
    StaleLease,
    StoreFull,
    Unavailable,
)
from runtime.domain.value import JsonObject

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
    "queue_full": "Too much waits already",
    "unavailable": "A part of the gateway is down",
    "internal": "Something went wrong inside",
}


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
    """A body that breaks the rules of its model, which has the keys `known`."""

    reason: ValidationError
    known: Sequence[str]


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    extra: JsonObject | None = None,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """A problem document. `extra` members stand beside the standard ones."""
    body = {
        "type": f"urn:gatehouse:problem:{code.replace('_', '-')}",
        "title": _TITLES.get(code, code.replace("_", " ").capitalize()),
        "status": status,
        "detail": detail,
        "code": code,
        **(extra or {}),
    }
    text = json.dumps(body, ensure_ascii=False)
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
        return problem(400, "bad_request", "The body does not fit its Content-Encoding.")
    except BrokenBody as error:
        return _of_validation(error.reason, error.known)
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
            return _invalid([(broken, rule)])
        case NotFound():
            return problem(404, "not_found", str(error), extra={"kind": error.kind})
        case Conflict():
            return problem(409, "conflict", str(error), extra={"state": error.state})
        case StaleLease():
            return problem(409, "conflict", str(error), extra={"state": "taken over"})
        case Forbidden():
            return problem(403, "forbidden", str(error))
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


def _of_validation(error: ValidationError, known: Sequence[str] = ()) -> web.Response:
    """`known` are the keys that a body may have."""
    broken = [
        (".".join(str(part) for part in one["loc"]) or "body", _rule(one, known))
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return _invalid(broken[:20])


def _rule(error: ErrorDetails, known: Sequence[str]) -> str:
    if error["type"] != "extra_forbidden" or len(error["loc"]) > 1 or not known:
        return error["msg"]
    near = get_close_matches(str(error["loc"][0]), known, n=1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"is not a key; {meant}"


def _invalid(broken: Sequence[tuple[str, str]]) -> web.Response:
    name, rule = broken[0]
    errors = [{"field": one, "rule": said} for one, said in broken]
    extra: JsonObject = {"field": name, "rule": rule, "errors": [dict(one) for one in errors]}
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
