"""What the model is told when a call is wrong, and what the tools cost in a prompt."""

import json

import pytest

from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect
from runtime.policy.decide import Bounds
from runtime.tools.registry import Registry
from tests.unit.tools.support import Desk, call

NAMES = (
    "read_file",
    "write_file",
    "edit_file",
    "apply_patch",
    "list_dir",
    "glob",
    "grep",
    "resolve_path",
    "exec",
    "web_fetch",
    "ask_user",
    "send_file",
    "send_message",
    "sessions_spawn",
    "subagents",
    "agents_list",
    "use_skill",
)


def refused(desk: Desk, tool: str, arguments: str) -> str:
    with pytest.raises(ToolError) as caught:
        desk.registry.prepare(call(tool, arguments))
    return str(caught.value)


@pytest.mark.requirement("TOOL-1")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"offset": 1}', "path: is required"),
        ('{"path": 7}', "path: input should be a valid string"),
        ('{"path": "a", "offset": 0}', "offset: input should be greater than or equal to 1"),
        ('{"path": "a", "line": 3}', "line: is no field of this tool; the fields are path, offset"),
        ('{"path": "a"', "the arguments cannot be read: it is not JSON: Expecting"),
        ('["a"]', "the arguments must be one JSON object"),
        ("null", "the arguments must be one JSON object"),
        ("[" * 100_000, "the arguments cannot be read: it is nested more than 64 levels deep"),
        ('{"path": ' + "9" * 5000 + "}", "it holds a number of more than 40 digits"),
        ('{"path": "a", "path": "b"}', 'the key "path" comes twice in one object'),
        ('{"path": "a", "\\u0070ath": "b"}', 'the key "path" comes twice in one object'),
        ('{"path": NaN}', "it holds NaN, which JSON does not have"),
        ("", "path: is required"),
        ('{"path": "\\ud800"}', "half of a surrogate pair"),
    ],
)
def test_wrong_arguments_name_the_field_the_rule_and_an_example(
    desk: Desk, arguments: str, said: str
) -> None:
    told = refused(desk, "read_file", arguments)
    assert told.startswith("read_file: ")
    assert said in told
    assert '{"path": "notes/plan.md"' in told
    assert "Traceback" not in told
    assert "https://" not in told
    assert len(told) < 600


@pytest.mark.requirement("TOOL-1")
def test_of_many_wrong_fields_the_first_are_told(desk: Desk) -> None:
    told = refused(desk, "read_file", json.dumps({f"f{n}": 1 for n in range(7)} | {"path": "a"}))
    assert "f4: is no field of this tool; and 2 more; the fields are path" in told
    assert "f5" not in told


@pytest.mark.requirement("TOOL-1")
def test_a_wrong_value_in_a_list_is_named_with_its_place(desk: Desk) -> None:
    told = refused(desk, "ask_user", '{"question": "Which?", "options": ["a", 7]}')
    assert told.startswith("ask_user: options.1: input should be a valid string.")


@pytest.mark.requirement("TOOL-1")
def test_an_unknown_tool_gets_the_nearest_names(desk: Desk) -> None:
    assert refused(desk, "readfile", "{}").startswith(
        "there is no tool named readfile; the nearest are read_file"
    )
    assert "there are read_file, write_file" in refused(desk, "zzzzzz", "{}")
    assert len(refused(desk, "x" * 100_000, "{}")) < 600


@pytest.mark.requirement("TOOL-1")
@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_each_tool_is_right(desk: Desk, name: str) -> None:
    tool = desk.registry.get(name)
    assert tool is not None
    assert desk.registry.prepare(call(name, tool.example)).tool is tool


@pytest.mark.requirement("TOOL-1")
@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "http://user@example.org/",
        "http://good.example\\@evil.example/",
        "http://example.org /",
        "http://ｅxample.org/",
        "example.org",
        "http://",
    ],
)
def test_a_url_that_two_parsers_could_read_differently_is_refused(desk: Desk, url: str) -> None:
    assert "url: " in refused(desk, "web_fetch", json.dumps({"url": url}))


@pytest.mark.requirement("TOOL-9")
def test_each_tool_declares_what_a_rerun_would_do(desk: Desk) -> None:
    effects = {name: tool.effect for name in NAMES if (tool := desk.registry.get(name))}
    once = {"exec", "edit_file"}
    assert effects == {
        name: Effect.ONCE
        if name in once
        else Effect.IDEMPOTENT
        if name in {"write_file", "apply_patch", "send_file", "send_message"}
        else Effect.READ
        for name in NAMES
    }


@pytest.mark.requirement("CTX-12")
def test_all_tools_together_leave_a_first_prompt_its_room(desk: Desk) -> None:
    specs = desk.registry.specs()
    text = json.dumps([spec.model_dump() for spec in specs])
    assert tuple(spec.name for spec in specs) == (*NAMES, "load_tools", "call_tool")
    assert len(text) / 4 < 1850
    assert "title" not in text
    assert all("\n" not in spec.description for spec in specs)


@pytest.mark.requirement("CTX-3")
def test_the_order_is_the_same_whatever_is_asked_for(desk: Desk) -> None:
    some = desk.registry.specs(Bounds(tools=frozenset({"grep", "read_file", "none_such"})))
    assert [spec.name for spec in some] == ["read_file", "grep"]
    assert desk.registry.specs() == desk.registry.specs()


def test_two_tools_of_one_name_are_refused(desk: Desk) -> None:
    tool = desk.registry.get("grep")
    assert tool is not None
    with pytest.raises(ValueError, match="two tools are named grep"):
        Registry([tool, tool])


def test_touches_say_what_a_rule_is_matched_against(desk: Desk) -> None:
    workspace = str(desk.folder)
    wrote = desk.touches("write_file", path="./notes/../notes/a.md", content="")
    assert (wrote.writes, wrote.subject) == ((f"{workspace}/notes/a.md",), "notes/a.md")
    read = desk.touches("read_file", path=f"{workspace}/b.md")
    assert (read.reads, read.writes, read.subject) == ((f"{workspace}/b.md",), (), "b.md")
    ran = desk.touches("exec", command="git status")
    assert (ran.command, ran.subject, ran.network) == ("git status", "git status", ())
    got = desk.touches("web_fetch", url="https://Example.ORG:8443/a?b")
    assert (got.network, got.subject) == (("example.org",), "example.org")
    assert desk.touches("ask_user", question="Which?").subject == "Which?"


async def test_a_skill_is_read_by_name_or_the_nearest_is_named(desk: Desk) -> None:
    desk = Desk(desk.workspace, skills=type(desk.skills)({"release-notes": "Write them."}))
    assert (await desk.run("use_skill", name="release-notes")).content == "Write them."
    with pytest.raises(ToolError, match="the nearest are release-notes"):
        await desk.run("use_skill", name="release_note")
