"""Subagents by the API: what is listed of them, read, continued and exported (SUB-24)."""

import json

import pytest
from pydantic import SecretStr
from sqlalchemy import update

from gateway.cli.client import GatewayClient
from gateway.cli.sessions import pages_of
from runtime.domain.worktrees import folder_of
from runtime.features.subagents.rows import agents
from runtime.features.subagents.tables import agents as table
from runtime.ports.model import ModelRequest
from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.scenario.harness import ADMIN, Plan, Site
from tests.scenario.http.conftest import Sites
from tests.scenario.subagents.children import name_of, told

SPAWN = {"task": "Dive.", "id": "one", "retention": "close_on_settle"}
MESSAGE = {"action": "message", "agent": "one", "text": "And gold?"}
WAIT = {"action": "wait", "agent": "one"}


def script(request: ModelRequest) -> Said | str:
    text = told(request)
    if name_of(request):
        if "And gold?" in text:
            return "No gold."
        dived = "I dived." in text
        return "A pearl." if dived else Said("I dived.", calls=(("list_dir", "{}"),))
    if request.step > 1:
        return "Done."
    if "gold" in text:
        calls = (("subagents", json.dumps(MESSAGE)), ("subagents", json.dumps(WAIT)))
        return Said(calls=calls)
    return Said(calls=(("sessions_spawn", json.dumps(SPAWN)),))


def sent(request: ModelRequest) -> Said | str:
    """A child in the background, and a run that takes its result."""
    text = told(request)
    if name_of(request):
        return "A pearl."
    if "completed after" in text:
        return "A pearl, it says."
    spawn = {"task": "Dive.", "id": "one", "mode": "background"}
    return "Sent." if request.step > 1 else Said(calls=(("sessions_spawn", json.dumps(spawn)),))


def divers(plan: Plan) -> None:
    plan.models = ScriptedModels(ScriptedModel(script))


async def listed(gateway: Site) -> list[str]:
    _, page = await gateway.ask("GET", "/v1/sessions?page=true")
    found = [str(one["id"]) for one in page["items"]]
    assert page["pagination"]["total_count"] == len(found)
    return found


@pytest.mark.requirement("SUB-24")
async def test_a_closed_child_is_not_listed_and_is_read_continued_and_exported(
    sites: Sites,
) -> None:
    async with sites(change=divers) as gateway:
        session = await gateway.session()
        await gateway.state(await gateway.says(session, "dive"), "completed")
        (child,) = await gateway.database.read(lambda conn: agents.of_tree(conn, session))
        assert await listed(gateway) == [session]
        status, view = await gateway.ask("GET", f"/v1/sessions/{child.session_id}")
        assert (status, view["key"]) == (200, f"subagent:{child.session_id}")
        first = await gateway.messages(child.session_id)
        assert [one["text"] for one in first if one["kind"] == "assistant"] == [
            "I dived.",
            "A pearl.",
        ]
        await gateway.state(await gateway.says(session, "gold"), "completed")
        assert await listed(gateway) == [session]
        async with GatewayClient(gateway.url, SecretStr(ADMIN)) as client:
            pages = await pages_of(client, view["key"], {"limit": "2"})
    exported = [item for page in reversed(pages) for item in page]
    texts = [item["text"] for item in exported if item["kind"] == "assistant"]
    assert texts == ["I dived.", "A pearl.", "No gold."]
    assert [item["key"] for item in exported[: len(first)]] == [item["key"] for item in first]
    assert len(pages) > 2


@pytest.mark.requirement("RUN-2", "SUB-8")
async def test_a_handoff_is_a_run_of_its_kind(sites: Sites) -> None:
    def sends(plan: Plan) -> None:
        plan.models = ScriptedModels(ScriptedModel(sent))

    async with sites(change=sends) as gateway:
        session = await gateway.session()
        first = await gateway.says(session, "dive")
        async with gateway.feed(f"session_id={session}&last_event_id=0") as feed:
            runs: list[dict[str, object]] = []
            while [run["state"] for run in runs] != ["completed", "completed"]:
                await feed.next()
                _, page = await gateway.ask("GET", f"/v1/runs?session_id={session}&page=true")
                runs = page["items"]
        assert [run["kind"] for run in runs] == ["handoff", "input"]
        assert runs[1]["id"] == first
        status, run = await gateway.ask("GET", f"/v1/runs/{runs[0]['id']}")
        assert (status, run["kind"]) == (200, "handoff")
        assert run["summary"] == runs[0]["summary"]
        assert str(run["summary"]).startswith("The subagent one (explore) completed after")
        assert "untrusted" not in str(run["summary"])
        assert runs[1]["summary"] == "dive"
        _, every = await gateway.ask("GET", "/v1/runs?limit=10")
        of_child = [one for one in every["items"] if one["kind"] == "mailbox_delivery"]
        assert [one["summary"] for one in of_child] == ["Dive."]
        for one in every["items"]:
            _, page = await gateway.ask("GET", f"/v1/runs/{one['id']}/events?limit=50")
            queued = [each["data"] for each in page["items"] if each["kind"] == "run.queued"]
            assert {each["summary"] for each in queued} == {one["summary"]}
        texts = [one["text"] for one in await gateway.messages(session)]
        assert texts[-1] == "A pearl, it says."


def asking(request: ModelRequest) -> Said | str:
    """A child in the background that needs a permission and then asks a question."""
    text = told(request)
    if name_of(request):
        calls = {
            1: (("exec", '{"command": "mkdir new"}'),),
            2: (("ask_user", '{"question": "Which branch?"}'),),
        }
        found = calls.get(request.step)
        return Said(calls=found) if found else "A pearl."
    if "completed after" in text:
        return "A pearl, it says."
    spawn = {"task": "Dive.", "id": "one", "type": "general", "mode": "background"}
    return "Sent." if request.step > 1 else Said(calls=(("sessions_spawn", json.dumps(spawn)),))


async def cards(gateway: Site, session: str) -> list[tuple[str, str, str]]:
    found = [one["card"] for one in await gateway.messages(session) if one["card"]]
    return [(one["kind"], one["state"], one["request_id"]) for one in found]


@pytest.mark.requirement("APR-7", "WEB-1")
async def test_a_page_on_the_root_hears_of_a_childs_cards_and_answers_them(sites: Sites) -> None:
    def asks(plan: Plan) -> None:
        plan.models = ScriptedModels(ScriptedModel(asking))

    async with sites(change=asks) as gateway:
        session, other = await gateway.session(), await gateway.session()
        async with gateway.feed(f"session_id={session}&kinds=message") as feed:
            await feed.until("ready")
            await gateway.state(await gateway.says(session, "dive"), "completed")
            (child,) = await gateway.database.read(lambda conn: agents.of_tree(conn, session))
            kinds = []
            for place in range(2):
                while len(found := await cards(gateway, session)) <= place:
                    await feed.next()
                kind, state, request = found[place]
                assert state == "open"
                kinds.append(kind)
                (run,) = await child_runs(gateway, child.session_id)
                path, said = (
                    ("approvals", {"resolutions": [{"request_id": request, "behavior": "allow"}]}),
                    ("questions", {"answers": [{"request_id": request, "text": "main"}]}),
                )[place]
                status, _ = await gateway.ask("POST", f"/v1/runs/{run}/{path}", said)
                assert status == 200
            assert kinds == ["approval", "question"]
            while (await gateway.messages(session))[-1]["text"] != "A pearl, it says.":
                await feed.next()
        of_child = {one.data["session_id"] for one in feed.seen if one.kind == "message"}
        assert child.session_id in of_child
        assert await cards(gateway, session) == await cards(gateway, child.session_id)
        assert await cards(gateway, other) == []
        reasons = [one["card"] for one in await gateway.messages(session) if one["card"]]
        assert "root > one" in reasons[0]["reason"]


@pytest.mark.requirement("SUB-24", "WEB-1")
async def test_a_list_for_people_leaves_out_subagents_whose_tree_shows_them(sites: Sites) -> None:
    def sends(plan: Plan) -> None:
        plan.models = ScriptedModels(ScriptedModel(sent))

    async with sites(change=sends) as gateway:
        session = await gateway.session()
        await gateway.state(await gateway.says(session, "dive"), "completed")
        (child,) = await gateway.database.read(lambda conn: agents.of_tree(conn, session))
        path = "/v1/sessions?page=true"
        _, everybody = await gateway.ask("GET", path)
        assert {one["id"] for one in everybody["items"]} == {session, child.session_id}
        _, people = await gateway.ask("GET", f"{path}&subagents=false")
        assert [one["id"] for one in people["items"]] == [session]
        assert people["pagination"]["total_count"] == 1
        status, problem = await gateway.ask("GET", f"{path}&subagents=no")
        assert (status, problem["field"]) == (422, "subagents")
        _, found = await gateway.ask("GET", f"/v1/agents/summaries?root={session}")
        assert [one["retention"] for one in found["items"]] == ["retain"]


@pytest.mark.requirement("POL-5", "SUB-17")
async def test_what_is_explained_of_a_child_is_what_it_may(sites: Sites) -> None:
    async with sites(change=divers) as gateway:
        session = await gateway.session()
        await gateway.state(await gateway.says(session, "dive"), "completed")
        (child,) = await gateway.database.read(lambda conn: agents.of_tree(conn, session))

        async def explained(of: str, tool: str, path: str) -> tuple[int, str]:
            asked = {"tool": tool, "arguments": {"path": path, "content": "x"}}
            if tool != "write_file":
                del asked["arguments"]["content"]
            where = f"/v1/sessions/{of}/policy/explain"
            status, said = await gateway.ask("POST", where, asked)
            return status, str(said.get("verdict") or said.get("detail"))

        assert (await explained(session, "write_file", "a.md"))[1] == "allow"
        assert await explained(child.session_id, "write_file", "a.md") == (200, "deny")
        assert await explained(child.session_id, "read_file", "AGENTS.md") == (200, "allow")
        tools = (await gateway.ask("GET", f"/v1/sessions/{child.session_id}/context"))[1]["tools"]
        assert "read_file" in tools
        assert "write_file" not in tools

        where = table.c.session_id == child.session_id
        work = update(table).where(where).values(worktree=child.session_id)
        await gateway.database.write(lambda conn: conn.execute(work), name="test")
        own = gateway.workspace / folder_of(child.session_id)
        own.mkdir(parents=True)
        (own / "AGENTS.md").write_text("mine")
        outside = str(gateway.workspace / "AGENTS.md")
        assert (await explained(session, "read_file", outside))[1] == "allow"
        assert (await explained(child.session_id, "read_file", outside))[1] != "allow"
        assert (await explained(child.session_id, "read_file", "AGENTS.md"))[1] == "allow"


async def child_runs(gateway: Site, session: str) -> list[str]:
    _, page = await gateway.ask("GET", f"/v1/runs?session_id={session}&page=true")
    return [one["id"] for one in page["items"]]
