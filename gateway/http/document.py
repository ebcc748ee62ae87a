"""`/v1/openapi.json` and `/v1/docs`: what the operations say of themselves (API-2). Nothing is
written by hand: what is not in an operation or its models is not in the document."""

import asyncio
import json
from collections.abc import Sequence
from functools import cached_property
from http import HTTPStatus
from typing import Final, TypedDict

import jinja2
from aiohttp import web
from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaMode

from gateway.http.operations import JSON, KEY, LAST_EVENT, Operation
from gateway.http.problems import CONTENT_TYPE, Problem
from gateway.ui import TEMPLATES
from runtime.domain.value import JsonObject, Value

Schema = dict[str, object]
_BODILESS: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.SEE_OTHER)
_REF: Final = "#/components/schemas/{model}"
_KEY_PARAMETER: Final[Schema] = {
    "name": KEY,
    "in": "header",
    "description": "Names the request: sent again with the same key, it is done once.",
    "schema": {"type": "string", "pattern": "^[\\x21-\\x7e]{1,200}$"},
}
_EVENT_PARAMETER: Final[Schema] = {
    "name": LAST_EVENT,
    "in": "header",
    "description": "Go on behind this event.",
    "schema": {"type": "string", "pattern": "^[0-9]{0,18}$"},
}


class Components(TypedDict):
    """What is referred to by name."""

    schemas: dict[str, Schema]
    securitySchemes: Schema


class Document(TypedDict):
    """The parts of an OpenAPI document that we have."""

    openapi: str
    info: dict[str, str]
    paths: dict[str, dict[str, Schema]]
    components: Components
    security: list[dict[str, list[str]]]


class DocumentRoutes:
    """Handlers of the document and its page. It describes `operations` and these two.

    Both are made when they are first asked for: the document takes a tenth of a second, which a
    start should not wait for.
    """

    def __init__(self, operations: Sequence[Operation], version: str) -> None:
        self._operations, self._version = operations, version

    @cached_property
    def document(self) -> Document:
        return describe([*self._operations, *self.operations()], self._version)

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.document, ensure_ascii=False, indent=1)

    @cached_property
    def _page(self) -> str:
        templates = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True)
        return templates.get_template("docs.html").render(
            operations=[
                {"method": method.upper(), "path": path, **one}
                for path, methods in self.document["paths"].items()
                for method, one in methods.items()
            ],
            schemas=self.document["components"]["schemas"],
            version=self._version,
        )

    def operations(self) -> list[Operation]:
        return [
            Operation(
                *("GET", "/v1/openapi.json", "Show this description", self._json),
                answer=JsonObject,
            ),
            Operation(
                *("GET", "/v1/docs", "Show this description as a page", self._html),
                media_types=("text/html",),
                also=(303,),
                name="docs",
            ),
        ]

    async def _json(self, _request: web.Request) -> web.Response:
        text = await asyncio.to_thread(lambda: self._text)
        return web.Response(text=text, content_type=JSON)

    async def _html(self, _request: web.Request) -> web.Response:
        page = await asyncio.to_thread(lambda: self._page)
        return web.Response(text=page, content_type="text/html")


def describe(operations: Sequence[Operation], version: str) -> Document:
    """The OpenAPI 3.1 document."""
    schemas, components = _schemas(operations)
    paths: dict[str, dict[str, Schema]] = {}
    for place, one in enumerate(operations):
        path = paths.setdefault(one.documented_path, {})
        path[one.method.lower()] = _operation(one, place, schemas, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Gatehouse", "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


_Schemas = dict[tuple[object, JsonSchemaMode], Schema]


def _schemas(operations: Sequence[Operation]) -> tuple[_Schemas, dict[str, Schema]]:
    """The schema of each part of each operation, and the named ones that they refer to."""
    wanted: list[tuple[object, JsonSchemaMode, TypeAdapter[object]]] = []
    for place, one in enumerate(operations):
        wanted.append(((place, "query"), "validation", TypeAdapter(one.query)))
        if one.body is not None:
            wanted.append(((place, "body"), "validation", TypeAdapter(one.body)))
        if one.answer is not None:
            wanted.append(((place, "answer"), "serialization", TypeAdapter(one.answer)))
    wanted.append(("problem", "serialization", TypeAdapter(Problem)))
    found, rest = TypeAdapter.json_schemas(wanted, ref_template=_REF)
    return dict(found), dict(rest.get("$defs", {}))


def _operation(
    one: Operation, place: int, schemas: _Schemas, components: dict[str, Schema]
) -> Schema:
    found: Schema = {
        "operationId": _id(one),
        "tags": [one.documented_path.split("/")[2]],
        "summary": one.summary,
        "description": one.description,
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in one.variables
            ),
            *_query_parameters(_resolved(schemas[(place, "query"), "validation"], components)),
            *([_KEY_PARAMETER] if one.creates else []),
            *([_EVENT_PARAMETER] if one.resumes else []),
        ],
        "responses": _responses(one, schemas.get(((place, "answer"), "serialization"))),
        "x-read-only-token": one.read_only,
    }
    if one.body is not None:
        schema = schemas[(place, "body"), "validation"]
        content: Schema = {JSON: {"schema": schema}}
        found["requestBody"] = {"required": _needs_a_body(one.body), "content": content}
    elif one.upload:
        content = {"application/octet-stream": {"schema": {"type": "string", "minLength": 1}}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _needs_a_body(model: type[Value]) -> bool:
    """Whether no body at all, which is read as an empty object, is refused."""
    try:
        model.model_validate_json("{}")
    except ValidationError:
        return True
    return False


def _id(one: Operation) -> str:
    words = one.documented_path.removeprefix("/v1/").replace("{", "").replace("}", "")
    for mark in "/-.":
        words = words.replace(mark, "_")
    return f"{one.method.lower()}_{words}"


def _resolved(schema: Schema, components: dict[str, Schema]) -> Schema:
    ref = schema.get("$ref")
    return schema if ref is None else components[str(ref).rpartition("/")[2]]


def _query_parameters(schema: Schema) -> list[Schema]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    return [
        {
            "name": name,
            "in": "query",
            "description": one.get("description", ""),
            "schema": _of_text(one),
        }
        for name, one in properties.items()
    ]


def _of_text(schema: Schema) -> Schema:
    """The schema of a parameter, without null: a query can leave a parameter out, not set it so."""
    kept = {key: value for key, value in schema.items() if key not in ("title", "description")}
    choices = kept.pop("anyOf", None)
    if not isinstance(choices, list):
        return kept
    (only,) = [choice for choice in choices if choice != {"type": "null"}]
    if kept.get("default", ...) is None:
        del kept["default"]
    return {**only, **kept}


def _responses(one: Operation, schema: Schema | None) -> Schema:
    shown: Schema = {} if schema is None else {"schema": schema}
    done: Schema = {}
    for status in (one.status, *one.also):
        content = {} if status in _BODILESS else dict.fromkeys(one.media_types, shown)
        done[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    problem = {"schema": {"$ref": _REF.format(model=Problem.__name__)}}
    refused: Schema = {
        str(status): {"description": HTTPStatus(status).phrase, "content": {CONTENT_TYPE: problem}}
        for status in one.refusals
    }
    return done | refused
