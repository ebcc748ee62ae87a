"""Holds every answer of `/v1` that a test sees to the OpenAPI document (API-2)."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

import aiohttp
import jsonschema_rs
from aiohttp import web

from gateway.http.app import DOCUMENT

JSON: Final = ("application/json", "application/problem+json")


class OutsideTheDocument(AssertionError):
    """An answer that the document does not allow."""


class ContractCheck:
    """A middleware of the test client. `document` is that of the gateway which answers."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = document
        self._paths = {
            re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))): operations
            for path, operations in document["paths"].items()
        }
        self._validator = cache(self._made)

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        operation = self._operation(request.method, request.url.raw_path)
        if operation is not None and response.status != 500:
            await self._check(operation, request, response)
        return response

    def _operation(self, method: str, path: str) -> Mapping[str, object] | None:
        for pattern, operations in self._paths.items():
            if pattern.fullmatch(path):
                return operations.get(method.lower())
        return None

    async def _check(
        self,
        operation: Mapping[str, object],
        request: aiohttp.ClientRequest,
        response: aiohttp.ClientResponse,
    ) -> None:
        said = f"{request.method} {request.url.raw_path}: {response.status}"
        described = operation["responses"].get(str(response.status))
        if described is None:
            raise OutsideTheDocument(f"{said} is not in the document")
        contents = described.get("content", {})
        if response.status in (204, 303):
            return
        if response.content_type == "text/html":
            # A person is shown a refusal as a page.
            return
        if response.content_type not in contents:
            raise OutsideTheDocument(f"{said} is {response.content_type}, not {[*contents]}")
        if response.content_type in JSON and "schema" in contents[response.content_type]:
            place = (operation["operationId"], str(response.status), response.content_type)
            for error in self._validator(*place).iter_errors(await response.json()):
                raise OutsideTheDocument(f"{said} breaks its schema: {error}")

    def _made(self, operation_id: str, status: str, media_type: str) -> object:
        (operation,) = [
            operation
            for operations in self._document["paths"].values()
            for operation in operations.values()
            if operation["operationId"] == operation_id
        ]
        schema = operation["responses"][status]["content"][media_type]["schema"]
        return jsonschema_rs.Draft202012Validator(
            {**schema, "components": self._document["components"]}
        )


_CHECKS: Final[dict[frozenset[tuple[str, str]], ContractCheck]] = {}


def contract_check(app: web.Application) -> ContractCheck:
    """The check of an application. Those with the same routes have the same document, which takes
    longer to make than many a test takes, so it is made once."""
    routes = frozenset(
        (route.method, route.resource.canonical) for route in app.router.routes() if route.resource
    )
    if routes not in _CHECKS:
        _CHECKS[routes] = ContractCheck(app[DOCUMENT].document)
    return _CHECKS[routes]
