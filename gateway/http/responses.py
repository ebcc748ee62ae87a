"""Answers and what they have in common: the JSON of values and lists, ids in paths."""

import json
import re
from collections.abc import Mapping
from typing import TypeVar

from aiohttp import web
from pydantic import JsonValue

from gateway.http.query_models import Paging
from runtime.domain import cursors
from runtime.domain.cursors import Page
from runtime.domain.errors import NotFound
from runtime.domain.value import JsonObject, Value

V = TypeVar("V", bound=Value)
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


def part_of(whole: Page[V], asked: Paging) -> Page[V]:
    """The part of a list that is short enough to be read at once. Its cursor is a place in it."""
    items = whole.items
    first = 0 if asked.after is None else max(0, cursors.number(asked.after))
    behind = first + asked.limit
    return Page(
        items=items[first:behind],
        next_cursor=cursors.encode(behind) if behind < len(items) else None,
        total_count=len(items),
    )


def path_id(request: web.Request, name: str, kind: str) -> str:
    """An id of the path. Raises `NotFound` for what cannot be one."""
    found = request.match_info[name]
    if not _ID.fullmatch(found):
        raise NotFound(kind, found[:64])
    return found


def session_of(request: web.Request) -> str:
    """The session that a path names. Raises `NotFound` for what cannot be one."""
    return path_id(request, "session_id", "session")
