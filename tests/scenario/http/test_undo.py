"""A turn that is taken back by the API, by the way that every command takes (MSG-22)."""

import pytest

from tests.scenario.harness import Site
from tests.scenario.http.conftest import Sites

pytestmark = pytest.mark.requirement("MSG-22")


async def turn(gateway: Site, session_id: str, text: str) -> str:
    """One turn, until its reply has arrived; its run."""
    run = await gateway.says(session_id, text)
    async with gateway.feed(f"run_id={run}&last_event_id=0") as feed:
        await feed.until("delivery.sent")
    return run


async def undo(gateway: Site, session_id: str, key: str) -> dict[str, object]:
    status, done = await gateway.ask(
        "POST",
        f"/v1/sessions/{session_id}/runs",
        {"content": "/undo"},
        headers={"Idempotency-Key": key},
    )
    assert status == 202, done
    return done


async def test_a_run_and_its_messages_say_that_they_were_taken_back(sites: Sites) -> None:
    async with sites("to alpha", "to bravo") as gateway:
        session = await gateway.session()
        alpha = await turn(gateway, session, "alpha")
        bravo = await turn(gateway, session, "bravo")
        done = await undo(gateway, session, "k1")
        assert done["disposition"] == "command"
        assert await undo(gateway, session, "k1") == done
        runs = [(await gateway.ask("GET", f"/v1/runs/{one}"))[1] for one in (alpha, bravo)]
        assert [one["undone"] for one in runs] == [False, True]
        assert [one["state"] for one in runs] == ["completed", "completed"]
        said = {str(one["text"]): one["undone"] for one in await gateway.messages(session)}
        assert [said[text] for text in ("alpha", "to alpha", "bravo", "to bravo")] == [
            False,
            False,
            True,
            True,
        ]
        _, events = await gateway.ask("GET", f"/v1/runs/{bravo}/events")
        assert "run.undone" in [one["kind"] for one in events["items"]]
        _, found = await gateway.ask("GET", f"/v1/sessions/{session}/export")
        headings = [line for line in str(found["text"]).splitlines() if line.startswith("## ")]
        assert [line.endswith(" (taken back)") for line in headings] == [
            False,
            False,
            True,
            True,
            False,
            False,
        ]
