"""What a scrape of the metrics reads is what is open now, whatever there was before (OPS-8)."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress, OutboundMessage, TextPart
from runtime.domain.people import Trust
from runtime.domain.runs import RunState
from runtime.sessions import lanes, outbox, runs, totals
from runtime.sessions.outbox import NewRow
from runtime.store import Database
from runtime.store.database import CLOCK_OPTION
from runtime.store.sqlite import writing_engine
from tests.contract.store_support import StillClock
from tests.stateful.arriving import deliver

PARTIAL = {
    "runs": {"ix_runs_queued", "uq_runs_active"},
    "lanes": {"ix_lanes_ready"},
    "open_calls": {"ix_open_calls_expiry"},
    "outbox": {"ix_outbox_unsettled", "ix_outbox_problems"},
}
"""The indexes that hold only what is open, by table."""
READ = re.compile(r"\b(?:SCAN|SEARCH) (\w+)(?: USING (?:COVERING )?INDEX (\w+))?")


@pytest.fixture
def conn(schema_templates: Callable[[str], str], tmp_path: Path) -> Iterator[Connection]:
    """A connection to a migrated SQLite file."""
    path = tmp_path / "load.db"
    shutil.copyfile(schema_templates("sqlite"), path)
    engine = writing_engine(path).execution_options(**{CLOCK_OPTION: StillClock()})
    with closing(engine.connect()) as made:
        yield made
        made.rollback()


@pytest.mark.requirement("OPS-8", "SCALE-3")
def test_it_reads_only_indexes_of_what_is_open(conn: Connection) -> None:
    asked: list[tuple[str, object]] = []

    def note(_conn: object, _cursor: object, statement: str, given: object, *_more: object) -> None:
        asked.append((statement, given))

    event.listen(conn.engine, "before_cursor_execute", note)
    totals.load(conn)
    outbox.counts(conn)
    event.remove(conn.engine, "before_cursor_execute", note)
    read = set()
    for statement, given in asked:
        for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given):
            for table, index in READ.findall(row[3]):
                if table in PARTIAL:
                    assert index in PARTIAL[table], f"{row[3]}: {statement}"
                    read.add(table)
    assert read == set(PARTIAL)


async def test_it_counts_what_is_open_and_nothing_that_ended(store: Database) -> None:
    def fill(conn: Connection) -> None:
        for number in range(4):
            deliver(conn, number % 2, number, Trust.OWNER, queue_mode="followup")
        deliver(conn, 0, 9, Trust.OWNER, queue_mode="followup")
        head = runs.head(conn, lane_of(conn, 0))
        assert head is not None
        runs.move(conn, head, RunState.CANCELLED, {"ended_ms": 1})
        target = ChatAddress(channel="test", account="A1", chat_id="C0")
        for place, state in enumerate(("pending", "sent", "dead")):
            message = OutboundMessage(
                outbox_id=new_id(IdPrefix.OUTBOX, place + 1),
                target=target,
                parts=(TextPart(markdown="x"),),
            )
            outbox.add(conn, NewRow(kind="notice", message=message))
            conn.exec_driver_sql(
                f"UPDATE outbox SET state = '{state}' WHERE id = '{message.outbox_id}'"
            )

    def lane_of(conn: Connection, chat: int) -> str:
        found = lanes.lock_by_key(conn, f"test:A1:C{chat}")
        assert found is not None
        return found[0].session_id

    await store.write(fill, name="fill")
    load = await store.read(totals.load)
    assert load.runs == {"queued": 4}
    assert (load.deepest, load.ready, load.open_calls) == (2, 2, 0)
    counts = dict(await store.read(outbox.counts))
    assert {name: n for name, n in counts.items() if name != "oldest_ms"} == {
        "pending": 1,
        "dead": 1,
    }
