"""Every field of a snapshot and of a summary, on both databases (AGT-1, AGT-2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import select

from runtime.domain.errors import ModelRejected
from runtime.features.mailboxes.control import MailboxControl
from runtime.features.mailboxes.model import Mail
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.snapshots import ManagedAgentSnapshot, SnapshotReader
from runtime.features.subagents.views import AgentScope, AgentsReader, AgentSummaries
from runtime.ports.model import ModelRequest
from runtime.sessions.tables import lanes, open_calls
from runtime.store import Connection
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said
from tests.scenario.cast import got_to
from tests.scenario.engine import assets_of
from tests.scenario.http.conftest import ASKS, WONDERS
from tests.scenario.subagents.children import engine, grown, name_of, spawn, told, tree
from tests.scenario.test_mailboxes import until

__all__ = ["dialect", "migrated_url", "schema_templates"]

ORDER = ("one", "two", "bad")


def script(request: ModelRequest) -> Said | str | ModelRejected:
    """`one` needs an approval, `two` asks a person, and `bad` has no model."""
    name = name_of(request)
    if name:
        return {"one": ASKS, "two": WONDERS, "bad": ModelRejected("no such model", "None.")}[name]
    text = told(request)
    made = text.count("accepted")
    if made == len(ORDER) or "no such model" in text or "None." in text:
        return "All are out."
    return spawn(
        task="Look at it.",
        id=ORDER[made],
        type="general",
        mode="background",
        label=f"the {ORDER[made]}",
        retention="close_on_settle",
        spawn_request_id=f"key-{ORDER[made]}",
    )


def two_wait(conn: Connection) -> bool:
    calls = conn.execute(select(open_calls.c.kind).where(open_calls.c.state == "open"))
    return sorted(calls.scalars()) == ["approval", "question"]


def ids_of(conn: Connection, agent: Agent, kind: str) -> tuple[str, ...]:
    mine = (open_calls.c.session_id == agent.session_id) & (open_calls.c.kind == kind)
    return tuple(conn.execute(select(open_calls.c.id).where(mine)).scalars())


@dataclass
class Seen:
    """What was read of a tree whose agents wait or failed."""

    root: str
    run: str | None
    agents: Mapping[str, Agent]
    summaries: AgentSummaries
    snapshots: Mapping[str, ManagedAgentSnapshot]
    active: str | None
    approvals: tuple[str, ...]
    questions: tuple[str, ...]


async def seen(path: Path, url: str) -> Seen:
    clock, asked = FakeClock(), Gate()

    def held(request: ModelRequest) -> Said | str | ModelRejected:
        """`bad` fails five seconds after it was made."""
        said = script(request)
        return Said(before=asked, error=said) if isinstance(said, ModelRejected) else said

    async with engine(path, url, held, clock=clock, max_retries=0) as at:
        said = await at.says("go")
        await got_to(asked)
        await clock.advance(5)
        asked.open.set()
        await grown(at, lambda found: "bad" in found and found["bad"].settled)
        await until(at, two_wait)
        root, agents = said.session_id or "", await tree(at)
        one, two, _ = (agents[name] for name in ORDER)
        mail = {"from": root, "to": one.session_id, "payload": {"type": "message", "text": "x"}}
        await MailboxControl(at.engine.units, assets_of(at)).post(Mail.model_validate(mail))
        found = await AgentsReader(at.database).summaries(AgentScope(root))
        snapshots = SnapshotReader(at.database)
        shown = {name: await snapshots.snapshot(agents[name].session_id) for name in ORDER}

        def look(conn: Connection) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
            mine = lanes.c.session_id == one.session_id
            active = conn.execute(select(lanes.c.active_run).where(mine)).scalar_one()
            return active, ids_of(conn, one, "approval"), ids_of(conn, two, "question")

        active, approvals, questions = await at.database.read(look)
        return Seen(root, said.run_id, agents, found, shown, active, approvals, questions)


@pytest.mark.requirement("AGT-2")
async def test_every_field_of_a_summary_says_how_an_agent_stands(
    tmp_path: Path, migrated_url: str
) -> None:
    found = await seen(tmp_path, migrated_url)
    root, one, bad = found.root, found.agents["one"], found.agents["bad"]
    rows = {row.agent_id: row for row in found.summaries.page.items}
    assert found.summaries.counts == {
        "waiting_for_approval": 1,
        "waiting_for_user_input": 1,
        "failed": 1,
    }
    row = rows["one"]
    assert (row.session_id, row.root_session_id) == (one.session_id, root)
    assert (row.parent_session_id, row.parent_agent_id, row.depth) == (root, root, 1)
    assert (row.type, row.label, row.mode) == ("general", "the one", "background")
    assert row.retention == "close_on_settle"
    assert (row.status, row.dashboard_status) == ("waiting_for_approval", "waiting")
    assert (row.active_run_id, row.queued_run_count) == (found.active, 1)
    assert (row.pending_approval_count, row.pending_question_count) == (1, 0)
    assert (rows["two"].pending_approval_count, rows["two"].pending_question_count) == (0, 1)
    assert row.pending_parent_clarification_count == 0
    assert row.pending_parent_clarification_run_ids == ()
    assert (row.tokens, row.cost_usd) == (110, 0.001)
    assert (row.progress.steps, row.progress.tool_calls) == (1, 1)
    assert (row.last_output_preview, row.last_error) == ("May I?", None)
    assert row.last_activity_at_ms is not None
    assert row.last_activity_at_ms >= row.created_at_ms == one.created_ms
    assert row.settled_at_ms is None
    assert row.elapsed_ms >= 0
    assert "no such model" in (rows["bad"].last_error or "")
    assert rows["bad"].settled_at_ms == rows["bad"].last_activity_at_ms == bad.settled_ms
    assert rows["bad"].settled_at_ms >= rows["bad"].created_at_ms + 5_000


@pytest.mark.requirement("AGT-1", "MBX-1")
async def test_every_field_of_a_snapshot_says_how_an_agent_stands(
    tmp_path: Path, migrated_url: str
) -> None:
    found = await seen(tmp_path, migrated_url)
    root, one, bad = found.root, found.agents["one"], found.agents["bad"]
    shown = found.snapshots
    one_now = shown["one"]
    assert (one_now.id, one_now.session_id, one_now.agent_id) == (
        one.session_id,
        one.session_id,
        "one",
    )
    assert (one_now.parent_agent_id, one_now.root_agent_id, one_now.path) == (
        root,
        root,
        "root > one",
    )
    assert (one_now.nickname, one_now.type) == ("the one", "general")
    assert one_now.conversation.key == f"subagent:{one.session_id}"
    assert (one_now.conversation.title, one_now.conversation.channel) == ("the one", "test")
    assert one_now.prompt_summary == "Look at it."
    assert (one_now.status, one_now.dashboard_status) == ("waiting_for_approval", "waiting")
    assert one_now.standing == "waiting_for_approval"
    assert one_now.retention == "close_on_settle"
    assert (one_now.spawned_by_run_id, one_now.spawn_request_id) == (found.run, "key-one")
    assert (one_now.active_run_id, one_now.queued_mailbox_count) == (found.active, 1)
    assert (one_now.pending_approvals, one_now.pending_questions) == (found.approvals, ())
    assert len(found.approvals) == len(found.questions) == 1
    assert shown["two"].pending_questions == found.questions
    assert shown["two"].queued_mailbox_count == 0
    assert one_now.pending_parent_clarifications == ()
    assert (one_now.last_assistant_message, one_now.last_error) == ("May I?", None)
    assert "no such model" in (shown["bad"].last_error or "")
    assert (one_now.created_at_ms, one_now.settled_at_ms) == (one.created_ms, None)
    assert one_now.last_activity_at_ms >= one_now.created_at_ms
    assert shown["bad"].settled_at_ms == bad.settled_ms
