"""Platform accounts while another replica writes the same one; only PostgreSQL has two writers."""

import asyncio

import asyncpg
import pytest
from sqlalchemy import Connection, text

from runtime.domain.people import Speaker, Trust
from runtime.sessions import people
from runtime.store import Database
from tests.conftest import FailAfter

FIRST = """
INSERT INTO accounts (channel, account, user_id, person_id, name, trust, created_ms, updated_ms)
VALUES ('slack', 'T1', 'U1', 'per_first', 'anna', 'owner', 1, 1)
"""
WAITS = text(
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event IN ('transactionid', 'spectoken')"
)
ANNA = Speaker(
    person_id="per_other",
    channel="slack",
    account="T1",
    user_id="U1",
    name="Anna",
    trust=Trust.OWNER,
)


@pytest.fixture
def dialect() -> str:
    return "postgresql"


def waits(conn: Connection) -> bool:
    """Whether a unit waits for another transaction to end."""
    return bool(conn.execute(WAITS).scalar())


@pytest.mark.requirement("SCALE-1")
async def test_two_first_messages_of_a_person_at_once_make_one_account(
    store: Database, migrated_url: str, fail_after: FailAfter
) -> None:
    """Another replica met her a moment ago: this one takes that account and does not fail."""
    other = await asyncpg.connect(migrated_url)
    try:
        async with fail_after():
            transaction = other.transaction()
            await transaction.start()
            await other.execute(FIRST)
            putting = store.write(lambda conn: people.put(conn, ANNA), name="put")
            task = asyncio.create_task(putting, name="put")
            while not await store.read(waits):
                assert not task.done()
            await transaction.commit()
            await task
            found = await store.read(people.listing)
    finally:
        await other.close()
    assert [(one.speaker.person_id, one.speaker.name) for one in found] == [("per_first", "Anna")]
