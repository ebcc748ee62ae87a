"""The OpenAPI document describes every route, from the models that validate (API-2)."""

import html
import re
from pathlib import Path

import pytest

from gateway.http.app import DOCUMENT, build_app
from runtime.sessions.queue_modes import QUEUE_MODES
from tests.documents.examples import examples
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.contract_check import ContractCheck, OutsideTheDocument
from tests.scenario.harness import READER, Plan
from tests.scenario.http.conftest import Sites


@pytest.mark.requirement("API-2")
async def test_each_route_of_v1_is_in_the_document(sites: Sites) -> None:
    async with sites() as gateway:
        status, document = await gateway.ask("GET", "/v1/openapi.json", token=READER)
        served = {
            (route.method, re.sub(r"{(\w+):.*}", r"{\1}", route.resource.canonical))
            for route in build_app(gateway.services).router.routes()
            if route.method != "HEAD" and route.resource.canonical.startswith("/v1/")
        }
    described = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
    }
    assert (status, document["openapi"]) == (200, "3.1.0")
    assert described == served


@pytest.mark.requirement("API-2")
async def test_the_document_has_what_validates_and_what_is_answered(sites: Sites) -> None:
    async with sites() as gateway:
        document = build_app(gateway.services)[DOCUMENT].document
    listing = document["paths"]["/v1/runs"]["get"]
    parameters = {one["name"]: one["schema"] for one in listing["parameters"]}
    assert parameters["limit"] == {"type": "integer", "default": 50, "minimum": 1, "maximum": 200}
    assert parameters["session_id"] == {"type": "string", "pattern": "^[A-Za-z0-9_]{1,64}$"}
    assert listing["x-read-only-token"]
    events = document["paths"]["/v1/events"]["get"]
    assert ("header", "Last-Event-ID") in [(one["in"], one["name"]) for one in events["parameters"]]
    submit = document["paths"]["/v1/sessions/{session_id}/runs"]["post"]
    assert not submit["x-read-only-token"]
    assert "Idempotency-Key" in [one["name"] for one in submit["parameters"]]
    schemas = document["components"]["schemas"]
    assert schemas["RunRequest"]["properties"].keys() == {"content", "input_items", "timezone"}
    assert not schemas["RunRequest"]["additionalProperties"]
    assert {"202", "401", "404", "409", "422"} <= submit["responses"].keys()
    assert submit["requestBody"]["required"]
    change = document["paths"]["/v1/schedules/{schedule_id}"]["patch"]
    assert change["requestBody"]["required"]
    assert not document["paths"]["/v1/sessions"]["post"]["requestBody"]["required"]


EXAMPLES = Path(__file__).parents[3] / "docs/api.md"
WITHOUT = {"docs": "is a page", "files": "is a link in the message that has the file"}
"""Resources that a program needs no example of."""


@pytest.mark.requirement("API-2")
async def test_each_resource_has_an_example_that_is_run(sites: Sites) -> None:
    """`tests/documents` runs each command of the page."""
    async with sites() as gateway:
        document = build_app(gateway.services)[DOCUMENT].document
    resources = {path.split("/")[2] for path in document["paths"]}
    commands = [one.command for one in examples(EXAMPLES)]
    shown = {found for one in commands for found in re.findall(r"\$URL/([a-z.-]+)", one)}
    assert resources == shown | WITHOUT.keys()


@pytest.mark.requirement("API-2")
async def test_the_document_says_which_fields_belong_together(sites: Sites) -> None:
    """Rules over several fields, and the tag of a union that code may leave out."""
    async with sites() as gateway:
        schemas = build_app(gateway.services)[DOCUMENT].document["components"]["schemas"]

    def given(name: str) -> dict[str, object]:
        return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}

    assert schemas["RunRequest"]["oneOf"] == [given("content"), given("input_items")]
    kinds = ("request", "deliver_text", "observation_materialization")
    assert schemas["ScheduleCreateRequest"]["oneOf"] == [given(name) for name in kinds]
    assert schemas["ObservationSource"]["oneOf"] == [given("session_id"), given("watch_path")]
    fields = schemas["ScheduleChange"]["properties"]
    assert schemas["ScheduleChange"]["anyOf"] == [given(name) for name in fields]
    for name in ("Once", "Interval", "Cron", "CoalesceOnce", "SkipMissed"):
        assert "type" in schemas[name]["required"]
    assert schemas["QueueModeRequest"]["properties"]["queue_mode"]["enum"] == list(QUEUE_MODES)
    assert schemas["PairingRequest"]["properties"]["trust"]["enum"] == ["owner", "member", "guest"]
    assert schemas["RuntimeView"]["properties"]["scheduler"] == {
        "$ref": "#/components/schemas/Scheduler"
    }


@pytest.mark.requirement("API-2")
async def test_the_document_says_the_form_of_a_text(sites: Sites) -> None:
    """Rules for which the gateway has better words than the pattern."""
    async with sites() as gateway:
        document = build_app(gateway.services)[DOCUMENT].document
    shapes = document["components"]["schemas"]
    parameters = document["paths"]["/v1/sessions"]["get"]["parameters"]
    cursor = next(one["schema"] for one in parameters if one["name"] == "cursor")
    scope = shapes["CapabilityScopeRequest"]["properties"]
    for schema, right, wrong in (
        (cursor, "WzFd", "a b"),
        (shapes["PersonaRequest"]["properties"]["persona"], "night-shift", "Night"),
        (shapes["InlineAsset"]["properties"]["data"], "YWI=", "YWI"),
        (shapes["Cron"]["properties"]["timezone"], "Europe/Berlin", ""),
        (shapes["Cron"]["properties"]["expression"], "0 9 * * mon-fri", "0 9 * *"),
        (shapes["TaskCreate"]["properties"]["title"], " look ", " "),
        (shapes["RunRequest"]["properties"]["content"]["anyOf"][0], " hello ", "\x1f "),
        (scope["tools"]["anyOf"][0]["items"], "web_*", "read file"),
        (scope["paths"]["anyOf"][0]["items"], "files/a", "files/*"),
        (scope["network"]["anyOf"][0]["items"], "*.Example.org", "example.*"),
    ):
        assert re.search(schema["pattern"], right), schema
        assert not re.search(schema["pattern"], wrong), schema


@pytest.mark.requirement("API-2")
async def test_what_the_document_does_not_know_is_refused(sites: Sites) -> None:
    async with sites() as gateway:
        for path, field in (
            ("/v1/runs?state=queued", "state"),
            ("/v1/status?limit=1", "limit"),
            ("/v1/runs?limit=1&limit=2", "limit"),
            ("/v1/sessions?archived=perhaps", "archived"),
            ("/v1/sessions?q=a%00b", "query"),
        ):
            status, problem = await gateway.ask("GET", path)
            assert (status, problem["field"]) == (422, field)


@pytest.mark.requirement("API-2")
async def test_the_page_shows_each_route_and_loads_nothing_from_elsewhere(sites: Sites) -> None:
    async with sites() as gateway:
        status, page = await gateway.ask("GET", "/v1/docs", token=READER)
        document = build_app(gateway.services)[DOCUMENT].document
    text = html.unescape(str(page["text"]))
    assert status == 200
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert f"<code>{method.upper()} {path}</code> {operation['summary']}" in text
    for name in document["components"]["schemas"]:
        assert f'id="shape-{name}"' in text
    assert re.findall(r'(?:src|href)="([^"#]+)"', text) == [
        "/static/mark.svg",
        "/static/page.css",
        "/static/docs.css",
        "/v1/openapi.json",
    ]
    assert "<script" not in text


@pytest.mark.requirement("API-2")
async def test_each_answer_of_these_tests_is_held_to_the_document(sites: Sites) -> None:
    """A document that says something else than the gateway fails any test that asks."""
    async with sites() as gateway:
        document = build_app(gateway.services)[DOCUMENT].document
        document["paths"]["/v1/models"]["get"]["responses"].pop("200")
        document["components"]["schemas"]["SessionView"]["properties"].pop("title")
        gateway.client._middlewares = (ContractCheck(document),)
        with pytest.raises(OutsideTheDocument, match="is not in the document"):
            await gateway.ask("GET", "/v1/models")
        with pytest.raises(OutsideTheDocument, match="title"):
            await gateway.ask("POST", "/v1/sessions", {})


@pytest.mark.requirement("API-2", "API-3")
async def test_each_list_is_read_page_by_page(sites: Sites) -> None:
    """Also those that are short enough to be read at once: programs read all lists alike."""

    def plays(plan: Plan) -> None:
        plan.models = ScriptedModels(*(ScriptedModel(name=f"scripted:{n}") for n in "abc"))

    async with sites(change=plays) as gateway:
        status, whole = await gateway.ask("GET", "/v1/models")
        assert status == 200
        total = len(whole["items"])
        assert total == 3
        assert whole["pagination"] == {"total_count": total}
        status, first = await gateway.ask("GET", "/v1/models?limit=1&page=true")
        assert (status, first["items"]) == (200, whole["items"][:1])
        cursor = first["pagination"]["next_cursor"]
        status, second = await gateway.ask("GET", f"/v1/models?limit=200&cursor={cursor}")
        assert (second["items"], second["pagination"]) == (
            whole["items"][1:],
            {"total_count": total},
        )
        for path in ("/v1/models", "/v1/people", "/v1/pairings"):
            status, problem = await gateway.ask("GET", f"{path}?limit=201")
            assert (status, problem["field"]) == (422, "limit")
            status, problem = await gateway.ask("GET", f"{path}?cursor=x")
            assert (status, problem["field"]) == (422, "cursor")
