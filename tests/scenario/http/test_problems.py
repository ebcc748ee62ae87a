"""Every error is a problem document with the right status and nothing half-done (API-3)."""

import io
import json

import pytest

from runtime.domain.errors import StaleLease, StoreFull
from tests.scenario.harness import ADMIN, Plan
from tests.scenario.http.conftest import Sites

AUTH = {"Authorization": f"Bearer {ADMIN}"}


@pytest.mark.requirement("API-3")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/sessions/ses_none"),
        ("GET", "/v1/sessions/%00"),
        ("GET", "/v1/sessions/ses_none/messages"),
        ("POST", "/v1/sessions/ses_none/interrupt"),
        ("POST", "/v1/sessions/ses_none/end"),
        ("GET", "/v1/runs/run_none"),
        ("GET", "/v1/runs/run_none/events"),
        ("POST", "/v1/runs/run_none/cancel"),
        ("POST", "/v1/pairings/NONE42/deny"),
    ],
)
async def test_an_unknown_id_is_404(sites: Sites, method: str, path: str) -> None:
    async with sites() as gateway:
        status, problem = await gateway.ask(method, path)
        assert (status, problem["status"], problem["code"]) == (404, 404, "not_found")
        assert set(problem) == {"type", "title", "status", "detail", "code", "kind"}


@pytest.mark.requirement("API-3")
async def test_unknown_paths_and_methods_are_problems_too(sites: Sites) -> None:
    async with sites() as gateway:
        for method, path, status in (("GET", "/v1/nothing", 404), ("DELETE", "/v1/runs", 405)):
            async with gateway.client.request(
                method, f"{gateway.url}{path}", headers=AUTH
            ) as response:
                assert response.status == status
                assert response.content_type == "application/problem+json"
                body = json.loads(await response.text())
        assert (body["code"], response.headers["Allow"]) == ("method_not_allowed", "GET,HEAD")


@pytest.mark.requirement("API-3")
@pytest.mark.parametrize(
    ("raw", "media_type", "status", "code"),
    [
        (b"{", "application/json", 400, "bad_request"),
        (b"[]", "application/json", 400, "bad_request"),
        (b"\xff\xfe", "application/json", 400, "bad_request"),
        (b'{"title": "\\ud800"}', "application/json", 400, "bad_request"),
        (b"[" * 100_000, "application/json", 400, "bad_request"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
        (b'{"title": "a\\u0000b"}', "application/json", 422, "invalid"),
        (b"x" * 17_000_000, "application/json", 413, "too_large"),
    ],
)
async def test_a_body_that_cannot_be_read(
    sites: Sites, raw: bytes, media_type: str, status: int, code: str
) -> None:
    async with sites() as gateway:
        headers = {**AUTH, "Content-Type": media_type}
        async with gateway.client.post(
            f"{gateway.url}/v1/sessions", data=io.BytesIO(raw), headers=headers
        ) as response:
            problem = json.loads(await response.text())
            assert (response.status, problem["code"]) == (status, code)
        assert (await gateway.ask("GET", "/v1/sessions"))[1]["items"] == []


@pytest.mark.requirement("API-3")
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/sessions?limit=0", "limit"),
        ("/v1/sessions?limit=201", "limit"),
        ("/v1/sessions?limit=ten", "limit"),
        ("/v1/sessions?limit=99999999999999999999", "limit"),
        ("/v1/sessions?cursor=x", "cursor"),
        ("/v1/sessions?cursor=WzFd", "cursor"),
        ("/v1/runs?cursor=%C3%A9", "cursor"),
        ("/v1/runs?cursor=W251bGxd", "cursor"),
        ("/v1/approvals?cursor=WzEsMl0", "cursor"),
        ("/v1/runs?session_id=a%20b", "session_id"),
    ],
)
async def test_a_bad_query_names_its_field(sites: Sites, path: str, field: str) -> None:
    async with sites() as gateway:
        status, problem = await gateway.ask("GET", path)
        assert (status, problem["field"]) == (422, field)
        assert problem["errors"] == [{"field": field, "rule": problem["rule"]}]


@pytest.mark.requirement("API-3")
async def test_a_misspelt_key_of_a_body_is_answered_with_the_nearest(sites: Sites) -> None:
    async with sites() as gateway:
        path = "/v1/sessions/ses_1/runs"
        status, problem = await gateway.ask("POST", path, {"contnt": "hello"})
        assert (status, problem["detail"]) == (422, "contnt: is not a key; did you mean content?")
        _, problem = await gateway.ask("POST", path, {"zzz": 1})
        assert problem["rule"] == "is not a key; there are content, input_items"


@pytest.mark.requirement("API-3")
async def test_a_bad_idempotency_key_is_named(sites: Sites) -> None:
    async with sites() as gateway:
        for key in ("", "with space", "k" * 201):
            status, problem = await gateway.ask(
                "POST", "/v1/sessions", {}, headers={"Idempotency-Key": key}
            )
            assert (status, problem["field"]) == (422, "Idempotency-Key")


@pytest.mark.requirement("API-3")
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoreFull("The disk is full."), 503, "unavailable"),
        (StaleLease("run run_1"), 409, "conflict"),
        (RuntimeError("a secret detail"), 500, "internal"),
    ],
)
async def test_what_breaks_inside_is_told_without_its_details(
    sites: Sites, error: Exception, status: int, code: str
) -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            async def broken(*_: object, **__: object) -> None:
                raise error

            return broken

    def breaks(plan: Plan) -> None:
        plan.services["views"] = Broken()

    async with sites(change=breaks) as gateway:
        got, problem = await gateway.ask("GET", "/v1/sessions")
        assert (got, problem["code"]) == (status, code)
        assert "secret" not in json.dumps(problem)


@pytest.mark.requirement("SEC-7", "API-3")
@pytest.mark.parametrize("depth", [65, 900, 5_000, 100_000])
@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
async def test_json_that_is_nested_deep_is_a_bad_request_that_names_the_rule(
    sites: Sites, depth: int, left: str, right: str
) -> None:
    async with sites() as gateway:
        text = '{"content":' + left * depth + "1" + right * depth + "}"
        async with gateway.client.post(
            f"{gateway.url}/v1/sessions/ses_1/runs",
            data=text,
            headers={"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"},
        ) as response:
            problem = await response.json()
            assert (response.status, problem["code"]) == (400, "bad_request")
            assert "nested more than 64 levels deep" in problem["detail"]
