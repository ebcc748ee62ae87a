"""Tools that are offered by name: read about when they are needed, decided as themselves."""

import json

import pytest

from runtime.domain.capabilities import Capabilities, Scope
from runtime.domain.messages import ApprovalPart
from runtime.domain.runs import RunState
from runtime.domain.tools import Effect, ToolCall, Touches
from runtime.domain.transcript import AssistantMessage
from runtime.policy.decide import Bounds, CallFacts, decide
from runtime.ports.model import ModelRequest
from runtime.tools.registry import Registry
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import card, offering, reaches, results, rows
from tests.scenario.conftest import Worlds
from tests.scenario.tools import Note

pytestmark = pytest.mark.requirement("CTX-12")

LOAD = ("load_tools", json.dumps({"family": "letters"}))


class Letter(Note):
    """A note of a family that is rarely needed."""

    family = "letters"


def by_name(tool: str, **arguments: str) -> tuple[str, str]:
    """A call as the model makes it of a tool that it was only told the name of."""
    return "call_tool", json.dumps({"tool": tool, "arguments": arguments})


def prefix(request: ModelRequest) -> str:
    """What a provider caches before the conversation."""
    return request.system + json.dumps([tool.model_dump() for tool in request.tools])


def called(request: ModelRequest) -> list[tuple[str, str]]:
    """The calls that a request tells the model that it made."""
    return [
        (one.name, one.arguments)
        for message in request.messages
        if isinstance(message, AssistantMessage)
        for one in message.tool_calls
    ]


async def test_a_hello_names_them_and_carries_no_schema_of_them(worlds: Worlds) -> None:
    model = ScriptedModel(["hello"])
    tools = offering(Note(), Letter("write_letter"), Letter("burn_letter"))
    async with worlds(model, change=tools) as at:
        await at.says("hi")
        await at.sees(1)
    offered = {tool.name: tool.parameters for tool in model.requests[0].tools}
    assert list(offered) == ["note", "load_tools", "call_tool"]
    assert '"enum": ["letters"]' in json.dumps(offered["load_tools"])
    assert '"enum": ["write_letter", "burn_letter"]' in json.dumps(offered["call_tool"])
    assert json.dumps(offered).count("text") == 1


async def test_without_any_there_is_nothing_to_load(worlds: Worlds) -> None:
    model = ScriptedModel(["hello"])
    async with worlds(model, change=offering(Note())) as at:
        await at.says("hi")
        await at.sees(1)
    assert [tool.name for tool in model.requests[0].tools] == ["note"]


async def test_one_is_read_about_and_called_and_the_prompt_before_it_stays(worlds: Worlds) -> None:
    letter = Letter("write_letter")
    model = ScriptedModel(
        [Said(calls=(LOAD,)), Said(calls=(by_name("write_letter", text="dear"),)), "done", "ok"]
    )
    async with worlds(model, change=offering(letter)) as at:
        accepted = await at.says("write to them")
        assert await at.sees(1) == ["done"]
        await at.says("thanks")
        assert await at.sees(2) == ["done", "ok"]
        kept = await rows(at, accepted.run_id)
    (told,) = results(model.requests[1])
    assert told.content.startswith("write_letter: Keep a note.\narguments: {")
    assert 'example: {"text": "milk"}' in told.content
    assert letter.kept == ["dear"]
    assert [row.call.name for row in kept] == ["load_tools", "write_letter"]
    assert len({prefix(request) for request in model.requests}) == 1
    # What the model is told of its past are calls of tools that it was offered.
    assert called(model.requests[3]) == [LOAD, by_name("write_letter", text="dear")]


async def test_a_person_is_asked_about_the_call_that_it_means(worlds: Worlds) -> None:
    letter = Letter("write_letter", command=True)
    model = ScriptedModel([Said(calls=(by_name("write_letter", text="rm x"),)), "done"])
    async with worlds(model, change=offering(letter)) as at:
        accepted = await at.says("write to them")
        part = await card(at)
        assert isinstance(part, ApprovalPart)
        assert part.tool == "write_letter"
        assert "call_tool" not in part.model_dump_json()
        assert letter.kept == []
        assert (await at.presses(part.open_call_id, "once")).accepted
        await reaches(at, accepted.run_id, RunState.COMPLETED)
    assert letter.kept == ["rm x"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (("load_tools", '{"family": "songs"}'), "there is no family of tools named songs"),
        (("load_tools", "{}"), "family: is required"),
        (by_name("sing"), "no family has a tool named sing; there are write_letter"),
        (by_name("note", text="x"), "no family has a tool named note"),
        (("call_tool", '{"arguments": {}}'), "tool: is required"),
        (("call_tool", '{"tool": "write_letter", "text": "x"}'), "text: is no field of this tool"),
        (("call_tool", "[]"), "the arguments must be one JSON object"),
        (("call_tool", "{"), "the arguments cannot be read"),
        (by_name("write_letter", txt="x"), "write_letter: txt: is no field of this tool"),
        (
            ("call_tool", '{"tool": "write_letter", "arguments": ["x"]}'),
            "write_letter: the arguments must be one JSON object",
        ),
    ],
)
async def test_a_wrong_call_says_what_to_do_instead(
    wanted: tuple[str, str], said: str, worlds: Worlds
) -> None:
    letter, note = Letter("write_letter"), Note()
    model = ScriptedModel([Said(calls=(wanted,)), "sorry"])
    async with worlds(model, change=offering(note, letter)) as at:
        await at.says("hi")
        await at.sees(1)
    (told,) = results(model.requests[1])
    assert told.status == "error"
    assert said in told.content
    assert (letter.kept, note.kept) == ([], [])


def test_arguments_that_were_written_as_text_are_read() -> None:
    registry = Registry([Letter("write_letter")])
    text = json.dumps({"tool": "write_letter", "arguments": '{"text": "dear"}'})
    (meant,) = registry.meant([ToolCall(id="a", name="call_tool", arguments=text)])
    assert (meant.id, meant.name, meant.arguments) == ("a", "write_letter", '{"text": "dear"}')


def test_a_session_is_told_only_of_those_that_it_is_offered() -> None:
    registry = Registry([Note(), Letter("write_letter"), Letter("burn_letter")])
    some = registry.specs(Bounds(tools=frozenset({"burn_letter"})))
    assert [spec.name for spec in some] == ["load_tools", "call_tool"]
    assert "write_letter" not in json.dumps([spec.model_dump() for spec in some])
    assert [one.name for one in registry.specs(Bounds(tools=frozenset({"note"})))] == ["note"]


def test_no_bound_on_tools_keeps_a_session_from_reading_about_its_own() -> None:
    facts = CallFacts("load_tools", Effect.READ, Touches(subject="letters"))
    assert decide(facts, Bounds(tools=frozenset({"write_letter"}))).verdict == "allow"
    scope = Capabilities(tools=Scope.of("write_letter"))
    assert decide(facts, Bounds(scope=scope)).verdict == "allow"


def test_a_bound_holds_for_the_call_that_is_meant() -> None:
    registry = Registry([Letter("write_letter")])
    (meant,) = registry.meant(
        [ToolCall(id="a", name=by_name("write_letter")[0], arguments=by_name("write_letter")[1])]
    )
    facts = CallFacts(meant.name, Effect.ONCE, Touches())
    assert decide(facts, Bounds(tools=frozenset({"note"}))).verdict == "deny"
