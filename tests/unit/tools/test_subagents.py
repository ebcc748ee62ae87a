"""What the tools about subagents say of a tree, field by field, and what they ask of it."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from runtime.domain.errors import Conflict, Forbidden, ToolError
from runtime.domain.fence import fence
from runtime.domain.runs import RunState
from runtime.features.subagents.agent_messages import How, Word
from runtime.features.subagents.family import Detail, Household
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.spawn.agent_types import Profile, Types
from runtime.tools.base import AnyTool
from tests.unit.tools.support import Desk

pytestmark = pytest.mark.requirement("SUB-4")
NOW = 61_250


def agent(name: str, parent: str = "ses_root", **more: object) -> Agent:
    usual = {"place": 1, "depth": 1, "type": "explore", "task": f"Do {name}.\nAll of it."}
    usual |= {"mode": "await", "on_failure": "fail", "run_id": "run_0", "step": 1, "call_place": 0}
    whole = {"created_ms": 1_000, **usual, **more}
    return Agent(f"ses_{name}", "ses_root", parent, name, **whole)


def at_work(one: Agent, **more: object) -> AgentRow:
    return AgentRow(**{"agent": one, "standing": "running", "run": RunState.RUNNING,
                       "run_id": "run_9", **more})  # fmt: skip


def settled(one: Agent, **more: object) -> AgentRow:
    return AgentRow(**{"agent": one, "standing": one.status or "settled", "run": None,
                       "run_id": None, **more})  # fmt: skip


ONE = at_work(
    agent("one", label="sea"),
    steps=3,
    tokens=40,
    cost_usd=0.25,
    tool_calls=5,
    queued=2,
    approvals=1,
    questions=4,
    said=" It looks. ",
    active_ms=9_000,
)
TWO = settled(
    agent(
        "two",
        parent="ses_one",
        mode="background",
        type="plan",
        retries=2,
        settled_ms=3_500,
        status="failed",
        result="Half of it.",
    ),
    error="e" * 300,
)
THREE = settled(agent("three", settled_ms=2_000, status="completed", result="r" * 300))
ALL = (ONE, TWO, THREE)
NO_TYPES = Types({}, frozenset(), {}, {})


@dataclass
class Kin:
    """A tree that stays as it is; `words`, `waits` and `stops` are what was asked of it."""

    rows: Sequence[AgentRow] = ALL
    own: str = "root"
    details: Detail = field(default_factory=lambda: Detail())
    left: Sequence[str] = ()
    how: How = "steered"
    stopping: bool = True
    seen: Types = field(default_factory=lambda: NO_TYPES)
    words: list[Word] = field(default_factory=list)
    waits: list[tuple[set[str], float]] = field(default_factory=list)
    stops: list[tuple[str, str]] = field(default_factory=list)
    looked: list[str] = field(default_factory=list)
    asked: list[AgentRow] = field(default_factory=list)

    async def look(self, session_id: str) -> Household:
        self.looked.append(session_id)
        return Household(self.rows, self.own, NOW)

    async def detail(self, row: AgentRow) -> Detail:
        self.asked.append(row)
        return self.details

    async def wait(self, session_ids: Collection[str], seconds: float) -> Sequence[str]:
        self.waits.append((set(session_ids), seconds))
        return self.left

    async def tell(self, word: Word) -> How:
        if word.text == "late":
            raise Conflict("one is being stopped", "stopping")
        if word.text == "not yours":
            raise Forbidden("one works for somebody else")
        self.words.append(word)
        return self.how

    async def stop(self, session_id: str, reason: str, *, run_id: str) -> bool:
        assert run_id
        self.stops.append((session_id, reason))
        return self.stopping

    async def types(self, session_id: str, tools: Sequence[AnyTool]) -> Types:
        assert "read_file" in {tool.name for tool in tools}
        self.looked.append(session_id)
        return self.seen


def desk_of(tmp_path: Path, kin: Kin, session: str = "ses_root", *, child: bool = False) -> Desk:
    return Desk(tmp_path, family=kin, session=session, child=child)


async def shown(desk: Desk, action: str, name: str = "") -> dict[str, JsonValue]:
    return json.loads((await desk.run("subagents", action=action, agent=name)).content)


def row_of(row: AgentRow, **more: JsonValue) -> dict[str, JsonValue]:
    """What stands in each row, with what is of this one."""
    one = row.agent
    usual: dict[str, JsonValue] = {
        "agent_id": one.name,
        "session_id": one.session_id,
        "type": one.type,
        "mode": one.mode,
        "task": f"Do {one.name}.",
        "queued_run_count": 0,
        "pending_approval_count": 0,
        "pending_question_count": 0,
        "pending_parent_clarification_count": 0,
        "progress": {"steps": 0, "tool_calls": 0},
        "tokens": 0,
    }
    return usual | more


ROWS = (
    row_of(
        ONE,
        label="sea",
        status="running",
        active_run_id="run_9",
        queued_run_count=2,
        pending_approval_count=1,
        pending_question_count=4,
        progress={"steps": 3, "tool_calls": 5},
        tokens=40,
        cost=0.25,
        elapsed_s=60.2,
        last_activity_at_ms=9_000,
        last_output_preview=fence("It looks.", "subagent one"),
    ),
    row_of(
        TWO,
        parent="one",
        status="failed",
        retries=2,
        elapsed_s=2.5,
        task=fence("Do two.", "subagent two"),
        last_error=fence("e" * 240, "subagent two"),
        last_output_preview=fence("Half of it.", "subagent two"),
    ),
    row_of(
        THREE,
        status="completed",
        elapsed_s=1.0,
        last_output_preview=fence("r" * 240, "subagent three"),
    ),
)


async def test_a_list_has_a_line_for_each_with_what_is_known(tmp_path: Path) -> None:
    kin = Kin()
    output = await desk_of(tmp_path, kin).run("subagents", action="list")
    assert [json.loads(line) for line in output.content.splitlines()] == list(ROWS)
    assert (output.untrusted, output.source, output.failed) == (False, "subagents", False)
    assert kin.looked == ["ses_root"]
    nobody = await desk_of(tmp_path, Kin(())).run("subagents", action="list")
    assert nobody.content == "No subagents here."


async def test_letters_of_every_script_stay_as_they_are(tmp_path: Path) -> None:
    kin = Kin([at_work(agent("one", label="море"))], details=Detail(said="море"))
    for action in ("list", "show"):
        output = await desk_of(tmp_path, kin).run("subagents", action=action, agent="one")
        assert "море" in output.content


async def test_tainted_rows_make_the_whole_untrusted_and_are_fenced_once(tmp_path: Path) -> None:
    kin = Kin([ONE, replace(TWO, tainted=True, error="It broke.")])
    output = await desk_of(tmp_path, kin).run("subagents", action="list")
    assert output.untrusted is True
    row = json.loads(output.content.splitlines()[1])
    assert (row["task"], row["last_error"]) == ("Do two.", "It broke.")
    assert row["last_output_preview"] == "Half of it."
    for action in ("show", "output"):
        one = await desk_of(tmp_path, kin).run("subagents", action=action, agent="two")
        assert (one.untrusted, one.source) == (True, "subagent two")


@pytest.mark.parametrize(
    ("own", "name", "fenced"),
    [
        ("root", "one", False),
        ("root", "two", True),
        ("one", "two", False),
        ("one", "three", False),
        ("two", "two", False),
        ("three", "two", True),
    ],
)
async def test_words_that_somebody_else_gave_an_agent_are_data(
    tmp_path: Path, own: str, name: str, fenced: bool
) -> None:
    row = await shown(desk_of(tmp_path, Kin(own=own)), "show", name)
    whole = f"Do {name}.\nAll of it."
    assert row["task"] == (fence(whole, f"subagent {name}") if fenced else whole)


async def test_an_agent_that_asks_is_shown_with_the_run_that_asks(tmp_path: Path) -> None:
    asking = replace(ONE, asks=2, said="")
    details = Detail(asks=("Which?", "Why?"))
    row = await shown(desk_of(tmp_path, Kin([asking], details=details)), "show", "one")
    assert row["pending_parent_clarification_count"] == 2
    assert row["pending_parent_clarification_run_ids"] == ["run_9"]
    assert row["asks"] == [fence("Which?", "subagent one"), fence("Why?", "subagent one")]
    assert "last_output_preview" not in row
    tainted = await shown(
        desk_of(tmp_path, Kin([replace(asking, tainted=True)], details=details)), "show", "one"
    )
    assert tainted["asks"] == ["Which?", "Why?"]


async def test_show_says_all_of_one_agent(tmp_path: Path) -> None:
    two = replace(
        TWO.agent,
        label="deep",
        group_name="pair",
        depth=2,
        run_id="run_1",
        request_key="key",
        prompt="p" * 130 + "\nmore",
    )
    kin = Kin(
        [ONE, replace(TWO, agent=two, error=None)],
        own="one",
        details=Detail(
            said="Half.", needs=("one",), open=("approval",), tools=("read_file",), mail=2
        ),
    )
    output = await desk_of(tmp_path, kin).run("subagents", action="show", agent="two")
    assert output.content.startswith('{\n "agent_id": "two"')
    assert (output.untrusted, output.source) == (False, "subagent two")
    assert kin.asked == [kin.rows[1]]
    assert json.loads(output.content) == row_of(
        kin.rows[1],
        label="deep",
        parent="one",
        status="failed",
        retries=2,
        elapsed_s=2.5,
        last_output_preview=fence("Half of it.", "subagent two"),
        nickname="deep",
        root="ses_root",
        path="one/two",
        depth=2,
        task="Do two.\nAll of it.",
        group="pair",
        depends_on=["one"],
        waits_for=["approval"],
        queued_mailbox_count=2,
        started_at_ms=1_000,
        settled_at_ms=3_500,
        memory_share_mode="handoff",
        retention="retain",
        spawned_by_run_id="run_1",
        spawn_request_id="key",
        prompt_summary="p" * 120 + "...",
        tools=["read_file"],
        said=fence("Half.", "subagent two"),
    )


async def test_words_of_a_spawn_by_another_agent_are_data_too(tmp_path: Path) -> None:
    two = replace(TWO.agent, label="deep", request_key="key", description="Dive.")
    kin = Kin([ONE, replace(TWO, agent=two)])
    row = await shown(desk_of(tmp_path, kin), "show", "two")
    for name, words in (("nickname", "deep"), ("spawn_request_id", "key"), ("label", "deep")):
        assert row[name] == fence(words, "subagent two")
    found = await shown(desk_of(tmp_path, kin), "output", "two")
    assert found["description"] == fence("Dive.", "subagent two")


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"description": "Dive.", "label": "deep"}, "Dive."),
        ({"label": "deep"}, "deep"),
        ({}, "Do it."),
        ({"task": "t" * 120}, "t" * 120),
        ({"task": "t" * 121}, "t" * 120 + "..."),
        ({"task": "\n One.\nTwo.\n"}, "One."),
    ],
)
async def test_an_output_says_what_the_agent_was_for(
    tmp_path: Path, fields: dict[str, str], line: str
) -> None:
    one = agent("one", settled_ms=2_000, status="completed", **({"task": "Do it."} | fields))
    assert (await shown(desk_of(tmp_path, Kin([settled(one)])), "output", "one"))[
        "description"
    ] == line


@pytest.mark.parametrize(
    ("status", "told", "success"),
    [("completed", "output", True), ("failed", "error", False), ("stopped", "output", False)],
)
async def test_an_output_has_the_result_and_what_it_cost(
    tmp_path: Path, status: str, told: str, success: bool
) -> None:
    one = agent("one", settled_ms=2_000, status=status)
    row = settled(one, steps=3, tokens=40, cost_usd=0.25, tool_calls=7)
    details = Detail(result="Found.")
    kin = Kin([row], details=details)
    output = await desk_of(tmp_path, kin).run("subagents", action="output", agent="one")
    assert json.loads(output.content) == {
        "agent_id": "one",
        "description": "Do one.",
        "type": "explore",
        "status": status,
        "started_at_ms": 1_000,
        "steps": 3,
        "tool_calls": 7,
        "tokens": 40,
        "cost": 0.25,
        "success": success,
        told: fence("Found.", "subagent one"),
    }
    assert kin.asked == [row]
    bare = await shown(desk_of(tmp_path, Kin([row])), "output", "one")
    assert not {"output", "error"} & bare.keys()
    tainted = Kin([replace(row, tainted=True)], details=details)
    assert (await shown(desk_of(tmp_path, tainted), "output", "one"))[told] == "Found."


async def test_an_agent_at_work_has_no_output_yet(tmp_path: Path) -> None:
    output = await desk_of(tmp_path, Kin()).run("subagents", action="output", agent="one")
    first, state = output.content.split("\n")
    assert first == "not_ready"
    assert json.loads(state) == {"agent_id": "one", "status": "running"}


async def test_a_wait_is_for_those_below_or_for_one_of_them(tmp_path: Path) -> None:
    kin = Kin(left=["ses_one"])
    desk = desk_of(tmp_path, kin)
    output = await desk.run("subagents", action="wait", timeout_s=5)
    said, *lines = output.content.split("\n")
    assert said == "Still at work: one."
    assert [json.loads(line) for line in lines] == list(ROWS)
    assert kin.waits == [({"ses_one", "ses_two", "ses_three"}, 5)]
    assert kin.looked == ["ses_root", "ses_root"]
    one = await desk.run("subagents", action="wait", agent="three")
    said, *lines = one.content.split("\n")
    assert said == "All of them have settled."
    assert [json.loads(line) for line in lines] == [ROWS[2]]
    assert kin.waits[1:] == [({"ses_three"}, 60)]


async def test_a_wait_names_those_that_ask_and_those_still_at_work(tmp_path: Path) -> None:
    rows = [replace(ONE, asks=1), at_work(agent("four"), asks=1), at_work(agent("five"))]
    kin = Kin(rows, left=["ses_four", "ses_five"])
    output = await desk_of(tmp_path, kin).run("subagents", action="wait")
    assert output.content.split("\n")[0] == (
        "Still at work: four, five. These wait for your answer: one, four."
    )
    nobody = await desk_of(tmp_path, Kin(())).run("subagents", action="wait")
    assert nobody.content == "No subagents here."


async def test_a_child_that_waits_holds_no_slot_meanwhile(tmp_path: Path) -> None:
    kin = Kin(own="one")
    desk = desk_of(tmp_path, kin, "ses_one", child=True)
    await desk.run("subagents", action="wait", timeout_s=5)
    assert kin.waits == [({"ses_two"}, 0)]


@pytest.mark.parametrize("action", ["wait", "stop", "message", "steer", "decline"])
async def test_nobody_tells_or_awaits_an_agent_that_does_not_work_for_it(
    tmp_path: Path, action: str
) -> None:
    kin = Kin(own="one")
    desk = desk_of(tmp_path, kin, "ses_one", child=True)
    with pytest.raises(ToolError) as refused:
        await desk.run("subagents", action=action, agent="three", text="x")
    assert refused.value.detail == (
        "agent: three does not work for you; you can only look at it (show, output)"
    )
    assert (kin.words, kin.stops, kin.waits) == ([], [], [])


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("steered", "one: It hears this at its next step."),
        ("joined", "one: It begins with this when its turn comes."),
        ("queued", "one: It reads this after its present work."),
        ("repeated", "one: It was told this already."),
        ("answered", "one: It waited for this and continues. You get its result later."),
        (
            "continued",
            "one: It had settled and continues with this. Read its result with the action output.",
        ),
    ],
)
async def test_what_was_done_with_words_is_said(tmp_path: Path, how: How, told: str) -> None:
    output = await desk_of(tmp_path, Kin(how=how)).run(
        "subagents", action="message", agent="one", text="x"
    )
    assert output.content == told


@pytest.mark.parametrize("action", ["message", "steer", "decline"])
async def test_an_agent_is_told_by_the_call_that_says_it(tmp_path: Path, action: str) -> None:
    kin = Kin()
    desk = desk_of(tmp_path, kin)
    await desk.run("subagents", action=action, agent="two", text=" Look. ")
    assert kin.words == [
        Word(
            session_id="ses_two",
            run_id="run_1",
            call_id="call_1",
            by="root",
            text="Look.",
            steer=action == "steer",
            declines=action == "decline",
        )
    ]


async def test_only_to_decline_needs_no_words(tmp_path: Path) -> None:
    kin = Kin()
    desk = desk_of(tmp_path, kin)
    await desk.run("subagents", action="decline", agent="one")
    assert [(word.text, word.declines) for word in kin.words] == [("", True)]
    for action in ("message", "steer"):
        with pytest.raises(ToolError) as refused:
            await desk.run("subagents", action=action, agent="one", text=" ")
        assert refused.value.detail == "text: say what the agent is to hear"
    with pytest.raises(ToolError, match="one is being stopped"):
        await desk.run("subagents", action="message", agent="one", text="late")
    with pytest.raises(ToolError, match="one works for somebody else"):
        await desk.run("subagents", action="message", agent="one", text="not yours")


@pytest.mark.parametrize(
    ("name", "stopping", "said"),
    [
        ("one", True, "one is being stopped."),
        ("one", False, "one is being stopped already."),
        ("two", False, "two failed."),
    ],
)
async def test_a_stop_says_what_became_of_it(
    tmp_path: Path, name: str, stopping: bool, said: str
) -> None:
    kin = Kin(stopping=stopping)
    output = await desk_of(tmp_path, kin).run("subagents", action="stop", agent=name)
    assert output.content == said
    assert kin.stops == [(f"ses_{name}", "stopped by root")]


async def test_types_are_listed_with_their_tools_and_problems(tmp_path: Path) -> None:
    kin = Kin(
        seen=Types(
            {
                "explore": Profile(("read_file", "grep"), read_only=True),
                "general": Profile((), read_only=False, model="small"),
                "plan": Profile(("read_file",), read_only=True),
                "broken": Profile((), read_only=False),
            },
            may=frozenset({"explore", "general", "broken"}),
            known={"explore": "", "general": "", "plan": "", "broken": "it has no name"},
            about={"explore": "Looks.", "general": "", "plan": "Plans.", "broken": ""},
            problems=("x.md: no name",),
        )
    )
    output = await desk_of(tmp_path, kin).run("agents_list")
    assert output.content.split("\n") == [
        "- explore, only reads: Looks.",
        "  tools: read_file, grep",
        "- general, model small: no description",
        "  tools: none",
        "Problems of the definitions:",
        "- x.md: no name",
    ]
    assert kin.looked == ["ses_root"]
    for nobody in (NO_TYPES, replace(kin.seen, able=False, problems=())):
        none = await desk_of(tmp_path, Kin(seen=nobody)).run("agents_list")
        assert none.content == "You may spawn no subagents."
