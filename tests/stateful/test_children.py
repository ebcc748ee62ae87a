"""The scheduler of children in any order of events: no deadlock, no slot lost, nobody untold."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from runtime.domain.errors import Conflict
from runtime.domain.runs import TERMINAL, RunState
from runtime.features.subagents.ends import parent_results
from runtime.features.subagents.spawn.children import ROOT, SpawnOrder
from runtime.sessions import open_calls
from runtime.sessions.open_calls import CHILDREN
from tests.contract.store_support import schema_templates
from tests.stateful.bench import pick
from tests.stateful.children_bench import agent, spawning
from tests.stateful.children_play import ChildrenPlay
from tests.stateful.children_rows import check_lanes
from tests.stateful.playing import assert_holds
from tests.stateful.units import SqliteUnits, Units
from tests.support.kinds import unit_of

__all__ = ["schema_templates"]

NUMBERS = st.integers(0, 30)
CHATS = st.integers(0, 1)
MOST_LIVE = 12
"""In one play: more agents show no more, and take longer."""
MOST_STOPS = 3
MOST_WORDS = 4
WISHES = st.lists(
    st.tuples(st.lists(st.integers(0, 20), max_size=2), st.sampled_from([None, None, "g", "h"])),
    min_size=1,
    max_size=3,
)
SPAWNS = st.tuples(
    st.sampled_from(["await", "background"]), st.sampled_from(["fail", "continue"]), WISHES
)
Spawn = tuple[str, str, list[tuple[list[int], str | None]]]
WRONG = {20: ROOT, 19: "nobody"}
ENDS = st.sampled_from(
    [RunState.COMPLETED, RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED]
)
MOVES = st.tuples(NUMBERS, SPAWNS, st.one_of(st.none(), st.none(), ENDS))
Move = tuple[int, Spawn, RunState | None]


class Children(ChildrenPlay, RuleBasedStateMachine):
    """What happens next is drawn. `make` opens an empty database; a subclass of a test gives it."""

    make: Callable[[], Units]

    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        ChildrenPlay.__init__(self, type(self).make())
        self.stopped = 0
        self.names = 0
        self.words = 0

    @initialize(most=st.integers(1, 3), chat=CHATS)
    def somebody_begins(self, most: int, chat: int) -> None:
        self.most = most
        self.asks(chat)
        self.claims(1)

    @precondition(lambda self: self.messages < 4)
    @rule(chat=CHATS)
    def somebody_asks(self, chat: int) -> None:
        self.asks(chat)

    @rule(plan=st.lists(MOVES, min_size=2, max_size=8))
    def work_goes_on(self, plan: list[Move]) -> None:
        """Each time everybody gets a turn, and then one run spawns or ends."""
        for which, drawn, end in plan:
            self.everybody_gets_a_turn(3)
            if not self.at_work():
                return
            if end is None and len(self.now.live) < MOST_LIVE:
                self.a_run_spawns(which, [drawn], 1)
            else:
                self.a_run_ends(which, end or RunState.COMPLETED, again=which % 2 == 0)

    @precondition(lambda self: self.at_work() and len(self.now.live) < MOST_LIVE)
    @rule(which=NUMBERS, drawn=st.lists(SPAWNS, min_size=1, max_size=2), dies=st.integers(0, 9))
    def a_run_spawns(self, which: int, drawn: list[Spawn], dies: int) -> None:
        """Its worker may die between the model's words and the unit that makes the children."""
        run = pick(self.at_work(), which)
        if self.stands_open(run):
            return
        rows = self.responds(run["id"], [self.order(run["session_id"], one) for one in drawn])
        if dies == 0:
            self.dies()
        else:
            self.parks(run["id"], rows)

    def order(self, session: str, drawn: Spawn) -> SpawnOrder:
        """Names are new; who is needed is one of the batch, of the tree, the root, or nobody."""
        mode, on_failure, wishes = drawn
        tree = self.now.agents[session]["tree_id"] if session in self.now.agents else session
        rows = [row for row in self.now.agents.values() if row["tree_id"] == tree]
        known = [str(row["name"]) for row in self.in_order(rows)]
        self.names += len(wishes)
        names = [f"a{self.names - place}" for place in range(len(wishes))]
        wanted = []
        for name, (needs, group) in zip(names, wishes, strict=True):
            pool = [*reversed(known[-6:]), *(one for one in names if one != name)] or [name]
            needed = [WRONG.get(need) or pick(pool, need) for need in needs]
            wanted.append(agent(name, *dict.fromkeys(needed), group=group))
        return spawning(*wanted, mode=mode, on_dependency_failure=on_failure)

    @rule(most=st.integers(1, 3))
    def everybody_gets_a_turn(self, most: int) -> None:
        """The keeper and the worker look, one after the other."""
        self.starts()
        self.grants()
        self.claims(most)

    @rule(what=st.sampled_from(["starts", "starts_too_early", "grants", "ends_stopped"]))
    def the_keeper_looks(self, what: str) -> None:
        getattr(self, what)()

    @precondition(lambda self: self.at_work())
    @rule(which=NUMBERS, end=ENDS, again=st.booleans())
    def a_run_ends(self, which: int, end: RunState, again: bool = False) -> None:
        """A child that failed may begin anew (SUB-22)."""
        self.ends(pick(self.at_work(), which)["id"], end, again=again)

    @precondition(lambda self: self.now.agents and self.stopped < MOST_STOPS)
    @rule(which=NUMBERS, whole=st.booleans())
    def somebody_stops_something(self, which: int, whole: bool) -> None:
        """A session, root or child, or one run."""
        live = [
            row
            for row in self.in_order(self.now.all.runs)
            if RunState(row["state"]) not in TERMINAL
        ]
        self.stopped += 1
        if whole or not live:
            self.stops(pick(self.in_order(self.now.all.lanes), which)["session_id"])
        else:
            self.stops_run(pick(live, which)["id"])

    @precondition(lambda self: self.at_work() and self.now.agents and self.words < MOST_WORDS)
    @rule(which=NUMBERS, whom=NUMBERS)
    def somebody_is_told_something(self, which: int, whom: int) -> None:
        """Of those below a run, live or settled: one that settled goes on, or nothing changes."""
        run = pick(self.at_work(), which)
        below = self.in_order(self.now.all_below(run["session_id"]))
        if not below or self.stands_open(run):
            return
        self.words += 1
        agent_row, before = pick(below, whom), self.now.agents
        try:
            how = self.says(run["id"], agent_row["session_id"])
        except Conflict:
            self.holds()
            assert self.now.agents == before
        else:
            assert (how == "continued") == (agent_row["settled_ms"] is not None)

    @rule(really=st.integers(0, 3))
    def the_worker_dies(self, really: int) -> None:
        if really == 0:
            self.dies()

    @precondition(lambda self: any(row["kind"] == CHILDREN for row in self.now.all.open_calls))
    @rule(which=NUMBERS)
    def a_call_is_let_go(self, which: int) -> None:
        """It took too long, or had ended at that very moment."""
        row = pick(self.in_order(self.now.all.open_calls), which)
        call = self.units.run(lambda conn: open_calls.get(conn, row["id"]))
        assert call is not None
        self.run(unit_of(lambda unit: parent_results.let_go(unit, call)))
        self.holds()
        assert call.id not in {one["id"] for one in self.now.all.open_of(row["run_id"])}

    @invariant()
    def every_lane_is_whole(self) -> None:
        check_lanes(self.now)

    def teardown(self) -> None:
        try:
            self.rests()
        finally:
            self.units.close()


def machine(make: Callable[[], Units]) -> type[Children]:
    """The machine on databases that `make` opens."""
    return type("Children", (Children,), {"make": staticmethod(make)})


@pytest.fixture
def make(schema_templates: Callable[[str], str], tmp_path: Path) -> Callable[[], Units]:
    template, numbers = Path(schema_templates("sqlite")), count()
    return lambda: SqliteUnits(template, tmp_path / f"{next(numbers)}.db")


@pytest.mark.requirement(
    "SUB-7", "SUB-8", "SUB-11", "SUB-12", "SUB-13", "SUB-19", "SUB-22", "SUB-23", "SUB-24"
)
def test_any_order_of_events_ends(make: Callable[[], Units]) -> None:
    assert_holds(machine(make))
