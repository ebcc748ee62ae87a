"""A tree of agents is read by the same few statements, whatever its size (AGT-2, MSG-12)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import Connection, Engine, event

from runtime.domain.messages import ChatAddress
from runtime.features.subagents.commands import tree_text
from runtime.features.subagents.rows import agents, agents_due
from runtime.features.subagents.rows.agents import SUBAGENT, Agent
from runtime.features.subagents.rows.agents_due import SUBAGENTS_DUE
from runtime.features.subagents.views import AgentScope, AgentsReader
from runtime.sessions import lanes
from runtime.sessions.due_work import Wanted, look
from runtime.sessions.lanes import NewSession
from runtime.store import Database

MANY = 1_000
LINES = 40
ADDRESS = ChatAddress(channel="test", account="A1", chat_id="C0")


def grown(conn: Connection, name: str, amount: int) -> str:
    """A session with so many agents, each third of whom was sent by the one before."""
    root = lanes.create(conn, NewSession(name, ADDRESS, "edit", "followup"))
    assert root is not None
    above = root
    for place in range(1, amount + 1):
        parent = above if place % 3 == 0 else root
        new = NewSession(f"{name}-{place}", ADDRESS, "edit", "followup", kind=SUBAGENT)
        lane = lanes.create(conn, replace(new, parent=parent))
        assert lane is not None
        agents.add(
            conn,
            Agent(
                session_id=lane.session_id,
                tree_id=root.session_id,
                parent_id=parent.session_id,
                name=f"explore-{place}",
                place=place,
                depth=lane.depth,
                type="explore",
                task="Look.",
                mode="background",
                on_failure="fail",
                run_id="run_1",
                step=1,
                call_place=0,
                created_ms=lane.now_ms,
            ),
        )
        above = lane
    return root.session_id


@contextmanager
def asked() -> Iterator[list[str]]:
    """The statements that are executed meanwhile."""
    found: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_more: object) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.requirement("MSG-12")
async def test_the_command_asks_as_often_for_a_tree_of_a_thousand_as_for_one_of_two(
    store: Database,
) -> None:
    few = await store.write(lambda conn: grown(conn, "few", 2), name="few")
    many = await store.write(lambda conn: grown(conn, "many", MANY), name="many")
    with asked() as for_few:
        await store.read(lambda conn: tree_text(conn, few, now_ms=0))
    with asked() as for_many:
        text = await store.read(lambda conn: tree_text(conn, many, now_ms=0))
    assert len(for_many) == len(for_few) <= 3
    head, short, *lines = text.splitlines()
    assert head.startswith(f"{MANY:,} subagents, {MANY:,} at work")
    assert short == f"The last {LINES} of them:"
    assert len(lines) == LINES
    assert sum(line.startswith("  - ") for line in lines) == 13, "below the one that sent them"


@pytest.mark.requirement("AGT-2")
async def test_a_page_of_summaries_asks_as_often_for_a_tree_of_a_thousand(store: Database) -> None:
    few = await store.write(lambda conn: grown(conn, "few", 2), name="few")
    many = await store.write(lambda conn: grown(conn, "many", MANY), name="many")
    reader = AgentsReader(store)
    with asked() as for_few:
        await reader.summaries(AgentScope(few))
    with asked() as for_many:
        found = await reader.summaries(AgentScope(many), limit=200)
    assert len(for_many) == len(for_few) <= 3
    assert found.counts == {"idle": MANY}
    names, cursor = [one.agent_id for one in found.page.items], found.page.next_cursor
    while cursor is not None:
        page = (await reader.summaries(AgentScope(many), limit=200, cursor=cursor)).page
        names, cursor = [*names, *(one.agent_id for one in page.items)], page.next_cursor
    assert names == [f"explore-{place}" for place in range(1, MANY + 1)]
    everywhere = await reader.summaries(AgentScope(), limit=200)
    assert everywhere.page.total_count == MANY + 2


@pytest.mark.requirement("SUB-7", "SUB-24")
async def test_one_is_late_once_and_is_given_no_time_when_it_goes_on(store: Database) -> None:
    def timed(conn: Connection) -> str:
        (one,) = agents.of_tree(conn, grown(conn, "timed", 1))
        lane = lanes.create(conn, NewSession("late", ADDRESS, "edit", "followup"))
        assert lane is not None
        late = replace(one, session_id=lane.session_id, name="late", place=2)
        agents.add(conn, replace(late, deadline_ms=lane.now_ms))
        return lane.session_id

    late = await store.write(timed, name="timed")
    assert await store.read(agents_due.overdue) == [late]
    wanted = Wanted(features=(SUBAGENTS_DUE,))
    assert (await store.read(lambda conn: look(conn, wanted))).features
    assert await store.write(lambda conn: agents_due.end_late(conn, late), name="end")
    assert await store.read(agents_due.overdue) == []
    assert not await store.write(lambda conn: agents_due.end_late(conn, late), name="end")
    assert (await store.read(lambda conn: agents.get(conn, late))).stop == agents_due.OVER

    def again(conn: Connection) -> None:
        agents.reopen(conn, late, held_ms=None, payer="")

    await store.write(again, name="again")
    assert await store.read(agents_due.overdue) == []
    assert (await store.read(lambda conn: agents.get(conn, late))).deadline_ms is None
