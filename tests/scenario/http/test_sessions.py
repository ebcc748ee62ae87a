"""Sessions by the API: made, listed, written to, changed, ended (RUN-1)."""

import base64
import hashlib

import pytest
from pydantic import SecretStr

from gateway.cli.answers import Refused
from gateway.cli.client import GatewayClient
from gateway.cli.sessions import session_id_of
from runtime.domain.decisions import PermissionMode
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Sender
from tests.fakes.model import Gate, Said
from tests.scenario.harness import ADMIN, Plan
from tests.scenario.http.conftest import ASKS, Sites


@pytest.mark.requirement("RUN-1")
async def test_a_session_is_made_read_and_listed(sites: Sites) -> None:
    async with sites() as gateway:
        status, made = await gateway.ask(
            "POST", "/v1/sessions", {"channel": "api", "key": "build", "mode": "plan"}
        )
        assert (status, made["mode"], made["state"], made["status"]) == (
            201,
            "plan",
            "idle",
            "open",
        )
        assert made["key"] == "api:build"
        assert await gateway.ask("GET", f"/v1/sessions/{made['id']}") == (200, made)
        again, same = await gateway.ask(
            "POST", "/v1/sessions", {"channel": "api", "key": "build", "mode": "ask"}
        )
        assert (again, same["id"], same["mode"]) == (200, made["id"], "plan")
        _, page = await gateway.ask("GET", "/v1/sessions?page=true")
        assert page == {"items": [made], "pagination": {"total_count": 1}}


@pytest.mark.requirement("RUN-1", "OPS-2")
async def test_a_session_is_named_by_its_key_as_well_as_by_its_id(sites: Sites) -> None:
    async with sites() as gateway:
        made = {key: await gateway.session(key=key) for key in ("build", "a/b 100%:é")}
        keys = {
            one: (await gateway.ask("GET", f"/v1/sessions/{one}"))[1]["key"]
            for one in made.values()
        }
        assert keys[made["build"]] == "web:build"
        async with GatewayClient(gateway.url, SecretStr(ADMIN)) as client:
            for session, key in keys.items():
                found = await client.items("/v1/sessions", {"key": key})
                assert [one["id"] for one in found] == [session]
                assert await session_id_of(client, key) == session
                assert await session_id_of(client, session) == session
            for unknown in ("web:buil", "web:BUILD", "build", "../runs", ""):
                with pytest.raises(
                    Refused, match="`gatehouse sessions list` shows both"
                ) as refused:
                    await session_id_of(client, unknown)
                assert repr(unknown) in str(refused.value)


@pytest.mark.requirement("RUN-1", "API-3")
async def test_lists_are_paged_by_an_opaque_cursor(sites: Sites) -> None:
    async with sites() as gateway:
        made = [await gateway.session(key=f"k{number}") for number in range(5)]
        seen, cursor = [], ""
        while cursor is not None:
            _, page = await gateway.ask("GET", f"/v1/sessions?limit=2&cursor={cursor}")
            assert page["pagination"]["total_count"] == 5
            seen.append([one["id"] for one in page["items"]])
            cursor = page["pagination"].get("next_cursor")
        assert [len(one) for one in seen] == [2, 2, 1]
        assert sorted(one for page in seen for one in page) == sorted(made)


@pytest.mark.requirement("RUN-1")
async def test_what_is_said_is_answered_and_names_the_session(sites: Sites) -> None:
    async with sites("It is **noon**.") as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "What time is it?")
        await gateway.state(run, "completed")
        asked, said = await gateway.messages(session, html="1")
        assert (asked["kind"], asked["text"], asked["name"]) == (
            "user",
            "What time is it?",
            "Owner",
        )
        assert (said["kind"], said["html"]) == ("assistant", "<p>It is <strong>noon</strong>.</p>")
        _, view = await gateway.ask("GET", f"/v1/sessions/{session}")
        assert (view["title"], view["state"]) == ("What time is it?", "idle")
        assert view["last_activity_at_ms"] >= said["at_ms"]


@pytest.mark.requirement("RUN-1")
async def test_items_keep_their_order_and_files_go_to_the_workspace(sites: Sites) -> None:
    content = b"id,name\n1,Mira\n"
    items = [
        {"type": "text", "text": "Compare"},
        {
            "type": "inline_asset",
            "name": "../../people.csv",
            "media_type": "text/csv",
            "data": base64.b64encode(content).decode(),
        },
        {"type": "text", "text": "with last week's."},
    ]
    async with sites("Done.", "Done.") as gateway:
        session = await gateway.session()
        for _ in range(2):
            status, done = await gateway.ask(
                "POST", f"/v1/sessions/{session}/runs", {"input_items": items}
            )
            assert status == 202
            await gateway.state(str(done["run_id"]), "completed")
        asked = (await gateway.messages(session))[0]
        assert asked["text"] == "Compare\n\n[file: people.csv]\n\nwith last week's."
        (kept,) = asked["attachments"]
        digest = hashlib.sha256(content).hexdigest()
        assert kept["reference"] == f"sha256:{digest}"
        assert kept["path"] == f"uploads/{session}/{digest[:16]}/people.csv"
        assert (gateway.workspace / kept["path"]).read_bytes() == content
        assert len(list((gateway.workspace / "uploads").rglob("*.csv"))) == 1


@pytest.mark.requirement("RUN-1")
@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({}, 422, "body"),
        ({"content": "x", "input_items": []}, 422, "input_items"),
        ({"content": "   "}, 422, "content"),
        ({"content": 5}, 422, "content"),
        ({"content": "x", "mode": "edit"}, 422, "mode"),
        ({"input_items": [{"type": "video"}]}, 422, "input_items.0.type"),
        ({"input_items": [{"type": "inline_asset", "data": "%%"}]}, 422, "input_items.0.data"),
        (
            {"input_items": [{"type": "asset_reference", "asset_id": "a"}]},
            422,
            "input_items.0.asset_id",
        ),
    ],
)
async def test_a_bad_submission_names_the_field_and_makes_no_run(
    sites: Sites, body: object, status: int, named: str | None
) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        got, problem = await gateway.ask("POST", f"/v1/sessions/{session}/runs", body)
        assert got == status
        assert problem.get("field") == named
        assert (await gateway.ask("GET", "/v1/runs"))[1]["items"] == []


@pytest.mark.requirement("RUN-1")
async def test_a_file_never_follows_a_link_out_of_the_workspace(sites: Sites) -> None:
    data = base64.b64encode(b"x").decode()
    async with sites() as gateway:
        outside = gateway.workspace.parent / "outside"
        outside.mkdir()
        (gateway.workspace / "uploads").symlink_to(outside)
        session = await gateway.session()
        item = {"type": "inline_asset", "name": "a.txt", "data": data}
        status, problem = await gateway.ask(
            "POST", f"/v1/sessions/{session}/runs", {"input_items": [item]}
        )
        assert (status, problem["field"]) == (422, "input_items.0.data")
        assert list(outside.rglob("*")) == []


@pytest.mark.requirement("RUN-1")
async def test_an_interrupt_stops_the_work_and_says_what_still_waits(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said("slow answer", before=gate), "the next") as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "start")
        await gate.reached.wait()
        later = await gateway.says(session, "and this")
        status, stopped = await gateway.ask("POST", f"/v1/sessions/{session}/interrupt")
        assert (status, stopped) == (
            200,
            {"stopping": [run], "ended": [], "still_queued": 1, "children": 0},
        )
        assert (await gateway.state(run, "cancelled"))["stop_reason"] == "stopped by the owner"
        await gateway.state(later, "completed")


@pytest.mark.requirement("RUN-1", "API-3")
async def test_only_an_idle_session_ends_and_an_ended_one_takes_nothing(sites: Sites) -> None:
    async with sites(ASKS) as gateway:
        session = await gateway.session()
        await gateway.state(await gateway.says(session, "go"), "waiting_for_approval")
        busy, problem = await gateway.ask("POST", f"/v1/sessions/{session}/end")
        assert (busy, problem["state"]) == (409, "waiting_for_approval")
        await gateway.ask("POST", f"/v1/sessions/{session}/interrupt")
        for _ in range(2):
            status, ended = await gateway.ask("POST", f"/v1/sessions/{session}/end")
            assert (status, ended["status"]) == (200, "ended")
        late, problem = await gateway.ask(
            "POST", f"/v1/sessions/{session}/runs", {"content": "hello?"}
        )
        assert (late, problem["state"]) == (409, "ended")


@pytest.mark.requirement("RUN-1")
async def test_modes_are_set_and_the_permission_mode_never_widens(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        path = f"/v1/sessions/{session}"
        _, view = await gateway.ask("PUT", f"{path}/mode", {"mode": "ask"})
        assert view["mode"] == "ask"
        _, view = await gateway.ask("PUT", f"{path}/queue-mode", {"queue_mode": "collect"})
        assert view["queue_mode"] == "collect"
        narrow = {"permission_mode": "plan"}
        _, view = await gateway.ask("PUT", f"{path}/permission-mode", narrow)
        assert view["permission_mode"] == "plan"
        wide = {"permission_mode": "bypassPermissions"}
        status, problem = await gateway.ask("PUT", f"{path}/permission-mode", wide)
        assert (status, problem["code"]) == (403, "forbidden")
        assert "permission_mode" in problem["detail"]
        assert (await gateway.ask("GET", path))[1]["permission_mode"] == "plan"
        _, view = await gateway.ask("DELETE", f"{path}/permission-mode")
        assert view["permission_mode"] is None
        refused, _ = await gateway.ask("POST", "/v1/sessions", {"channel": "api", **wide})
        assert refused == 403
        unknown, problem = await gateway.ask("PUT", f"{path}/queue-mode", {"queue_mode": "later"})
        assert (unknown, problem["field"]) == (422, "queue_mode")


@pytest.mark.requirement("RUN-1", "POL-2")
@pytest.mark.parametrize("way", ["made with it", "set later"])
async def test_a_permission_mode_of_a_session_bounds_its_runs(sites: Sites, way: str) -> None:
    writes = Said(calls=(("write_file", '{"path": "a.txt", "content": "x"}'),))
    async with sites(writes, "It was refused.") as gateway:
        plan = {"permission_mode": "plan"}
        if way == "made with it":
            asked = {"channel": "api", **plan}
            _, view = await gateway.ask("POST", "/v1/sessions", asked)
        else:
            session = await gateway.session()
            path = f"/v1/sessions/{session}/permission-mode"
            _, view = await gateway.ask("PUT", path, plan)
        assert view["permission_mode"] == "plan"
        session = str(view["id"])
        await gateway.state(await gateway.says(session, "write"), "completed")
        calls = [call for one in await gateway.messages(session) for call in one["calls"]]
        assert [call["status"] for call in calls] == ["denied"]
        assert not list(gateway.workspace.rglob("a.txt"))


async def test_the_operator_may_allow_more(sites: Sites) -> None:
    def wide(plan: Plan) -> None:
        plan.control["permission_mode"] = PermissionMode.BYPASS

    async with sites(change=wide) as gateway:
        session = await gateway.session()
        status, view = await gateway.ask(
            "PUT",
            f"/v1/sessions/{session}/permission-mode",
            {"permission_mode": "acceptEdits"},
        )
        assert (status, view["permission_mode"]) == (200, "acceptEdits")


async def test_a_platforms_session_is_read_here_and_written_to_there(sites: Sites) -> None:
    async with sites("hello") as gateway:
        message = InboundMessage(
            channel="terminal",
            account="local",
            chat_id="desk",
            message_id="m1",
            sender=Sender(id="owner", name="Owner"),
            text="hi",
            received_at_ms=1,
        )
        accepted = await gateway.engine.intake.accept(message)
        assert accepted.run_id is not None
        await gateway.state(accepted.run_id, "completed")
        _, page = await gateway.ask("GET", "/v1/sessions")
        assert [one["address"]["channel"] for one in page["items"]] == ["terminal"]
