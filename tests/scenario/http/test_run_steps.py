"""The event stream carries the steps of a run, and a stop by the API ends the model's stream."""

import pytest

from tests.fakes.model import Gate, Said
from tests.scenario.http.conftest import ASKS, Sites


@pytest.mark.requirement("API-4")
async def test_a_reader_sees_the_steps_and_the_approval_of_a_run(sites: Sites) -> None:
    async with sites(ASKS, "There you are.") as gateway:
        session = await gateway.session()
        async with gateway.feed(f"session_id={session}") as feed:
            run = await gateway.says(session, "list files")
            asked = await feed.until("approval.requested")
            resolution = {"request_id": asked.data["data"]["request_id"], "behavior": "allow"}
            await gateway.ask("POST", f"/v1/runs/{run}/approvals", {"resolutions": [resolution]})
            await feed.until("run.completed")
        kinds = [one.kind for one in feed.seen]
        order = ["step.model", "approval.requested", "approval.decided", "step.tools"]
        places = [kinds.index(kind) for kind in order]
        assert places == sorted(places)
        activities = [one.data for one in feed.seen if one.kind == "activity"]
        assert ("tool", "exec") in [(one["state"], one["detail"]) for one in activities]


@pytest.mark.requirement("MSG-13", "RUN-1")
async def test_an_interrupt_by_the_api_ends_the_models_stream_and_keeps_what_it_said(
    sites: Sites,
) -> None:
    gate = Gate()
    async with sites(Said("half of it and more", chunk=7, middle=gate, at=1)) as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "tell me")
        await gate.reached.wait()
        await gateway.ask("POST", f"/v1/sessions/{session}/interrupt")
        await gateway.state(run, "cancelled")
        said = [one["text"] for one in await gateway.messages(session)]
        assert said == ["tell me", "half of"]
        assert not gate.open.is_set(), "nothing waited for the model"
