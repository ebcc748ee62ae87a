"""What the plays of a tree of agents share: the units, and the look after each of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from sqlalchemy import Connection

from runtime.features.subagents.settings import ChildSettings, Limits
from runtime.features.subagents.spawn.agent_types import Profile, Types
from runtime.features.subagents.spawn.children import SpawnOrder
from runtime.features.subagents.spawn.spawn_arguments import AgentRequest, SpawnArguments
from runtime.sessions.claims import Holder
from runtime.sessions.window import WindowCache
from runtime.store import leases
from tests.stateful import children_rows
from tests.stateful.bench import LEASE_MS
from tests.stateful.children_rows import Asked
from tests.stateful.snapshot import Record
from tests.stateful.units import Units

T = TypeVar("T")

WORKER: Final = "w0"
KIND: Final = "explore"
LIMITS: Final = Limits(
    max_depth=4,
    live_per_parent=100,
    live_per_tree=100,
    spawned_per_run=1000,
    spawned_per_minute=10_000,
)
"""The root and three levels below it."""
FOREVER_MS: Final = 10**12
SETTINGS: Final = ChildSettings(limits=LIMITS, await_ms=FOREVER_MS)


def types_of(profile: Profile) -> Types:
    """The one type that there is."""
    return Types({KIND: profile}, frozenset({KIND}), {KIND: ""}, {KIND: ""})


def agent(identifier: str, *needs: str, group: str | None = None) -> AgentRequest:
    """One of a batch."""
    return AgentRequest(task="look", id=identifier, depends_on=needs, group=group)


def spawning(*wanted: AgentRequest, **arguments: object) -> SpawnOrder:
    """A batch of agents, with all that was looked up for it."""
    said = SpawnArguments.model_validate({"agents": wanted, **arguments})
    return SpawnOrder(said, types_of(Profile((), read_only=False)), SETTINGS)


def within(order: SpawnOrder, limits: Limits) -> SpawnOrder:
    """The same spawn under other limits."""
    return replace(order, settings=replace(order.settings, limits=limits))


class ChildrenBench:
    """What can happen to a tree, without a choice of what does; `most` children run at once."""

    def __init__(self, units: Units, most: int = 1) -> None:
        self.units = units
        self.most = most
        self.cache = WindowCache()
        self.messages = 0
        self.asked: dict[str, Asked] = {}
        self.orders: dict[tuple[str, int, int], SpawnOrder] = {}
        self.doomed: set[str] = set()
        self.seen: dict[str, int] = {}
        self.holder = self.take_lease()
        self.look()

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run one unit; a little time passes with each, and then everything is looked at."""
        self.units.clock.advance(1)
        return self.units.run(work)

    def look(self) -> None:
        """Read everything."""
        self.now = self.units.run(lambda conn: children_rows.take(conn, self.asked))
        # Ids are drawn by nobody who could draw them again, so nothing may hang on their order.
        for lane in self.now.all.lanes:
            if lane["session_id"] not in self.now.agents:
                self.seen.setdefault(lane["session_id"], len(self.seen))
        trees = self.seen
        new = [row for one, row in self.now.agents.items() if one not in self.seen]
        for row in sorted(new, key=lambda row: (trees[row["tree_id"]], row["place"])):
            self.seen[row["session_id"]] = len(self.seen)

    def holds(self) -> None:
        """Read everything, and assert what holds after every unit."""
        self.look()
        children_rows.check(self.now, most=self.most)

    def take_lease(self) -> Holder:
        fence = self.run(
            lambda conn: leases.acquire(
                conn, name=f"{leases.PROCESS}{WORKER}", holder=WORKER, ttl_ms=LEASE_MS
            )
        )
        assert fence is not None
        return Holder(WORKER, fence)

    def at_work(self) -> Sequence[Record]:
        """Runs in the worker's hands."""
        return [row for row in self.in_order(self.now.all.runs) if row["state"] == "running"]

    def in_order(self, rows: Sequence[Record]) -> Sequence[Record]:
        """Rows of sessions in the order in which those came."""
        return sorted(rows, key=lambda row: self.seen[row["session_id"]])

    def stands_open(self, run: Record) -> bool:
        """Whether the run's last step has calls without a result."""
        rows = self.now.all.calls_of.get((run["id"], run["step"]), ())
        return any(row["result"] is None for row in rows)
