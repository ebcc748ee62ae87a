"""Races on rows that are there already, and on those that two replicas make at once.

As in `test_races`: the first unit is held in front of its COMMIT while the second waits for it.
"""

import asyncio
from collections.abc import Callable
from functools import partial

import asyncpg
import pytest
from sqlalchemy import Connection, text, update

from runtime.domain.budgets import Amount
from runtime.domain.errors import Conflict, StaleLease
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage, OutboundMessage, TextPart
from runtime.domain.people import Sender, Trust
from runtime.domain.runs import Holder, RunState
from runtime.domain.value import JsonObject
from runtime.intake import pairing
from runtime.intake.pairing import OWNER_CODE, new_owner_code
from runtime.ports.bus import RUNS
from runtime.sessions import budgets, claims, lanes, outbox, people, runs, settings, streams
from runtime.sessions import streams as growing
from runtime.sessions.budgets import Charge, Refusal, Reservation
from runtime.sessions.claims import Claims
from runtime.sessions.people import Pairing
from runtime.sessions.run_steps import finish
from runtime.sessions.unit import Unit
from runtime.sessions.window import WindowCache
from runtime.store import Database, leases
from runtime.store.database import now_ms
from tests.contract.store_support import (
    Gate,
    clock,
    migrated_url,
    points,
    schema_templates,
    store,
)
from tests.contract.test_store_budgets import up_to
from tests.stateful.arriving import deliver
from tests.stateful.bench import ACCOUNT, CHANNEL, LEASE_MS, address
from tests.stateful.test_races import FIRST, SECOND, Race, begun, dialect, race
from tests.stateful.working import ending
from tests.support.kinds import KINDS, unit_of

__all__ = ["clock", "dialect", "migrated_url", "points", "race", "schema_templates", "store"]

BUDGETS = up_to(50)


def take(conn: Connection, holder: Holder, *, most: int) -> Claims:
    """A worker claims what it can."""
    return unit_of(lambda unit: claims.claim(unit, holder, most=most, cache=WindowCache()))(conn)


@pytest.mark.requirement("SCALE-1")
async def test_two_replicas_that_start_at_once_make_one_owner_code(race: Race) -> None:
    made: list[str | None] = []

    def first(conn: Connection) -> None:
        made.append(new_owner_code(conn))

    assert await race.run(first, new_owner_code) is None
    assert made[0] is not None


@pytest.mark.requirement("ACC-1", "SCALE-1")
async def test_two_owners_that_answer_a_stranger_at_once_answer_once(race: Race) -> None:
    stranger = {"channel": CHANNEL, "account": ACCOUNT, "user_id": "U9"}

    def ask(conn: Connection) -> None:
        now = now_ms(conn)
        asked = Pairing(
            **stranger,
            code="ABCDEF",
            name="Ann",
            address=address(0),
            created_ms=now,
            expires_ms=now + LEASE_MS,
            state="pending",
        )
        people.add_pairing(conn, asked)

    await race.store.write(ask, name="ask")
    with pytest.raises(Conflict, match="is denied"):
        await race.run(
            lambda conn: pairing.deny(conn, "ABCDEF", by="Ada"),
            lambda conn: pairing.approve(conn, "ABCDEF", trust=Trust.MEMBER, by="Bob"),
        )
    assert await race.store.read(lambda conn: people.find(conn, **stranger)) is None


@pytest.mark.requirement("SCALE-1")
async def test_a_value_that_two_set_at_once_is_the_later_one(race: Race) -> None:
    put = partial(settings.put, name=OWNER_CODE)
    await race.run(lambda conn: put(conn, value="earlier"), lambda conn: put(conn, value="later"))
    assert await race.store.read(lambda conn: settings.get(conn, OWNER_CODE)) == "later"


@pytest.mark.requirement("MSG-4", "SCALE-1")
async def test_two_messages_of_a_conversation_at_once_come_one_after_the_other(race: Race) -> None:
    def say(conn: Connection, number: int) -> str:
        queued = deliver(conn, 0, number, Trust.OWNER, queue_mode="followup")
        assert queued is not None
        return queued.run_id

    first = await race.store.write(lambda conn: say(conn, 1), name="first")
    last = await race.run(lambda conn: say(conn, 2), lambda conn: say(conn, 3))

    def waiting(conn: Connection) -> list[tuple[str, int]]:
        return [(one.id, one.seq) for one in runs.queued(conn, runs.get(conn, first).session_id)]

    found = await race.store.read(waiting)
    assert [seq for _, seq in found] == [1, 2, 3]
    assert (found[0][0], found[2][0]) == (first, last)


@pytest.mark.requirement("SCALE-1")
async def test_a_lease_that_ran_out_goes_to_one_of_two(race: Race) -> None:
    def given_back(conn: Connection) -> None:
        leases.acquire(conn, name="timers", holder="old", ttl_ms=LEASE_MS)
        leases.release(conn, name="timers", holder="old", fence=1)

    await race.store.write(given_back, name="given-back")
    take = partial(leases.acquire, name="timers", ttl_ms=LEASE_MS)
    second = await race.run(
        lambda conn: take(conn, holder=FIRST), lambda conn: take(conn, holder=SECOND)
    )
    assert second is None
    (kept,) = await race.store.read(leases.listing)
    assert (kept.holder, kept.fence) == (FIRST, 2)


def reserving(run_id: str) -> Callable[[Connection], Refusal | None]:
    return lambda conn: budgets.reserve(conn, Reservation(run_id, 1, Amount(60, 7), 1), BUDGETS)


@pytest.mark.requirement("MSG-20")
async def test_the_rest_of_a_budget_in_use_goes_to_one_of_two(race: Race) -> None:
    def used(conn: Connection) -> None:
        budgets.reserve(conn, Reservation("earlier", 1, Amount(1, 1), 1), BUDGETS)
        budgets.settle(conn, "earlier", Charge(Amount(1, 1)))

    await race.store.write(used, name="used")
    refused = await race.run(reserving("a"), reserving("b"))
    assert refused is not None
    assert refused.wait, "the first may give some of it back"


@pytest.mark.requirement("REN-4", "MSG-9")
async def test_a_text_that_became_a_reply_is_not_cut_by_whoever_waited(race: Race) -> None:
    run_id, _ = await begun(race.store)
    outbox_id = new_id(IdPrefix.OUTBOX, 1)

    def message(conn: Connection, *said: TextPart) -> OutboundMessage:
        target = runs.get(conn, run_id).target
        return OutboundMessage(outbox_id=outbox_id, target=target, parts=said, run_id=run_id)

    def becomes(conn: Connection) -> None:
        assert growing.become(conn, message(conn, TextPart(markdown="done"))) is not None

    await race.store.write(
        lambda conn: streams.add(conn, message(conn), Holder("d0", 1)), name="grows"
    )
    await race.run(becomes, lambda conn: growing.cut(conn, runs.get(conn, run_id)))
    row = await race.store.read(lambda conn: outbox.get(conn, outbox_id))
    assert row is not None
    assert (row.kind, row.message.parts) == ("final", (TextPart(markdown="done"),))


@pytest.mark.requirement("SCALE-1")
async def test_a_claim_passes_over_a_lane_that_another_holds(
    store: Database, migrated_url: str
) -> None:
    def arrive(conn: Connection) -> list[str]:
        leases.acquire(conn, name=f"{leases.PROCESS}{FIRST}", holder=FIRST, ttl_ms=LEASE_MS)
        queued = [deliver(conn, chat, 1, Trust.OWNER, queue_mode="followup") for chat in (0, 1)]
        return [runs.get(conn, one.run_id).session_id for one in queued if one is not None]

    def claim(conn: Connection) -> tuple[list[str], bool]:
        # Instead of a wait without end, where it does not pass over.
        conn.execute(text("SET LOCAL lock_timeout = '5s'"))
        taken = take(conn, Holder(FIRST, 1), most=5)
        return [one.run.session_id for one in taken.runs], taken.passed_over

    held, free = await store.write(arrive, name="arrive")
    server = await asyncpg.connect(migrated_url)
    await server.execute("SELECT pg_advisory_lock(1)")
    gate = Gate(server)

    def hold(conn: Connection) -> None:
        lanes.lock(conn, held)
        gate.hold(conn)

    holding = asyncio.create_task(store.write(hold, name="hold"), name="hold")
    try:
        await gate.entered()
        assert await store.write(claim, name="claim") == ([free], True), "so it looks again soon"
        assert await store.write(claim, name="claim") == ([], True), "and again"
    finally:
        await gate.open()
        await holding
        await server.close()
    assert await store.write(claim, name="claim") == ([held], False)
    assert await store.write(claim, name="claim") == ([], False)


@pytest.mark.requirement("MSG-21")
async def test_whoever_held_a_lane_that_is_ready_tells_that_it_is_free(store: Database) -> None:
    """Else a run that a claim passed over for it would wait for a clock."""

    def arrive(conn: Connection) -> str:
        leases.acquire(conn, name=f"{leases.PROCESS}{FIRST}", holder=FIRST, ttl_ms=LEASE_MS)
        queued = deliver(conn, 0, 1, Trust.OWNER, queue_mode="followup")
        assert queued is not None
        return runs.get(conn, queued.run_id).session_id

    def hold(conn: Connection, later_ms: int = 0) -> list[tuple[str, JsonObject]]:
        unit = Unit(conn, KINDS)
        lane = unit.lane(session_id)
        if later_ms:
            lane.ready_ms = lane.now_ms + later_ms
        unit.save()
        return unit.said

    session_id = await store.write(arrive, name="arrive")
    assert await store.write(hold, name="hold") == [(RUNS, {"session_id": session_id})]
    later = partial(hold, later_ms=1)
    assert await store.write(later, name="later") == [], "it is not ready yet"
    await store.write(lambda conn: hold(conn, -1), name="ready")
    taken = await store.write(partial(take, holder=Holder(FIRST, 1), most=1), name="claim")
    assert len(taken.runs) == 1
    assert await store.write(hold, name="hold") == [], "it is somebody's"


@pytest.mark.requirement("MSG-4", "SCALE-2")
async def test_nothing_is_claimed_of_a_lane_that_is_taken_or_under_a_lease_that_ran_out(
    race: Race,
) -> None:
    """Whatever a row says of when its lane is ready, and whatever a process believes it holds."""
    run_id, stale = await begun(race.store)

    def claimed(conn: Connection, holder: Holder) -> tuple[int, bool]:
        found = take(conn, holder, most=1)
        return len(found.runs), found.full

    def more(conn: Connection) -> None:
        for chat in (0, 1):
            deliver(conn, chat, 2, Trust.OWNER, queue_mode="followup")
        session_id = runs.get(conn, run_id).session_id
        row = update(lanes.lanes).where(lanes.lanes.c.session_id == session_id)
        conn.execute(row.values(ready_ms=0))

    await race.store.write(more, name="more")
    assert await race.store.write(lambda conn: claimed(conn, stale), name="claim") == (0, False)
    live = Holder(SECOND, 1)
    # The taken lane is settled alone, and the worker is told to look again at once.
    assert await race.store.write(lambda conn: claimed(conn, live), name="claim") == (0, True)
    assert await race.store.write(lambda conn: claimed(conn, live), name="claim") == (1, True)
    assert await race.store.write(lambda conn: claimed(conn, live), name="claim") == (0, False)
    run = await race.store.read(lambda conn: runs.get(conn, run_id))
    assert run.worker == FIRST


@pytest.mark.requirement("MSG-4", "SCALE-2")
async def test_a_run_that_came_back_to_its_worker_is_not_written_under_the_old_fence(
    race: Race,
) -> None:
    """The worker's name is the same; what it knew of the run is not."""
    run_id, stale = await begun(race.store)
    end = ending(RunState.COMPLETED)

    def again(conn: Connection) -> None:
        unit_of(claims.recover)(conn)
        name = f"{leases.PROCESS}{FIRST}"
        fence = leases.acquire(conn, name=name, holder=FIRST, ttl_ms=LEASE_MS)
        assert fence == stale.fence + 1
        assert take(conn, Holder(FIRST, fence), most=1).runs

    with pytest.raises(StaleLease):
        await race.run(again, unit_of(lambda unit: finish(unit, stale, run_id, end, claim=None)))
    run = await race.store.read(lambda conn: runs.get(conn, run_id))
    assert (run.state, run.fence) == (RunState.RUNNING, stale.fence + 1)


@pytest.mark.requirement("ACC-2", "SCALE-1")
async def test_an_owner_code_that_two_say_at_once_makes_one_owner(race: Race) -> None:
    code = await race.store.write(new_owner_code, name="code")

    def said(user: str) -> InboundMessage:
        return InboundMessage(
            channel="test",
            account="A1",
            chat_id=user,
            chat_kind="direct",
            message_id="1",
            sender=Sender(id=user, name=user),
            text=code or "",
            received_at_ms=1,
        )

    await race.run(
        lambda conn: pairing.claim_owner(conn, said("U1")),
        lambda conn: pairing.claim_owner(conn, said("U2")),
    )
    owners = await race.store.read(lambda conn: people.with_trust(conn, Trust.OWNER))
    assert [one.speaker.user_id for one in owners] == ["U1"]
