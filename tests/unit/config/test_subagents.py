"""Settings about subagents: what a spawn may share at most (SUB-16)."""

import pytest

from gateway.config import ConfigError
from gateway.config_engine import child_settings
from tests.unit.config.support import Read


@pytest.mark.requirement("OPS-1", "SUB-16")
def test_the_share_mode_is_set_by_file_and_by_variable(read: Read) -> None:
    assert child_settings(read().settings).share == "handoff"
    snake = '[tools.subagents]\nmemory_share_mode = "isolated"\n'
    camel = '[tools.subagents]\nmemoryShareMode = "inherit-readonly"\n'
    assert child_settings(read(snake).settings).share == "isolated"
    assert child_settings(read(camel).settings).share == "inherit-readonly"
    variable = {"GATEHOUSE_TOOLS__SUBAGENTS__MEMORY_SHARE_MODE": "isolated"}
    assert child_settings(read(camel, variable).settings).share == "isolated"
    with pytest.raises(ConfigError, match=r"tools\.subagents\.memory_share_mode"):
        read('[tools.subagents]\nmemory_share_mode = "all"\n')
