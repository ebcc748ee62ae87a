"""Every error is a problem document with the right status and nothing half-done (API-3)."""

import io
import json

import pytest

from runtime.domain.errors import StaleLease, StoreFull
from tests.scenario.harness import ADMIN
from tests.scenario.http.conftest import WONDERS, Sites

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
        assert problem["rule"] == "is not a key; there are content, input_items, timezone"


@pytest.mark.requirement("API-3")
async def test_an_unknown_key_is_answered_with_those_that_there_are_wherever_it_stands(
    sites: Sites,
) -> None:
    async with sites() as gateway:
        schedule, run = "/v1/schedules/sch_1", "/v1/sessions/ses_1/runs"
        wrong = {"name": "n", "target_session_id": "ses_1", "deliver_text": "tea"}
        every = {"type": "interval", "every_seconds": 60}
        for path, body, detail in (
            *(
                (f"{schedule}/{name}", {"zzz": 1}, "zzz: is not a key; there is none")
                for name in ("pause", "resume", "trigger")
            ),
            (f"{schedule}/cancel", {"zzz": 1}, "zzz: is not a key; there is stop_run"),
            (
                "/v1/schedules",
                {**wrong, "cadence": {**every, "zzz": 1}},
                "cadence.zzz: is not a key; there are type, every_seconds",
            ),
            (
                "/v1/schedules",
                {**wrong, "cadence": {"type": "cron", "expression": "0 9 * * *", "timezon": "UTC"}},
                "cadence.timezon: is not a key; did you mean timezone?",
            ),
            (
                "/v1/schedules",
                {**wrong, "cadence": every, "misfire_policy": {"type": "coalesce_once", "zzz": 1}},
                "misfire_policy.zzz: is not a key; there is type",
            ),
            (
                run,
                {"input_items": [{"type": "text", "text": "a", "zzz": 1}]},
                "input_items.0.zzz: is not a key; there are type, text",
            ),
            (
                "/v1/agents/ses_1/sidechains",
                {
                    "subtask": {"name": "n", "description": "d", "prompt": "p"},
                    "fork_context": {"sistem_prompt": "x"},
                },
                "fork_context.sistem_prompt: is not a key; did you mean system_prompt?",
            ),
        ):
            status, problem = await gateway.ask("POST", path, body)
            assert (status, problem["detail"]) == (422, detail)


@pytest.mark.requirement("API-2", "API-3")
async def test_a_request_that_says_nothing_takes_no_body_that_says_something(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        one = f"/v1/sessions/{session}"
        for path in (f"{one}/interrupt", f"{one}/end", "/v1/runs/run_1/cancel", "/v1/owner-code"):
            for raw, status in ((b"{bad", 400), (b"[]", 400), (b'{"zzz": 1}', 422)):
                headers = {"Content-Type": "application/json"}
                got, problem = await gateway.ask("POST", path, data=raw, headers=headers)
                assert (got, problem["status"]) == (status, status)
            assert problem["detail"] == "zzz: is not a key; there is none"
        _, shown = await gateway.ask("GET", one)
        assert shown["status"] == "open"
        assert (await gateway.ask("POST", f"{one}/interrupt", {}))[0] == 200
        assert (await gateway.ask("POST", f"{one}/end"))[1]["status"] == "ended"


@pytest.mark.requirement("API-3")
async def test_a_broken_item_of_a_list_is_the_one_error(sites: Sites) -> None:
    async with sites() as gateway:
        run = "/v1/runs/run_1"
        for path, body, fields in (
            (
                f"{run}/approvals",
                {"resolutions": [{"request_id": "a", "behavior": "allow", "scope": "always"}]},
                ["resolutions.0.scope"],
            ),
            (f"{run}/questions", {"answers": [{"request_id": "a"}]}, ["answers.0.text"]),
            (
                "/v1/sessions/ses_1/runs",
                {"input_items": [{"type": "text", "txt": "x"}]},
                ["input_items.0.text", "input_items.0.txt"],
            ),
        ):
            status, problem = await gateway.ask("POST", path, body)
            assert (status, [one["field"] for one in problem["errors"]]) == (422, fields)
        _, problem = await gateway.ask("POST", f"{run}/approvals", {"resolutions": []})
        assert problem["detail"] == "resolutions: must have at least 1 item"
        many = [{"request_id": "a", "text": "b"}] * 51
        _, problem = await gateway.ask("POST", f"{run}/questions", {"answers": many})
        assert {"field": "answers", "rule": "must have at most 50 items"} in problem["errors"]


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
    sites: Sites, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise error

    async with sites() as gateway:
        monkeypatch.setattr(gateway.services.control, "create_session", broken)
        got, problem = await gateway.ask("POST", "/v1/sessions", {})
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


@pytest.mark.requirement("API-3")
@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        ({"input_items": [{"type": "text", "text": 5}]}, "input_items.0.text", "valid string"),
        ({"input_items": [{"type": "film"}]}, "input_items.0.type", "must be one of 'text', "),
        ({"input_items": [{"text": "hello"}]}, "input_items.0.type", "must be given"),
        (
            {"input_items": [{"type": "text", "text": "x", "to": 1}]},
            "input_items.0.to",
            "is not a key",
        ),
        ({}, "body", "give either content or input_items"),
        ({"content": "x", "input_items": [{"type": "text", "text": "x"}]}, "body", "give either"),
    ],
)
async def test_a_field_is_named_by_its_place_in_the_body(
    sites: Sites, body: object, field: str, rule: str
) -> None:
    async with sites() as gateway:
        status, problem = await gateway.ask("POST", "/v1/sessions/ses_1/runs", body)
        assert (status, problem["field"]) == (422, field)
        assert problem["rule"].startswith(rule) or rule in problem["rule"]


@pytest.mark.requirement("API-2", "API-3")
@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PATCH", "/v1/sessions/ses_1", {"archived": 0}, "archived"),
        ("PATCH", "/v1/sessions/ses_1", {"archived": "true"}, "archived"),
        ("POST", "/v1/sessions/ses_1/tasks/tsk_1/input", {"close": "yes"}, "close"),
        ("POST", "/v1/schedules/sch_1/cancel", {"stop_run": 1}, "stop_run"),
    ],
)
async def test_a_value_of_another_type_is_not_made_to_fit(
    sites: Sites, method: str, path: str, body: object, field: str
) -> None:
    async with sites() as gateway:
        status, problem = await gateway.ask(method, path, body)
        assert (status, problem["field"]) == (422, field)


@pytest.mark.requirement("API-3")
async def test_a_whole_number_may_be_written_with_a_point(sites: Sites) -> None:
    async with sites() as gateway:
        asked = {
            "name": "Numbers",
            "target_session_id": await gateway.session(),
            "deliver_text": "Post the numbers",
            "cadence": {"type": "interval", "every_seconds": 60.0},
        }
        status, made = await gateway.ask("POST", "/v1/schedules", asked)
        assert (status, made["schedule"]["cadence"]["every_seconds"]) == (201, 60)
        asked["cadence"] = {"type": "interval", "every_seconds": 60.5}
        status, problem = await gateway.ask("POST", "/v1/schedules", asked)
        assert (status, problem["field"]) == (422, "cadence.every_seconds")


@pytest.mark.requirement("API-3", "RUN-3")
async def test_an_answer_of_very_many_digits_is_words_and_no_number(sites: Sites) -> None:
    async with sites(WONDERS, "Then so be it.") as gateway:
        run = await gateway.says(await gateway.session(), "go on")
        await gateway.state(run, "waiting_for_user_question")
        _, page = await gateway.ask("GET", "/v1/questions")
        answers = [{"request_id": page["items"][0]["request_id"], "text": "0" * 20_000}]
        status, found = await gateway.ask("POST", f"/v1/runs/{run}/questions", {"answers": answers})
        assert status == 200, found


@pytest.mark.requirement("API-3", "TSK-3")
async def test_a_wait_for_a_task_that_there_is_not_is_refused_as_any_other(sites: Sites) -> None:
    async with sites() as gateway:
        path = f"/v1/sessions/{await gateway.session()}/tasks/tsk_1/output?wait=true"
        status, problem = await gateway.ask("GET", path)
        assert (status, problem["kind"]) == (404, "task")


@pytest.mark.requirement("API-3")
async def test_a_parameter_without_a_name_is_refused_as_the_query(sites: Sites) -> None:
    async with sites() as gateway:
        for query in ("=1", "=1&=2"):
            status, problem = await gateway.ask("GET", f"/v1/runs?{query}")
            assert (status, problem["field"]) == (422, "query")
