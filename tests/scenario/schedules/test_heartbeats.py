"""Heartbeats: small, fresh runs that speak by a structured result alone (SCH-9)."""

import json
from dataclasses import replace

import pytest

from runtime.domain.capabilities import Capabilities, Scope
from runtime.domain.errors import InvalidInput
from runtime.domain.transcript import estimate_tokens
from runtime.features.schedules.heartbeats import GiveResult
from runtime.features.schedules.kind import SPEAK
from runtime.features.schedules.model import MOST_HEARTBEAT, ScheduleChange
from runtime.policy.decide import Bounds
from runtime.ports.model import ModelRequest
from runtime.sessions import sessions
from tests.fakes.model import Said
from tests.scenario.engine import Setup, World
from tests.scenario.schedules.scheduling import HERE, answering, desk
from tests.scenario.schedules.test_gates import gated, printing
from tests.scenario.schedules.test_reminders import House, house
from tests.scenario.schedules.test_schedules import lines
from tests.scenario.subagents.family import results

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-9")
MOST_TOKENS = 5_000


def result(*, speak: bool, text: str = "") -> tuple[str, str]:
    """A heartbeat's call of its tool."""
    return SPEAK, json.dumps({"speak": speak, "text": text})


def says(text: str) -> Said:
    """A response that speaks."""
    return Said("this goes nowhere", calls=(result(speak=True, text=text),))


def is_silent() -> Said:
    """A response that does not."""
    return Said("nothing to see", calls=(result(speak=False),))


def size(request: ModelRequest) -> int:
    """The tokens of a whole prompt, by characters / 4, its tools included."""
    whole = [request.system, request.present, *(one.model_dump_json() for one in request.messages)]
    whole += [one.model_dump_json() for one in request.tools]
    return estimate_tokens("".join(whole))


async def test_a_heartbeat_speaks_by_its_result_alone(house: House) -> None:
    model = answering(is_silent(), says("**the disk is full**"), "only words")
    async with house.begins(model) as at:
        table = await desk(at)
        await table.make(heartbeat=True)
        await table.passes(60)
        assert at.chat.texts(HERE) == ["hello"]
        (first,) = await table.fires()
        assert (first.status, first.run_status, first.spoke, first.delivery_status) == (
            "settled",
            "completed",
            False,
            None,
        )
        assert await lines(table) == []
        await table.passes(60)
        assert at.chat.texts(HERE) == ["hello", "**the disk is full**"]
        second = (await table.fires())[1]
        assert (second.spoke, second.delivery_status, second.error) == (True, "sent", None)
        assert await lines(table) == [
            "The schedule 'numbers' ran at its time and answered: **the disk is full**"
        ]
        await table.passes(60)
        assert len(at.chat.texts(HERE)) == 2, "without a result there is silence"
        third = (await table.fires())[2]
        assert (third.status, third.spoke) == ("settled", False)
        view = await table.view()
        assert (view.heartbeat, view.execution_count, view.last_error) == (True, 3, None)
        assert view.run_session_id != table.session_id
    assert len(model.requests) == 4, "a result ends its run, and no call of the model follows it"


@pytest.mark.requirement("RUN-1", "POL-5")
async def test_a_narrowed_conversation_narrows_its_heartbeat_and_leaves_it_its_voice(
    house: House,
) -> None:
    model = answering(
        Said("", calls=(("list_dir", '{"path": "."}'),)), says("the disk is full"), is_silent()
    )
    own = Capabilities(tools=Scope.of("glob", "write_file"))
    async with house.begins(model) as at:
        table = await desk(at)
        await table.make(heartbeat=True)
        session_id = table.session_id
        await at.database.write(lambda conn: sessions.narrow(conn, session_id, own), name="narrow")
        await table.passes(60)
        assert at.chat.texts(HERE) == ["hello", "the disk is full"]
    _, first, second = model.requests
    assert {one.name for one in first.tools} == {"glob", SPEAK}
    assert results(second)[0].startswith("denied: ")


async def test_each_heartbeat_begins_afresh(house: House) -> None:
    model = answering(*(says(f"word {number}") for number in range(3)))
    async with house.begins(model) as at:
        table = await desk(at)
        await table.make(heartbeat=True)
        for _ in range(3):
            await table.passes(60)
        assert at.chat.texts(HERE)[1:] == ["word 0", "word 1", "word 2"]
    asked = [[one.role for one in request.messages] for request in model.requests[1:]]
    assert asked == [["user"]] * 3, "nothing of the conversation, and nothing of the one before"


def fill(at: World) -> None:
    """Put as much into the workspace as a prompt may show."""
    for name in ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md", "memory/MEMORY.md"):
        (at.workspace / name).write_text(f"{name} says. " + "A long line of rules.\n" * 1_000)
    for number in range(60):
        folder = at.workspace / "skills" / f"skill-{number}"
        folder.mkdir(parents=True)
        head = f"---\nname: skill-{number}\ndescription: {'It does much. ' * 15}\n---\n"
        (folder / "SKILL.md").write_text(f"{head}Do it.")


async def test_its_whole_prompt_is_small_whatever_the_workspace_holds(house: House) -> None:
    gate = printing("much news " * 5_000)
    model = answering(is_silent())
    async with house.begins(model, change=gate.change) as at:
        fill(at)
        content = ("Look whether anything needs somebody now. " * 60)[:MOST_HEARTBEAT]
        table = await gated(at, here=False, heartbeat=True, request={"content": content})
        await table.passes(60)
        assert (await table.fires())[0].spoke is False
    ordinary, small = model.requests
    assert size(ordinary) > MOST_TOKENS
    assert 2_000 < size(small) < MOST_TOKENS
    assert "AGENTS.md says." in small.system
    assert "SOUL.md says." not in small.system
    assert {one.name for one in small.tools} <= {
        *("read_file", "list_dir", "glob", "grep", "web_fetch"),
        SPEAK,
    }
    assert SPEAK in {one.name for one in small.tools}
    assert SPEAK not in f"{ordinary.system}{ordinary.tools}", "no other run is told of its tool"


async def test_it_changes_nothing_and_asks_nobody(house: House) -> None:
    write = ("write_file", json.dumps({"path": "a.txt", "content": "x"}))
    fetch = ("web_fetch", json.dumps({"url": "https://unknown.example/?q=secret"}))
    model = answering(Said(calls=(write, fetch)), is_silent())
    async with house.begins(model) as at:
        table = await desk(at)
        await table.make(heartbeat=True)
        await table.passes(60)
        assert at.chat.texts(HERE) == ["hello"], "no card is posted either"
        assert (await table.fires())[0].status == "settled"
        assert not (at.workspace / "files" / "a.txt").exists()
    told = model.requests[-1].messages[-1]
    assert [one.status for one in told.results] == ["denied", "denied"]


async def test_no_subagent_is_offered_its_tool() -> None:
    tool, tools = GiveResult(), frozenset({SPEAK})
    assert tool.offered(Bounds(tools=tools))
    assert not tool.offered(Bounds())
    assert not tool.offered(Bounds(tools=tools, child=True))


async def test_a_run_that_fails_says_nothing_there(house: House) -> None:
    empty = Said(calls=((SPEAK, json.dumps({"speak": True, "text": " "})),))
    async with house.begins(answering(empty, is_silent())) as at:
        table = await desk(at)
        await table.make(heartbeat=True)
        await table.passes(60)
        assert at.chat.texts(HERE) == ["hello"]
        assert (await table.fires())[0].spoke is False


async def test_secrets_are_masked_in_what_it_says(house: House) -> None:
    def masking(setup: Setup) -> Setup:
        return replace(setup, redact=lambda text: text.replace("hunter2", "[secret]"))

    async with house.begins(answering(says("it is hunter2")), change=masking) as at:
        table = await desk(at)
        await table.make(heartbeat=True)
        await table.passes(60)
        assert at.chat.texts(HERE) == ["hello", "it is [secret]"]


async def test_what_a_heartbeat_cannot_be(house: House) -> None:
    async with house.begins(answering()) as at:
        table = await desk(at)
        with pytest.raises(InvalidInput, match="heartbeat: is a run"):
            await table.make(deliver_text="tea", heartbeat=True)
        with pytest.raises(InvalidInput, match="request: must have at most 2,000 characters"):
            await table.make(heartbeat=True, request={"content": "x" * (MOST_HEARTBEAT + 1)})
        with pytest.raises(InvalidInput, match="overlap_policy: must be skip or queue_one"):
            await table.make(heartbeat=True, overlap_policy="parallel")
        made = await table.make(heartbeat=True)
        for broken in ({"request": {"content": "x" * 2_001}}, {"overlap_policy": "parallel"}):
            changed = ScheduleChange.model_validate(broken)
            with pytest.raises(InvalidInput):
                await table.control.revise(made, changed)
        changed = ScheduleChange.model_validate({"request": {"content": "look again"}})
        view = await table.control.revise(made, changed)
        assert view.request is not None
        assert view.request.text == "look again"
