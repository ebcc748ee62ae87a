"""`gatehouse schedules` against a running gateway, as a person types it."""

import json

import pytest

from gateway.cli.client import GatewayClient, JsonObject
from runtime.domain.ids import code_of
from runtime.domain.json_fields import object_of, text_of
from tests.conftest import FailAfter
from tests.scenario.process.program import ADMIN, Ended, Place, command, gateway, reaching


async def _schedules(there: Place, *words: str) -> Ended:
    said = await command(there, "schedules", *words)
    assert "Traceback" not in said.err
    return said


async def _listed(there: Place, *words: str) -> list[JsonObject]:
    said = await _schedules(there, "list", "--json", *words)
    assert said.code == 0, said.err
    rows: list[JsonObject] = json.loads(said.out)
    return rows


@pytest.mark.requirement("OPS-2")
async def test_a_schedule_is_listed_shown_and_changed(place: Place, fail_after: FailAfter) -> None:
    async with fail_after(120), gateway(place) as program:
        there = reaching(place, await program.url())
        nothing = await _schedules(there, "list")
        assert (nothing.code, "There are no such schedules." in nothing.err) == (0, True)
        made = await command(there, "chat", "-m", "remind me in 2 hours to stretch")
        assert made.code == 0, made.err
        (one,) = await _listed(there)
        name = str(one["schedule_id"])
        assert (one["status"], one["deliver_text"]) == ("active", "stretch")

        table = await _schedules(there, "list")
        assert table.out.split()[:5] == ["ID", "STATUS", "NEXT", "TIMES", "NAME"]
        assert name in table.out
        shown = await _schedules(there, "show", name)
        assert "status      active" in shown.out
        assert shown.out.rstrip().endswith("stretch")
        assert shown.out.count("\nnext ") == 1
        shown_as_json = json.loads((await _schedules(there, "show", name, "--json")).out)
        assert shown_as_json["schedule"]["schedule_id"] == name

        code = code_of(name)
        assert (await _schedules(there, "show", code)).out == shown.out
        assert f"{name} is paused." in (await _schedules(there, "pause", code)).out
        assert await _listed(there, "--status", "active") == []
        assert [row["schedule_id"] for row in await _listed(there, "--status", "paused")] == [name]
        resumed = await _schedules(there, "resume", name)
        assert f"{name} is active." in resumed.out
        assert "Its next time is " in resumed.out
        assert [
            row["schedule_id"] for row in await _listed(there, "--session", "terminal:main")
        ] == [name]
        assert f"{name} is cancelled." in (await _schedules(there, "cancel", name)).out


@pytest.mark.requirement("OPS-2")
async def test_a_schedule_that_is_triggered_shows_what_became_of_it(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(120), gateway(place) as program:
        there = reaching(place, await program.url())
        await command(there, "chat", "-m", "remind me in 2 hours to stretch")
        (one,) = await _listed(there)
        name = str(one["schedule_id"])
        told = await _schedules(there, "trigger", name)
        assert f"{name} is active, and was told to fire now." in told.out
        shown = await _schedules(there, "show", name)
        while "settled" not in shown.out:
            shown = await _schedules(there, "show", name)
        assert "delivery sent" in shown.out
        assert "\nnext " in shown.out, "its own time stays"


@pytest.mark.requirement("OPS-2")
async def test_what_is_wrong_with_a_command_is_said(place: Place, fail_after: FailAfter) -> None:
    async with fail_after(120), gateway(place) as program:
        there = reaching(place, await program.url())
        for words in (("show", "none"), ("pause", "none"), ("trigger", "none")):
            missing = await _schedules(there, *words)
            assert missing.code != 0
            assert "schedule" in missing.err
        wrong = await _schedules(there, "list", "--status", "waiting")
        assert wrong.code == 2
        assert "active" in wrong.err
        strange = await _schedules(there, "list", "--session", "nobody")
        assert strange.code != 0
        assert "nobody" in strange.err


async def _gated(url: str, command: str) -> str:
    """Make an hourly schedule with a gate; the id of the card that asks about it."""
    async with GatewayClient(url, ADMIN) as client:
        (session,) = await client.items("/v1/sessions")
        made = await client.post(
            "/v1/schedules",
            {
                "name": "numbers",
                "target_session_id": session["id"],
                "cadence": {"type": "interval", "every_seconds": 3600},
                "request": {"content": "Read the numbers."},
                "gate": {"command": command},
            },
        )
        schedule = object_of(made, "schedule")
        while not (card := text_of(object_of(schedule, "gate"), "request_id")):
            shown = await client.get(f"/v1/schedules/{schedule['schedule_id']}")
            schedule = object_of(shown, "schedule")
    return card


@pytest.mark.requirement("SCH-9")
async def test_a_gate_is_allowed_and_refused_by_its_code(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(120), gateway(place) as program:
        url = await program.url()
        there = reaching(place, url)
        await command(there, "chat", "-m", "hello")
        first, second = await _gated(url, "date"), await _gated(url, "date #\nls")
        rows = json.loads((await command(there, "approvals", "list", "--json")).out)
        assert {row["request_id"] for row in rows} == {first, second}
        assert all("runs by itself at each time" in row["reason"] for row in rows)
        wrong = await command(there, "approvals", "approve", code_of(first), "--session")
        assert (wrong.code, "is a gate; leave out --session" in wrong.err) == (1, True)
        allowed = await command(there, "approvals", "approve", code_of(first))
        assert 'Allowed: {"command": "date"}' in allowed.out
        assert "runs by itself at each time" in allowed.out
        listed = await command(there, "approvals", "list")
        assert code_of(second) in listed.out
        assert r'schedule gate  {"command": "date #\nls"}' in listed.out
        assert code_of(first) not in listed.out
        denied = await command(there, "approvals", "deny", second)
        assert r'Denied: {"command": "date #\nls"}' in denied.out
        gates = {one["gate"]["request_id"]: one["gate"]["status"] for one in await _listed(there)}
        assert gates == {first: "approved", second: "denied"}
