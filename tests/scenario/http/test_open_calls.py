"""Approvals and questions by the API: in batches, atomic, once (RUN-3, APR-3, APR-6)."""

import pytest

from tests.fakes.model import Said
from tests.scenario.harness import Site
from tests.scenario.http.conftest import ASKS, WONDERS, Sites

TWO = Said("", calls=(("exec", '{"command": "ls"}'), ("exec", '{"command": "ls -a"}')))


async def parked(gateway: Site, text: str = "go") -> tuple[str, list[str]]:
    """(run, its open requests) of a run that waits."""
    run = await gateway.says(await gateway.session(), text)
    view = await gateway.state(run, "waiting_for_approval", "waiting_for_user_question")
    return run, list(view["waiting_for"])


def allow(request: str, scope: str = "once") -> dict[str, str]:
    return {"request_id": request, "behavior": "allow", "scope": scope}


@pytest.mark.requirement("RUN-3", "APR-3")
async def test_what_waits_is_listed_with_exactly_what_would_run(sites: Sites) -> None:
    async with sites(TWO) as gateway:
        run, requests = await parked(gateway)
        _, page = await gateway.ask("GET", "/v1/approvals?limit=1")
        assert page["pagination"]["total_count"] == 2
        (first,) = page["items"]
        assert (first["request_id"], first["run_id"]) == (requests[0], run)
        assert (first["tool"], first["arguments"]) == ("exec", '{"command": "ls"}')
        assert first["choices"] == ["once", "session", "deny"]
        cursor = page["pagination"]["next_cursor"]
        _, rest = await gateway.ask("GET", f"/v1/approvals?cursor={cursor}")
        assert [one["arguments"] for one in rest["items"]] == ['{"command": "ls -a"}']


@pytest.mark.requirement("RUN-3", "API-3")
async def test_a_batch_with_one_bad_decision_decides_nothing(sites: Sites) -> None:
    async with sites(TWO) as gateway:
        run, (first, second) = await parked(gateway)
        path = f"/v1/runs/{run}/approvals"
        missing = "apr_00000000000000000000000000"
        batches = [
            ([allow(first), allow(missing)], 404),
            ([allow(first), allow(first)], 422),
            ([allow(first), {"request_id": second, "behavior": "maybe"}], 422),
            ([], 422),
        ]
        for batch, expected in batches:
            status, _ = await gateway.ask("POST", path, {"resolutions": batch})
            assert status == expected
            assert (await gateway.ask("GET", f"/v1/runs/{run}"))[1]["waiting_for"] == [
                first,
                second,
            ]


@pytest.mark.requirement("RUN-3", "API-3")
async def test_what_another_run_asks_is_not_decided_by_its_name(sites: Sites) -> None:
    async with sites(ASKS, ASKS) as gateway:
        run, (own,) = await parked(gateway)
        _, (other,) = await parked(gateway)
        path = f"/v1/runs/{run}/approvals"
        batch = {"resolutions": [allow(own), allow(other)]}
        status, problem = await gateway.ask("POST", path, batch)
        assert (status, problem["kind"]) == (404, "approval")
        _, page = await gateway.ask("GET", "/v1/approvals")
        assert {one["request_id"] for one in page["items"]} == {own, other}


@pytest.mark.requirement("RUN-3", "API-3")
async def test_a_batch_with_what_was_decided_already_decides_nothing(sites: Sites) -> None:
    async with sites(TWO) as gateway:
        run, (first, second) = await parked(gateway)
        path = f"/v1/runs/{run}/approvals"
        deny = {"request_id": first, "behavior": "deny"}
        assert (await gateway.ask("POST", path, {"resolutions": [deny]}))[0] == 200
        batch = {"resolutions": [allow(second), allow(first)]}
        status, problem = await gateway.ask("POST", path, batch)
        assert (status, problem["code"]) == (409, "conflict")
        assert problem["state"] == "answered"
        assert (await gateway.ask("GET", f"/v1/runs/{run}"))[1]["waiting_for"] == [second]


@pytest.mark.requirement("RUN-3")
async def test_a_batch_is_decided_together_and_the_run_goes_on(sites: Sites) -> None:
    async with sites(TWO, "Listed.") as gateway:
        run, (first, second) = await parked(gateway)
        denied = {"request_id": second, "behavior": "deny", "reason": "not the hidden ones"}
        status, view = await gateway.ask(
            "POST", f"/v1/runs/{run}/approvals", {"resolutions": [allow(first, "session"), denied]}
        )
        assert (status, view["waiting_for"]) == (200, [])
        ended = await gateway.state(run, "completed")
        messages = await gateway.messages(str(ended["session_id"]))
        calls = next(one for one in messages if one["calls"])["calls"]
        assert [call["status"] for call in calls] == ["ok", "denied"]
        assert "AGENTS.md" in calls[0]["result"]
        assert "not the hidden ones" in calls[1]["result"]
        cards = [one["card"] for one in messages if one["kind"] == "card"]
        first_said, second_said = (one["outcome"] for one in cards)
        assert first_said.startswith("Allowed by the owner for this session")
        assert second_said.startswith("Denied by the owner: not the hidden ones")
        _, session = await gateway.ask("GET", f"/v1/sessions/{ended['session_id']}")
        assert session["grants"] == ["exec(ls) in ."]


@pytest.mark.requirement("RUN-3", "API-3")
async def test_the_second_answer_loses_and_is_told_the_state(sites: Sites) -> None:
    async with sites(ASKS, "done") as gateway:
        run, (request,) = await parked(gateway)
        path = f"/v1/runs/{run}/approvals"
        body = {"resolutions": [allow(request)]}
        assert (await gateway.ask("POST", path, body))[0] == 200
        status, problem = await gateway.ask("POST", path, body)
        assert (status, problem["state"]) == (409, "answered")


@pytest.mark.requirement("RUN-3", "APR-3")
async def test_a_scope_that_the_card_does_not_offer_is_refused(sites: Sites) -> None:
    async with sites(ASKS) as gateway:
        run, (request,) = await parked(gateway)

        def once_only(conn: object) -> None:
            conn.exec_driver_sql(
                "UPDATE open_calls SET payload = json_set(payload, '$.choices', json(?))",
                ('["once", "deny"]',),
            )

        await gateway.database.write(once_only, name="test")
        body = {"resolutions": [allow(request, "session")]}
        status, problem = await gateway.ask("POST", f"/v1/runs/{run}/approvals", body)
        assert (status, problem["field"]) == (422, "resolutions.0.scope")
        assert problem["rule"] == "must be one that the card offers: once"


@pytest.mark.requirement("RUN-3", "APR-6")
async def test_a_question_is_answered_by_the_form(sites: Sites) -> None:
    async with sites(WONDERS, "I take next.") as gateway:
        run, (request,) = await parked(gateway)
        _, page = await gateway.ask("GET", "/v1/questions")
        (one,) = page["items"]
        assert (one["question"], one["options"]) == ("Which branch?", ["main", "next"])
        assert (await gateway.ask("GET", "/v1/approvals"))[1]["items"] == []
        path = f"/v1/runs/{run}/questions"
        empty, problem = await gateway.ask(
            "POST", path, {"answers": [{"request_id": request, "text": ""}]}
        )
        assert (empty, problem["field"]) == (422, "answers.0.text")
        wrong, _ = await gateway.ask(
            "POST", f"/v1/runs/{run}/approvals", {"resolutions": [allow(request)]}
        )
        assert wrong == 404
        body = {"answers": [{"request_id": request, "text": "next, please"}]}
        assert (await gateway.ask("POST", path, body))[0] == 200
        ended = await gateway.state(run, "completed")
        messages = await gateway.messages(str(ended["session_id"]))
        card = next(one["card"] for one in messages if one["kind"] == "card")
        assert card["outcome"].startswith("the owner answered: next, please")
