"""Any unit on any tree of sessions: it locks lanes in their order, or it fails and leaves nothing.

The order is looked up nowhere but here: deeper lanes first, of equal depth by their ids. Half of
the units break it on purpose.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import Connection, select

from runtime.domain.messages import ChatAddress
from runtime.sessions.lanes import Lane, NewSession
from runtime.sessions.tables import lanes as lane_rows
from runtime.sessions.unit import LockOrderBroken, Unit
from tests.contract.store_support import schema_templates
from tests.stateful.playing import assert_holds
from tests.stateful.units import SqliteUnits, Units
from tests.support.kinds import unit_of

__all__ = ["schema_templates"]

Picks = Sequence[int]
PICKS = st.lists(st.integers(0, 11), min_size=2, max_size=6)


class LockOrder(RuleBasedStateMachine):
    """Units that count in each lane which they locked, one after another."""

    make: Callable[[], Units]

    def __init__(self) -> None:
        super().__init__()
        self.units = type(self).make()
        self.depths: dict[str, int] = {}
        self.counted: dict[str, int] = {}

    @initialize()
    def two_people_write(self) -> None:
        """The roots of two trees."""
        self.a_session_begins(7, None)
        self.a_session_begins(3, None)

    @precondition(lambda self: len(self.depths) < 12)
    @rule(number=st.integers(0, 99), parent=st.none() | st.integers(0, 11))
    def a_session_begins(self, number: int, parent: int | None) -> None:
        """A conversation, or a session below one; its id says nothing about its depth."""
        session_id = f"ses_{number:02}"
        if session_id in self.depths:
            return
        above = None if parent is None else self._picked([parent])[0]
        self.units.run(unit_of(partial(_create, session_id=session_id, parent=above)))
        self.depths[session_id] = 0 if above is None else self.depths[above] + 1
        self.counted[session_id] = 0

    @rule(picks=PICKS)
    def a_unit_locks_lanes_as_it_comes(self, picks: Picks) -> None:
        """It succeeds if that happens to be in their order, and else changes nothing."""
        self._one_by_one(self._picked(picks))

    @rule(picks=PICKS)
    def a_unit_locks_lanes_in_their_order(self, picks: Picks) -> None:
        """And asks for one again that it holds."""
        asked = sorted(self._picked(picks), key=self._place)
        self._one_by_one([*asked, asked[0]])

    @rule(picks=PICKS)
    def a_unit_breaks_the_order(self, picks: Picks) -> None:
        """The first lane comes last."""
        first, *others = sorted(set(self._picked(picks)), key=self._place)
        self._one_by_one([*others, first])

    @rule(picks=PICKS, later=PICKS)
    def a_unit_locks_several_at_once(self, picks: Picks, later: Picks) -> None:
        """They are locked in their order however they are named; what follows must come behind."""
        first, second = self._picked(picks), self._picked(later)
        locked = sorted(set(first), key=self._place)
        locked += sorted(set(second) - set(first), key=self._place)

        def work(unit: Unit) -> None:
            found = unit.lanes(first)
            assert [lane.session_id for lane in found] == first
            for lane in {lane.session_id: lane for lane in (*found, *unit.lanes(second))}.values():
                lane.input_seq += 1

        self._expect(work, locked, counts=set(locked))

    @invariant()
    def each_lane_counted_the_units_that_held_it(self) -> None:
        """No unit was lost, and none that failed left anything."""

        def work(conn: Connection) -> dict[str, int]:
            rows = conn.execute(select(lane_rows.c.session_id, lane_rows.c.input_seq))
            return {row.session_id: row.input_seq for row in rows}

        assert self.units.run(work) == self.counted

    def teardown(self) -> None:
        self.units.close()

    def _one_by_one(self, asked: Sequence[str]) -> None:
        def work(unit: Unit) -> None:
            held: dict[str, Lane] = {}
            for session_id in asked:
                lane = unit.lane(session_id)
                assert held.setdefault(session_id, lane) is lane, "a lane was read twice"
            for lane in held.values():
                lane.input_seq += 1

        self._expect(work, list(dict.fromkeys(asked)), counts=set(asked))

    def _expect(
        self, work: Callable[[Unit], None], locked: Sequence[str], *, counts: set[str]
    ) -> None:
        places = [self._place(one) for one in locked]
        if places == sorted(places):
            self.units.run(unit_of(work))
            self.counted |= {one: self.counted[one] + 1 for one in counts}
        else:
            with pytest.raises(LockOrderBroken):
                self.units.run(unit_of(work))

    def _place(self, session_id: str) -> tuple[int, str]:
        return (-self.depths[session_id], session_id)

    def _picked(self, picks: Picks) -> list[str]:
        there = list(self.depths)
        return [there[pick % len(there)] for pick in picks]


def _create(unit: Unit, *, session_id: str, parent: str | None) -> None:
    address = ChatAddress(channel="test", account="A1", chat_id=session_id)
    above = None if parent is None else unit.lane(parent)
    new = NewSession(session_id, address, mode="edit", queue_mode="followup", parent=above)
    assert unit.create(new, session_id=session_id) is not None


@pytest.mark.requirement("APR-7", "APR-10", "MSG-4")
def test_a_unit_locks_lanes_in_their_order_or_leaves_nothing(
    schema_templates: Callable[[str], str], tmp_path: Path
) -> None:
    template, numbers = Path(schema_templates("sqlite")), count()

    def make() -> Units:
        return SqliteUnits(template, tmp_path / f"{next(numbers)}.db")

    assert_holds(type("LockOrder", (LockOrder,), {"make": staticmethod(make)}))
