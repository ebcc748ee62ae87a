"""What a call that spawns is answered, whatever it asked for: one line for each agent (SUB-7)."""

import json
from pathlib import Path

import pytest

from runtime.domain.errors import ModelRejected
from runtime.domain.value import JsonObject
from runtime.ports.model import ModelRequest
from runtime.sessions import runs
from runtime.store import Connection
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Said
from tests.scenario.cast import Cast, ask, played, tree
from tests.scenario.cast import spawn as spawns
from tests.scenario.subagents.children import engine, name_of, settled, spawn
from tests.scenario.subagents.family import results

__all__ = ["dialect", "migrated_url", "schema_templates"]

BATCH = [{"task": "the sea", "id": "sea"}, {"task": "the hills", "id": "hills"}]


@pytest.fixture
def url(migrated_url: str) -> str:
    return migrated_url


def replies(result: str) -> dict[str, JsonObject]:
    """The lines of JSON in a result, by their agents."""
    lines = [json.loads(line) for line in result.splitlines() if line.startswith('{"status"')]
    return {line["agent_id"]: line for line in lines}


@pytest.mark.requirement("SUB-7")
@pytest.mark.parametrize("mode", ["await", "background"])
async def test_a_batch_is_answered_by_a_line_for_each_and_one_for_all(
    tmp_path: Path, url: str, mode: str
) -> None:
    told: list[str] = []

    def script(request: ModelRequest) -> Said | str | ModelRejected:
        name = name_of(request)
        if name:
            return "a pearl" if name == "sea" else ModelRejected("401 no such key")
        if not results(request):
            return spawn(mode=mode, agents=BATCH)
        told.append(results(request)[0].removeprefix("ok: "))
        return "So."

    async with engine(tmp_path, url, script) as at:
        await at.says("look everywhere")
        await at.sees(1)
        found = await settled(at)

        def first_runs(conn: Connection) -> set[tuple[str, int]]:
            names = {str(one["run_id"]) for one in replies(told[0]).values()}
            return {(run.session_id, run.seq) for run in (runs.get(conn, one) for one in names)}

        begun = await at.database.read(first_runs)
    lines = replies(told[0])
    assert {name: one["session_id"] for name, one in lines.items()} == {
        name: one.session_id for name, one in found.items()
    }
    assert begun == {(one.session_id, 1) for one in found.values()}
    statuses = {name: one["status"] for name, one in lines.items()}
    if mode == "background":
        assert statuses == {"sea": "accepted", "hills": "accepted"}
        assert "\n2 subagents were started.\n" in told[0]
    else:
        assert statuses == {"sea": "completed", "hills": "failed"}
        assert told[0].startswith("2 subagents: 1 completed, 1 did not.\n")
        assert "a pearl" in told[0]


@pytest.mark.requirement("SUB-7")
async def test_one_that_is_awaited_is_answered_by_its_line_and_its_result(
    tmp_path: Path, url: str
) -> None:
    cast = Cast([Said(calls=(spawns(task="Dive.", id="one"),)), "So."], {"one": ["a pearl"]})
    async with played(tmp_path, url, cast) as at:
        session = (await at.says("go")).session_id
        await at.sees(1)
        one = (await tree(at, session))["one"]
    (told,) = cast.told(1)
    first, header, *_ = told.splitlines()
    reply = json.loads(first)
    assert (reply["status"], reply["agent_id"]) == ("completed", "one")
    assert reply["session_id"] == one.session_id
    assert header.startswith("The subagent one (explore) completed after")
    assert "a pearl" in told


@pytest.mark.requirement("SUB-5", "SUB-7")
async def test_what_a_call_says_of_one_agent_is_ignored_beside_a_batch_but_for_the_mode(
    tmp_path: Path, url: str
) -> None:
    beside = {
        "task": "never",
        "type": "nothing",
        "id": "alone",
        "depends_on": ["nobody"],
        "group": "g",
    }
    cast = Cast(
        [
            Said(calls=(spawns(**beside, mode="background", agents=BATCH),)),
            Said(calls=(ask("wait"),)),
            *["So."] * 3,
        ],
        {"sea": ["a pearl"], "hills": ["gold"]},
    )
    async with played(tmp_path, url, cast) as at:
        session = (await at.says("go")).session_id
        await at.sees(1)
        found = await tree(at, session)
    assert set(found) == {"sea", "hills"}
    assert {one.mode for one in found.values()} == {"background"}
    assert {(one.type, one.group_name) for one in found.values()} == {("explore", None)}
