"""The whole row and snapshot of a subagent, field by field, as `subagents` gives them (SUB-4)."""

import json
from pathlib import Path

import pytest

from runtime.domain.errors import ModelRejected
from runtime.ports.model import ModelRequest
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.cards import asks, cards
from tests.scenario.cast import Cast, ask, got_to, played, spawn, tree
from tests.scenario.subagents.children import engine, name_of
from tests.scenario.subagents.children import tree as everybody
from tests.scenario.subagents.family import results

__all__ = ["dialect", "migrated_url", "schema_templates"]

NOTHING_OPEN = {
    "queued_run_count": 0,
    "pending_approval_count": 0,
    "pending_question_count": 0,
    "pending_parent_clarification_count": 0,
}


def lines(listed: str) -> dict[str, dict[str, object]]:
    found = [json.loads(line) for line in listed.splitlines()]
    return {row["agent_id"]: row for row in found}


@pytest.mark.requirement("SUB-4")
async def test_a_snapshot_has_every_field_of_an_agent_at_work(
    tmp_path: Path, migrated_url: str
) -> None:
    work, looked = Gate(), Gate()
    cast = Cast(
        [
            Said(
                calls=(
                    spawn(
                        task="Dive.\nDeep.",
                        id="one",
                        type="general",
                        mode="background",
                        label="north",
                        spawn_request_id="key-1",
                        group="g",
                        memory_share_mode="isolated",
                        retention="close_on_settle",
                    ),
                    spawn(task="Dig.", id="two", depends_on=["one"], mode="background"),
                )
            ),
            Said(
                calls=(ask("list"), *(ask("show", agent=name) for name in ("one", "two", "deep"))),
                before=looked,
            ),
            "Seen.",
        ],
        {
            "one": [Said("I look.", calls=(spawn(task="Go on.", id="deep", type="reader"),))],
            "deep": [Said("a pearl", before=work)],
        },
    )
    async with played(tmp_path, migrated_url, cast) as at:
        folder = tmp_path / "workspace" / "agents"
        folder.mkdir(exist_ok=True)
        (folder / "reader.md").write_text("---\nname: reader\n---\nRead it all.\nThen stop.")
        said = await at.says("go")
        await got_to(work)
        looked.open.set()
        assert await at.sees(1) == ["Seen."]
        found = await tree(at, said.session_id)
        one, deep = found["one"], found["deep"]
    rows = lines(cast.told(2)[0])
    shown = {
        name: json.loads(text)
        for name, text in zip(("one", "two", "deep"), cast.told(2)[1:], strict=True)
    }
    row = rows["one"]
    assert row.pop("elapsed_s") == pytest.approx(0, abs=60)
    assert isinstance(last := row.pop("last_activity_at_ms"), int)
    assert last >= one.created_ms
    assert "I look." in str(row.pop("last_output_preview"))
    assert str(row.pop("active_run_id")).startswith("run_")
    assert row == NOTHING_OPEN | {
        "agent_id": "one",
        "session_id": one.session_id,
        "label": "north",
        "type": "general",
        "status": "awaiting",
        "mode": "background",
        "task": "Dive.",
        "progress": {"steps": 1, "tool_calls": 1},
        "tokens": 110,
        "cost": 0.001,
    }
    assert "write_file" in shown["one"].pop("tools")
    assert "I look." in shown["one"].pop("said")
    for name in ("elapsed_s", "last_activity_at_ms", "last_output_preview", "active_run_id"):
        del shown["one"][name]
    assert shown["one"] == row | {
        "nickname": "north",
        "root": said.session_id,
        "path": "one",
        "depth": 1,
        "task": "Dive.\nDeep.",
        "group": "g",
        "waits_for": ["children"],
        "queued_mailbox_count": 0,
        "started_at_ms": one.created_ms,
        "memory_share_mode": "isolated",
        "retention": "close_on_settle",
        "spawned_by_run_id": said.run_id,
        "spawn_request_id": "key-1",
    }
    assert (rows["deep"]["parent"], shown["deep"]["path"]) == ("one", "one/deep")
    assert (shown["deep"]["depth"], shown["deep"]["started_at_ms"]) == (2, deep.created_ms)
    assert shown["deep"]["prompt_summary"] == "Read it all."
    assert shown["two"]["depends_on"] == ["one"]
    assert (shown["two"]["status"], shown["two"]["queued_run_count"]) == ("waiting", 1)


@pytest.mark.requirement("SUB-4")
async def test_a_row_counts_what_an_agent_asks_and_names_the_run_that_waits(
    tmp_path: Path, migrated_url: str
) -> None:
    looked = Gate()
    unsure = [("request_parent_clarification", json.dumps({"question": one})) for one in "AB"]
    cast = Cast(
        [
            Said(
                calls=(
                    spawn(task="Ask me.", id="unsure", mode="background"),
                    spawn(task="Ask them.", id="asker", type="general", mode="background"),
                )
            ),
            Said(calls=(ask("wait", agent="unsure"),)),
            Said(calls=(ask("list"), ask("show", agent="unsure")), before=looked),
            "Seen.",
        ],
        {"unsure": [Said(calls=tuple(unsure))], "asker": [Said(calls=(asks("Which?", "this"),))]},
    )
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("go")
        await got_to(looked)
        await at.chat.until(lambda: len(cards(at)) == 1)
        looked.open.set()
        await at.chat.until(lambda: "Seen." in at.chat.texts())
    rows, shown = lines(cast.told(3)[0]), json.loads(cast.told(3)[1])
    one, other = rows["unsure"], rows["asker"]
    assert one["pending_parent_clarification_count"] == 2
    assert one["pending_parent_clarification_run_ids"] == [one["active_run_id"]]
    assert one["pending_question_count"] == 0
    assert [question[-40:].count(name) for question, name in zip(shown["asks"], "AB", strict=True)]
    assert (other["status"], other["pending_question_count"]) == ("waiting_for_user_input", 1)
    assert "pending_parent_clarification_run_ids" not in other
    assert other["pending_parent_clarification_count"] == 0


@pytest.mark.requirement("SUB-4", "SUB-25")
async def test_an_output_has_every_field_and_a_failed_one_its_error(
    tmp_path: Path, migrated_url: str
) -> None:
    spawns = (
        spawn(task="Dive.", id="good", description="Counts"),
        spawn(task="Dig.", id="bad", timeout_s=60),
    )

    def script(request: ModelRequest) -> Said | str | ModelRejected:
        if name_of(request) == "good":
            return Said(calls=(("list_dir", "{}"),)) if request.step == 1 else "gold"
        if name_of(request):
            return ModelRejected("no such model", "It cannot be asked.")
        if request.step == 1:
            return Said(calls=spawns)
        if request.step == 2:
            looks = (ask("output", agent="good"), ask("output", agent="bad"))
            return Said(calls=(*looks, ask("show", agent="good")))
        seen.extend(results(request))
        return "Seen."

    seen: list[str] = []
    async with engine(tmp_path, migrated_url, script) as at:
        await at.says("go")
        assert await at.sees(1) == ["Seen."]
        found = await everybody(at)
    good, bad, shown = (json.loads(one.removeprefix("ok: ")) for one in seen)
    assert "gold" in good.pop("output")
    assert good == {
        "agent_id": "good",
        "description": "Counts",
        "type": "explore",
        "status": "completed",
        "started_at_ms": found["good"].created_ms,
        "steps": 2,
        "tool_calls": 1,
        "tokens": good["tokens"],
        "cost": good["cost"],
        "success": True,
    }
    assert good["tokens"] > 0
    assert "no such model" in bad.pop("error")
    assert (bad["status"], bad["success"]) == ("failed", False)
    assert "output" not in bad
    assert shown["settled_at_ms"] == found["good"].settled_ms
    assert shown["elapsed_s"] == round((shown["settled_at_ms"] - shown["started_at_ms"]) / 1000, 1)
