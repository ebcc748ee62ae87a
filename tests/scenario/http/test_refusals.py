"""Every rule of the API is broken on purpose, on every route that the document names (API-3).

A refusal that a route declares must be met here: what all routes refuse alike by `ALIKE`, the rest
by a row of `tests.scenario.http.refused`. So a new route is tried, and one with a refusal of its
own that has no row fails.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Final

import pytest

from gateway.http import assets, auth
from gateway.http.credentials import MAX_FAILURES
from runtime.intake.assets import AssetLimits
from tests.scenario.harness import ADMIN, READER, Plan, Site
from tests.scenario.http.conftest import Sites
from tests.scenario.http.documented import Route, contents, routes_of, settled
from tests.scenario.http.entering import log_in
from tests.scenario.http.refused import ROWS, Row
from tests.scenario.http.test_auth import IDS

ALIKE: Final = frozenset({400, 401, 403, 408, 413, 415, 421, 422, 429, 503})
TOKEN: Final = {"Authorization": f"Bearer {ADMIN}"}
JSON: Final = {**TOKEN, "Content-Type": "application/json"}
MEMBERS: Final = {"type", "title", "status", "detail", "code"}
SMALL: Final = 1_000


async def refused(
    gateway: Site,
    route: Route,
    status: int,
    *,
    query: str = "",
    data: bytes | None = None,
    headers: Mapping[str, str] = TOKEN,
) -> dict[str, object]:
    """The problem that a request is answered with."""
    url = f"{gateway.url}{route.path.format_map(IDS)}{query}"
    async with gateway.client.request(
        route.method, url, data=data, headers=headers, allow_redirects=False
    ) as response:
        text = await response.text()
        said = (route.name, query, (data or b"")[:80], response.status, text[:200])
        assert response.status == status, said
        assert response.content_type == "application/problem+json", said
    problem = json.loads(text)
    assert problem.keys() >= MEMBERS, said
    assert problem["status"] == status, said
    assert problem["detail"], said
    return problem


def fields(problem: Mapping[str, object]) -> set[str]:
    """The fields that a problem names, each with its rule."""
    errors = list(problem["errors"])
    assert all(one["rule"] for one in errors)
    assert problem["field"] == errors[0]["field"]
    return {str(one["field"]) for one in errors}


@pytest.mark.requirement("API-1", "API-3")
async def test_each_route_refuses_whom_it_does_not_know(sites: Sites) -> None:
    async with sites() as gateway:
        cookie, _ = await log_in(gateway)
        routes, before = routes_of(gateway), await contents(gateway)
        for route in routes:
            if 303 not in route.statuses:
                problem = await refused(gateway, route, 401, headers={})
                assert problem["code"] == "unauthorized"
            problem = await refused(gateway, route, 421, headers={**TOKEN, "Host": "evil.example"})
            assert problem["code"] == "misdirected"
            other = {**cookie, "Sec-Fetch-Site": "cross-site"}
            problem = await refused(gateway, route, 403, headers=other)
            assert problem["code"] == "cross_site"
            if not route.reads:
                reader = {"Authorization": f"Bearer {READER}"}
                problem = await refused(gateway, route, 403, headers=reader)
                assert problem["code"] == "read_only"
                problem = await refused(gateway, route, 403, headers=cookie)
                assert problem["code"] == "csrf"
        wrong = {"Authorization": "Bearer guess"}
        for route in routes[:MAX_FAILURES]:
            await refused(gateway, route, 401, headers=wrong)
        for route in routes:
            problem = await refused(gateway, route, 429, headers=wrong)
            assert problem["code"] == "too_many_failures"
        assert await contents(gateway) == before


@pytest.mark.requirement("API-3")
async def test_each_route_refuses_while_the_database_is_away(sites: Sites) -> None:
    async with sites() as gateway:
        cookie, _ = await log_in(gateway)
        routes = routes_of(gateway)
        await gateway.database.close()
        for route in routes:
            problem = await refused(gateway, route, 503, headers=cookie)
            assert problem["code"] == "unavailable"


@pytest.mark.requirement("API-3")
async def test_each_route_refuses_a_body_that_cannot_be_read(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(plan: Plan) -> None:
        plan.http.update(max_body=SMALL)
        plan.control.update(assets=AssetLimits(file_bytes=SMALL, owner_bytes=SMALL))

    async with sites(change=small) as gateway:
        routes, before = routes_of(gateway), await contents(gateway)
        for route in routes:
            squeezed = {**JSON, "Content-Encoding": "gzip"}
            # An upload is kept as it comes, so a compressed one is none.
            status = 415 if route.uploads else 400
            await refused(gateway, route, status, data=b"not gzip", headers=squeezed)
            await refused(gateway, route, 413, data=b" " * (SMALL + 1), headers=JSON)
            if 415 in route.statuses:
                kind = "multipart/form-data" if route.uploads else "text/plain"
                other = {**TOKEN, "Content-Type": kind}
                await refused(gateway, route, 415, data=b"{}", headers=other)
        monkeypatch.setattr(auth, "BODY_S", 0.0)
        monkeypatch.setattr(assets, "IDLE_S", 0.0)
        for route in routes:
            async with asyncio.timeout(120):
                assert b" 408 " in await slow(gateway, route)
        assert await contents(gateway) == before


async def slow(gateway: Site, route: Route) -> bytes:
    """The first line of the answer to a request whose body does not come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    head = f"{route.method} {route.path.format_map(IDS)} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Authorization: Bearer {ADMIN}\r\nContent-Length: 100\r\n\r\nto"
    writer.write(head.encode())
    line = await reader.readline()
    writer.close()
    return line


NOT_JSON: Final = (
    b"{",
    b"[]",
    b'"text"',
    b"\xff\xfe",
    b'{"a": NaN}',
    b'{"a": 1, "a": 2}',
    b'{"a": 1e400}',
    b'{"a": "\\ud800"}',
    b'{"a": ' + b"9" * 41 + b"}",
    b'{"a":' + b"[" * 65 + b"]" * 65 + b"}",
)


@pytest.mark.requirement("API-3", "SEC-7")
async def test_each_route_with_a_body_refuses_what_is_no_strict_json(sites: Sites) -> None:
    async with sites() as gateway:
        before = await contents(gateway)
        for route in routes_of(gateway):
            for data in NOT_JSON if route.body is not None else ():
                problem = await refused(gateway, route, 400, data=data, headers=JSON)
                assert (problem["code"], problem["detail"][:6]) == ("bad_request", "body: ")
        assert await contents(gateway) == before


@pytest.mark.requirement("API-3")
async def test_each_route_names_the_field_of_a_body_that_is_wrong(sites: Sites) -> None:
    async with sites() as gateway:
        before = await contents(gateway)
        for route in routes_of(gateway):
            if route.body is None:
                continue
            data = json.dumps({"nonsense": 1}).encode()
            problem = await refused(gateway, route, 422, data=data, headers=JSON)
            assert "nonsense" in fields(problem), (route.name, problem)
            data = json.dumps({"a\0b": "x"}).encode()
            await refused(gateway, route, 422, data=data, headers=JSON)
            for name, value in route.wrong_fields().items():
                data = json.dumps({name: value}).encode()
                problem = await refused(gateway, route, 422, data=data, headers=JSON)
                named = {one.partition(".")[0] for one in fields(problem)}
                assert name in named, (route.name, name, value, problem)
        assert await contents(gateway) == before


@pytest.mark.requirement("API-3")
async def test_each_route_names_the_parameter_that_is_wrong(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        known = IDS | {"session_id": session, "agent_id": session}
        before = await contents(gateway)
        for route in routes_of(gateway):
            for name, value in route.wrong_parameters():
                if name == "cursor" and "{" in route.path.format_map(known):
                    continue
                if name == "cursor" and "run_id" in route.path:
                    continue
                query = f"?{name}={value}".replace(" ", "%20")
                found = Route(**{**_parts(route), "path": route.path.format_map(known)})
                problem = await refused(gateway, found, 422, query=query)
                assert fields(problem) == {name}, (route.name, name, value, problem)
            for name in ("limit", "nonsense"):
                problem = await refused(gateway, route, 422, query=f"?{name}=1&{name}=2")
                assert (problem["field"], problem["rule"]) == (name, "must be given once")
            problem = await refused(gateway, route, 422, query="?nonsense=a%00b")
            assert problem["field"] == "query"
        assert await contents(gateway) == before


def _parts(route: Route) -> dict[str, object]:
    return {name: getattr(route, name) for name in Route.__slots__}


@pytest.mark.requirement("API-3", "RUN-4")
async def test_each_route_that_creates_refuses_a_key_that_is_none(sites: Sites) -> None:
    async with sites() as gateway:
        routes, before = routes_of(gateway), await contents(gateway)
        creating = [route for route in routes if route.creates]
        assert creating
        for route in creating:
            for key in ("", "with space", "k" * 201):
                headers = {**JSON, "Idempotency-Key": key}
                problem = await refused(gateway, route, 422, data=b"{}", headers=headers)
                assert fields(problem) == {"Idempotency-Key"}
        assert await contents(gateway) == before


@pytest.mark.requirement("API-3")
async def test_each_route_refuses_ids_that_nobody_has(sites: Sites) -> None:
    """Also those that cannot be one; a body that is wrong is told first."""
    async with sites() as gateway:
        before = await contents(gateway)
        for route in routes_of(gateway):
            if "{" not in route.path or route.body is not None:
                continue
            for unknown in (IDS, dict.fromkeys(IDS, "1-%00")):
                wanted = {**unknown, "place": "0"}
                found = Route(**{**_parts(route), "path": route.path.format_map(wanted)})
                problem = await refused(gateway, found, 404)
                assert (problem["code"], bool(problem["kind"])) == ("not_found", True)
        assert await contents(gateway) == before


@pytest.mark.requirement("API-3")
@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
async def test_a_refusal_of_its_own_names_the_state_and_changes_nothing(
    sites: Sites, row: Row
) -> None:
    async with sites(*row.script) as gateway:
        request = await row.prepare(gateway)
        await settled(gateway)
        before = await contents(gateway)
        status, problem = await gateway.ask(
            row.method, request.path, request.body, headers=dict(request.headers), data=request.data
        )
        assert (status, problem["status"]) == (row.status, row.status), problem
        if row.status == 409:
            assert (problem["code"], problem["state"]) == ("conflict", row.state), problem
        if row.status == 404:
            assert (problem["code"], problem["kind"]) == ("not_found", row.state), problem
        assert await contents(gateway) == before


@pytest.mark.requirement("API-2", "API-3")
async def test_each_refusal_that_a_route_declares_is_met(sites: Sites) -> None:
    async with sites() as gateway:
        routes = routes_of(gateway)
    declared = {
        (route.name, status)
        for route in routes
        for status in route.statuses - ALIKE
        if status >= 400 and not (status == 404 and "{" in route.path)
    }
    assert {
        (row.route, row.status) for row in ROWS if row.status != 404 or row.declared
    } == declared
    taken = {route.name: route for route in routes}
    assert all(row.route in taken for row in ROWS)
    with_body = {r.name for r in routes if "{" in r.path and r.body is not None}
    assert with_body == {row.route for row in ROWS if row.status == 404 and not row.declared}
