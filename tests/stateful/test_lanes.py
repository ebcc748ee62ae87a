"""The message path in any order of events: nothing lost, nothing doubled, nothing stuck."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import precondition, rule

from runtime.domain.people import Trust
from runtime.domain.runs import RunState
from tests.contract.store_support import postgres_server, schema_templates
from tests.stateful.arriving import Arriving
from tests.stateful.bench import WORKERS, pick
from tests.stateful.delivering import Delivering
from tests.stateful.playing import assert_holds
from tests.stateful.snapshot import result_of
from tests.stateful.units import PostgresUnits, SqliteUnits, Units
from tests.stateful.working import Working
from tests.support.templates import create_database, release_database

__all__ = ["schema_templates"]

Templates = Callable[[str], str]


class MessagePath(Arriving, Working, Delivering):
    """People, workers, deliverers and the clock, on one database."""

    @precondition(lambda self: self.at_work() and any(self.held(who) for who in WORKERS))
    @rule(
        which=st.integers(0, 7),
        then=st.sampled_from(["ends", "dies", "goes on"]),
        end=st.sampled_from([RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED]),
    )
    def a_run_is_told_something(self, which: int, then: str, end: RunState) -> None:
        """And ends, or loses its worker, before or after it has heard it."""
        chat, trust = pick(self.at_work(), which)
        self.a_message_arrives(chat, trust, "steer")
        who = pick([who for who in WORKERS if self.held(who)], which)
        held = pick(self.held(who), which)
        if then == "ends" and (end is not RunState.COMPLETED or not held.pending):
            self.run_ends(who, held, end)
        elif then == "dies":
            self.a_worker_is_paused_or_dies(who, missed=True)
            self.everything_holds()
            other = next(one for one in WORKERS if one != who)
            self.goes_on(other, which, claim=True, kinds=[], end=RunState.COMPLETED)
        else:
            self.goes_on(who, which, claim=False, kinds=["read"], end=RunState.COMPLETED)


def machine(make: Callable[[], Units]) -> type[MessagePath]:
    """The machine on databases that `make` opens."""
    return type("MessagePath", (MessagePath,), {"make": staticmethod(make)})


@pytest.mark.requirement("MSG-4", "MSG-6", "MSG-7", "MSG-9", "APR-4")
def test_any_order_of_events_keeps_the_invariants(
    schema_templates: Templates, tmp_path: Path
) -> None:
    template, numbers = Path(schema_templates("sqlite")), count()

    def make() -> Units:
        path = tmp_path / f"{next(numbers)}.db"
        return SqliteUnits(template, path)

    assert_holds(machine(make))


@pytest.mark.requirement("MSG-8", "MSG-13")
def test_a_run_that_was_stopped_and_lost_its_worker_says_what_may_have_happened(
    schema_templates: Templates, tmp_path: Path
) -> None:
    template = Path(schema_templates("sqlite"))
    play = machine(lambda: SqliteUnits(template, tmp_path / "one.db"))()
    play.everybody_starts()
    play.a_message_arrives(chat=0, trust=Trust.OWNER, mode="followup")
    play.claims("w0", most=1)
    play.everything_holds()
    (held,), holder = play.held("w0"), play.workers["w0"].holder
    assert holder is not None
    play.model_responds(holder, held, ["once", "read"])
    play.somebody_stops_something(which=0, whole=True)
    play.a_worker_is_paused_or_dies(who="w0", missed=True)
    play.everything_holds()
    assert play.now.state(held.run_id) is RunState.CANCELLED
    results = [result_of(row) for row in play.now.calls_of[held.run_id, 1]]
    assert [one["status"] for one in results if one] == ["unknown", "cancelled"]
    play.teardown()


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """A PostgreSQL database with the schema, for one test."""
    server = postgres_server()
    name = asyncio.run(create_database(server))
    yield server.url(name)
    asyncio.run(release_database(server, name))


@pytest.mark.requirement("MSG-4", "MSG-6", "MSG-7", "MSG-9", "APR-4")
def test_the_same_holds_on_postgresql(postgres_url: str) -> None:
    assert_holds(machine(partial(PostgresUnits, postgres_url)), examples=3)
