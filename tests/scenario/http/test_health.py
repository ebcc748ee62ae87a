"""How the gateway is: health, status, metrics, people, deliveries, explanations (API-5, ACC-1)."""

import pytest

from gateway.http.services import AdapterView
from runtime.domain.errors import StoreUnavailable
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Sender
from runtime.intake.access import ChannelAccess
from runtime.intake.gatehouse import IntakeSettings
from runtime.sessions import listings
from tests.scenario.harness import Plan, Site
from tests.scenario.http.conftest import ASKS, Sites


@pytest.mark.requirement("API-5")
async def test_ready_means_that_every_part_is_up(sites: Sites) -> None:
    up = {"bus": True, "adapters": True}

    def checked(plan: Plan) -> None:
        plan.services["checks"] = {name: lambda name=name: up[name] for name in up}

    async with sites(change=checked) as gateway:
        assert (await gateway.ask("GET", "/readyz"))[0] == 200
        for name in up:
            up[name] = False
            assert await gateway.ask("GET", "/readyz") == (503, {"status": "not ready"})
            _, status = await gateway.ask("GET", "/v1/status")
            assert (status["ready"], status["checks"][name]) == (False, False)
            up[name] = True
        await gateway.database.close()
        assert await gateway.ask("GET", "/healthz") == (200, {"status": "ok"})
        assert (await gateway.ask("GET", "/readyz"))[0] == 503
        code, status = await gateway.ask("GET", "/v1/status")
        assert (code, status["checks"]["database"]) == (200, False)


@pytest.mark.requirement("API-5")
async def test_status_answers_where_only_its_own_look_at_the_database_fails(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged file: the page that the check reads is whole, and one behind it is not."""

    def damaged(conn: object) -> None:
        raise StoreUnavailable("page 7 is damaged")

    async with sites() as gateway:
        monkeypatch.setattr(listings, "lane_figures", damaged)
        assert (await gateway.ask("GET", "/readyz"))[0] == 200
        code, status = await gateway.ask("GET", "/v1/status")
        assert (code, status["ready"], status["checks"]["database"]) == (200, False, False)
        assert status["reasons"]["database"]


@pytest.mark.requirement("API-5")
async def test_a_part_that_comes_back_while_it_is_asked_about_has_a_reason_too(
    sites: Sites,
) -> None:
    def with_writes(plan: Plan) -> None:
        plan.services["checks"] = {"writes": lambda: False}
        plan.services["reasons"] = {"writes": str}

    async with sites("one", ASKS, change=with_writes) as gateway:
        code, status = await gateway.ask("GET", "/v1/status")
        assert (code, status["ready"]) == (200, False)
        assert "up again" in status["reasons"]["writes"]


@pytest.mark.requirement("API-5")
async def test_status_and_metrics_count_what_there_is(sites: Sites) -> None:
    def with_slack(plan: Plan) -> None:
        plan.services["adapters"] = lambda: [
            AdapterView(
                channel="slack", account="T1", connected=False, detail="The token is wrong."
            )
        ]

    async with sites("one", ASKS, change=with_slack) as gateway:
        await gateway.state(await gateway.says(await gateway.session(), "a"), "completed")
        run = await gateway.says(await gateway.session(), "b")
        await gateway.state(run, "waiting_for_approval")
        _, status = await gateway.ask("GET", "/v1/status")
        assert status["runs"] == {"completed": 1, "waiting_for_approval": 1}
        assert (status["sessions"], status["lanes_active"], status["open_calls"]) == (2, 1, 1)
        assert status["adapters"][0]["detail"] == "The token is wrong."
        assert any(one["name"].startswith("process:") for one in status["leases"])
        text = str((await gateway.ask("GET", "/metrics"))[1]["text"])
        for line in (
            'gatehouse_runs{state="waiting_for_approval"} 1.0',
            'gatehouse_lanes{state="active"} 1.0',
            'gatehouse_outbox_messages{state="dead"} 0.0',
            "gatehouse_turns_running 0.0",
            'gatehouse_adapter_connected{account="T1",channel="slack"} 0.0',
            'route="/v1/runs/{run_id}",status="200"}',
        ):
            assert line in text, line
        assert run not in text


@pytest.mark.requirement("API-5")
async def test_the_effective_policy_is_shown(sites: Sites) -> None:
    async with sites() as gateway:
        status, runtime = await gateway.ask("GET", "/v1/runtime")
        assert (status, runtime["policy"]["mode"]) == (200, "default")


async def stranger(gateway: Site, name: str) -> str:
    """The code that a stranger was given."""
    message = InboundMessage(
        channel="slack",
        account="T1",
        chat_id=f"D-{name}",
        message_id=f"m-{name}",
        sender=Sender(id=f"U-{name}", name=name),
        text="hello",
        received_at_ms=1,
    )
    accepted = await gateway.engine.intake.accept(message)
    assert accepted.disposition == "pairing"
    _, page = await gateway.ask("GET", "/v1/pairings")
    return next(one["code"] for one in page["items"] if one["name"] == name)


@pytest.mark.requirement("ACC-1", "API-3")
async def test_strangers_are_let_in_and_turned_away(sites: Sites) -> None:
    async with sites() as gateway:
        gateway.engine.intake.change(IntakeSettings(access={"slack": ChannelAccess()}))
        mira, jonas = await stranger(gateway, "Mira"), await stranger(gateway, "Jonas")
        wrong, problem = await gateway.ask(
            "POST", f"/v1/pairings/{mira}/approve", {"trust": "king"}
        )
        assert (wrong, problem["field"]) == (422, "trust")
        status, approved = await gateway.ask("POST", f"/v1/pairings/{mira}/approve")
        assert (status, approved["name"]) == (200, "Mira")
        missing, problem = await gateway.ask("POST", "/v1/pairings/NOPE/approve")
        assert (missing, problem["detail"]) == (404, "no pairing has the code NOPE")
        assert (await gateway.ask("POST", f"/v1/pairings/{jonas}/deny"))[0] == 200
        late, problem = await gateway.ask("POST", f"/v1/pairings/{jonas}/approve")
        assert (late, problem["state"]) == (409, "denied")
        assert (await gateway.ask("GET", "/v1/pairings"))[1]["items"] == []
        _, people = await gateway.ask("GET", "/v1/people")
        assert [(one["user_id"], one["trust"]) for one in people["items"]] == [("U-Mira", "member")]


@pytest.mark.requirement("ACC-2")
async def test_a_new_owner_code_replaces_the_one_before(sites: Sites) -> None:
    async with sites() as gateway:
        gateway.engine.intake.change(IntakeSettings(access={"slack": ChannelAccess()}))
        _, first = await gateway.ask("POST", "/v1/owner-code")
        _, second = await gateway.ask("POST", "/v1/pairings/owner-code")
        assert (first["replaced"], second["replaced"]) == (False, True)
        for code, reason in ((first, ""), (second, "claimed by the owner code")):
            message = InboundMessage(
                channel="slack",
                account="T1",
                chat_id="D1",
                message_id=str(code["code"]),
                sender=Sender(id="U1", name="Ada"),
                text=str(code["code"]),
                received_at_ms=1,
            )
            assert (await gateway.engine.intake.accept(message)).reason == reason


async def test_messages_that_did_not_arrive_are_listed(sites: Sites) -> None:
    async with sites("one", "two") as gateway:
        session = await gateway.session()
        for text in ("a", "b"):
            async with gateway.feed(f"session_id={session}") as feed:
                await gateway.says(session, text)
                await feed.until("delivery.sent")

        def lose(conn: object) -> None:
            conn.exec_driver_sql("UPDATE outbox SET state = 'dead', error = 'blocked'")

        await gateway.database.write(lose, name="test")
        _, page = await gateway.ask("GET", "/v1/deliveries/problems?limit=1")
        cursor = page["pagination"]["next_cursor"]
        _, rest = await gateway.ask("GET", f"/v1/deliveries/problems?cursor={cursor}")
        found = [*page["items"], *rest["items"]]
        assert [(one["state"], one["reason"]) for one in found] == [("dead", "blocked")] * 2
        replies = [one for one in await gateway.messages(session) if one["kind"] == "assistant"]
        assert [one["delivery"] for one in replies] == ["dead", "dead"]


async def test_a_session_explains_its_prompt_and_its_policy(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        status, context = await gateway.ask("GET", f"/v1/sessions/{session}/context")
        assert (status, context["session_id"]) == (200, session)
        assert any(block["name"] == "AGENTS.md" for block in context["blocks"])
        status, decision = await gateway.ask(
            "POST",
            f"/v1/sessions/{session}/policy/explain",
            {"tool": "exec", "arguments": {"command": "ls"}},
        )
        assert (status, decision["verdict"]) == (200, "ask")
        assert decision["chain"]
