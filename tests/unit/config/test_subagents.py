"""Subagents in a configuration: their models, and what they share (SUB-15, SUB-16)."""

import pytest

from adapters.models.model_registry import Catalog
from adapters.models.settings import ModelSettings
from gateway.config import ConfigError
from gateway.config_engine import check_child_models, child_models, child_settings
from gateway.config_report import rows
from gateway.workspaces import user_agents
from runtime.domain.errors import InvalidInput
from tests.unit.config.support import Read, problems

TEXT = """
[agents]
subagent_model = "openai:small"
[agents.depth.1]
model = "openai:medium"
"""


def catalog() -> Catalog:
    return Catalog(ModelSettings(default="openai:large", openai_api_key="sk-made-up"))


@pytest.mark.requirement("SUB-15")
def test_models_are_named_for_all_subagents_and_by_depth(read: Read) -> None:
    config = read(TEXT)
    models = child_models(config.settings, catalog())
    assert [models.at(depth) for depth in (1, 2, 9)] == [
        "openai:medium",
        "openai:small",
        "openai:small",
    ]
    assert models.offered >= {"openai:large", "openai:medium", "openai:small"}
    check_child_models(config.settings, catalog())
    shown = {row.key: row.value for row in rows(config)}
    assert shown["agents.depth"] == {"1": {"model": "openai:medium"}}


@pytest.mark.requirement("SUB-15")
def test_a_variable_may_hold_the_table(read: Read) -> None:
    text = '{"2": {"model": "openai:deep"}}'
    config = read("", {"GATEHOUSE_AGENTS__DEPTH": text})
    assert child_models(config.settings, catalog()).at(2) == "openai:deep"


@pytest.mark.requirement("SUB-15")
@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('[agents]\nsubagent_model = "nobody:x"\n', "agents.subagent_model"),
        ('[agents.depth.2]\nmodel = "anthropic:x"\n', "agents.depth.2.model"),
    ],
)
def test_a_model_that_cannot_be_used_is_told_by_its_setting(
    read: Read, text: str, field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_child_models(read(text).settings, catalog())
    assert caught.value.field == field


@pytest.mark.requirement("SUB-15")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[agents.depth.0]\nmodel = "a:b"\n', "depths are 1 to 9, not 0"),
        ('[agents.depth.x]\nmodel = "a:b"\n', "agents.depth"),
        ("[agents.depth.1]\n", "agents.depth.1.model"),
        ('[agents.depth.1]\nmodel = "a:b"\nsteps = 3\n', "agents.depth.1.steps"),
    ],
)
def test_what_is_wrong_with_a_depth_is_said(read: Read, text: str, told: str) -> None:
    assert told in " ".join(problems(read, text))


@pytest.mark.requirement("SUB-2")
def test_a_person_has_two_folders_of_definitions(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    config = read()
    assert [str(one) for one in user_agents(config)] == [
        "/home/ann/.claude/agents",
        str(config.home / "agents"),
    ]


@pytest.mark.requirement("OPS-1", "SUB-16")
def test_the_share_mode_is_set_by_file_and_by_variable(read: Read) -> None:
    assert child_settings(read().settings, catalog()).share == "handoff"
    snake = '[tools.subagents]\nmemory_share_mode = "isolated"\n'
    camel = '[tools.subagents]\nmemoryShareMode = "inherit-readonly"\n'
    assert child_settings(read(snake).settings, catalog()).share == "isolated"
    assert child_settings(read(camel).settings, catalog()).share == "inherit-readonly"
    variable = {"GATEHOUSE_TOOLS__SUBAGENTS__MEMORY_SHARE_MODE": "isolated"}
    assert child_settings(read(camel, variable).settings, catalog()).share == "isolated"
    with pytest.raises(ConfigError, match=r"tools\.subagents\.memory_share_mode"):
        read('[tools.subagents]\nmemory_share_mode = "all"\n')
