"""Children whose model cannot be reached begin anew, after a while (SUB-22, SUB-25)."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from sqlalchemy import select, text

from runtime.domain.errors import ModelRejected, ModelRetry
from runtime.domain.transcript import ToolMessage
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.tables import agent_slots
from runtime.ports.model import ModelRequest
from runtime.sessions import lanes
from runtime.sessions.lanes import SHUT, Lane
from runtime.sessions.tables import runs
from runtime.store import Connection
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.engine import World
from tests.scenario.subagents.children import engine, grown, name_of, settled, spawn, told, tree

__all__ = ["dialect", "migrated_url", "schema_templates"]

AWAY = ModelRetry("529 overloaded", after_s=0)
"""Said five times: a model call is tried so often before its run fails."""
ANEW = "An earlier attempt at this was cut off"
LONG_MS = 60_000
Answer = Said | str | ModelRejected | ModelRetry


@pytest.fixture
def url(migrated_url: str) -> str:
    return migrated_url


class Cast:
    """A root that spawns and says what it was told, and agents who answer in turn."""

    def __init__(self, spawns: Mapping[str, object], **answers: Sequence[Answer]) -> None:
        self.asked: dict[str, list[ModelRequest]] = {name: [] for name in answers}
        self._answers = answers
        self._spawns = spawns

    def __call__(self, request: ModelRequest) -> Answer:
        name, said = name_of(request), told(request)
        if not name:
            if "The subagent" in said:
                return said.rpartition("The subagent")[2].split(" after")[0].strip()
            return "On its way." if "accepted" in said else spawn(**self._spawns)
        asked = self.asked[name]
        if not asked or (asked[-1].run_id, asked[-1].step) != (request.run_id, request.step):
            asked.append(request)
        return self._answers[name][len(asked) - 1]


def read(path: str) -> Said:
    return Said(calls=(("read_file", json.dumps({"path": path})),))


def edit(path: str, old: str, new: str) -> Said:
    return Said(
        calls=(("edit_file", json.dumps({"path": path, "old_text": old, "new_text": new})),)
    )


ONE = {"task": "Look for it.", "id": "one"}


@pytest.mark.requirement("SUB-22", "SUB-25")
async def test_a_child_begins_anew_and_what_the_tries_cost_adds_up(
    tmp_path: Path, url: str
) -> None:
    tries = [read("AGENTS.md"), AWAY, read("SOUL.md"), AWAY, "Found."]
    cast = Cast(ONE, one=tries)
    async with engine(tmp_path, url, cast, retry_ms=0) as at:
        await at.says("go")
        assert await at.sees(1) == ["one (explore) completed"]
        (one,) = (await tree(at)).values()
        await at.says("/agents")
        shown = (await at.sees(2))[1]
        of_child = await at.database.read(
            lambda conn: (
                conn.execute(select(runs.c.summary).where(runs.c.session_id == one.session_id))
                .scalars()
                .all()
            )
        )
    assert of_child == ["Look for it."] * 3
    assert (one.status, one.result, one.retries) == ("completed", "Found.", 2)
    assert (one.steps, one.tool_calls, one.input_tokens + one.output_tokens) == (3, 2, 330)
    assert "2 retries" in shown
    first, second, third = (cast.asked["one"][place] for place in (0, 2, 4))
    assert ANEW not in told(first)
    for anew in (second, third):
        said = told(anew)
        assert [said.count(one) for one in (ANEW, "Look for it.", "You are the subagent one")] == [
            1,
            1,
            1,
        ]
        assert not any(isinstance(message, ToolMessage) for message in anew.messages)


@pytest.mark.requirement("SUB-25")
async def test_what_a_child_used_only_grows_when_it_goes_on_after_its_end(
    tmp_path: Path, url: str
) -> None:
    word = json.dumps({"action": "message", "agent": "one", "text": "And more?"})

    def script(request: ModelRequest) -> Answer:
        if not name_of(request) and "more, please" in told(request):
            said = "It reads this after" in told(request) or "continues with this" in told(request)
            return "Asked." if said else Said(calls=(("subagents", word),))
        return cast(request)

    cast = Cast(ONE, one=[read("AGENTS.md"), AWAY, "Found.", "More."])
    async with engine(tmp_path, url, script, retry_ms=0) as at:
        await at.says("go")
        await at.sees(1)
        (before,) = (await settled(at)).values()
    async with engine(tmp_path, url, script, retry_ms=0) as at:
        await at.says("/agents", message_id="later-1")
        shown = (await at.sees(1))[0]
        await at.says("more, please", message_id="later-2")
        found = await grown(at, lambda found: found["one"].result == "More.")
        await at.says("/agents", message_id="later-3")
        await at.chat.until(lambda: at.chat.texts()[-1].startswith("1 subagent, 0 at work"))
        after = found["one"]
    assert "1 subagent, 0 at work: 2 steps, 220 tokens, $0.0020, 1 retry." in shown
    assert (before.retries, after.retries) == (1, 1)
    assert after.settled_ms is not None
    assert before.settled_ms is not None
    assert after.settled_ms > before.settled_ms
    assert after.created_ms == before.created_ms
    assert (after.steps, after.input_tokens + after.output_tokens) == (3, 330)
    assert after.cost_usd == pytest.approx(0.003)


@pytest.mark.requirement("SUB-22")
async def test_it_begins_anew_twice_and_then_fails(tmp_path: Path, url: str) -> None:
    async with engine(tmp_path, url, Cast(ONE, one=[AWAY, AWAY, AWAY]), retry_ms=0) as at:
        await at.says("go")
        assert await at.sees(1) == ["one (explore) failed"]
        (one,) = (await tree(at)).values()
        assert (one.status, one.retries) == ("failed", 2)


@pytest.mark.requirement("SUB-22")
@pytest.mark.parametrize(
    ("answers", "most"),
    [
        pytest.param([ModelRejected("401 no such key")], 2, id="rejected"),
        pytest.param([AWAY], 0, id="by-setting"),
    ],
)
async def test_what_a_repeat_does_not_mend_fails_at_once(
    tmp_path: Path, url: str, answers: Sequence[Answer], most: int
) -> None:
    cast = Cast(ONE, one=answers)
    async with engine(tmp_path, url, cast, max_retries=most, retry_ms=0) as at:
        await at.says("go")
        assert await at.sees(1) == ["one (explore) failed"]
        (one,) = (await tree(at)).values()
        assert (one.status, one.retries) == ("failed", 0)


@pytest.mark.requirement("SUB-22")
async def test_a_new_try_is_told_what_was_done_that_must_not_be_done_twice(
    tmp_path: Path, url: str
) -> None:
    tries = [read("note.txt"), edit("note.txt", "day", "week"), AWAY, "It is done."]
    cast = Cast(ONE | {"type": "general"}, one=tries)
    async with engine(tmp_path, url, cast, retry_ms=0) as at:
        (tmp_path / "workspace/files" / "note.txt").write_text("one day")
        await at.says("go")
        assert await at.sees(1) == ["one (general) completed"]
        assert (tmp_path / "workspace/files" / "note.txt").read_text() == "one week"
    said = told(cast.asked["one"][-1])
    assert "These calls of earlier attempts had begun" in said
    assert said.count("- edit_file") == 1
    assert "- read_file" not in said
    fenced = said.partition('source="earlier tries"')[2].partition("</untrusted")[0]
    assert "- edit_file" in fenced, "what a tool gave may be from outside"


@pytest.mark.requirement("SUB-22")
async def test_a_new_try_is_not_told_of_what_was_refused(tmp_path: Path, url: str) -> None:
    """An explorer edits nothing: the call has a result, and never began."""
    cast = Cast(ONE, one=[edit("note.txt", "day", "week"), AWAY, "Found."])
    async with engine(tmp_path, url, cast, retry_ms=0) as at:
        (tmp_path / "workspace/files" / "note.txt").write_text("one day")
        await at.says("go")
        assert await at.sees(1) == ["one (explore) completed"]
    said = told(cast.asked["one"][-1])
    assert ANEW in said
    assert "edit_file" not in said


@pytest.mark.requirement("SUB-22", "SUB-9")
async def test_a_new_try_of_who_read_something_from_outside_has_read_it_too(
    tmp_path: Path, url: str
) -> None:
    """It is told what the earlier one did, by which that may come to it."""
    cast = Cast(ONE, one=[read("uploads/x.txt"), AWAY, "Found."])
    async with engine(tmp_path, url, cast, retry_ms=0) as at:
        (tmp_path / "workspace" / "uploads").mkdir(exist_ok=True)
        (tmp_path / "workspace" / "uploads" / "x.txt").write_text("from outside")
        await at.says("go")
        assert await at.sees(1) == ["one (explore) completed"]
        (one,) = (await tree(at)).values()

        def tainted(conn: Connection) -> list[bool]:
            rows = conn.execute(runs.select().where(runs.c.session_id == one.session_id))
            return [row.tainted for row in rows]

        assert await at.database.read(tainted) == [True, True]


@pytest.mark.requirement("SUB-22")
async def test_a_new_try_knows_what_its_own_children_found(tmp_path: Path, url: str) -> None:
    below = {"task": "Below.", "id": "two", "mode": "background"}
    cast = Cast(ONE, one=[spawn(**below), "It looks.", AWAY, "All."], two=["A pearl."])
    async with engine(tmp_path, url, cast, retry_ms=0) as at:
        await at.says("go")
        assert await at.sees(1) == ["one (explore) completed"]
        one = (await settled(at))["one"]
    assert (one.result, one.retries) == ("All.", 1)
    last = told(cast.asked["one"][-1])
    assert ANEW in last
    assert "A pearl." in last
    assert "so their ids are taken: two" in last


@pytest.mark.requirement("SUB-22")
async def test_the_wait_is_in_the_rows_holds_no_slot_and_outlives_a_restart(
    tmp_path: Path, url: str
) -> None:
    batch = {"mode": "background", "agents": [ONE, {"task": "x", "id": "two"}]}
    gate = Gate()
    cast = Cast(batch, one=[AWAY], two=[Said("Two.", before=gate)])
    async with engine(tmp_path, url, cast, retry_ms=LONG_MS, concurrency=1) as at:
        await at.says("go")
        # The only slot is free for the other one.
        await gate.reached.wait()
        one = (await tree(at))["one"]
        lane, slots = await _stands(at, one)
        assert (lane.gate, lane.active_run, one.retries) == (SHUT, None, 1)
        assert lane.wants_ms is not None
        assert LONG_MS / 2 < lane.wants_ms - lane.now_ms <= LONG_MS * 1.5
        assert one.session_id not in slots
    after = Cast(batch, one=["One."], two=["Two."])
    async with engine(tmp_path, url, after, retry_ms=LONG_MS, concurrency=1) as at:
        await at.chat.until(lambda: "two (explore) completed" in at.chat.texts())
        assert after.asked["one"] == []
        await at.database.write(_later, name="time passes")
        await at.chat.until(lambda: "one (explore) completed" in at.chat.texts())
        assert (await settled(at))["one"].result == "One."


@pytest.mark.requirement("SUB-22", "SUB-19")
async def test_a_child_that_waits_for_its_next_try_can_be_stopped(tmp_path: Path, url: str) -> None:
    async with engine(tmp_path, url, Cast(ONE, one=[AWAY]), retry_ms=LONG_MS) as at:
        await at.says("go")
        await grown(at, lambda found: any(one.retries for one in found.values()))
        await at.says("/stop")
        (one,) = (await settled(at)).values()
        assert (one.status, one.retries) == ("cancelled", 1)
        lane, _ = await _stands(at, one)
        assert lane.wants_ms is None


async def _stands(at: World, one: Agent) -> tuple[Lane, set[str | None]]:
    """An agent's lane, and who has a slot."""

    def look(conn: Connection) -> tuple[Lane, set[str | None]]:
        rows = conn.execute(agent_slots.select())
        return lanes.lock(conn, one.session_id), {row.session_id for row in rows}

    return await at.database.write(look, name="look")


def _later(conn: Connection) -> None:
    """As if a day had passed for what waits."""
    conn.execute(text("UPDATE lanes SET wants_ms = wants_ms - 86400000 WHERE wants_ms IS NOT NULL"))
