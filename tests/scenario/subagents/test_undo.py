"""`/undo` and subagents: whose handoffs go, what remains of their work, who finds them (MSG-22)."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import select

from runtime.domain.errors import Conflict
from runtime.features.subagents.settings import ChildSettings
from runtime.ports.model import ModelRequest
from runtime.sessions import undo
from runtime.sessions.unit import Unit
from runtime.store.metadata import metadata
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import MEMBER, policy, results
from tests.scenario.engine import Setup, World
from tests.scenario.subagents.children import name_of, settled, spawn
from tests.scenario.subagents.test_questions_to_parents import asks as asks_parent
from tests.scenario.subagents.test_questions_to_parents import subagents
from tests.scenario.undoing import (
    BYPASS,
    OWNER_HERE,
    Start,
    quiet,
    rows,
    says,
    start,
    told,
    undoes,
    undone,
    until,
)

__all__ = ["dialect", "migrated_url", "schema_templates", "start"]

pytestmark = pytest.mark.requirement("MSG-22")


async def test_a_handoff_run_goes_with_the_turn_that_caused_it_and_no_other(start: Start) -> None:
    gates = {"one": Gate(), "two": Gate()}

    def answers(request: ModelRequest) -> Said | str:
        name, newest = name_of(request), request.messages[-1]
        if name:
            return Said(f"pearl {name}", before=gates[name])
        if newest.role == "user" and newest.text.startswith("look"):
            return spawn(task="Look.", id=newest.text.split()[1], mode="background")
        return f"answer to a {newest.role}"

    model = ScriptedModel(answers)
    async with start(model) as at:
        one, two = await says(at, "look one"), await says(at, "look two")
        assert "while a subagent is at work:" in await undoes(at)
        assert await undone(at) == set()
        first, second = await handed(at, "one", gates), await handed(at, "two", gates)
        await undoes(at)
        assert await undone(at) == {two, second}
        third = await says(at, "go on")
        assert "pearl one" in told(model.requests[-1])
        assert "pearl two" not in told(model.requests[-1])
        await undoes(at)
        assert await undone(at) == {two, second, third}
        await undoes(at)
        assert await undone(at) == {one, first, two, second, third}


async def test_a_run_that_a_childs_question_caused_goes_with_its_turn(start: Start) -> None:
    gate = Gate()

    def answers(request: ModelRequest) -> Said | str:
        newest = request.messages[-1]
        if name_of(request):
            return replace(asks_parent(), before=gate) if request.step == 1 else "pearl"
        if newest.role == "user":
            return spawn(task="Look.", id="one", mode="background")
        if newest.role == "notice" and "clarification_needed" in newest.text:
            return subagents("message", "left")
        return f"answer to a {newest.role}"

    async with start(ScriptedModel(answers)) as at:
        turn = await says(at, "look")
        last = await handed(at, "one", {"one": gate})
        told_of = {str(one["run_id"]) for one in await rows(at, "inputs") if is_question(one)}
        await undoes(at)
        assert await undone(at) == {turn, last, *told_of}
        assert len(told_of - {turn, last}) == 1


def is_question(row: dict[str, object]) -> bool:
    return str(row["identity"]).startswith("asks:")


async def test_what_an_agent_was_told_in_a_turn_goes_with_that_turn(start: Start) -> None:
    gates = {"one": Gate()}

    def answers(request: ModelRequest) -> Said | str:
        newest = request.messages[-1]
        if name_of(request):
            again = "once more" in told(request)
            file = json.dumps({"path": f"{'second' if again else 'first'}.md", "content": "x"})
            if request.step == 1:
                return Said("", calls=(("write_file", file),), before=gates["one"])
            return "ruby" if again else "pearl"
        if newest.role == "user" and newest.text == "look":
            return spawn(task="Look.", id="one", mode="background", type="general")
        if newest.role == "user" and newest.text == "again":
            return subagents("message", "once more")
        if newest.role == "user" and newest.text == "list":
            return subagents("list", agent="")
        return f"answer to a {newest.role}"

    model = ScriptedModel(answers)
    async with start(model) as at:
        await says(at, "look")
        await handed(at, "one", gates)
        gates["one"] = Gate()
        turn = await says(at, "again")
        last = await handed(at, "one", gates)
        answer = await undoes(at)
        assert [line for line in answer.splitlines() if line.startswith("- ")] == [
            "- `subagents message one`",
            "- `write_file second.md`",
        ]
        assert await undone(at) == {turn, last}
        await says(at, "go on")
        assert "pearl" in told(model.requests[-1])
        assert "ruby" not in told(model.requests[-1])
        await says(at, "list")
        assert results(model.requests[-1])[0].content == "No subagents here."


async def handed(at: World, name: str, gates: dict[str, Gate]) -> str:
    """The run that was told of an agent's last end, once it is over."""
    gates[name].open.set()
    table = metadata.tables["agents"].c
    ended = select(table.session_id).where(table.name == name, table.settled_ms.is_not(None))
    await until(at, lambda conn: conn.execute(ended).first() is not None)
    await quiet(at)
    agent = await at.database.read(lambda conn: conn.execute(ended).scalar())
    heard = [
        one["run_id"]
        for one in await rows(at, "inputs")
        if str(one["identity"]).startswith(f"handoff:{agent}:")
    ]
    return str(heard[-1])


async def test_children_refuse(start: Start) -> None:
    def answers(request: ModelRequest) -> Said | str:
        if name_of(request):
            return "pearl"
        return "done" if "pearl" in told(request) else spawn(task="Look.")

    async with start(ScriptedModel(answers)) as at:
        await says(at, "alpha")
        (child,) = (await settled(at)).values()

        def undo_it(unit: Unit) -> str:
            lane = unit.lane(child.session_id)
            return undo.take_back(unit, lane, by=OWNER_HERE, said_ms=2**62)

        with pytest.raises(Conflict, match="only turns of a conversation"):
            await at.engine.units.run(undo_it, name="undo")


async def test_commands_sends_and_the_work_of_agents_are_listed(start: Start) -> None:
    command = ("exec", json.dumps({"command": "make `all`"}))
    letter = ("send_message", json.dumps({"to": f"test:A1:D-{MEMBER}", "text": "a secret"}))
    file = ("write_file", json.dumps({"path": "deep.md", "content": "x"}))

    def answers(request: ModelRequest) -> Said | str:
        if name_of(request):
            return Said("", calls=(file,)) if request.step == 1 else "pearl"
        child = spawn(task="Look.", id="diver", type="general")
        return Said("", calls=(command, letter, *child.calls)) if request.step == 1 else "done"

    async with start(ScriptedModel(answers), policy(BYPASS)) as at:
        await says(at, "hello", user=MEMBER)
        await says(at, "alpha")
        answer = await undoes(at)
        listed = [line for line in answer.splitlines() if line.startswith("- ")]
        assert sorted(listed) == [
            "- `exec make 'all'`",
            f"- `send_message test:A1:D-{MEMBER}`",
            "- `subagent diver`",
            "- `write_file deep.md`",
        ]


async def test_the_model_finds_no_agent_that_the_turn_spawned(start: Start) -> None:
    def answers(request: ModelRequest) -> Said | str:
        newest = request.messages[-1]
        if name_of(request):
            below = spawn(task="the deep secret", id="two")
            return below if "two" not in told(request) and "Dive" in told(request) else "pearl"
        if newest.role != "user":
            return "done"
        look = subagents("list", agent="").calls + subagents("message", "go on").calls
        return spawn(task="Dive.", id="one") if newest.text == "spawn" else Said("", calls=look)

    model = ScriptedModel(answers)
    async with start(model) as at:
        await says(at, "spawn")
        assert len(await settled(at)) == 2
        await says(at, "look")
        assert "Dive" in told(model.requests[-1])
        # It was told to go on in the turn that goes first.
        await settled(at)
        await quiet(at)
        await undoes(at)
        await undoes(at)
        await says(at, "look")
        listed, message = results(model.requests[-1])
        assert listed.content == "No subagents here."
        assert message.status == "error"


async def test_a_child_that_inherits_the_conversation_is_shown_nothing_of_it(start: Start) -> None:
    def answers(request: ModelRequest) -> Said | str:
        if name_of(request):
            return "seen"
        newest = request.messages[-1]
        if newest.role == "user" and newest.text == "ask":
            return spawn(task="Look.", memory_share_mode="inherit-readonly")
        return "hm"

    model = ScriptedModel(answers)

    def shared(setup: Setup) -> Setup:
        return replace(setup, children=ChildSettings(share="inherit-readonly"))

    async with start(model, shared) as at:
        await says(at, "alpha")
        await says(at, "bravo")
        await undoes(at)
        await says(at, "ask")
        (child,) = [one for one in model.requests if name_of(one)]
        assert "alpha" in told(child)
        assert "bravo" not in told(child)
