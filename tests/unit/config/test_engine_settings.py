"""What holds where the operator set nothing, from the file's defaults to the engine's settings."""

import json
from pathlib import Path

import pytest

from gateway.config import load
from gateway.config_engine import (
    Found,
    child_settings,
    engine_settings,
    exec_settings,
)
from gateway.runtime_view import runtime_view
from runtime.domain.decisions import PermissionMode
from runtime.domain.value import JsonObject
from runtime.engine.engine import EngineSettings
from runtime.features.subagents.settings import ChildSettings, Limits
from runtime.tools.builtin.shell import ExecArguments
from tests.fakes.clock import FakeClock
from tests.fakes.model import ScriptedModels
from tests.fakes.sandbox import FakeSandbox

WEEK_MS = 7 * 24 * 3600 * 1000


def settings(home: Path, **environment: str) -> EngineSettings:
    """The engine's settings of a machine where only these variables are set."""
    config = load(environment={"GATEHOUSE_HOME": str(home), **environment})
    return engine_settings(config, Found(ScriptedModels(), FakeSandbox(FakeClock())))


def children(home: Path, **environment: str) -> ChildSettings:
    """The settings of subagents, in the same way."""
    config = load(environment={"GATEHOUSE_HOME": str(home), **environment})
    return child_settings(config.settings, ScriptedModels())


@pytest.mark.requirement("MSG-4", "MSG-5", "MSG-15", "APR-5")
def test_the_limits_of_work(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found.turns == 200
    assert found.agent.max_steps == 40
    assert (found.intake.queue_mode, found.intake.debounce_ms) == ("collect", 700)
    assert found.agent.approval_expiry_ms == WEEK_MS


@pytest.mark.requirement("ACC-1", "MSG-3", "MSG-16")
@pytest.mark.parametrize("platform", ["slack", "telegram"])
def test_who_gets_in(tmp_path: Path, platform: str) -> None:
    access = settings(tmp_path).intake.access[platform]
    assert (access.dm_policy, access.group_policy) == ("pairing", "allowlist")
    assert (access.require_mention, access.allow_bots) == (True, False)
    assert (access.group_scope, access.channel_scope) == ("room", "thread")


@pytest.mark.requirement("POL-2", "MSG-11", "TOOL-5")
def test_what_is_done_without_asking(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found.policy.mode is PermissionMode.DEFAULT
    assert (found.policy.sandboxed, found.intake.mode) == (True, "edit")
    assert not found.delivery.resend_unknown
    granted = exec_settings(load(environment={"GATEHOUSE_HOME": str(tmp_path)}))
    assert (granted.network, dict(granted.env)) == (False, {})
    assert ExecArguments(command="ls").timeout_s == 60


@pytest.mark.requirement("TOOL-5", "SEC-6")
def test_the_limits_of_commands_are_those_that_are_configured(tmp_path: Path) -> None:
    home = {"GATEHOUSE_HOME": str(tmp_path)}
    usual = exec_settings(load(environment=home)).limits
    assert (usual.memory_bytes, usual.processes) == (2 * 1024**3, 256)
    assert (usual.file_bytes, usual.disk_bytes) == (512 * 1024**2, 2 * 1024**3)
    names = ("MEMORY_MB", "PROCESSES", "FILE_MB", "DISK_MB")
    given = {f"GATEHOUSE_TOOLS__EXEC__{name}": str(64 + at) for at, name in enumerate(names)}
    found = exec_settings(load(environment=home | given)).limits
    assert (found.memory_bytes, found.processes) == (64 * 1024**2, 65)
    assert (found.file_bytes, found.disk_bytes) == (66 * 1024**2, 67 * 1024**2)


@pytest.mark.requirement("MSG-4", "MSG-15", "MSG-5", "APR-5", "MSG-11")
def test_what_the_operator_sets_is_what_the_engine_gets(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        GATEHOUSE_WORKERS__TURNS="3",
        GATEHOUSE_AGENTS__MAX_STEPS="4",
        GATEHOUSE_QUEUE__MODE="followup",
        GATEHOUSE_QUEUE__DEBOUNCE_MS="5",
        GATEHOUSE_APPROVALS__EXPIRY_S="60",
        GATEHOUSE_DELIVERY__AMBIGUOUS_SENDS="resend",
    )
    assert (found.turns, found.agent.max_steps) == (3, 4)
    assert (found.intake.queue_mode, found.intake.debounce_ms) == ("followup", 5)
    assert found.agent.approval_expiry_ms == 60_000
    assert found.delivery.resend_unknown


@pytest.mark.requirement("ACC-1", "MSG-3", "APR-2")
def test_the_rules_of_a_platform_reach_its_door(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        GATEHOUSE_SLACK__DM_POLICY="disabled",
        GATEHOUSE_SLACK__GROUP_POLICY="open",
        GATEHOUSE_SLACK__REQUIRE_MENTION="false",
        GATEHOUSE_SLACK__ALLOW_USERS="U1, U2",
        GATEHOUSE_SLACK__ALLOW_GROUPS="C1",
        GATEHOUSE_SLACK__CHANNEL_SCOPE="room",
        GATEHOUSE_APPROVALS__APPROVERS="slack:T1:U7",
    ).intake
    slack, telegram = found.access["slack"], found.access["telegram"]
    assert (slack.dm_policy, slack.group_policy) == ("disabled", "open")
    assert (slack.require_mention, slack.channel_scope) == (False, "room")
    assert (slack.allow_users, slack.allow_groups) == ({"U1", "U2"}, {"C1"})
    assert (telegram.dm_policy, telegram.allow_users) == ("pairing", frozenset())
    assert found.commands.approvers.accounts == {"slack:T1:U7"}


@pytest.mark.requirement("API-5", "POL-7")
def test_what_is_in_force_is_shown_without_a_secret(tmp_path: Path) -> None:
    secrets = {
        "GATEHOUSE_HTTP__ADMIN_TOKEN": "made-up-token-0001",
        "SLACK_BOT_TOKEN": "xoxb-test-token",
        "SLACK_APP_TOKEN": "xapp-test-token",
        "OPENAI_API_KEY": "sk-test-0003",
        "GATEHOUSE_TOOLS__EXEC__ENV": '{"KEY": "made-up-value-0004"}',
        "GATEHOUSE_DATABASE__URL": "postgresql+asyncpg://me:made-up-0005@127.0.0.1/x",
    }
    shown = view(tmp_path, GATEHOUSE_POLICY__DENY="exec(rm:*)", **secrets)
    assert shown["policy"] == {"mode": "default", "allow": [], "ask": [], "deny": ["exec(rm:*)"]}
    assert shown["workers"] == {"turns": 200, "lease_ttl_s": 15.0}
    text = json.dumps(shown)
    for secret in ("made-up", "xoxb-", "xapp-", "sk-test"):
        assert secret not in text


@pytest.mark.requirement("API-5", "SCH-5")
def test_each_section_that_is_shown_is_the_one_in_force(tmp_path: Path) -> None:
    """What was set, where something was, and the rest of the section as it is by itself."""
    changed: dict[str, tuple[str, object]] = {
        "policy": ("mode", "plan"),
        "agents": ("max_steps", 41),
        "budgets": ("run_tokens", 1_000),
        "attachments": ("message_files", 3),
        "limits": ("person_runs_per_hour", 7),
        "queue": ("mode", "steer"),
        "workers": ("turns", 9),
        "scheduler": ("retry_max_attempts", 5),
        "mailboxes": ("max_hops", 4),
        "delivery": ("ambiguous_sends", "resend"),
    }
    before = view(tmp_path)
    assert {name for name in before if isinstance(before[name], dict)} == {*changed, "sandbox"}
    told = {f"GATEHOUSE_{one}__{key}".upper(): str(value) for one, (key, value) in changed.items()}
    after = view(tmp_path, GATEHOUSE_TIMEZONE="Europe/Berlin", **told)
    assert after["timezone"] == "Europe/Berlin"
    for name, (key, value) in changed.items():
        section = before[name]
        assert isinstance(section, dict)
        assert section[key] != value
        assert after[name] == {**section, key: value}, name


def view(home: Path, **environment: str) -> JsonObject:
    """What `/v1/runtime` shows of a machine."""
    config = load(environment={"GATEHOUSE_HOME": str(home), **environment})
    found = Found(ScriptedModels(), FakeSandbox(FakeClock()))
    return runtime_view(config, found).model_dump(mode="json")


@pytest.mark.requirement("SUB-7", "SUB-13", "SUB-14", "SUB-21", "SUB-22")
def test_subagents_are_bounded_as_the_contract_says_unless_it_is_set_otherwise(
    tmp_path: Path,
) -> None:
    given = {
        "MAX_DEPTH": "2",
        "LIVE_PER_PARENT": "3",
        "LIVE_PER_TREE": "4",
        "SPAWNED_PER_RUN": "5",
        "SPAWNED_PER_MINUTE": "6",
        "CONCURRENCY": "7",
        "AUTO_BACKGROUND_AFTER": "8",
        "CLARIFICATION_TIMEOUT": "9",
        "MAX_RETRIES": "1",
        "IDLE_TIMEOUT": "121",
    }
    variables = {f"GATEHOUSE_AGENTS__{name}": value for name, value in given.items()}
    fewer = children(tmp_path, **variables)
    assert fewer.limits == Limits(2, 3, 4, 5, 6)
    assert (fewer.concurrency, fewer.await_ms, fewer.clarify_ms) == (7, 8_000, 9_000)
    assert (fewer.max_retries, fewer.idle_s) == (1, 121)
    found = children(tmp_path)
    assert found == ChildSettings(
        concurrency=10,
        limits=Limits(
            max_depth=3,
            live_per_parent=8,
            live_per_tree=24,
            spawned_per_run=16,
            spawned_per_minute=60,
            unattended_runs=50,
        ),
        await_ms=120_000,
        models=found.models,
        max_retries=2,
        idle_s=900,
    )
