"""The one order in which a unit locks lanes: deeper ones first, of equal depth by their ids."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from runtime.domain.messages import ChatAddress
from runtime.sessions.lanes import Lane, NewSession
from runtime.sessions.unit import LockOrderBroken, Unit, in_unit
from runtime.store import Database, open_database
from tests.contract.store_support import StillClock
from tests.support.kinds import KINDS
from tests.support.templates import make_database

FIRST, SECOND, CHILD, GRANDCHILD = "ses_a", "ses_b", "ses_x", "ses_y"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    """Two conversations; the second has a child, which has one itself."""
    url = f"sqlite:///{tmp_path / 'gatehouse.db'}"
    await make_database(url)
    opened = open_database(url, clock=StillClock())
    await opened.start()
    await opened.write(lambda conn: in_unit(conn, KINDS, family), name="family")
    yield opened
    await opened.close()


def family(unit: Unit) -> None:
    make(unit, FIRST, None)
    make(unit, GRANDCHILD, make(unit, CHILD, make(unit, SECOND, None)))


def make(unit: Unit, session_id: str, parent: Lane | None) -> Lane:
    """A session of that id."""
    address = ChatAddress(channel="test", account="A1", chat_id=session_id)
    new = NewSession(session_id, address, mode="edit", queue_mode="followup", parent=parent)
    lane = unit.create(new, session_id=session_id)
    assert lane is not None
    return lane


async def lock(store: Database, session_ids: Sequence[str]) -> list[Lane]:
    """Lock lanes one by one in a unit."""

    def work(unit: Unit) -> list[Lane]:
        return [unit.lane(session_id) for session_id in session_ids]

    return await store.write(lambda conn: in_unit(conn, KINDS, work), name="locking")


@pytest.mark.requirement("APR-7", "APR-10", "MSG-4")
@pytest.mark.parametrize(
    "wrong",
    [
        [SECOND, FIRST],
        [FIRST, CHILD],
        [SECOND, CHILD],
        [CHILD, GRANDCHILD],
        [GRANDCHILD, SECOND, CHILD],
    ],
)
async def test_a_unit_that_locks_lanes_against_their_order_fails(
    store: Database, wrong: list[str]
) -> None:
    with pytest.raises(LockOrderBroken, match=wrong[-1]):
        await lock(store, wrong)


@pytest.mark.requirement("APR-7", "APR-10", "MSG-4")
async def test_a_unit_that_locks_lanes_in_their_order_may_ask_for_each_again(
    store: Database,
) -> None:
    found = await lock(store, [GRANDCHILD, CHILD, FIRST, SECOND, GRANDCHILD, FIRST])
    assert found[0] is found[4]
    assert found[2] is found[5]


@pytest.mark.requirement("APR-7", "APR-10", "MSG-4")
async def test_several_lanes_at_once_are_locked_in_their_order_and_given_as_asked(
    store: Database,
) -> None:
    asked = [SECOND, CHILD, FIRST, GRANDCHILD, CHILD]

    def work(unit: Unit) -> list[str]:
        return [lane.session_id for lane in unit.lanes(asked)]

    assert await store.write(lambda conn: in_unit(conn, KINDS, work), name="locking") == asked
