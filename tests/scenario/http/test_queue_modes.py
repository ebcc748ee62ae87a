"""Steering and interrupting as the API shows them (MSG-5)."""

import pytest

from tests.fakes.model import Gate, Said
from tests.scenario.harness import Site
from tests.scenario.http.conftest import ASKS, Sites


async def switched(gateway: Site, mode: str) -> str:
    """A new session whose queue mode was set."""
    session = await gateway.session()
    path = f"/v1/sessions/{session}/queue-mode"
    status, shown = await gateway.ask("PUT", path, {"queue_mode": mode})
    assert (status, shown["queue_mode"]) == (200, mode)
    return session


@pytest.mark.requirement("MSG-5", "MSG-6")
async def test_an_interrupted_run_says_by_what(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said("never", before=gate), "the new") as gateway:
        session = await switched(gateway, "interrupt")
        first = await gateway.says(session, "one")
        await gate.reached.wait()
        second = await gateway.says(session, "two")
        ended = await gateway.state(first, "interrupted")
        assert ended["stop_reason"] == "replaced by a newer message"
        assert (await gateway.state(second, "completed"))["error"] is None
        _, page = await gateway.ask("GET", f"/v1/runs/{first}/events?limit=100")
        last = page["items"][-1]
        assert (last["kind"], last["data"]["reason"]) == ("run.interrupted", ended["stop_reason"])


@pytest.mark.requirement("MSG-5")
async def test_a_steered_message_is_of_the_run_that_takes_it(sites: Sites) -> None:
    async with sites(ASKS, "both") as gateway:
        session = await switched(gateway, "steer")
        run = await gateway.says(session, "one")
        waiting = await gateway.state(run, "waiting_for_approval")
        assert await gateway.says(session, "two") == run
        shown = [one["text"] for one in await gateway.messages(session) if one["kind"] == "user"]
        assert shown == ["one", "two"], "also while it is not heard yet"
        resolution = {"request_id": waiting["waiting_for"][0], "behavior": "deny"}
        await gateway.ask("POST", f"/v1/runs/{run}/approvals", {"resolutions": [resolution]})
        await gateway.state(run, "completed")
        _, page = await gateway.ask("GET", f"/v1/runs/{run}/events?limit=100")
        kinds = [one["kind"] for one in page["items"]]
        assert kinds.count("input.taken") == 1
        assert kinds.index("input.taken") < kinds.index("run.completed")


@pytest.mark.requirement("RUN-4", "RUN-2", "MSG-5")
async def test_the_run_that_a_steered_message_is_told_of_answers_it(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said("first", before=gate), "second") as gateway:
        session = await switched(gateway, "steer")
        run = await gateway.says(session, "one")
        await gate.reached.wait()
        assert await gateway.says(session, "two") == run
        gate.open.set()
        ended = await gateway.state(run, "completed")
        assert ended["passed_on_to"] is None
        shown = await gateway.messages(session)
        assert [(one["kind"], one["text"], one["run_id"]) for one in shown] == [
            ("user", "one", run),
            ("assistant", "first", run),
            ("user", "two", run),
            ("assistant", "second", run),
        ]


@pytest.mark.requirement("RUN-4", "RUN-2", "MSG-5")
async def test_a_cancelled_run_names_the_one_that_answers_what_it_never_heard(
    sites: Sites,
) -> None:
    gate, headers = Gate(), {"Idempotency-Key": "k2"}
    async with sites(Said("never", before=gate), "second") as gateway:
        session = await switched(gateway, "steer")
        run = await gateway.says(session, "one")
        await gate.reached.wait()
        path = f"/v1/sessions/{session}/runs"
        told = await gateway.ask("POST", path, {"content": "two"}, headers=headers)
        assert told[1]["run_id"] == run
        await gateway.ask("POST", f"/v1/runs/{run}/cancel")
        after = str((await gateway.state(run, "cancelled"))["passed_on_to"])
        assert (await gateway.state(after, "completed"))["summary"] == "two"
        said = {one["text"]: one["run_id"] for one in await gateway.messages(session)}
        assert (said["one"], said["two"], said["second"]) == (run, after, after)
        assert await gateway.ask("POST", path, {"content": "two"}, headers=headers) == told
