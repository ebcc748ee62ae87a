"""What every message asks of the store is found by an index, not by reading all that there is."""

from pathlib import Path

from sqlalchemy import Connection

from runtime.sessions import open_calls, outbox
from runtime.store import open_database
from runtime.store.writer import driver_connection
from tests.fakes.clock import FakeClock
from tests.support.templates import make_database


def look_for_a_card(conn: Connection) -> None:
    outbox.card_posted_as(conn, channel="slack", account="T1", chat="C1", message_id="1.0")


def look_for_a_waiting_run(conn: Connection) -> None:
    open_calls.of_run(conn, "run_1", state="open")


def plans(conn: Connection) -> list[str]:
    """How SQLite goes about what the two ask."""
    raw = driver_connection(conn)
    asked: list[str] = []
    raw.set_trace_callback(asked.append)
    try:
        look_for_a_card(conn)
        look_for_a_waiting_run(conn)
    finally:
        raw.set_trace_callback(None)
    assert len(asked) == 2
    return [
        " / ".join(str(row[3]) for row in raw.execute(f"EXPLAIN QUERY PLAN {one}")) for one in asked
    ]


async def test_a_reply_to_a_card_and_a_run_that_waits_are_found_by_index(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await make_database(url)
    database = open_database(url, clock=FakeClock())
    await database.start()
    try:
        cards, waiting = await database.write(plans, name="plans")
    finally:
        await database.close()
    # The calls that are open, which are few, and their cards.
    assert "SEARCH outbox USING INDEX ix_outbox_open_call (open_call_id=?)" in cards
    assert "SCAN open_calls USING INDEX ix_open_calls_expiry" in cards
    assert waiting.startswith("SEARCH open_calls USING INDEX ix_open_calls_run_id")
