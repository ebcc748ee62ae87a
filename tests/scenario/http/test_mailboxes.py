"""Mailboxes by the API: messages between agents, what waits, and what nobody read."""

import asyncio
import json
from collections.abc import Callable

import pytest

from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cast import Cast
from tests.scenario.harness import READER, Plan, Site
from tests.scenario.http.conftest import Sites

BACKGROUND = json.dumps({"task": "Look.", "id": "one", "type": "general", "mode": "background"})


def mail(sender: str, to: str, **asked: object) -> dict[str, object]:
    """A message as a program sends it."""
    payload = {"type": "message", "text": "The north is ice."}
    return {"from": sender, "to": to, "payload": payload, **asked}


def sending(*one_says: Said | str) -> Callable[[Plan], None]:
    """An agent that sends `one` off, which says so."""
    root = (Said(calls=(("sessions_spawn", BACKGROUND),)), "On their way.", "All is said.")

    def change(plan: Plan) -> None:
        plan.models = ScriptedModels(ScriptedModel(Cast(root, {"one": one_says})))

    return change


async def child_of(gateway: Site, root: str) -> str:
    """The agent `one` of a conversation."""
    while True:
        _, found = await gateway.ask("GET", f"/v1/agents/summaries?root={root}")
        for item in found["items"]:
            return str(item["session_id"])


@pytest.mark.requirement("MBX-1", "MBX-2", "MBX-3", "RUN-2", "AGT-1")
async def test_a_message_waits_is_looked_at_and_is_read_by_a_run_of_its_own(sites: Sites) -> None:
    work = Gate()
    one_says = (Said("The first answer.", before=work), "I heard of the ice.")
    async with asyncio.timeout(300), sites(change=sending(*one_says)) as gateway:
        root = await gateway.session()
        await gateway.says(root, "look")
        await work.reached.wait()
        one = await child_of(gateway, root)
        sent = mail(root, one, message_id="m-1", subject="Weather")
        status, receipt = await gateway.ask("POST", "/v1/mailboxes", sent)
        assert (status, receipt) == (
            202,
            {"accepted": True, "message_id": "m-1", "duplicate": False},
        )
        again = await gateway.ask("POST", "/v1/mailboxes", sent)
        assert again == (202, {"accepted": True, "message_id": "m-1", "duplicate": True})
        for _ in range(2):
            status, box = await gateway.ask("GET", f"/v1/agents/{one}/mailbox", token=READER)
            assert (status, box["pagination"]) == (200, {"total_count": 1})
            (waiting,) = box["items"]
            assert (waiting["message_id"], waiting["from"], waiting["to"]) == ("m-1", root, one)
            assert waiting["subject"] == "Weather"
            assert waiting["payload"]["text"] == "The north is ice."
        _, snapshot = await gateway.ask("GET", f"/v1/agents/{one}")
        assert snapshot["queued_mailbox_count"] == 1
        work.open.set()
        run = await gateway.state(str(waiting["run_id"]), "completed")
        assert (run["kind"], run["session_id"]) == ("mailbox_delivery", one)
        _, box = await gateway.ask("GET", f"/v1/agents/{one}/mailbox")
        assert box == {"items": [], "pagination": {"total_count": 0}}
        _, dead = await gateway.ask("GET", f"/v1/agents/{one}/mailbox/dead-letter")
        assert dead["items"] == []


@pytest.mark.requirement("MBX-1", "API-3")
@pytest.mark.parametrize(
    ("changed", "status", "field"),
    [
        ({"to": "ses_none"}, 404, None),
        ({"to": "no id"}, 422, "to"),
        ({"from": "ses_none"}, 404, None),
        ({"from": "ses_other"}, 404, None),
        ({"ttl_ms": 0}, 422, "ttl_ms"),
        ({"ttl_ms": 30 * 86_400_000 + 1}, 422, "ttl_ms"),
        ({"message_id": "two words"}, 422, "message_id"),
        ({"subject": "x" * 201}, 422, "subject"),
        ({"payload": {"type": "shout", "text": "x"}}, 422, "payload.type"),
        ({"payload": {"type": "message"}}, 422, "payload"),
        ({"payload": {"type": "message", "text": " "}}, 422, "payload"),
        (
            {
                "payload": {
                    "type": "task",
                    "text": "x",
                    "input_items": [{"type": "text", "text": "y"}],
                }
            },
            422,
            "payload",
        ),
        (
            {"payload": {"type": "task", "text": "x", "asset_ids": ["../a"]}},
            422,
            "payload.asset_ids.0",
        ),
        (
            {"payload": {"type": "task", "input_items": [{"type": "shout", "data": ""}]}},
            422,
            "payload.input_items.0.type",
        ),
        ({"payload": {"type": "signal", "data": {"x": "y" * 20_000}}}, 422, "payload.data"),
        ({"colour": "red"}, 422, "colour"),
    ],
)
async def test_what_is_wrong_with_a_message_is_named(
    sites: Sites, changed: dict[str, object], status: int, field: str | None
) -> None:
    async with asyncio.timeout(180), sites("Hello.") as gateway:
        root = await gateway.session()
        await gateway.state(await gateway.says(root, "hi"), "completed")
        other = await gateway.session()
        found, problem = await gateway.ask(
            "POST", "/v1/mailboxes", {**mail(root, other), **changed}
        )
        assert (found, problem.get("field")) == (status, field), problem


@pytest.mark.requirement("MBX-1", "API-1", "API-3")
async def test_who_may_not_send_or_has_no_rights_to_send_with_is_refused(sites: Sites) -> None:
    async with asyncio.timeout(180), sites("Hello.") as gateway:
        root, other = await gateway.session(), await gateway.session()
        status, problem = await gateway.ask("POST", "/v1/mailboxes", mail(root, other))
        assert (status, problem["status"]) == (409, 409)
        assert "never run" in str(problem["detail"])
        await gateway.state(await gateway.says(root, "hi"), "completed")
        status, problem = await gateway.ask("POST", "/v1/mailboxes", mail(root, other))
        assert (status, "mailboxes.allow" in str(problem["detail"])) == (403, True)
        status, _ = await gateway.ask("POST", "/v1/mailboxes", mail(root, other), token=READER)
        assert status == 403
        status, problem = await gateway.ask("POST", "/v1/mailboxes", mail(root, root))
        assert (status, problem["field"]) == (422, "to")
        for path in ("mailbox", "mailbox/dead-letter"):
            assert (await gateway.ask("GET", f"/v1/agents/ses_none/{path}"))[0] == 404
            assert (await gateway.ask("GET", f"/v1/agents/{root}/{path}?cursor=x"))[0] == 422


@pytest.mark.requirement("MBX-1", "MBX-2", "API-4")
async def test_every_kind_of_payload_is_kept_and_shown_by_pages_and_as_events(
    sites: Sites,
) -> None:
    work = Gate()
    one_says = (Said("The first answer.", before=work), "Read.")
    payloads: list[dict[str, object]] = [
        {"type": "message", "text": "words"},
        {"type": "task", "input_items": [{"type": "text", "text": "one"}]},
        {"type": "result", "text": "so", "data": {"n": 1}},
        {"type": "signal", "data": {"stop": True}},
    ]
    async with asyncio.timeout(300), sites(change=sending(*one_says)) as gateway:
        root = await gateway.session()
        await gateway.says(root, "look")
        await work.reached.wait()
        one = await child_of(gateway, root)
        for payload in payloads:
            sent = {**mail(root, one), "payload": payload}
            status, receipt = await gateway.ask("POST", "/v1/mailboxes", sent)
            assert status == 202, receipt
            assert str(receipt["message_id"]).startswith("msg_")
        key = {"Idempotency-Key": "k"}
        sent = mail(root, one)
        _, first = await gateway.ask("POST", "/v1/mailboxes", sent, headers=key)
        _, again = await gateway.ask("POST", "/v1/mailboxes", sent, headers=key)
        assert again == {**first, "duplicate": True}
        changed = mail(root, one, subject="other")
        assert (await gateway.ask("POST", "/v1/mailboxes", changed, headers=key))[0] == 409
        path = f"/v1/agents/{one}/mailbox?limit=2"
        found: list[dict[str, object]] = []
        cursor = ""
        while True:
            _, page = await gateway.ask("GET", f"{path}{cursor}")
            assert page["pagination"]["total_count"] == 5
            found += page["items"]
            if "next_cursor" not in page["pagination"]:
                break
            cursor = f"&cursor={page['pagination']['next_cursor']}"
        shown = [
            {name: value for name, value in item["payload"].items() if value not in (None, [])}
            for item in found
        ]
        assert shown[:4] == payloads
        work.open.set()
        async with gateway.feed(f"session_id={one}&kinds=mail&last_event_id=0") as feed:
            kinds = [(await feed.next()).kind for _ in range(10)]
        assert kinds == ["mail.accepted"] * 5 + ["mail.delivered"] * 5


@pytest.mark.requirement("MBX-2", "MBX-1")
async def test_a_dead_letter_says_why_and_a_closed_agent_takes_nothing(sites: Sites) -> None:
    work = Gate()
    one_says = (Said("Never said.", before=work),)
    async with asyncio.timeout(300), sites(change=sending(*one_says)) as gateway:
        root = await gateway.session()
        await gateway.says(root, "look")
        await work.reached.wait()
        one = await child_of(gateway, root)
        await gateway.ask("POST", "/v1/mailboxes", mail(root, one, message_id="m"))
        await gateway.ask("POST", f"/v1/sessions/{one}/interrupt")
        path = f"/v1/agents/{one}/mailbox/dead-letter"
        async with gateway.feed(f"session_id={one}&kinds=mail.dead&last_event_id=0") as feed:
            event = await feed.next()
        assert event.data["data"]["message_id"] == "m"
        _, dead = await gateway.ask("GET", path, token=READER)
        (letter,) = dead["items"]
        assert (letter["message_id"], letter["from"]) == ("m", root)
        assert "ended" in letter["reason"]
        assert letter["dead_at_ms"] >= letter["sent_at_ms"]
        _, box = await gateway.ask("GET", f"/v1/agents/{one}/mailbox")
        assert box["items"] == []
        status, problem = await gateway.ask("POST", "/v1/mailboxes", mail(root, one))
        assert (status, problem["code"]) == (409, "conflict")
