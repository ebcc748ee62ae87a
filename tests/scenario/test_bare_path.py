"""The message path without a feature: it does all that a person needs, and a feature costs an
ordinary message nothing."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.messages import ApprovalPart
from runtime.domain.runs import RunState
from runtime.ports.model import ModelRequest
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import both, call, card, offering, reaches, results
from tests.scenario.conftest import Worlds
from tests.scenario.engine import Setup, world
from tests.scenario.scaling import Asked, Change, asked, at_rest, clock_of, scaled
from tests.scenario.streams import FIRST, WHOLE, Stage, half
from tests.scenario.tools import Note

BOTH = ("sqlite", "postgresql")
AGAIN_S = 0.005
_WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b|\s*WITH\b.*\b(INSERT INTO|UPDATE)\b", re.DOTALL)


def bare(setup: Setup) -> Setup:
    """Without any feature."""
    return replace(setup, bare=True)


@pytest.mark.requirement("MSG-9")
async def test_it_answers(worlds: Worlds) -> None:
    async with worlds(ScriptedModel(["hello"]), change=bare) as at:
        await at.says("hi")
        assert await at.sees(1) == ["hello"]
        assert at.engine.units.kinds.sessions == {}


@pytest.mark.requirement("TOOL-9")
async def test_it_runs_a_tool_and_offers_none_of_a_feature(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(call("a"),)), "done"])
    async with worlds(model, change=both(bare, offering(Note()))) as at:
        await at.says("note it")
        assert await at.sees(1) == ["done"]
    assert [one.status for one in results(model.requests[-1])] == ["ok"]


@pytest.mark.requirement("TOOL-14")
async def test_its_own_tools_are_offered_alone(worlds: Worlds) -> None:
    model = ScriptedModel(["hello"])
    async with worlds(model, change=bare) as at:
        await at.says("hi")
        await at.sees(1)
    names = {tool.name for tool in model.requests[0].tools}
    assert "read_file" in names
    assert "sessions_spawn" not in names


@pytest.mark.requirement("APR-1", "MSG-4")
async def test_it_asks_for_approval_and_goes_on_with_the_answer(worlds: Worlds) -> None:
    note = Note(command=True)
    model = ScriptedModel([Said(calls=(call("rm x"),)), "done"])
    async with worlds(model, change=both(bare, offering(note))) as at:
        accepted = await at.says("tidy up")
        part = await card(at)
        assert isinstance(part, ApprovalPart)
        assert (await at.presses(part.open_call_id, "once")).accepted
        await reaches(at, accepted.run_id, RunState.COMPLETED)
    assert note.kept == ["rm x"]


@pytest.mark.requirement("REN-4")
async def test_it_streams(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    setup = bare(await stage.setup(ScriptedModel([half(gate)])))
    async with world(setup, stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        gate.open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    with asked(monkeypatch) as made:
        yield made


def noting(request: ModelRequest) -> Said | str:
    """A step with a tool, then an answer."""
    return Said(calls=(call("a"),)) if request.step == 1 else "ok"


async def _statements(
    path: Path, dialect: str, counted: Asked, change: Change
) -> tuple[set[str], Counter[str]]:
    """What three messages with a tool each ask a database: all texts, and how often each that
    writes."""
    async with scaled(path, dialect, ScriptedModel(noting), change) as (running, _):
        for number in range(5):
            if number == 2:
                # What is read once, as facts about tables, came with the first messages.
                await at_rest(running)
                counted.clear()
            await running.says("hello", chat_id="D-one")
            while len(running.chat.texts("D-one")) <= number:
                await clock_of(running).advance(AGAIN_S)
            await at_rest(running)
        said = [re.sub(r"\s+", " ", one).strip() for one in counted.said]
    return set(said), Counter(one for one in said if _WRITES.match(one))


@pytest.mark.requirement("SCALE-3")
@pytest.mark.parametrize("dialect", BOTH)
async def test_an_ordinary_message_makes_the_same_statements_with_no_feature_and_with_all(
    dialect: str, tmp_path: Path, counted: Asked
) -> None:
    offered = offering(Note())
    for name in ("none", "all"):
        (tmp_path / name).mkdir()
    none = await _statements(tmp_path / "none", dialect, counted, both(bare, offered))
    every = await _statements(tmp_path / "all", dialect, counted, offered)
    assert every[0] == none[0]
    assert every[1] == none[1]
    assert sum(none[1].values()) >= 3
