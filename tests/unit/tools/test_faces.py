"""What is known of the tools before they are made is what they are."""

import json
from pathlib import Path

import pytest

from gateway.features import FACES
from tests.unit.tools.support import Desk


def test_the_faces_are_those_of_the_tools(tmp_path: Path) -> None:
    made = Desk(tmp_path).registry.tools
    assert [(one.name, one.effect) for one in FACES] == [(one.name, one.effect) for one in made]


DEFAULT = frozenset(
    {
        *("read_file", "write_file", "edit_file", "apply_patch", "list_dir", "glob", "grep"),
        *("resolve_path", "exec", "web_fetch", "send_message", "send_file", "ask_user"),
        *("sessions_spawn", "subagents", "agents_list", "request_parent_clarification"),
        "use_skill",
        *("schedule_create", "schedule_list", "schedule_get", "schedule_update"),
        *("schedule_pause", "schedule_resume", "schedule_trigger", "schedule_cancel"),
        "heartbeat_result",
        *("task_create", "task_get", "task_list", "task_update", "task_stop", "task_output"),
        "task_write",
    }
)
"""The tools that exist. Those of rooms, memory, searches and tool servers come with the parts that
they belong to."""


@pytest.mark.requirement("TOOL-14")
def test_the_default_tools_are_these_and_each_is_told_in_one_line_with_an_example(
    tmp_path: Path,
) -> None:
    made = Desk(tmp_path).registry.tools
    assert {one.name for one in made} == DEFAULT
    assert len(made) == len(DEFAULT)
    for one in made:
        assert one.description.splitlines() == [one.description], one.name
        assert one.bind(json.loads(one.example)), one.name
