"""Replicas on one PostgreSQL database that spend from the same budget."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select

from runtime.domain.budgets import Limit
from runtime.ports.model import ModelRequest
from runtime.sessions import tables
from runtime.store import Database
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.fakes.chat import FakeChat
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.engine import Setup, setup_at, world
from tests.scenario.spending import CALL, figures, limits, talking
from tests.support.templates import postgres_database


@pytest.fixture
async def shared_url() -> AsyncIterator[str]:
    """A migrated PostgreSQL database for two replicas."""
    server = postgres_server()
    async with postgres_database(server) as name:
        yield server.url(name)


@pytest.mark.requirement("MSG-20")
async def test_two_replicas_together_go_at_most_one_call_beyond_a_budget(
    shared_url: str, tmp_path: Path, fail_after: FailAfter
) -> None:
    gates = {1: Gate(), 2: Gate()}
    requests: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Said:
        requests.append(request)
        return Said("an answer", before=gates[len(requests)])

    def replica(name: str) -> Setup:
        models = ScriptedModels(ScriptedModel(answer))
        setup = setup_at(tmp_path / name, shared_url, models, alone=False)
        return limits(day=Limit(CALL + 1))(setup)

    async with (
        fail_after(),
        world(replica("one"), FakeChat(account="A1")) as one,
        world(replica("two"), FakeChat(account="A2")) as two,
    ):
        for place in (one, two):
            for person in ("ann", "bob", "cat"):
                await place.says("hello", user=f"U-{person}", chat_id=person, kind="group")
        await gates[1].reached.wait()
        await waiting(one.database, 5)
        assert len(requests) == 1, "the others wait for what it leaves"
        gates[1].open.set()
        await gates[2].reached.wait()
        gates[2].open.set()
        await asyncio.gather(one.sees(3), two.sees(3))
        texts = sorted([*one.chat.texts(), *two.chat.texts()])
        assert texts[4:] == ["an answer", "an answer"]
        assert all("for everybody is used up" in text for text in texts[:4])
        assert len(requests) == 2
        assert await figures(one.database) == [("day", 2 * CALL, 0)]


async def waiting(database: Database, amount: int) -> None:
    """Return once so many runs run without a reservation."""
    held = select(tables.budget_reservations.c.run_id)
    query = select(tables.runs.c.id).where(
        tables.runs.c.state == "running", tables.runs.c.id.not_in(held)
    )
    while len(await database.read(lambda conn: conn.execute(query).all())) < amount:
        pass


@pytest.mark.requirement("MSG-20")
async def test_a_replica_takes_up_a_run_and_its_reservation_with_it(
    shared_url: str, tmp_path: Path, fail_after: FailAfter
) -> None:
    gate = Gate()
    lost = ScriptedModels(ScriptedModel([Said("never said", before=gate)]))
    change, chat = limits(day=Limit(CALL)), FakeChat()
    async with fail_after():
        dying = change(setup_at(tmp_path / "one", shared_url, lost, alone=False))
        async with world(dying, chat) as one:
            await one.says("hello")
            await gate.reached.wait()
            ((_, used, reserved),) = await figures(one.database)
            assert (used, reserved > CALL) == (0, True)
        setup = setup_at(tmp_path / "two", shared_url, ScriptedModels(talking()), alone=False)
        async with world(change(setup), chat) as two:
            assert await two.sees(1) == ["an answer"]
            assert await figures(two.database) == [("day", CALL, 0)]
