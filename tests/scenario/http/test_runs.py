"""Runs by the API: listed, looked at, cancelled, and never made twice (RUN-2, RUN-4)."""

import asyncio

import pytest

from runtime.domain.errors import ModelRejected
from tests.fakes.model import Gate, Said
from tests.scenario.harness import Site
from tests.scenario.http.conftest import ASKS, WONDERS, Sites


@pytest.mark.requirement("RUN-2")
async def test_runs_are_listed_by_session_and_state(sites: Sites) -> None:
    async with sites("one", ASKS) as gateway:
        first, second = await gateway.session(), await gateway.session()
        done = await gateway.says(first, "a")
        await gateway.state(done, "completed")
        waiting = await gateway.says(second, "b")
        await gateway.state(waiting, "waiting_for_approval")

        async def ids(query: str) -> list[str]:
            return [one["id"] for one in (await gateway.ask("GET", f"/v1/runs{query}"))[1]["items"]]

        assert await ids("") == [waiting, done]
        assert await ids(f"?session_id={first}") == [done]
        assert await ids("?status=waiting_for_approval") == [waiting]
        assert await ids(f"?session_id={first}&status=running") == []
        status, problem = await gateway.ask("GET", "/v1/runs?status=sleeping")
        assert (status, problem["field"]) == (422, "status")


@pytest.mark.requirement("RUN-2")
async def test_a_resumed_run_keeps_its_id_and_its_events_say_what_resumed_it(sites: Sites) -> None:
    async with sites(ASKS, "There you are.") as gateway:
        run = await gateway.says(await gateway.session(), "list files")
        waiting = await gateway.state(run, "waiting_for_approval")
        (request,) = waiting["waiting_for"]
        resolution = {"request_id": request, "behavior": "allow"}
        await gateway.ask("POST", f"/v1/runs/{run}/approvals", {"resolutions": [resolution]})
        ended = await gateway.state(run, "completed")
        assert (ended["id"], ended["kind"], ended["usage"]["input_tokens"]) == (run, "input", 200)
        _, page = await gateway.ask("GET", f"/v1/runs/{run}/events?limit=100")
        kinds = iter([one["kind"] for one in page["items"]])
        order = ["run.queued", "run.started", "step.model", "approval.requested", "run.waiting"]
        order += ["approval.decided", "run.resumed", "step.tools", "run.completed"]
        assert [kind for kind in order if kind not in kinds] == []
        decided = next(one for one in page["items"] if one["kind"] == "approval.decided")
        assert decided["data"]["request_id"] == request
        assert [one["kind"] for one in await resumptions(gateway, run)] == ["approval"]
        assert (await resumptions(gateway, run))[0]["request_id"] == request
        _, first = await gateway.ask("GET", f"/v1/runs/{run}/events?limit=2")
        cursor = first["pagination"]["next_cursor"]
        _, rest = await gateway.ask("GET", f"/v1/runs/{run}/events?limit=100&cursor={cursor}")
        # Its replies may be delivered only now, which adds events at the end.
        assert (first["items"] + rest["items"])[: len(page["items"])] == page["items"]


async def resumptions(gateway: Site, run: str) -> list[dict[str, object]]:
    """What let a run go on, each time."""
    _, page = await gateway.ask("GET", f"/v1/runs/{run}/events?limit=100")
    queued = [one["data"] for one in page["items"] if one["kind"] == "run.queued"]
    return [data["resumed_by"] for data in queued if "resumed_by" in data]


@pytest.mark.requirement("RUN-2", "RUN-3")
async def test_an_answer_is_what_resumes_a_run_that_asked(sites: Sites) -> None:
    async with sites(WONDERS, "main it is") as gateway:
        run = await gateway.says(await gateway.session(), "which?")
        (request,) = (await gateway.state(run, "waiting_for_user_question"))["waiting_for"]
        answers = {"answers": [{"request_id": request, "text": "main"}]}
        status, _ = await gateway.ask("POST", f"/v1/runs/{run}/questions", answers)
        assert status == 200
        ended = await gateway.state(run, "completed")
        assert (ended["id"], ended["kind"]) == (run, "input")
        assert await resumptions(gateway, run) == [
            {"kind": "question", "request_id": request, "state": "answered"}
        ]


@pytest.mark.requirement("RUN-2")
async def test_cancelling_is_idempotent_whatever_the_run_does(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said("slow", before=gate), ASKS) as gateway:
        session = await gateway.session()
        running = await gateway.says(session, "one")
        await gate.reached.wait()
        status, _ = await gateway.ask("POST", f"/v1/runs/{running}/cancel")
        assert status == 200
        ended = await gateway.state(running, "cancelled")
        parked = await gateway.says(session, "two")
        await gateway.state(parked, "waiting_for_approval")
        _, cancelled = await gateway.ask("POST", f"/v1/runs/{parked}/cancel")
        assert (cancelled["state"], cancelled["waiting_for"]) == ("cancelled", [])
        for run, before in ((parked, cancelled), (running, ended)):
            assert await gateway.ask("POST", f"/v1/runs/{run}/cancel") == (200, before)
        assert (await gateway.ask("GET", "/v1/approvals"))[1]["items"] == []


@pytest.mark.requirement("RUN-4")
async def test_the_same_key_gives_one_run_at_once_and_after_a_restart(sites: Sites) -> None:
    headers, body = {"Idempotency-Key": "deploy-17"}, {"content": "deploy"}
    async with sites("deployed") as gateway:
        session = await gateway.session()
        path = f"/v1/sessions/{session}/runs"
        first, second = await asyncio.gather(
            gateway.ask("POST", path, body, headers=headers),
            gateway.ask("POST", path, body, headers=headers),
        )
        assert first == second
        assert first[0] == 202
        await gateway.state(str(first[1]["run_id"]), "completed")
        assert await gateway.ask("POST", path, body, headers=headers) == first
        status, problem = await gateway.ask("POST", path, {"content": "other"}, headers=headers)
        assert (status, problem["code"], problem["state"]) == (409, "conflict", "used")
    async with sites() as restarted:
        assert await restarted.ask("POST", path, body, headers=headers) == first
        runs = (await restarted.ask("GET", "/v1/runs"))[1]["items"]
        assert [one["id"] for one in runs] == [first[1]["run_id"]]
        asked = [one for one in await restarted.messages(session) if one["kind"] == "user"]
        assert len(asked) == 1


@pytest.mark.requirement("RUN-4")
async def test_a_command_and_an_answer_are_told_alike_again(
    sites: Sites,
) -> None:
    async with sites(WONDERS, "done") as gateway:
        session = await gateway.session()
        path = f"/v1/sessions/{session}/runs"
        run = await gateway.says(session, "which?")
        waiting = await gateway.state(run, "waiting_for_user_question")
        code = str(waiting["waiting_for"][0])[-6:]
        for number, text in enumerate(["/status", "main", f"/answer {code} main"]):
            headers = {"Idempotency-Key": f"k{number}"}
            first = await gateway.ask("POST", path, {"content": text}, headers=headers)
            assert first[1]["disposition"] == ("answer" if text == "main" else "command")
            again = await gateway.ask("POST", path, {"content": text}, headers=headers)
            assert again == first


@pytest.mark.requirement("RUN-4")
async def test_a_session_and_a_command_are_made_once_by_their_key(sites: Sites) -> None:
    headers = {"Idempotency-Key": "s1"}
    async with sites() as gateway:
        body = {"channel": "web", "title": "Plans"}
        _, made = await gateway.ask("POST", "/v1/sessions", body, headers=headers)
        again, same = await gateway.ask("POST", "/v1/sessions", body, headers=headers)
        assert (again, same["id"]) == (200, made["id"])
        other = {"channel": "web", "title": "Other"}
        assert (await gateway.ask("POST", "/v1/sessions", other, headers=headers))[0] == 409
        path = f"/v1/sessions/{made['id']}/runs"
        first = await gateway.ask("POST", path, {"content": "/status"}, headers=headers)
        assert first[1]["disposition"] == "command"
        assert await gateway.ask("POST", path, {"content": "/status"}, headers=headers) == first
        async with gateway.feed(f"session_id={made['id']}&last_event_id=0") as feed:
            await feed.until("delivery.sent")
        notices = [one for one in await gateway.messages(made["id"]) if one["kind"] == "notice"]
        assert len(notices) == 1
        assert "idle" in notices[0]["text"]


async def test_a_failed_run_says_so_in_the_conversation(sites: Sites) -> None:
    broken = Said(error=ModelRejected("401", "The model provider refused the key."))
    async with sites(broken) as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "hello")
        failed = await gateway.state(run, "failed")
        assert failed["error"]
        last = (await gateway.messages(session))[-1]
        assert last["kind"] == "notice"
        assert "refused the key" in last["text"]
