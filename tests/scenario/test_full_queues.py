"""Every queue ends somewhere, and whoever finds it full is told (SCALE-5)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from gateway.http import events
from runtime.domain.runs import RunState
from runtime.intake import message_revisions
from runtime.intake.full_lane import TELL_EVERY_MS
from runtime.sessions import inputs, runs
from runtime.store import Connection
from tests.conftest import FailAfter
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import both, reaches
from tests.scenario.conftest import intake
from tests.scenario.engine import World, setup_at, world
from tests.scenario.harness import ADMIN, READER, Plan, site
from tests.scenario.test_edits import edits, heard
from tests.scenario.test_slow_dependencies import clock_of
from tests.support.templates import make_database

MOST = 5
LINE = f"{MOST} messages wait here already"


@asynccontextmanager
async def small(path: Path, model: ScriptedModel, mode: str = "followup") -> AsyncIterator[World]:
    """A world whose lanes hold few messages, under a clock that moves on command."""
    url = f"sqlite:///{path}/gatehouse.db"
    await make_database(url)
    change = both(intake(max_waiting=MOST, queue_mode=mode, debounce_ms=0))
    async with world(
        change(setup_at(path, url, ScriptedModels(model), clock=FakeClock()))
    ) as running:
        yield running


def lines(running: World) -> list[str]:
    """What was said about a full lane."""
    return [text for text in running.chat.texts() if text.startswith(LINE)]


@pytest.mark.requirement("SCALE-5", "MSG-2")
@pytest.mark.parametrize("mode", ["followup", "collect", "steer"])
async def test_a_full_lane_says_so_once_a_minute_and_loses_nothing_that_it_took(
    mode: str, tmp_path: Path, fail_after: FailAfter
) -> None:
    gate = Gate()
    model = ScriptedModel(lambda request: Said("ok", before=gate))
    async with fail_after(), small(tmp_path, model, mode) as running:
        first = await running.says("0")
        await gate.reached.wait()
        taken = [await running.says(f"{n}", message_id=f"m-{n}") for n in range(1, MOST + 1)]
        assert {one.disposition for one in taken} == {"queued"}

        refused = [await running.says(f"too much {n}") for n in range(20)]
        assert {one.disposition for one in refused} == {"full"}
        again = await running.says("1", message_id="m-1")
        assert (again.disposition, again.input_id) == ("duplicate", taken[0].input_id)
        await running.chat.until(lambda: len(lines(running)) == 1)
        await clock_of(running).advance(TELL_EVERY_MS / 1000)
        for _ in range(3):
            await running.says("still too much")
        await running.chat.until(lambda: len(lines(running)) == 2)
        elsewhere = await running.says("hello", chat_id="D-other")
        assert elsewhere.disposition == "queued", "another lane is not full"
        assert (await running.says("/status")).disposition == "command"

        gate.open.set()
        for one in (first, *taken):
            await reaches(running, one.run_id, RunState.COMPLETED)

        def said() -> set[str]:
            return {text for number in range(len(model.requests)) for text in heard(model, number)}

        # What came too late to steer is heard in a turn of its own.
        await running.chat.until(lambda: {f"{n}" for n in range(MOST + 1)} <= said())
        assert not any(text.startswith("too much") for text in said())
        assert (await running.says("room again")).disposition == "queued"
        assert len(lines(running)) == 2


@pytest.mark.requirement("SCALE-3")
async def test_a_lane_tells_its_last_run_and_its_first_message_without_reading_the_others(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    gate = Gate()
    model = ScriptedModel(lambda request: Said("ok", before=gate))
    async with fail_after(), small(tmp_path, model) as running:
        accepted = await running.says("0")
        await gate.reached.wait()
        for number in range(1, 4):
            accepted = await running.says(f"{number}")
        session = accepted.session_id or ""

        def look(conn: Connection) -> tuple[str | None, int | None]:
            last = runs.last_queued(conn, session)
            first = inputs.oldest_waiting(conn, session, at_work=None)
            return (None if last is None else last.id), first

        assert await running.database.read(look) == (accepted.run_id, 2)
        gate.open.set()


@pytest.mark.requirement("SCALE-5")
async def test_edits_of_what_was_read_wait_in_bounded_number(
    tmp_path: Path, fail_after: FailAfter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_revisions, "MOST_NOTES", 3)
    model = ScriptedModel(lambda request: "ok")
    async with fail_after(), small(tmp_path, model) as running:
        await running.says("one", message_id="one")
        await running.sees(1)
        made = [
            (await edits(running, "one", f"text {n}", edited_at=f"e{n}")).disposition
            for n in range(6)
        ]
        assert made == ["noted"] * 3 + ["full"] * 3
        await running.says("and now?")
        await running.sees(2)
        notes = [text for text in heard(model, 1) if "edited an earlier message" in text]
        assert [text.splitlines()[-1] for text in notes] == ["text 0", "text 1", "text 2"]
        later = await edits(running, "one", "text 9", edited_at="e9")
        assert later.disposition == "noted"


@pytest.mark.requirement("SCALE-5", "API-3")
async def test_a_client_of_a_full_session_gets_a_problem_that_says_when_to_come_back(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    gate = Gate()
    model = ScriptedModel(lambda request: Said("ok", before=gate))
    async with fail_after(), site(Plan(tmp_path, ScriptedModels(model))) as gateway:
        engine = gateway.engine
        engine.intake.change(
            intake(max_waiting=MOST)(
                setup_at(tmp_path, "", ScriptedModels(model), settings=engine.settings)
            ).settings.intake
        )
        session = await gateway.session()
        await gateway.says(session, "at work")
        await gate.reached.wait()
        for number in range(MOST):
            await gateway.says(session, f"{number}")
        path = f"/v1/sessions/{session}/runs"
        status, problem = await gateway.ask("POST", path, {"content": "too much"})
        assert (status, problem["code"]) == (429, "queue_full")
        assert f"{MOST} messages wait" in str(problem["detail"])
        async with gateway.client.post(
            f"{gateway.url}{path}",
            json={"content": "too much"},
            headers={"Authorization": f"Bearer {gateway.admin_tokens[0]}"},
        ) as response:
            assert response.content_type == "application/problem+json"
            assert int(response.headers["Retry-After"]) > 0
        gate.open.set()


@pytest.mark.requirement("SCALE-5")
async def test_a_body_that_is_too_long_is_refused_with_a_problem(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with fail_after(), site(Plan(tmp_path, ScriptedModels(), http={"max_body": 1_000})) as at:
        session = await at.session()
        status, problem = await at.ask(
            "POST", f"/v1/sessions/{session}/runs", {"content": "x" * 2_000}
        )
        assert (status, problem["code"]) == (413, "too_large")


@pytest.mark.requirement("SCALE-5", "API-4", "SEC-7")
async def test_event_streams_are_bounded_and_a_place_is_free_again_when_one_goes(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    clock = FakeClock()
    plan = Plan(tmp_path, ScriptedModels(), http_clock=clock, http={"streams_per_credential": 2})
    async with fail_after(), site(plan) as gateway:
        async with gateway.feed() as stays, gateway.feed() as goes:
            await stays.until("ready")
            await goes.until("ready")
            status, problem = await gateway.ask("GET", "/v1/events")
            assert (status, problem["code"]) == (429, "queue_full")
            async with gateway.feed(token=READER) as other:
                await other.until("ready")
        while (await _opens(gateway.url, gateway.client, gateway.admin_tokens[0])) != 200:
            # A reader that left is noticed when something is written to it.
            await clock.advance(events.HEARTBEAT_S)


@pytest.mark.requirement("SEC-7")
async def test_whoever_holds_most_streams_gives_one_up_to_somebody_with_less(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with (
        fail_after(),
        site(Plan(tmp_path, ScriptedModels(), http={"streams": 3})) as gateway,
        gateway.feed() as oldest,
        gateway.feed() as two,
        gateway.feed() as three,
    ):
        for feed in (oldest, two, three):
            await feed.until("ready")
        async with gateway.feed(token=READER) as other:
            await other.until("ready")
            with pytest.raises(EOFError):
                await oldest.until("never")
            for token in (ADMIN, READER):
                status, problem = await gateway.ask("GET", "/v1/events", token=token)
                assert (status, problem["code"]) == (429, "queue_full")
            session = await gateway.session()
            await gateway.says(session, "hello")
            for feed in (two, three, other):
                await feed.until("run.queued")


async def _opens(url: str, client: aiohttp.ClientSession, token: str) -> int:
    """The status of one more stream, which is left at once."""
    headers = {"Authorization": f"Bearer {token}"}
    async with client.get(f"{url}/v1/events", headers=headers) as response:
        return response.status
