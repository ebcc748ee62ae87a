"""`/v1/schedules` by the API: made, shown, listed, changed, refused (SCH-1, API-3)."""

import asyncio

import pytest

from tests.fakes.model import Said
from tests.scenario.engine import writes
from tests.scenario.harness import READER, Site
from tests.scenario.http.conftest import Sites

pytestmark = pytest.mark.requirement("SCH-1")
HOURLY = {"type": "interval", "every_seconds": 3600}
PATH = "/v1/schedules"
WATCHED = {
    "target_session_id": "ses_other",
    "source": {"watch_path": "inbox"},
    "request": {"content": "what is new?"},
}


def asked(session: str, **more: object) -> dict[str, object]:
    return {
        "name": "numbers",
        "target_session_id": session,
        "cadence": HOURLY,
        "request": {"content": "post the numbers"},
        **more,
    }


async def made(gateway: Site, session: str, **more: object) -> dict[str, object]:
    status, answer = await gateway.ask("POST", PATH, asked(session, **more))
    assert status == 201, answer
    return dict(answer["schedule"])


async def test_one_is_made_with_all_its_fields_and_shown(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        told = {
            "target_agent_id": "agt_1",
            "owner_session_id": session,
            "owner_agent_id": "agt_2",
            "created_by_run_id": "run_1",
        }
        given = {
            **told,
            "timezone": "Europe/Berlin",
            "overlap_policy": "queue_one",
            "misfire_policy": {"type": "skip_missed", "grace_ms": 5000},
            "max_executions": 3,
            "cadence": {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"},
        }
        view = await made(gateway, session, **given)
        assert {name: view[name] for name in given} == given
        assert view["request"] == {"content": "post the numbers", "input_items": None}
        assert (view["status"], view["execution_count"], view["recent_executions"]) == (
            "active",
            0,
            [],
        )
        assert view["owner_person_id"] == "per_local_owner"
        assert view["place"]["channel"] == "web"
        assert view["run_session_id"] == session
        assert len(view["next_fires_at_ms"]) == 3
        assert view["next_fires_at_ms"][0] == view["next_fire_at_ms"]
        one = f"{PATH}/{view['schedule_id']}"
        assert await gateway.ask("GET", one) == (200, {"schedule": view})
        assert await gateway.ask("GET", one, token=READER) == (200, {"schedule": view})
        assert (await gateway.ask("POST", f"{one}/pause", token=READER))[0] == 403


async def test_the_same_key_gives_the_same_schedule(sites: Sites) -> None:
    headers = {"Idempotency-Key": "k1"}
    async with sites() as gateway:
        session = await gateway.session()
        first = await gateway.ask("POST", PATH, asked(session), headers=headers)
    async with sites() as gateway:
        again = await gateway.ask("POST", PATH, asked(session), headers=headers)
        assert (first[0], again[0]) == (201, 200)
        assert first[1] == again[1]
        status, problem = await gateway.ask(
            "POST", PATH, asked(session, name="other"), headers=headers
        )
        assert (status, problem["state"]) == (409, "used")
        _, page = await gateway.ask("GET", PATH)
        assert page["pagination"]["total_count"] == 1


async def test_a_list_has_pages_and_is_of_one_session_or_one_status(sites: Sites) -> None:
    async with sites() as gateway:
        session, other = await gateway.session(), await gateway.session()
        ids = [(await made(gateway, session))["schedule_id"] for _ in range(3)]
        ids.append((await made(gateway, other))["schedule_id"])
        await gateway.ask("POST", f"{PATH}/{ids[0]}/pause")
        _, first = await gateway.ask("GET", f"{PATH}?limit=3")
        assert [one["schedule_id"] for one in first["items"]] == ids[:0:-1]
        assert first["pagination"]["total_count"] == 4
        cursor = first["pagination"]["next_cursor"]
        _, rest = await gateway.ask("GET", f"{PATH}?limit=3&cursor={cursor}")
        assert [one["schedule_id"] for one in rest["items"]] == ids[:1]
        assert "next_cursor" not in rest["pagination"]
        _, of_one = await gateway.ask("GET", f"{PATH}?session_id={other}")
        assert [one["schedule_id"] for one in of_one["items"]] == ids[3:]
        _, paused = await gateway.ask("GET", f"{PATH}?status=paused")
        assert [one["schedule_id"] for one in paused["items"]] == ids[:1]
        for query, field in (
            ("limit=201", "limit"),
            ("status=gone", "status"),
            ("cursor=x", "cur"),
        ):
            status, problem = await gateway.ask("GET", f"{PATH}?{query}")
            assert (status, str(problem["field"]).startswith(field)) == (422, True)


@pytest.mark.requirement("API-3", "SCH-7")
@pytest.mark.parametrize(
    ("more", "field", "rule"),
    [
        ({"name": " "}, "name", "pattern"),
        ({"name": "x" * 201}, "name", "at most 200"),
        ({"request": None}, "body", "exactly one of request, deliver_text and"),
        ({"deliver_text": "x"}, "body", "exactly one of request, deliver_text and"),
        ({"observation_materialization": WATCHED}, "body", "exactly one of request, deliver_text"),
        (
            {"request": None, "observation_materialization": {**WATCHED, "source": {}}},
            "observation_materialization.source",
            "exactly one of session_id and watch_path",
        ),
        (
            {
                "request": None,
                "observation_materialization": {**WATCHED, "source": {"room_id": "room_1"}},
            },
            "observation_materialization.source.room_id",
            "cannot be observed yet: give session_id or watch_path",
        ),
        (
            {"request": None, "observation_materialization": WATCHED},
            "observation_materialization.target_session_id",
            "must be the target_session_id of the schedule",
        ),
        ({"gate": {}}, "gate.command", "required"),
        ({"gate": {"command": " "}}, "gate.command", "pattern"),
        ({"gate": {"command": "x" * 4_001}}, "gate.command", "at most 4000"),
        ({"gate": {"command": "true", "timeout_s": 0}}, "gate.timeout_s", "greater than 0"),
        ({"gate": {"command": "true", "timeout_s": 601}}, "gate.timeout_s", "less than or equal"),
        ({"heartbeat": "yes please"}, "heartbeat", "boolean"),
        (
            {"request": None, "deliver_text": "tea", "gate": {"command": "true"}},
            "gate",
            "decides about a run",
        ),
        (
            {"heartbeat": True, "overlap_policy": "parallel"},
            "overlap_policy",
            "must be skip or queue_one",
        ),
        ({"request": {}}, "request", "either content or input_items"),
        ({"request": {"content": ""}}, "request.content", "at least 1"),
        ({"request": {"input_items": []}}, "request.input_items", "at least 1"),
        ({"cadence": {"type": "daily"}}, "cadence", "once"),
        ({"cadence": {"type": "interval", "every_seconds": 4}}, "cadence", "greater than or equal"),
        (
            {"cadence": {"type": "once", "fire_at_ms": 1_900_000_000}},
            "cadence.fire_at_ms",
            "in the future, in milliseconds",
        ),
        (
            {"cadence": {"type": "cron", "expression": "0 9 30 2 *"}},
            "cadence.expression",
            "day-of-month that its months have",
        ),
        (
            {"cadence": {"type": "cron", "expression": "0 9 31 2,4 *"}},
            "cadence.expression",
            "day-of-month that its months have",
        ),
        ({"cadence": {"type": "cron", "expression": "* *"}}, "cadence.expression", "5 fields"),
        ({"timezone": "Mars/Base"}, "timezone", "must be a time zone such as Europe/Berlin"),
        ({"overlap_policy": "maybe"}, "overlap_policy", "skip"),
        (
            {"misfire_policy": {"type": "skip_missed", "grace_ms": -1}},
            "misfire_policy",
            "equal to 0",
        ),
        ({"max_executions": 0}, "max_executions", "greater than 0"),
        ({"owner_person_id": "per_else"}, "owner_person_id", "must be per_local_owner on web"),
        (
            {"place": {"channel": "slack", "account": "A", "chat": "C"}},
            "owner_person_id",
            "must be given where the place is on slack",
        ),
        (
            {"place": {"channel": "web", "account": "local", "chat": "C", "chat_kind": "group"}},
            "place.chat_kind",
            "must be direct, which this chat is",
        ),
        (
            {
                "place": {"channel": "slack", "account": "A", "chat": "C"},
                "owner_person_id": "per_else",
            },
            "owner_person_id",
            "must be a person with an account on slack",
        ),
        ({"when": "soon"}, "when", "is not a key"),
        (
            {"request": None, "deliver_text": "x", "overlap_policy": "queue_one"},
            "overlap_policy",
            "no run to wait for",
        ),
    ],
)
async def test_what_cannot_be_is_refused_with_the_field_and_the_rule(
    sites: Sites, more: dict[str, object], field: str, rule: str
) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        body = {key: value for key, value in asked(session, **more).items() if value is not None}
        status, problem = await gateway.ask("POST", PATH, body)
        assert status == 422, problem
        assert str(problem["field"]).startswith(field), problem
        assert rule in str(problem["rule"]), problem
        _, page = await gateway.ask("GET", PATH)
        assert page["pagination"]["total_count"] == 0


@pytest.mark.requirement("API-3")
async def test_the_session_of_a_subagent_has_no_schedules(sites: Sites) -> None:
    spawn = Said(calls=(("sessions_spawn", '{"task": "Look.", "id": "one"}'),))
    async with sites(spawn, "Looked.", "Done.") as gateway:
        root = await gateway.session()
        await gateway.state(await gateway.says(root, "look"), "completed")
        _, found = await gateway.ask("GET", f"/v1/agents/summaries?root={root}")
        (child,) = found["items"]
        status, problem = await gateway.ask("POST", PATH, asked(child["session_id"]))
        assert (status, problem["field"]) == (422, "target_session_id")


async def test_an_unknown_id_is_404_and_a_session_that_ended_409(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        for method, path in (
            ("GET", ""),
            ("PATCH", ""),
            *(("POST", f"/{move}") for move in ("cancel", "pause", "resume", "trigger")),
        ):
            body = {"name": "x"} if method == "PATCH" else None
            status, problem = await gateway.ask(method, f"{PATH}/sch_none{path}", body)
            assert (status, problem["code"]) == (404, "not_found")
        assert (await gateway.ask("POST", PATH, asked("ses_none")))[0] == 404
        await gateway.ask("POST", f"/v1/sessions/{session}/end")
        status, problem = await gateway.ask("POST", PATH, asked(session))
        assert (status, problem["state"]) == (409, "ended")


@pytest.mark.requirement("SCH-6", "API-3")
async def test_a_move_that_does_not_fit_is_409_with_the_state(sites: Sites) -> None:
    async with sites() as gateway:
        view = await made(gateway, await gateway.session())
        one = f"{PATH}/{view['schedule_id']}"
        for _ in range(2):
            status, answer = await gateway.ask("POST", f"{one}/pause")
            paused = answer["schedule"]
            assert (status, paused["status"], paused["next_fire_at_ms"]) == (200, "paused", None)
            assert 0 < paused["remaining_ms"] <= 3_600_000
        status, problem = await gateway.ask("POST", f"{one}/trigger")
        assert (status, problem["state"]) == (409, "paused")
        for _ in range(2):
            status, answer = await gateway.ask("POST", f"{one}/resume")
            assert (status, answer["schedule"]["status"]) == (200, "active")
        for _ in range(2):
            status, answer = await gateway.ask("POST", f"{one}/cancel")
            assert (status, answer["schedule"]["status"]) == (200, "cancelled")
        for method, path in (
            ("PATCH", ""),
            *(("POST", f"/{move}") for move in ("pause", "resume", "trigger")),
        ):
            body = {"name": "x"} if method == "PATCH" else None
            status, problem = await gateway.ask(method, f"{one}{path}", body)
            assert (status, problem["state"]) == (409, "cancelled")


async def test_a_change_leaves_what_it_does_not_name(sites: Sites) -> None:
    async with sites() as gateway:
        view = await made(gateway, await gateway.session())
        one = f"{PATH}/{view['schedule_id']}"
        changes = {
            "name": "sums",
            "timezone": "Asia/Tokyo",
            "request": {"content": "post the sums"},
            "overlap_policy": "parallel",
            "misfire_policy": {"type": "skip_missed", "grace_ms": 1},
            "max_executions": 7,
        }
        for name, value in changes.items():
            status, answer = await gateway.ask("PATCH", one, {name: value})
            assert status == 200, answer
            shown = answer["schedule"][name]
            assert shown == value or shown == {**value, "input_items": None}
            assert answer["schedule"]["next_fire_at_ms"] == view["next_fire_at_ms"]
        _, answer = await gateway.ask("PATCH", one, {"misfire_policy": {"type": "skip_missed"}})
        assert answer["schedule"]["misfire_policy"]["grace_ms"] == 60_000
        status, answer = await gateway.ask(
            "PATCH", one, {"cadence": {"type": "interval", "every_seconds": 60}}
        )
        assert answer["schedule"]["next_fire_at_ms"] < view["next_fire_at_ms"]
        for body, field in (
            ({}, "body"),
            ({"deliver_text": "x"}, "deliver_text"),
            ({"cadence": {"type": "once", "fire_at_ms": 1}}, "cadence.fire_at_ms"),
            ({"status": "paused"}, "status"),
        ):
            status, problem = await gateway.ask("PATCH", one, body)
            assert (status, problem["field"]) == (422, field)


@pytest.mark.requirement("API-4")
async def test_its_events_are_told_by_kind(sites: Sites) -> None:
    async with sites("42 sold") as gateway:
        session = await gateway.session()
        view = await made(gateway, session)
        await gateway.ask("POST", f"{PATH}/{view['schedule_id']}/trigger")
        async with gateway.feed(f"session_id={session}&kinds=schedule&last_event_id=0") as feed:
            for kind, change in (
                ("schedule.changed", "created"),
                ("schedule.changed", "triggered"),
                ("schedule.dispatched", None),
                ("schedule.settled", None),
            ):
                told = await feed.next()
                assert told.data["kind"] == kind
                assert told.data["data"]["schedule_id"] == view["schedule_id"]
                assert told.data["data"].get("change") == change
        _, page = await gateway.ask("GET", f"/v1/runs?session_id={session}")
        assert [one["kind"] for one in page["items"]] == ["scheduled_input"]
        said = [one["text"] for one in await gateway.messages(session)]
        assert said[-2:] == ["post the numbers", "42 sold"]


@pytest.mark.requirement("SCH-9", "API-3")
async def test_conditions_are_shown_and_a_gate_is_answered_by_its_digest(sites: Sites) -> None:
    async with sites() as gateway, writes(gateway.database) as news:
        session = await gateway.session()
        gate = {"command": "git log -1", "working_dir": ".", "timeout_s": 5.0}
        observed = {
            "target_session_id": session,
            "source": {"session_id": session, "watch_path": None, "room_id": None},
            "request": {"content": "what is new?", "input_items": None},
        }
        view = await made(
            gateway,
            session,
            gate=gate,
            heartbeat=True,
            request=None,
            observation_materialization=observed,
        )
        assert (view["heartbeat"], view["request"]) == (True, None)
        assert view["observation_materialization"] == observed
        one = f"{PATH}/{view['schedule_id']}"
        async with asyncio.timeout(120):
            while (found := await shown(gateway, one))["digest"] is None:
                await news.wait()
                news.clear()
        assert found == {
            **gate,
            "status": "waiting_for_approval",
            "digest": found["digest"],
            "request_id": found["request_id"],
            "shown": found["shown"],
        }
        assert "Runs in the working folder" in str(found["shown"])
        given = {"behavior": "allow", "digest": found["digest"]}
        assert (await gateway.ask("POST", f"{one}/gate", given, token=READER))[0] == 403
        other = {**given, "digest": "0" * 64}
        status, problem = await gateway.ask("POST", f"{one}/gate", other)
        assert (status, problem["state"]) == (409, "waiting_for_approval")
        for broken, field in (({**given, "behavior": "x"}, "behavior"), ({}, "behavior")):
            status, problem = await gateway.ask("POST", f"{one}/gate", broken)
            assert (status, problem["field"]) == (422, field)
        status, answer = await gateway.ask("POST", f"{one}/gate", given)
        assert (status, answer["schedule"]["gate"]["status"]) == (200, "approved")
        changed = {"gate": {"command": "git log -2"}}
        status, answer = await gateway.ask("PATCH", one, changed)
        assert (status, answer["schedule"]["gate"]["status"]) == (200, "waiting_for_approval")
        status, problem = await gateway.ask("POST", f"{one}/gate", given)
        assert status == 409, "the approval was of another gate"
        plain = await made(gateway, session)
        status, problem = await gateway.ask("POST", f"{PATH}/{plain['schedule_id']}/gate", given)
        assert (status, problem["detail"]) == (409, "the schedule has no gate")


@pytest.mark.requirement("SCH-9")
async def test_on_the_page_a_gate_is_asked_about_and_answered_in_words(sites: Sites) -> None:
    async with sites() as gateway, writes(gateway.database) as news:
        session = await gateway.session()
        view = await made(gateway, session, gate={"command": "git log *-1*"})
        one = f"{PATH}/{view['schedule_id']}"
        async with asyncio.timeout(120):
            while (await shown(gateway, one))["digest"] is None:
                await news.wait()
                news.clear()
        found = [str(item["text"]) for item in await gateway.messages(session)]
        (text,) = [item for item in found if item.startswith("May this command run?")]
        assert "\n```\ngit log *-1*\n```\n" in text
        assert "Runs in the working folder." in text
        code = text.partition("`/approve ")[2].partition("`")[0]
        status, done = await gateway.ask(
            "POST", f"/v1/sessions/{session}/runs", {"content": f"/approve {code}"}
        )
        assert (status, done["disposition"]) == (202, "command")
        assert (await shown(gateway, one))["status"] == "approved"


async def shown(gateway: Site, one: str) -> dict[str, object]:
    """The gate of a schedule as it stands."""
    return dict((await gateway.ask("GET", one))[1]["schedule"]["gate"])


@pytest.mark.requirement("SCH-8", "API-3")
async def test_a_message_says_where_the_clocks_of_its_person_are(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        path = f"/v1/sessions/{session}/runs"
        said = {"content": "/remind every day at 9: tea"}
        for more, answer in (
            ({"timezone": "Asia/Tokyo"}, "09:00 (Asia/Tokyo)"),
            ({}, "I do not know your time zone"),
        ):
            status, _ = await gateway.ask("POST", path, {**said, **more})
            assert status == 202
            assert answer in (await gateway.messages(session))[-1]["text"]
        for wrong in ("", "Asia Tokyo", "x" * 101, 7, "Berlin", "Mars/Olympus"):
            status, problem = await gateway.ask("POST", path, {**said, "timezone": wrong})
            assert (status, problem["field"]) == (422, "timezone")
        assert "must be a time zone such as Europe/Berlin" in problem["rule"]
