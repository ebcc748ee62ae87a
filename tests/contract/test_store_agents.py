"""A tree of agents is read by the same few statements, whatever its size (AGT-2, MSG-12)."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import get_args

import pytest
from sqlalchemy import Connection, Engine, event, update

from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker, Trust
from runtime.domain.runs import RunKind, RunState
from runtime.features.subagents.commands import tree_text
from runtime.features.subagents.rows import agent_tree, agents, agents_due
from runtime.features.subagents.rows.agent_tree import Chosen
from runtime.features.subagents.rows.agents import SUBAGENT, Agent
from runtime.features.subagents.rows.agents_due import SUBAGENTS_DUE
from runtime.features.subagents.status_words import AgentStatus, words
from runtime.features.subagents.views import AgentScope, AgentsReader
from runtime.sessions import lanes, runs
from runtime.sessions.due_work import Wanted, look
from runtime.sessions.lanes import NewSession
from runtime.sessions.runs import Run
from runtime.sessions.tables import lanes as lane_rows
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
    assert found.counts == {"running": MANY}
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


PERSON = Speaker(person_id="per_1", channel="test", account="A1", user_id="U1", trust=Trust.OWNER)
STATES: Mapping[str, Mapping[str, object]] = {
    "waiting": {"gate": "held"},
    "queued": {"wants_ms": 5},
    "retrying": {"retries": 1, "ready_ms": 2**50},
    "running": {"run": RunState.RUNNING},
    "awaiting": {"run": RunState.WAITING_FOR_CHILDREN},
    "waiting_for_approval": {"run": RunState.WAITING_FOR_APPROVAL},
    "waiting_for_user_input": {"run": RunState.WAITING_FOR_USER_QUESTION},
    "stopping": {"stop": "enough", "run": RunState.RUNNING},
    "completed": {"status": "completed", "result": "Found."},
    "forced": {"status": "forced"},
    "failed": {"status": "failed", "result": "No model."},
    "timed_out": {"status": "timed_out"},
    "cancelled": {"status": "cancelled"},
}


def in_every_state(conn: Connection) -> str:
    """A tree whose agents stand in the order of `STATES`."""
    root = grown(conn, "states", len(STATES))
    there = agents.of_tree(conn, root)
    for agent, (word, given) in zip(there, STATES.items(), strict=True):
        lane = {name: given[name] for name in ("gate", "wants_ms", "ready_ms") if name in given}
        own = {
            name: given[name] for name in ("retries", "stop", "status", "result") if name in given
        }
        if "status" in own:
            own["settled_ms"] = 9
        if "run" in given:
            run = Run(
                id=f"run_{word}",
                session_id=agent.session_id,
                seq=1,
                kind=RunKind.INPUT,
                ready_ms=1,
                target=ADDRESS,
                reply_to=None,
                speaker=PERSON,
                created_ms=1,
            )
            runs.add(conn, run)
            runs.change(conn, run.id, {"state": given["run"]})
            lane["active_run"] = run.id
        if own:
            agents.change(conn, agent.session_id, **own)
        if lane:
            where = lane_rows.c.session_id == agent.session_id
            conn.execute(update(lane_rows).where(where).values(**lane))
    return root


@pytest.mark.requirement("AGT-2")
async def test_every_standing_has_its_words_its_filter_and_its_count(store: Database) -> None:
    root = await store.write(in_every_state, name="states")
    reader = AgentsReader(store)
    found = await reader.summaries(AgentScope(root))
    assert [one.standing for one in found.page.items] == list(STATES)
    for one in found.page.items:
        said = words(one.standing)
        assert (one.status, one.dashboard_status) == (said.agent, said.dashboard)
    whole = Counter(words(word).agent for word in STATES)
    assert found.counts == whole
    for status in get_args(AgentStatus):
        some = await reader.summaries(AgentScope(root, status=status), limit=1)
        assert some.counts == {status: whole[status]}
        assert some.page.total_count == whole[status]
        assert [one.status for one in some.page.items] == [status]
    for live in (True, False):
        some = await reader.summaries(AgentScope(root, live=live))
        standings = [word for word, given in STATES.items() if live is not ("status" in given)]
        assert [one.standing for one in some.page.items] == standings
        assert sum(some.counts.values()) == some.page.total_count == len(standings)


@pytest.mark.requirement("AGT-2")
async def test_a_row_says_what_an_agent_gave_and_why_it_failed(store: Database) -> None:
    root = await store.write(in_every_state, name="states")
    found = await AgentsReader(store).summaries(AgentScope(root))
    rows = {one.standing: one for one in found.page.items}
    assert (rows["completed"].last_output_preview, rows["completed"].last_error) == ("Found.", None)
    assert (rows["failed"].last_output_preview, rows["failed"].last_error) == (None, "No model.")
    assert rows["running"].active_run_id == "run_running"
    third = found.page.items[2]
    assert third.parent_agent_id == found.page.items[1].session_id
    alone = await AgentsReader(store).summaries(AgentScope(root, status="idle"), limit=200)
    kept = next(one for one in alone.page.items if one.agent_id == third.agent_id)
    assert kept.parent_agent_id == third.parent_agent_id, (
        "its parent is named, whatever the filter leaves out"
    )


@pytest.mark.requirement("AGT-2")
async def test_a_page_is_one_statement_over_the_whole_scope(store: Database) -> None:
    """As SQLite's driver sees it, below everything of ours; PostgreSQL is sent the same."""
    root = await store.write(lambda conn: grown(conn, "many", MANY), name="many")
    statements: list[str] = []

    def traced(conn: Connection) -> int:
        raw = conn.connection.dbapi_connection
        if isinstance(raw, sqlite3.Connection):
            raw.set_trace_callback(statements.append)
        found = agent_tree.page(conn, Chosen(root), after=("", 0), most=201)
        if isinstance(raw, sqlite3.Connection):
            raw.set_trace_callback(None)
            assert len(statements) == 1
        return len(found.rows)

    assert await store.read(traced) == 201
