"""What follows a chat, an edit, a home page or a growing text in the rows, on each database."""

import pytest
from sqlalchemy import Connection

from runtime.bus.memory import MemoryBus
from runtime.delivery import stream_units
from runtime.domain.messages import Deletion, InboundMessage, Move
from runtime.domain.people import Sender
from runtime.domain.runs import Holder, RunState
from runtime.intake.access import ChannelAccess
from runtime.intake.gatehouse import Intake
from runtime.intake.settings import IntakeSettings
from runtime.ports.gatehouse import Accepted
from runtime.sessions import inputs, message_edits, outbox, runs, sessions, streams
from runtime.sessions.outbox import Stream
from runtime.sessions.unit import Units, in_unit
from runtime.store import Database, leases
from tests.support.kinds import KINDS

OWNER = Sender(id="U%1_", name="Ada")
RULES = IntakeSettings(
    access={"test": ChannelAccess(group_policy="open", owners=frozenset({OWNER.id}))},
    queue_mode="collect",
)


def said(
    text: str, message_id: str, *, chat: str = "-1", edited: str | None = None
) -> InboundMessage:
    return InboundMessage(
        channel="test",
        account="A1",
        chat_id=chat,
        chat_kind="group",
        message_id=message_id,
        edited_at=edited,
        sender=OWNER,
        text=text,
        mentions_bot=True,
        received_at_ms=1,
    )


def door(store: Database) -> Intake:
    """The engine's door, with the rules of these tests."""
    return Intake(Units(store, MemoryBus(), KINDS), RULES)


async def accept(store: Database, message: InboundMessage) -> Accepted:
    return await door(store).accept(message)


@pytest.mark.requirement("MSG-2")
async def test_what_is_delivered_again_takes_no_number(store: Database) -> None:
    for message in [said("/status", "1"), said("/status", "1"), said("go", "2"), said("go", "2")]:
        last = await accept(store, message)
    assert last.disposition == "duplicate"

    def look(conn: Connection) -> tuple[int, int]:
        (waiting,) = inputs.pending_of_run(conn, last.run_id or "")
        lane = in_unit(conn, KINDS, lambda unit: unit.lane(last.session_id or ""))
        return waiting.seq, lane.input_seq

    assert await store.write(look, name="look") == (2, 2)


@pytest.mark.requirement("SLK-2", "TEL-2")
async def test_edits_and_deletions_find_their_input(store: Database) -> None:
    accepted = await accept(store, said("by milk", "1"))
    revised = await door(store).revise(said("buy milk", "1", edited="2"))
    assert (revised.disposition, revised.input_id) == ("queued", accepted.input_id)
    waiting = await store.read(lambda conn: inputs.pending_of_run(conn, accepted.run_id or ""))
    assert [one.message.text for one in waiting] == ["buy milk"]
    gone = Deletion(channel="test", account="A1", chat_id="-1", message_id="1", received_at_ms=1)
    await door(store).withdraw(gone)
    run = await store.read(lambda conn: runs.get(conn, accepted.run_id or ""))
    assert run.state is RunState.CANCELLED
    linked = await store.read(lambda conn: message_edits.of_message(conn, said("", "1").identity))
    assert linked is not None
    assert linked.state == "withdrawn"


@pytest.mark.requirement("TEL-6")
async def test_a_chat_moves_with_all_that_waits(store: Database) -> None:
    accepted = await accept(store, said("first", "1"))
    await accept(store, said("/status", "2"))
    move = Move(channel="test", account="A1", old_chat_id="-1", new_chat_id="-100")
    for _ in range(2):
        await door(store).move(move)

    def look(conn: Connection) -> tuple[str, str, list[str]]:
        run = runs.get(conn, accepted.run_id or "")
        session = sessions.get(conn, run.session_id)
        due = outbox.due(conn, channel="test", account="A1", most=5)
        return session.key, run.target.chat_id, [row.message.target.chat_id for row in due]

    assert await store.read(look) == ("test:A1:-100", "-100", ["-100"])


@pytest.mark.requirement("SLK-4")
async def test_a_home_page_lists_where_the_person_spoke(store: Database) -> None:
    await accept(store, said("mine", "1"))
    other = said("not mine", "2", chat="-2").model_copy(update={"sender": Sender(id="Ux1y")})
    await accept(store, other)
    home = await door(store).home(channel="test", account="A1", sender=OWNER)
    assert [(one.title, one.state) for one in home.sessions] == [("mine", "queued")]


@pytest.mark.requirement("REN-4", "MSG-9")
async def test_a_growing_text_is_one_row_until_its_end(store: Database) -> None:
    accepted = await accept(store, said("tell me", "1"))
    run_id, holder = accepted.run_id or "", Holder("w1", 1)

    def begin(conn: Connection) -> str:
        name = leases.delivery("test", "A1")
        assert leases.acquire(conn, name=name, holder="w1", ttl_ms=60_000) == 1
        runs.change(conn, run_id, {"state": "running", "worker": "w1", "fence": 1})
        row, again = (
            in_unit(conn, KINDS, lambda unit: stream_units.begin(unit, run_id, holder))
            for _ in range(2)
        )
        assert row is not None
        assert again is not None
        assert again.message.outbox_id == row.message.outbox_id
        assert (row.stream, again.stream) == (None, Stream())
        stream_units.keep(conn, row.message, Stream("p1"), holder)
        return row.message.outbox_id

    outbox_id = await store.write(begin, name="begin")
    asked = {"channel": "test", "account": "A1"}
    assert await store.read(lambda conn: streams.over(conn, **asked)) == frozenset()
    await store.write(
        lambda conn: runs.change(conn, run_id, {"state": "cancelled", "ended_ms": 1}), name="end"
    )
    assert await store.read(lambda conn: streams.over(conn, **asked)) == {outbox_id}
    rows = await store.read(lambda conn: outbox.in_hand(conn, **asked))
    later = Holder("w2", 2)
    cared = await store.write(lambda conn: stream_units.care(conn, rows, later), name="care")
    (closing,) = cared.closing
    assert (closing.kind, closing.state, closing.stream) == ("said", "sending", Stream("p1"))
    found = await store.read(lambda conn: streams.ended(conn, **asked, holder=later))
    assert [row.message.outbox_id for row in found] == [outbox_id]
