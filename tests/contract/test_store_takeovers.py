"""Taking over what another deliverer had in hand: from an earlier one, never from a later."""

from collections.abc import Callable, Mapping
from typing import Final

import pytest
from sqlalchemy import Connection, delete, select, update

from runtime.delivery import outbox_units, stream_units
from runtime.domain.errors import StaleLease
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt
from runtime.domain.runs import Holder
from runtime.sessions import outbox, runs, streams
from runtime.sessions.outbox import NewRow, OutboxRow, Stream
from runtime.sessions.tables import audit
from runtime.sessions.tables import outbox as table
from runtime.store import Database, leases
from runtime.store.tables import leases as lease_table
from tests.contract.test_store_chats import accept, said
from tests.support.kinds import unit_of

EARLIER, LATER, LAST = Holder("d0", 1), Holder("d1", 2), Holder("d2", 3)
TARGET = ChatAddress(channel="test", account="A1", chat_id="-1", chat_kind="group")
MOVED: Final[Mapping[str, dict[str, object]]] = {
    "another has it": {"worker": "d9"},
    "it has it again, under a later fence": {"fence": 9},
    "it is settled": {"state": "unknown"},
}
"""What may have become of a row since a deliverer read it."""
Write = Callable[[Connection, OutboxRow, Holder], object]


def lend(conn: Connection, by: Holder, *, ttl_ms: int = 60_000) -> None:
    """Give a deliverer the lease of the account, under its fence."""
    name = leases.delivery(TARGET.channel, TARGET.account)
    conn.execute(delete(lease_table).where(lease_table.c.name == name))
    leases.acquire(conn, name=name, holder=by.worker, ttl_ms=ttl_ms)
    conn.execute(update(lease_table).where(lease_table.c.name == name).values(fence=by.fence))


def begin(conn: Connection, row: OutboxRow, by: Holder) -> None:
    """Begin to send under a lease that holds."""
    lend(conn, by)
    outbox_units.begin(conn, row.message, by)


WRITES: Final[Mapping[str, Write]] = {
    "begin": begin,
    "progress": lambda conn, row, by: outbox_units.progress(conn, row.message, ("p1",), by),
    "sent": lambda conn, row, by: outbox_units.sent(
        conn, row.message, Receipt(message_ids=("p1",)), by
    ),
    "end": lambda conn, row, by: outbox_units.end(conn, row.message, "dead", "no", by),
    "retry": lambda conn, row, by: outbox_units.retry(conn, row, "later", 1, by),
    "stream": lambda conn, row, by: stream_units.keep(conn, row.message, Stream("p1"), by),
    "orphaned": lambda conn, row, by: stream_units.orphaned(
        conn, row.message, Stream("p1"), "no", by
    ),
}
"""What a deliverer writes of a row in its hands."""


def held(conn: Connection) -> list[OutboxRow]:
    """What deliverers of the account have in hand, as one that looks now reads it."""
    return list(outbox.in_hand(conn, channel="test", account="A1"))


def message_of(run_id: str | None = None) -> OutboundMessage:
    """A message without a word, of a run or of none."""
    return OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, 1), target=TARGET, parts=(), run_id=run_id
    )


def put(conn: Connection, state: str, by: Holder) -> OutboxRow:
    """A row in a deliverer's hands; in the chat it is alone."""
    conn.execute(update(table).values(state="sent"))
    message = message_of()
    assert outbox.add(conn, NewRow(kind="notice", message=message, claim=by))
    conn.execute(update(table).where(table.c.id == message.outbox_id).values(state=state))
    row = outbox.get(conn, message.outbox_id)
    assert row is not None
    return row


def move(conn: Connection, row: OutboxRow, values: dict[str, object]) -> None:
    """What another did with the row."""
    conn.execute(update(table).where(table.c.id == row.message.outbox_id).values(**values))


@pytest.mark.requirement("MSG-9")
async def test_a_message_is_taken_over_from_an_earlier_deliverer_alone(store: Database) -> None:
    message = message_of()

    def in_later_hands(conn: Connection) -> None:
        leases.acquire(conn, name=leases.delivery("test", "A1"), holder="d1", ttl_ms=60_000)
        new = NewRow(kind="notice", message=message, claim=LATER)
        assert outbox.add(conn, new)

    def adopt(conn: Connection, holder: Holder) -> int:
        return len(outbox_units.adopt(conn, held(conn), holder))

    await store.write(in_later_hands, name="later")
    assert await store.write(lambda conn: adopt(conn, EARLIER), name="adopt") == 0
    (row,) = await store.read(held)
    assert (row.worker, row.fence) == (LATER.worker, LATER.fence)
    assert await store.write(lambda conn: adopt(conn, LAST), name="adopt") == 1
    (row,) = await store.read(held)
    assert (row.worker, row.fence) == (LAST.worker, LAST.fence)


@pytest.mark.requirement("MSG-9", "REN-4")
async def test_a_growing_text_is_taken_over_from_an_earlier_deliverer_alone(
    store: Database,
) -> None:
    accepted = await accept(store, said("tell me", "1"))
    run_id = accepted.run_id or ""

    def in_later_hands(conn: Connection) -> None:
        runs.change(conn, run_id, {"state": "running", "worker": "w1", "fence": 1})
        streams.add(conn, message_of(run_id), LATER)

    def care(conn: Connection, holder: Holder) -> int:
        return len(stream_units.care(conn, held(conn), holder).growing)

    await store.write(in_later_hands, name="later")
    assert await store.write(lambda conn: care(conn, EARLIER), name="care") == 0
    (row,) = await store.read(held)
    assert (row.worker, row.fence) == (LATER.worker, LATER.fence)
    assert await store.write(lambda conn: care(conn, LAST), name="care") == 1
    (row,) = await store.read(held)
    assert (row.worker, row.fence) == (LAST.worker, LAST.fence)


@pytest.mark.requirement("MSG-9", "SCALE-2")
@pytest.mark.parametrize("moved", MOVED)
async def test_a_deliverer_that_lost_a_row_writes_nothing_of_it(
    store: Database, moved: str
) -> None:
    """Whatever it wanted to write; a deliverer that still has the row may write each of these."""
    for name, write in WRITES.items():

        def lost(conn: Connection, write: Write = write) -> None:
            row = put(conn, "sending", LATER)
            move(conn, row, MOVED[moved])
            write(conn, row, LATER)

        with pytest.raises(StaleLease):
            await store.write(lost, name=name)
        await store.write(
            lambda conn, write=write: write(conn, put(conn, "sending", LATER), LATER), name=name
        )


@pytest.mark.requirement("MSG-9", "MSG-11", "SCALE-2")
async def test_no_send_begins_under_a_lease_that_ran_out_while_the_store_was_away(
    store: Database,
) -> None:
    """Its fate would be unknown although nobody had handed it over: the next deliverer sends it."""

    def late(conn: Connection) -> None:
        row = put(conn, "sending", LATER)
        lend(conn, LATER, ttl_ms=0)
        with pytest.raises(StaleLease):
            outbox_units.begin(conn, row.message, LATER)

    await store.write(late, name="late")
    (row,) = await store.read(held)
    assert row.begun_ms is None


@pytest.mark.requirement("MSG-9", "SCALE-2")
@pytest.mark.parametrize("moved", MOVED)
@pytest.mark.parametrize("state", ["sending", "streaming"])
async def test_a_row_that_moved_on_since_it_was_read_is_not_taken_over(
    store: Database, state: str, moved: str
) -> None:

    def late(conn: Connection, values: dict[str, object]) -> bool:
        row = put(conn, state, EARLIER)
        move(conn, row, values)
        return outbox.adopt(conn, row, LATER)

    assert not await store.write(lambda conn: late(conn, MOVED[moved]), name="late")
    assert await store.write(lambda conn: late(conn, {"state": state}), name="in time")


@pytest.mark.requirement("MSG-9", "REN-4", "SCALE-2")
async def test_a_text_that_another_took_meanwhile_is_not_cared_for(store: Database) -> None:
    accepted = await accept(store, said("tell me", "1"))
    run_id = accepted.run_id or ""

    def both_look(conn: Connection) -> int:
        runs.change(conn, run_id, {"state": "running", "worker": "w1", "fence": 1})
        streams.add(conn, message_of(run_id), EARLIER)
        rows = held(conn)
        assert len(stream_units.care(conn, rows, LAST).growing) == 1
        return len(stream_units.care(conn, rows, LATER).growing)

    assert await store.write(both_look, name="look") == 0
    (row,) = await store.read(held)
    assert (row.worker, row.fence) == (LAST.worker, LAST.fence)


@pytest.mark.requirement("MSG-10")
async def test_a_reply_behind_another_of_its_chat_is_not_given_away_at_once(
    store: Database,
) -> None:
    def behind(conn: Connection) -> bool:
        put(conn, "sending", LATER)
        return outbox.add(conn, NewRow(kind="final", message=message_of(), claim=LATER))

    assert not await store.write(behind, name="behind")
    assert len(await store.read(held)) == 1


@pytest.mark.requirement("MSG-11", "SCALE-2")
async def test_a_send_under_a_lost_lease_is_counted_unless_it_is_the_post_that_is_known(
    store: Database,
) -> None:
    def counted(conn: Connection, posted: tuple[str, ...], known: tuple[str, ...]) -> bool:
        row = put(conn, "sending", LATER)
        outbox_units.sent(conn, row.message, Receipt(message_ids=known), LATER)
        return outbox_units.unfenced(conn, row.message, posted)

    def kept(conn: Connection) -> int:
        query = select(audit.c.position).where(audit.c.action == "delivery.unfenced")
        return len(conn.execute(query).all())

    for posted, known in ((("p1",), ("p1",)), (("p1",), ("p1", "p2"))):
        one = await store.write(lambda conn, p=posted, k=known: counted(conn, p, k), name="same")
        assert not one
    assert await store.read(kept) == 0
    for posted, known in ((("p2",), ("p1",)), ((), ("p1",))):
        one = await store.write(lambda conn, p=posted, k=known: counted(conn, p, k), name="other")
        assert one
    assert await store.read(kept) == 2


@pytest.mark.requirement("MSG-9")
async def test_a_deliverer_takes_over_what_it_lost_under_its_own_fence(store: Database) -> None:
    """After a unit whose end it did not hear of, its own rows are found like those of others."""

    def again(conn: Connection) -> int:
        put(conn, "sending", LATER)
        return len(outbox_units.adopt(conn, held(conn), LATER))

    assert await store.write(again, name="again") == 1


@pytest.mark.requirement("MSG-10", "MSG-11")
async def test_a_message_is_claimed_once_and_under_a_lease_that_holds(store: Database) -> None:
    def pending(conn: Connection) -> OutboxRow:
        row = put(conn, "sending", EARLIER)
        move(conn, row, {"state": "pending", "worker": None, "fence": None})
        return row

    def claim(conn: Connection, row: OutboxRow) -> list[str]:
        return [one.message.outbox_id for one in outbox_units.claim(conn, [row], EARLIER)]

    row = await store.write(pending, name="pending")
    assert await store.write(lambda conn: claim(conn, row), name="claim") == []
    name = leases.delivery("test", "A1")
    take = {"name": name, "holder": EARLIER.worker, "ttl_ms": 60_000}
    assert await store.write(lambda conn: leases.acquire(conn, **take), name="take") == 1
    assert await store.write(lambda conn: claim(conn, row), name="claim") == [row.message.outbox_id]
    assert await store.write(lambda conn: claim(conn, row), name="claim") == []
    (kept,) = await store.read(held)
    assert kept.attempt == 1


@pytest.mark.requirement("REN-4", "SCALE-2")
async def test_a_text_grows_for_the_deliverer_that_has_it_alone(store: Database) -> None:
    accepted = await accept(store, said("tell me", "1"))
    run_id = accepted.run_id or ""

    def running(conn: Connection) -> None:
        runs.change(conn, run_id, {"state": "running", "worker": "w1", "fence": 1})
        streams.add(conn, message_of(run_id), EARLIER)
        name = leases.delivery("test", "A1")
        leases.acquire(conn, name=name, holder=EARLIER.worker, ttl_ms=60_000)
        leases.release(conn, name=name, holder=EARLIER.worker, fence=EARLIER.fence)
        assert leases.acquire(conn, name=name, holder=LATER.worker, ttl_ms=60_000) == LATER.fence

    def begin(conn: Connection, holder: Holder) -> bool:
        return unit_of(lambda unit: stream_units.begin(unit, run_id, holder))(conn) is not None

    await store.write(running, name="running")
    assert not await store.write(lambda conn: begin(conn, EARLIER), name="begin"), "no lease"
    assert not await store.write(lambda conn: begin(conn, LATER), name="begin"), "not its row"
    await store.write(lambda conn: stream_units.care(conn, held(conn), LATER), name="care")
    assert await store.write(lambda conn: begin(conn, LATER), name="begin")


@pytest.mark.requirement("REN-4", "SCALE-2")
async def test_a_stream_is_closed_by_the_deliverer_that_has_it_alone(store: Database) -> None:
    def ended(conn: Connection, worker: str, fence: int) -> int:
        found = streams.ended(conn, channel="test", account="A1", holder=Holder(worker, fence))
        return len(found)

    def grown(conn: Connection) -> list[int]:
        row = put(conn, "sending", LATER)
        stream_units.keep(conn, row.message, Stream("p1"), LATER)
        asking = [(EARLIER.worker, LATER.fence), (LATER.worker, EARLIER.fence)]
        return [ended(conn, *one) for one in (*asking, (LATER.worker, LATER.fence))]

    assert await store.write(grown, name="grown") == [0, 0, 1]


@pytest.mark.requirement("REN-4", "MSG-10")
async def test_no_text_begins_to_grow_of_a_run_that_ends_or_behind_what_waits(
    store: Database,
) -> None:
    accepted = await accept(store, said("tell me", "1"))
    run_id = accepted.run_id or ""

    begin = unit_of(lambda unit: stream_units.begin(unit, run_id, EARLIER))

    def look(conn: Connection) -> list[bool]:
        name = leases.delivery("test", "A1")
        leases.acquire(conn, name=name, holder=EARLIER.worker, ttl_ms=60_000)
        begun = []
        for state, cancel in (("completed", None), ("running", "stop")):
            runs.change(conn, run_id, {"state": state, "cancel": cancel})
            begun.append(begin(conn) is not None)
        runs.change(conn, run_id, {"cancel": None})
        row = put(conn, "sending", EARLIER)
        begun.append(begin(conn) is not None)
        move(conn, row, {"state": "sent"})
        return [*begun, begin(conn) is not None]

    assert await store.write(look, name="look") == [False, False, False, True]
