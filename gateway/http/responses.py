"""Answers and what lists have in common: the JSON of values, limits, cursors, ids in paths."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from aiohttp import web
from pydantic import JsonValue

from runtime.domain.cursors import Page
from runtime.domain.errors import InvalidInput, NotFound
from runtime.domain.value import JsonObject, Value

V = TypeVar("V", bound=Value)
C = TypeVar("C", bound=str)
MAX_LIMIT = 200
DEFAULT_LIMIT = 50
_YES_OR_NO: Final = {"true": True, "1": True, "false": False, "0": False}
_ID = re.compile(r"[A-Za-z0-9_]{1,64}")


def answer(
    value: Value | JsonObject, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """A value as JSON. Answers are never cached: they are about this moment."""
    text = (
        value.model_dump_json()
        if isinstance(value, Value)
        else json.dumps(value, ensure_ascii=False)
    )
    return web.Response(
        status=status, text=text, content_type="application/json", headers=headers or {}
    )


def listing(page: Page[V], **more: JsonValue) -> web.Response:
    """A page as ``{items, pagination}``."""
    pagination: JsonObject = {}
    if page.total_count is not None:
        pagination["total_count"] = page.total_count
    if page.next_cursor is not None:
        pagination["next_cursor"] = page.next_cursor
    items = [item.model_dump(mode="json") for item in page.items]
    return answer({"items": [dict(item) for item in items], "pagination": pagination, **more})


def limit_of(request: web.Request) -> int:
    """``limit`` of the query. Raises `InvalidInput`."""
    found = number_of(request, "limit")
    if found is None:
        return DEFAULT_LIMIT
    if not 1 <= found <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT}")
    return found


def number_of(request: web.Request, name: str) -> int | None:
    """A number of the query, at most 2**31 - 1, or None where it is absent."""
    text = request.query.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) or int(text) >= 2**31:
        raise InvalidInput(name, "must be a whole number")
    return int(text)


def flag_of(request: web.Request, name: str) -> bool | None:
    """A yes or no of the query, or None where it is absent."""
    text = request.query.get(name)
    if not text:
        return None
    if text not in _YES_OR_NO:
        raise InvalidInput(name, "must be true or false")
    return _YES_OR_NO[text]


def choice_of(request: web.Request, name: str, choices: Iterable[C]) -> C | None:
    """One of these values of the query, or None where it is absent."""
    text = request.query.get(name)
    if not text:
        return None
    known = {str(one): one for one in choices}
    if text not in known:
        raise InvalidInput(name, f"must be one of {', '.join(known)}")
    return known[text]


def cursor_of(request: web.Request) -> str | None:
    """``cursor`` of the query; an empty one is none."""
    return request.query.get("cursor") or None


def path_id(request: web.Request, name: str, kind: str) -> str:
    """An id of the path. Raises `NotFound` for what cannot be one."""
    found = request.match_info[name]
    if not _ID.fullmatch(found):
        raise NotFound(kind, found[:64])
    return found


def session_of(request: web.Request) -> str:
    """The session that a path names. Raises `NotFound` for what cannot be one."""
    return path_id(request, "session_id", "session")


def query_id(request: web.Request, name: str) -> str | None:
    """An id of the query, or None where it is absent."""
    found = request.query.get(name)
    if found is not None and not _ID.fullmatch(found):
        raise InvalidInput(name, "must be an id")
    return found
