"""Conversations that are named, found, put aside, given a model, exported and deleted (RUN-6)."""

import base64
import json

import pytest

from runtime.ports.model import ModelRequest
from runtime.store import Connection
from runtime.store.metadata import metadata
from tests.fakes.model import DEFAULT_NAME, Said, ScriptedModel, ScriptedModels
from tests.scenario.harness import ADMIN, READER, Plan, Site
from tests.scenario.http.conftest import ASKS, Sites
from tests.scenario.subagents.children import name_of, spawn, told


async def titles(gateway: Site, query: str = "") -> list[str]:
    status, found = await gateway.ask("GET", f"/v1/sessions?{query}")
    assert status == 200, found
    assert found["pagination"]["total_count"] == len(found["items"])
    return [one["title"] for one in found["items"]]


@pytest.mark.requirement("RUN-6", "WEB-3")
async def test_a_conversation_is_named_and_found_by_its_title(sites: Sites) -> None:
    async with sites("hello") as gateway:
        first, second = await gateway.session(title="Bread"), await gateway.session()
        await gateway.state(await gateway.says(second, "what is 100% rye?"), "completed")
        path = f"/v1/sessions/{second}"
        status, named = await gateway.ask("PATCH", path, {"title": "  Rye \n bread "})
        assert (status, named["title"]) == (200, "Rye bread")
        assert sorted(await titles(gateway, "q=BREAD")) == ["Bread", "Rye bread"]
        assert await titles(gateway, "q=rye") == ["Rye bread"]
        # What looks like a pattern is only text.
        assert await titles(gateway, "q=%25") == []
        assert await titles(gateway, "q=_ye") == []
        for wrong in ({"title": ""}, {"title": " "}, {"title": "x" * 201}, {"archived": "x"}):
            assert (await gateway.ask("PATCH", path, wrong))[0] == 422
        assert (await gateway.ask("PATCH", path, {"title": "x"}, token=READER))[0] == 403
        assert (await gateway.ask("PATCH", "/v1/sessions/ses_none", {"title": "x"}))[0] == 404
        assert (await gateway.ask("GET", f"/v1/sessions/{first}"))[1]["title"] == "Bread"


@pytest.mark.requirement("RUN-6", "WEB-3")
async def test_what_was_put_aside_comes_back_by_hand_or_with_a_message(sites: Sites) -> None:
    async with sites("hello", "again") as gateway:
        session = await gateway.session(title="Old")
        await gateway.session(title="New")
        await gateway.state(await gateway.says(session, "one"), "completed")
        path = f"/v1/sessions/{session}"
        assert (await gateway.ask("PATCH", path, {"archived": True}))[1]["archived"] is True
        assert await titles(gateway, "archived=false") == ["New"]
        assert await titles(gateway, "archived=true") == ["Old"]
        assert sorted(await titles(gateway)) == ["New", "Old"]
        # A new name is nothing that happens in it.
        assert (await gateway.ask("PATCH", path, {"title": "Older"}))[1]["archived"] is True
        assert (await gateway.ask("PATCH", path, {"archived": False}))[1]["archived"] is False
        await gateway.ask("PATCH", path, {"archived": True})
        await gateway.state(await gateway.says(session, "two"), "completed")
        assert await titles(gateway, "archived=true") == []


@pytest.mark.requirement("WEB-3")
async def test_the_model_of_a_conversation_is_one_of_those_that_are_offered(sites: Sites) -> None:
    asked: list[str] = []

    def named(name: str) -> ScriptedModel:
        def says(_request: ModelRequest) -> str:
            asked.append(name)
            return "Hello."

        return ScriptedModel(says, name=name)

    def plays(plan: Plan) -> None:
        plan.models = ScriptedModels(named(DEFAULT_NAME), named("scripted:other"))

    async with sites(change=plays) as gateway:
        _, listed = await gateway.ask("GET", "/v1/models")
        assert [(one["name"], one["default"]) for one in listed["items"]] == [
            (DEFAULT_NAME, True),
            ("scripted:other", False),
        ]
        session = await gateway.session()
        path = f"/v1/sessions/{session}/route-policy"
        assert (await gateway.ask("PUT", path, {"model": "nobody:x"}))[0] == 422
        chosen = await gateway.ask("PUT", path, {"model": "scripted:other"})
        assert (chosen[0], chosen[1]["model"]) == (200, "scripted:other")
        await gateway.state(await gateway.says(session, "one"), "completed")
        assert (await gateway.ask("DELETE", path))[1]["model"] is None
        await gateway.state(await gateway.says(session, "two"), "completed")
        assert asked == ["scripted:other", DEFAULT_NAME]


@pytest.mark.requirement("WEB-3")
async def test_an_export_holds_the_whole_conversation(sites: Sites) -> None:
    async with sites(ASKS, "It is ```` done.", "more") as gateway:
        session = await gateway.session(title="Look")
        run = await gateway.says(session, "What is there?")
        waiting = await gateway.state(run, "waiting_for_approval")
        allow = {"request_id": waiting["waiting_for"][0], "behavior": "allow"}
        await gateway.ask("POST", f"/v1/runs/{run}/approvals", {"resolutions": [allow]})
        await gateway.state(run, "completed")
        await gateway.says(session, "/new")
        await gateway.state(await gateway.says(session, "and then?"), "completed")
        path = f"/v1/sessions/{session}/export"
        _, found = await gateway.ask("GET", path)
        text = str(found["text"])
        order = [
            "# Look",
            "What is there?",
            "exec",
            "Allowed by",
            "It is ````",
            "and then?",
            "more",
        ]
        places = [text.index(part) for part in order]
        assert places == sorted(places)
        _, whole = await gateway.ask("GET", f"{path}?format=json")
        assert json.loads(str(whole["text"])) if "text" in whole else whole["session"]["id"]
        assert (await gateway.ask("GET", f"{path}?format=pdf"))[0] == 422
        async with gateway.client.get(
            f"{gateway.url}{path}", headers={"Authorization": f"Bearer {ADMIN}"}
        ) as response:
            assert response.headers["Content-Disposition"].startswith("attachment;")


@pytest.mark.requirement("RUN-6")
async def test_a_deleted_conversation_leaves_ids_and_nothing_that_was_said(sites: Sites) -> None:
    agents = [{"task": "SECRET look.", "id": "one"}, {"task": "SECRET listen.", "id": "two"}]

    def says(request: ModelRequest) -> Said | str:
        if name_of(request):
            return "SECRET found."
        if "completed" in told(request):
            return "SECRET done."
        return spawn(agents=agents)

    def plays(plan: Plan) -> None:
        plan.models = ScriptedModels(ScriptedModel(says))

    async with sites(change=plays) as gateway:
        kept, session = await gateway.session(title="Kept"), await gateway.session(key="place")
        file = {
            "type": "inline_asset",
            "name": "notes.txt",
            "media_type": "text/plain",
            "data": base64.b64encode(b"SECRET notes").decode(),
        }
        body = {"input_items": [{"type": "text", "text": "SECRET task"}, file]}
        async with gateway.feed(f"session_id={session}") as feed:
            _, done = await gateway.ask("POST", f"/v1/sessions/{session}/runs", body)
            await feed.until("delivery.sent")
            await gateway.state(str(done["run_id"]), "completed")
            await until_sent(gateway)
        path = f"/v1/sessions/{session}"
        narrowed = {"paths": ["SECRET"], "network": ["secret.example"]}
        assert (await gateway.ask("PUT", f"{path}/capability-scope", narrowed))[0] == 200
        assert list((gateway.workspace / "uploads").rglob("notes.txt"))
        (child, _) = [
            one["session_id"]
            for one in (await gateway.ask("GET", f"/v1/agents/summaries?session_id={session}"))[1][
                "items"
            ]
        ]
        assert (await gateway.ask("DELETE", f"/v1/sessions/{child}"))[0] == 409
        assert (await gateway.ask("DELETE", path, token=READER))[0] == 403
        assert (await gateway.ask("DELETE", path))[0] == 204
        for gone in (path, f"/v1/sessions/{child}", f"{path}/messages", f"{path}/export"):
            assert (await gateway.ask("GET", gone))[0] == 404
        assert (await gateway.ask("DELETE", path))[0] == 404
        assert await titles(gateway) == ["Kept"]
        assert not list((gateway.workspace / "uploads").rglob("notes.txt"))
        dumped = await gateway.database.read(every_row)
        assert [row for row in dumped if "SECRET" in row.upper()] == []
        assert any(str(done["run_id"]) in row for row in dumped)
        assert any("session.deleted" in row for row in dumped)
        # The place is free: what is said there begins anew.
        again = await gateway.session(key="place")
        assert again not in (session, kept)


@pytest.mark.requirement("RUN-6")
async def test_a_conversation_at_work_is_not_deleted(sites: Sites) -> None:
    async with sites(ASKS, "done") as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "go")
        await gateway.state(run, "waiting_for_approval")
        status, problem = await gateway.ask("DELETE", f"/v1/sessions/{session}")
        assert (status, problem["state"]) == (409, "waiting_for_approval")
        assert (await gateway.ask("GET", f"/v1/sessions/{session}"))[1]["status"] == "open"
        assert len(await gateway.messages(session)) == 3


def every_row(conn: Connection) -> list[str]:
    return [
        str(tuple(row)) for table in metadata.sorted_tables for row in conn.execute(table.select())
    ]


async def until_sent(gateway: Site) -> None:
    """Return once nothing is on its way."""
    async with gateway.feed() as feed:
        while True:
            _, status = await gateway.ask("GET", "/v1/status")
            if not sum(status["outbox"].values()):
                return
            await feed.next()
