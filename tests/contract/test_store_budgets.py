"""Budget rows on both databases: reserving, settling, and replicas that count together."""

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, func, select

from runtime.agent.turn_budget import Budgets
from runtime.bus.memory import MemoryBus
from runtime.domain.budgets import (
    Amount,
    Budget,
    BudgetKey,
    BudgetSettings,
    Limit,
    Scope,
    Standing,
    micro_usd,
)
from runtime.domain.errors import StaleLease
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker, Trust
from runtime.domain.runs import Holder, RunKind, RunState, Usage
from runtime.ports.model import ModelRequest
from runtime.sessions import budgets, lanes, runs, tables
from runtime.sessions.budgets import Charge, Refusal, Reservation
from runtime.sessions.lanes import NewSession
from runtime.sessions.runs import Run
from runtime.sessions.unit import Units
from runtime.store import Database, open_database
from runtime.store.metadata import metadata
from tests.conftest import FailAfter
from tests.contract.store_support import Gate, StillClock
from tests.fakes.clock import FakeClock
from tests.support.kinds import KINDS

TODAY = BudgetKey(Scope.DAY, "", "2026-11-20")
PERSON = BudgetKey(Scope.PERSON, "per_1", "2026-11-20")
ADDRESS = ChatAddress(channel="test", account="A1", chat_id="D1")
SPEAKER = Speaker(person_id="per_1", channel="test", account="A1", user_id="U1", trust=Trust.OWNER)


def up_to(tokens: int, *keys: BudgetKey) -> list[Budget]:
    return [Budget(key, Limit(tokens=tokens)) for key in keys or (TODAY,)]


def reserving(run_id: str, held: list[Budget], tokens: int = 60) -> Callable[..., Refusal | None]:
    return lambda conn: budgets.reserve(conn, Reservation(run_id, 1, Amount(tokens, 7), 1), held)


def settling(run_id: str, tokens: int, *, priced: bool = True) -> Callable[[Connection], bool]:
    return lambda conn: budgets.settle(conn, run_id, Charge(Amount(tokens, tokens), priced))


async def standing(store: Database, key: BudgetKey = TODAY) -> Standing:
    found = await store.read(lambda conn: budgets.standings(conn, [key]))
    return found[key]


async def open_ones(store: Database) -> int:
    counted = select(func.count()).select_from(tables.budget_reservations)
    return await store.read(lambda conn: conn.execute(counted).scalar_one())


def run_in(state: RunState, session_id: str, *, number: int) -> Run:
    return Run(
        id=f"run_{number}",
        session_id=session_id,
        seq=number,
        kind=RunKind.INPUT,
        state=state,
        collecting=False,
        ready_ms=1,
        target=ADDRESS,
        reply_to=None,
        speaker=SPEAKER,
        created_ms=1,
    )


def session_with(*states: RunState) -> Callable[[Connection], str]:
    """A session whose runs are run_1, run_2, ... in these states, with 30 tokens used each."""

    def unit(conn: Connection) -> str:
        lane = lanes.create(conn, NewSession("key", ADDRESS, "edit", "followup"))
        assert lane is not None
        for number, state in enumerate(states, 1):
            run = run_in(state, lane.session_id, number=number)
            runs.add(conn, run)
            runs.change(
                conn, run.id, {"input_tokens": 20, "output_tokens": 10, "cost_usd": 0.000005}
            )
        return lane.session_id

    return unit


@pytest.mark.requirement("MSG-20")
async def test_one_call_may_cross_the_limit_and_the_next_waits_until_it_is_known(
    store: Database,
) -> None:
    held = up_to(100)
    assert await store.write(reserving("a", held), name="u") is None
    assert await store.write(reserving("b", held), name="u") is None, "this one may cross it"
    refused = await store.write(reserving("c", held), name="u")
    assert refused == Refusal(held[0], "tokens", wait=True)
    assert await store.write(settling("a", 20), name="u")
    assert await standing(store) == Standing(Amount(20, 20), Amount(60, 7))
    assert await store.write(reserving("c", held), name="u") is None, "there was room after all"
    assert await store.write(settling("b", 70), name="u")
    assert await store.write(settling("c", 70), name="u")
    refused = await store.write(reserving("d", held), name="u")
    assert refused == Refusal(held[0], "tokens", wait=False)
    assert await standing(store) == Standing(Amount(160, 160), Amount())
    assert await open_ones(store) == 0


@pytest.mark.requirement("MSG-20")
async def test_two_replicas_race_for_the_last_of_a_budget(
    database: Database, database_url: str, gate: Gate, fail_after: FailAfter
) -> None:
    """The first holds its transaction open with the row that it made; the others wait for it."""
    await database.write(metadata.create_all, name="schema")
    other = database
    if database.dialect == "postgresql":
        other = open_database(database_url, clock=StillClock())
        await other.start()

    def first(conn: Connection) -> Refusal | None:
        said = reserving("a", up_to(50))(conn)
        gate.hold(conn)
        return said

    try:
        async with fail_after():
            ahead = asyncio.create_task(database.write(first, name="u"))
            await gate.entered()
            behind = [
                asyncio.create_task(other.write(reserving(f"b{n}", up_to(50)), name="u"))
                for n in range(5)
            ]
            await gate.open()
            assert await ahead is None
            refused = await asyncio.gather(*behind)
    finally:
        if other is not database:
            await other.close()
    assert [one.wait for one in refused if one is not None] == [True] * 5
    assert await standing(database) == Standing(Amount(), Amount(60, 7))


@pytest.mark.requirement("MSG-20")
async def test_a_budget_that_refuses_leaves_nothing_reserved_on_the_others(
    store: Database,
) -> None:
    await store.write(reserving("a", up_to(1, PERSON)), name="u")
    both = [*up_to(1000), *up_to(1, PERSON)]
    refused = await store.write(reserving("b", both), name="u")
    assert refused == Refusal(both[1], "tokens", wait=True)
    assert await standing(store) == Standing()
    assert await open_ones(store) == 1


@pytest.mark.requirement("MSG-20")
async def test_what_is_spent_comes_before_what_may_free_itself(store: Database) -> None:
    await store.write(reserving("a", up_to(1)), name="u")
    await store.write(reserving("b", up_to(1, PERSON)), name="u")
    await store.write(settling("b", 5), name="u")
    refused = await store.write(reserving("c", [*up_to(1), *up_to(1, PERSON)]), name="u")
    assert refused is not None
    assert (refused.budget.key, refused.wait) == (PERSON, False)


@pytest.mark.requirement("MSG-20")
async def test_a_call_is_settled_once_and_where_it_was_reserved(store: Database) -> None:
    await store.write(reserving("a", up_to(100, TODAY, PERSON)), name="u")
    assert await store.write(settling("a", 40, priced=False), name="u")
    assert not await store.write(settling("a", 40), name="u")
    for key in (TODAY, PERSON):
        assert await standing(store, key) == Standing(Amount(40, 40), Amount(), unpriced=1)


async def test_a_budget_without_a_limit_makes_no_row(store: Database) -> None:
    assert await store.write(reserving("a", []), name="u") is None
    assert await open_ones(store) == 0


@pytest.mark.requirement("MSG-20")
async def test_only_runs_that_run_keep_their_reservation(store: Database) -> None:
    states = (RunState.RUNNING, RunState.QUEUED, RunState.CANCELLED)
    await store.write(session_with(*states), name="u")
    for number in (1, 2, 3):
        await store.write(reserving(f"run_{number}", up_to(1000, TODAY, PERSON)), name="u")
    assert await store.write(budgets.release_idle, name="u") == 2
    assert await standing(store) == Standing(Amount(), Amount(60, 7))
    assert await standing(store, PERSON) == Standing(Amount(), Amount(60, 7))
    assert await store.write(budgets.release_idle, name="u") == 0
    assert not await store.write(settling("run_2", 10), name="u"), "released is not charged"


@pytest.mark.requirement("MSG-20")
async def test_a_session_and_a_run_count_what_they_used_before_there_was_a_limit(
    store: Database,
) -> None:
    session_id = await store.write(session_with(RunState.COMPLETED, RunState.RUNNING), name="u")
    session, run = BudgetKey(Scope.SESSION, session_id), BudgetKey(Scope.RUN, "run_2")
    assert (await standing(store, session)).used == Amount(60, 10)
    refused = await store.write(reserving("run_2", up_to(60, session, run)), name="u")
    assert refused is not None
    assert (refused.budget.key, refused.wait) == (session, False)
    assert await store.write(reserving("run_2", up_to(61, session, run)), name="u") is None
    assert await standing(store, session) == Standing(Amount(60, 10), Amount(60, 7))
    assert await standing(store, run) == Standing(Amount(30, 5), Amount(60, 7))


@pytest.mark.requirement("MSG-20")
async def test_money_is_reserved_at_the_dearest_price_that_may_be_asked_for(
    store: Database,
) -> None:
    asked: list[Usage] = []

    def price(model: str, usage: Usage) -> float | None:
        asked.append(usage)
        return {"a:dear": 0.25, "b:cheap": 0.01}.get(model)

    session_id = await store.write(session_with(RunState.RUNNING), name="u")
    await store.write(
        lambda conn: runs.change(conn, "run_1", {"worker": "w", "fence": 1}), name="u"
    )
    run = await store.read(lambda conn: runs.get(conn, "run_1"))
    settings = BudgetSettings(session=Limit(micro_usd=micro_usd(5)))
    shared = Budgets(Units(store, MemoryBus(), KINDS), FakeClock(), settings, price)
    request = ModelRequest("x" * 400, (), "", (), 50, run.id, 1)
    mine = shared.of(run, Holder("w", 1))
    assert await mine.reserve(request, ["b:cheap", "a:dear", "c:unknown"]) is None
    assert asked[0] == Usage(input_tokens=100, output_tokens=50)
    held = await standing(store, BudgetKey(Scope.SESSION, session_id))
    assert held.reserved == Amount(150, micro_usd(0.25))
    with pytest.raises(StaleLease):
        await shared.of(run, Holder("w", 2)).reserve(request, ["b:cheap"])
    assert await standing(store, BudgetKey(Scope.SESSION, session_id)) == held
