"""The plain sentences that the offline model follows, and the calls that they stand for (OPS-4)."""

import json
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.models.offline_sentences import MAX_CHARACTERS, understand
from gateway.features import FACES
from runtime.domain.value import JsonObject
from runtime.features.schedules.kind import SPEAK
from tests.support.profiles import examples

REMINDERS: list[tuple[str, JsonObject]] = [
    *(
        (f"{start} {said}", {"text": said})
        for start, said in (
            ("remind me", "tomorrow at 9 to call Ann"),
            ("remind me", "tomorrow at 09:00 to call Ann"),
            ("remind me", "tomorrow at 9am to call Ann"),
            ("Remind me", "to call Ann tomorrow at 9"),
            ("please remind me", "on Monday at 9 to call Ann and Bob, then rest"),
            ("remind me", "on 1 December at 17:30 to pay rent"),
            ("can you remind me", "at 8 to read a.md"),
            ("remind me", "to stretch in 10 minutes"),
            ("remind us", "every weekday at 9: standup"),
            ("remind me", "in 5 minutes and 10 seconds to stretch"),
            ("remind me", "in 5 minutes or 10 to stretch"),
            ("remind me", "yesterday to stretch"),
            ("remind me", "on the 31st of February to stretch"),
            ("remind me", "at 25:00 to stretch"),
            ("remind me", "in 0 minutes to stretch"),
            ("remind me", "tomorrow to stretch"),
            ("remind me", "of the 'tea and cake' of \"Ann\" tomorrow at 9"),
        )
    ),
    ("in half an hour, please remind me to rest", {"when": "in half an hour", "text": "rest"}),
    ("tomorrow at 9 remind us: tea at 5", {"when": "tomorrow at 9", "text": "tea at 5"}),
    ("every day remind me to rest", {"when": "every day", "text": "rest"}),
    *(
        (said, {"text": said, "ask": True})
        for said in (
            "every weekday at 9: post the numbers",
            "every day at 25:00 post the numbers",
            "every month on the 1st at 9: sum up",
            "every half an hour look around",
            "every 2 hours and 30 minutes look around and list files",
            "every 30s look around",
            "every 10 minutes run the tests",
            "every day at 9 run the tests and tell me the result",
            "run the tests every day at 9",
            "run `make test` every day at 9",
            "run the tests every Monday and Thursday at 9",
            "run the tests every day at 9 and list files",
            "run the tests every day",
            "run the tests tomorrow at 9",
            "run the tests tomorrow",
            "run the tests on Monday at noon",
            "run the tests at 17:00",
            "run the tests in 10 minutes",
        )
    ),
    ("execute make test at 9pm, please", {"text": "run make test at 9pm", "ask": True}),
    *(
        (
            f"every 10 minutes run {command}, and tell me about new orders",
            {"when": "every 10 minutes", "text": "tell me about new orders", "gate": gate},
        )
        for command, gate in (
            ("new-orders.sh", "sh new-orders.sh"),
            ("bin/new-orders.sh", "sh bin/new-orders.sh"),
            ("`python3 orders.py --new`", "python3 orders.py --new"),
            ("the tests", "make test"),
        )
    ),
]
"""Sentences about times: the tool reads those, so that there is one grammar of them."""
COMMANDS = ("ls in docs", "python3 -m http.server", "date -d tomorrow", "grep every file.md")
TWO_EXPLORERS = [{"task": "list files and count", "type": "explore"}] * 2
SENTENCES: list[tuple[str, str, JsonObject]] = [
    ("list files", "list_dir", {"path": "."}),
    ("Please list the files in notes.", "list_dir", {"path": "notes"}),
    ("list files in .", "list_dir", {"path": "."}),
    ("read notes/today.md", "read_file", {"path": "notes/today.md"}),
    ("can you show me README.md?", "read_file", {"path": "README.md"}),
    ("read 'my notes.txt'", "read_file", {"path": "my notes.txt"}),
    ("write 'a and then b' to x.txt", "write_file", {"content": "a and then b", "path": "x.txt"}),
    ("create file x.md with hello you", "write_file", {"path": "x.md", "content": "hello you"}),
    ("send me README.md", "send_file", {"path": "README.md"}),
    ("please send the file notes/june.pdf", "send_file", {"path": "notes/june.pdf"}),
    (
        "send me 'my notes.txt' with the caption 'as you asked'",
        "send_file",
        {"path": "my notes.txt", "caption": "as you asked"},
    ),
    (
        "replace 'old' with 'new' in x.md",
        "edit_file",
        {"old_text": "old", "new_text": "new", "path": "x.md"},
    ),
    ("apply this patch:\n```diff\n-a\n+b\n```", "apply_patch", {"patch": "-a\n+b\n"}),
    (
        "rename notes/a.md to 'my b.md'",
        "apply_patch",
        {
            "patch": "*** Begin Patch\n*** Update File: notes/a.md\n*** Move to: my b.md\n"
            "*** End Patch\n"
        },
    ),
    (
        "please delete the file notes/a.md",
        "apply_patch",
        {"patch": "*** Begin Patch\n*** Delete File: notes/a.md\n*** End Patch\n"},
    ),
    ("find files *.md", "glob", {"pattern": "*.md"}),
    ("search for foo in notes", "grep", {"pattern": "foo", "path": "notes"}),
    ("run `ls -l | wc -l`", "exec", {"command": "ls -l | wc -l"}),
    ("run `make` in the background", "exec", {"command": "make", "background": True}),
    ("fetch https://example.com/a?b=1", "web_fetch", {"url": "https://example.com/a?b=1"}),
    (
        "ask me whether to deploy: now or later",
        "ask_user",
        {"question": "Shall I deploy?", "options": ["now", "later"]},
    ),
    ("use skill summarise", "use_skill", {"name": "summarise"}),
    ("where is plan.md?", "resolve_path", {"kind": "workspace", "filename": "plan.md"}),
    ("where is a.md in memory", "resolve_path", {"kind": "memory", "filename": "a.md"}),
    ("remember that we eat and then sleep", "remember", {"content": "we eat and then sleep"}),
    ("recall tea", "recall", {"query": "tea"}),
    ("use the summarise skill", "use_skill", {"name": "summarise"}),
    ("find *.py", "glob", {"pattern": "*.py"}),
    ("what do you remember about tea?", "recall", {"query": "tea"}),
    (
        "remind me in 10 seconds to stretch",
        "schedule_create",
        {"text": "in 10 seconds to stretch"},
    ),
    (
        "every weekday at 9 remind me to post",
        "schedule_create",
        {"when": "every weekday at 9", "text": "post"},
    ),
    (
        "every 5 minutes check the log",
        "schedule_create",
        {"text": "every 5 minutes check the log", "ask": True},
    ),
    (
        "every weekday at 9 post the numbers",
        "schedule_create",
        {"text": "every weekday at 9 post the numbers", "ask": True},
    ),
    ("show my reminders", "schedule_list", {}),
    ("list my schedules", "schedule_list", {}),
    ("cancel schedule x7k2m9", "schedule_cancel", {"id": "x7k2m9"}),
    ("show schedule sch_1", "schedule_get", {"id": "sch_1"}),
    ("pause schedule sch_1", "schedule_pause", {"id": "sch_1"}),
    ("resume schedule sch_1", "schedule_resume", {"id": "sch_1"}),
    ("trigger schedule sch_1", "schedule_trigger", {"id": "sch_1"}),
    ("cancel the reminder sch_1", "schedule_cancel", {"id": "sch_1"}),
    ("rename schedule sch_1 to lunch", "schedule_update", {"id": "sch_1", "name": "lunch"}),
    (
        "ask two explorers to list files and count",
        "sessions_spawn",
        {"agents": TWO_EXPLORERS, "mode": "await"},  # type: ignore[dict-item]  # JSON all the same
    ),
    (
        "ask a planner to think in the background",
        "sessions_spawn",
        {"task": "think", "type": "plan", "mode": "background"},
    ),
    ("list subagents", "subagents", {"action": "list"}),
    ("stop agent a1", "subagents", {"action": "stop", "agent": "a1"}),
    ("output of agent a1", "subagents", {"action": "output", "agent": "a1"}),
    (
        "tell agent a1 to hurry",
        "subagents",
        {"action": "message", "agent": "a1", "text": "hurry"},
    ),
    ("which agents are there?", "agents_list", {}),
    (
        "ask your parent whether to go on",
        "request_parent_clarification",
        {"question": "to go on"},
    ),
    ("add a task to water the plants", "task_create", {"title": "water the plants"}),
    (
        "add a task to ship it and rest, after tasks t1, t2 and t3",
        "task_create",
        {"title": "ship it and rest", "blocked_by": ["t1", "t2", "t3"]},
    ),
    (
        "make a task: tidy up, blocked by task t1",
        "task_create",
        {"title": "tidy up", "blocked_by": ["t1"]},
    ),
    ("list my blocked tasks", "task_list", {"status": "blocked"}),
    ("show tasks that are done", "task_list", {"status": "completed"}),
    ("list tasks in progress", "task_list", {"status": "in_progress"}),
    ("mark task t1 as done", "task_update", {"id": "t1", "status": "completed"}),
    ("mark task t1 in progress", "task_update", {"id": "t1", "status": "in_progress"}),
    ("rename task t1 to feed the cat", "task_update", {"id": "t1", "title": "feed the cat"}),
    ("let task t1 wait for task t2", "task_update", {"id": "t1", "blocked_by": ["t2"]}),
    ("wait for task t1", "task_output", {"id": "t1", "wait_s": 60}),
    (
        "stop task t1, because it takes too long",
        "task_stop",
        {"id": "t1", "reason": "it takes too long"},
    ),
    ("run the tests", "exec", {"command": "make test"}),
    *(
        (said, "exec", {"command": "make test", "background": True})
        for said in (
            "run the tests and tell me when they are done",
            "run `make test` in the background and tell me when it is done",
            "please run make test in the background, and tell me once it's finished.",
            "run `make test`, tell me as soon as it ends",
            "run 'make test' in the background",
        )
    ),
    ("list tasks", "task_list", {}),
    ("show task t1", "task_get", {"id": "t1"}),
    ("mark task t1 as completed", "task_update", {"id": "t1", "status": "completed"}),
    ("stop task t1", "task_stop", {"id": "t1"}),
    ("show the output of task t1", "task_output", {"id": "t1"}),
    (
        "type 'yes' into 'sh setup.sh' of task t1",
        "task_write",
        {"id": "t1", "text": "yes", "command": "sh setup.sh"},
    ),
    ("send 'hi there' to #ops", "send_message", {"text": "hi there", "to": "#ops"}),
    (
        "send 'the north is ice' to agent:explore-1",
        "send_message",
        {"text": "the north is ice", "to": "agent:explore-1"},
    ),
    ("publish 'hi' to channel dev", "publish_to_channel", {"text": "hi", "channel": "dev"}),
    ("read thread m1 in channel dev", "read_channel_thread", {"thread": "m1", "channel": "dev"}),
    (
        "react to message m1 with :eyes: in channel dev",
        "set_channel_reaction",
        {"message": "m1", "reaction": ":eyes:", "channel": "dev"},
    ),
    ('use tool mcp__a__b with {"q": "x y"}', "mcp__a__b", {"q": "x y"}),
]


def calls(text: str) -> list[list[tuple[str, JsonObject]]]:
    return [[(one.tool, one.arguments) for one in step.calls] for step in understand(text)]


@pytest.mark.requirement("OPS-4")
@pytest.mark.parametrize(("said", "name", "arguments"), SENTENCES)
def test_a_sentence_stands_for_one_call(said: str, name: str, arguments: JsonObject) -> None:
    assert calls(said) == [[(name, arguments)]]


@pytest.mark.requirement("OPS-4", "SCH-8")
@pytest.mark.parametrize(("said", "arguments"), REMINDERS, ids=[one[0] for one in REMINDERS])
def test_what_names_a_time_is_given_to_the_tool_as_it_was_said(
    said: str, arguments: JsonObject
) -> None:
    assert calls(said) == [[("schedule_create", arguments)]]


@pytest.mark.parametrize("command", [*COMMANDS, "`echo every day at 9`"])
def test_a_command_without_a_time_or_in_marks_is_run_now(command: str) -> None:
    assert calls(f"run {command}") == [[("exec", {"command": command.strip("`")})]]


@pytest.mark.requirement("OPS-4", "TOOL-14")
def test_the_sentences_reach_every_tool_that_is_registered_by_default() -> None:
    reached = {name for _, name, _ in SENTENCES}
    tasks = ("create", "get", "list", "update", "stop", "output", "write")
    schedules = ("create", "list", "get", "update", "pause", "resume", "trigger", "cancel")
    families = {f"task_{verb}" for verb in tasks} | {f"schedule_{verb}" for verb in schedules}
    single = (
        "read_file write_file edit_file apply_patch list_dir glob grep resolve_path exec web_fetch "
        "sessions_spawn subagents agents_list request_parent_clarification send_message ask_user "
        "use_skill publish_to_channel read_channel_thread set_channel_reaction remember recall"
    )
    assert reached >= families | set(single.split())
    # A heartbeat asks by its own words, and no other run has its tool.
    assert reached >= {face.name for face in FACES} - {SPEAK}


@pytest.mark.requirement("OPS-4", "TSK-1")
def test_the_sentences_on_the_page_on_tasks_are_understood() -> None:
    page = (Path(__file__).parents[3] / "docs/tasks.md").read_text(encoding="utf-8")
    block = page.partition("these sentences work:\n\n```text\n")[2].partition("```")[0]
    shown = block.splitlines()
    assert len(shown) == 9
    for sentence in shown:
        (((name, arguments),),) = calls(sentence)
        assert name.startswith("task_") or arguments["background"] is True, sentence


@pytest.mark.requirement("OPS-4", "OPS-11")
def test_the_sentences_on_the_page_on_subagents_start_some() -> None:
    page = (Path(__file__).parents[3] / "docs/subagents.md").read_text(encoding="utf-8")
    shown = page.partition("Write one of these:\n\n```text\n")[2].partition("```")[0].splitlines()
    assert len(shown) == 2
    for sentence in shown:
        (((name, arguments),),) = calls(sentence)
        assert name == "sessions_spawn", sentence
        agents = arguments["agents"]
        assert isinstance(agents, list)
        assert len(agents) > 2, "and one that waits for them"


@pytest.mark.requirement("OPS-4")
def test_and_between_readings_makes_parallel_calls() -> None:
    assert calls("read a.txt and b.txt") == [
        [("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})]
    ]
    assert calls("read a.txt, list files and search for foo") == [
        [
            ("read_file", {"path": "a.txt"}),
            ("list_dir", {"path": "."}),
            ("grep", {"pattern": "foo"}),
        ]
    ]


@pytest.mark.requirement("OPS-4")
def test_then_makes_steps_and_so_does_and_where_something_changes() -> None:
    steps = [
        [("write_file", {"content": "x", "path": "a.txt"})],
        [("read_file", {"path": "a.txt"})],
    ]
    assert calls("write 'x' to a.txt then read a.txt") == steps
    assert calls("write 'x' to a.txt, and then read a.txt.") == steps
    assert calls("write 'x' to a.txt and read a.txt") == steps
    assert calls("write 'x' to a.txt\n- read a.txt") == steps


@pytest.mark.parametrize(
    "said",
    [
        *(
            "",
            "hello",
            "the weather is nice and sunny",
            "let me know",
            "I will read it then",
            "\x00",
        ),
        *("every man for himself", "every time I look it fails", "remind me", "in the end we met"),
    ],
)
def test_other_talk_stands_for_nothing(said: str) -> None:
    assert calls(said) == []


def test_of_several_lines_those_that_are_understood_count() -> None:
    assert calls("Dear agent,\nlist files\nThanks!") == [[("list_dir", {"path": "."})]]


PIECES = st.sampled_from(
    [
        "read ",
        "a.txt",
        " and ",
        " then ",
        "'",
        '"',
        "`",
        "```",
        "\n",
        " in ",
        "every ",
        "5 ",
        "run ",
    ]
)


@examples(50)
@given(st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join))
def test_any_text_is_understood_or_not_but_never_an_error(text: str) -> None:
    for step in understand(text):
        assert step.calls
        assert all(json.dumps(call.arguments) for call in step.calls)


@pytest.mark.parametrize("piece", ["\u201c", "`", "a, ", " then ", "'", "ask me ", " in x"])
def test_a_hostile_message_does_not_hold_up_the_gateway(piece: str) -> None:
    text = f"search for {piece * MAX_CHARACTERS}"[:MAX_CHARACTERS]
    before = process_time()
    understand(text)
    assert process_time() - before < 5, "seconds of this process, whatever else runs"


def test_a_longer_message_is_no_sentence() -> None:
    text = f"write '{'a' * (MAX_CHARACTERS - 20)}' to x"
    assert len(calls(text)) == 1
    assert calls(text + " " * 100) == []


def shared(*tasks: str, after: str = "", kind: str = "explore") -> list[JsonObject]:
    """The agents of a batch, without the names that tell calls apart."""
    found: list[JsonObject] = [{"task": task, "type": kind} for task in tasks]
    if after:
        found.append({"task": f"{after} what the others found", "type": kind})
    return found


READ_TWO = ("read README.md", "read pyproject.toml")
BATCHES: list[tuple[str, str, list[JsonObject]]] = [
    (
        "ask two explorers to read README.md and pyproject.toml, then compare",
        "await",
        shared(*READ_TWO, after="compare"),
    ),
    (
        "Please have 2 planners read README.md and pyproject.toml and then summarise what they "
        "found in the background.",
        "background",
        shared(*READ_TWO, after="summarize", kind="plan"),
    ),
    ("ask two explorers to read README.md and pyproject.toml", "await", shared(*READ_TWO)),
    (
        "ask two explorers in the background to read a.md, b.md and 'my c.md', then compare them",
        "background",
        shared("read a.md and read 'my c.md'", "read b.md", after="compare"),
    ),
    (
        "ask three explorers to list files and search for tea in notes, then combine the results",
        "await",
        shared(*["list files and search for tea in notes"] * 3, after="combine"),
    ),
]


@pytest.mark.requirement("OPS-4")
@pytest.mark.parametrize(("text", "mode", "agents"), BATCHES, ids=[one[0] for one in BATCHES])
def test_readings_are_shared_out_and_a_last_one_waits_for_all(
    text: str, mode: str, agents: list[JsonObject]
) -> None:
    (step,) = understand(text)
    (wanted,) = step.calls
    made = wanted.arguments["agents"]
    assert isinstance(made, list)
    rows = [one for one in made if isinstance(one, dict)]
    assert wanted.arguments["mode"] == mode
    assert [{"task": one["task"], "type": one["type"]} for one in rows] == agents
    names = [one["id"] for one in rows]
    assert len(set(map(str, names))) == len(names)
    waiting = [one for one in rows if "depends_on" in one]
    assert [one["depends_on"] for one in waiting] == [names[:-1]] * len(waiting)
    assert bool(waiting) == ("what the others found" in str(rows[-1]["task"]))
