"""`gatehouse doctor` against the platforms' servers: what is wrong, each with its fix (OPS-5)."""

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from adapters.sandbox.cgroups import Cgroups, Parent
from adapters.sandbox.landlock import Landlock, known_limits
from adapters.sandbox.probe import try_backend
from adapters.slack.experience import Experience
from adapters.system.clock import SystemClock
from gateway.cli.checks import RELEASED_MS, clock, sandbox, schema
from runtime.domain.schemas import Schema, Standing
from tests.conftest import FailAfter
from tests.scenario.gateway.disks import disk
from tests.scenario.gateway.town import Town, installed
from tests.scenario.process.conftest import place
from tests.scenario.process.program import Place, command
from tests.wire.model_rows import messages_of
from tests.wire.openai import Answer, says
from tests.wire.raw_answers import Raw, page, refusal
from tests.wire.slack import ANNA, SlackServer

__all__ = ["place"]

CHECKED = {
    *(
        "config",
        "home",
        "workspace",
        "database",
        "model",
        "sandbox",
        "slack",
        "slack scopes",
        "slack view",
    ),
    *("telegram", "telegram webhook", "exposure", "permissions", "proxy", "disk", "clock"),
    *("subagents", "gateway"),
}
"""What the requirement lists; the webhook and the scopes are checks of their own."""


async def doctor(place: Place) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit code and the checks by name. Each one that is not fine names its fix."""
    ended = await command(place, "doctor", "--json")
    assert "Traceback" not in ended.err, ended.err
    checks = {one["name"]: one for one in json.loads(ended.out)}
    assert all(one["fix"] for one in checks.values() if one["state"] != "ok"), checks
    failed = any(one["state"] == "fail" for one in checks.values())
    assert ended.code == int(failed)
    return ended.code, checks


async def set_webhook(town: Town, url: str) -> None:
    """As another program with the bot's token does."""
    address = f"{town.telegram.url}/bot{town.telegram.token}/setWebhook"
    async with (
        aiohttp.ClientSession() as session,
        session.post(address, data={"url": url}) as answer,
    ):
        assert answer.status == 200, await answer.text()


@pytest.mark.requirement("OPS-5")
async def test_everything_is_checked_and_a_whole_installation_passes(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says("OK")
    async with fail_after(90):
        assert (await command(town.place, "init")).code == 0
        assert (await command(town.place, "migrate")).code == 0
        code, checks = await doctor(town.place)
        people = await command(town.place, "doctor")
    assert code == 0, checks
    assert set(checks) == CHECKED
    for name in CHECKED - {"sandbox", "disk", "permissions", "clock"}:
        assert checks[name]["state"] == "ok", checks[name]
    assert [len(prompt.body["messages"]) for prompt in town.model.prompts] == [2, 2]
    assert town.slack_texts() == town.telegram_texts() == [], "it sends nothing"
    assert all(name in people.out for name in CHECKED)
    assert "fix: " in people.out
    shown = json.dumps(checks) + people.out
    for secret in (town.slack.install.bot_token, town.telegram.token, "sk-test-key"):
        assert secret not in shown


@pytest.mark.requirement("OPS-5")
async def test_scopes_that_slack_has_not_granted_are_named(
    town: Town, fail_after: FailAfter
) -> None:
    older = installed()
    older = replace(older, scopes=(older.scopes or frozenset()) - {"users:read"})
    async with fail_after(60), SlackServer(older).running() as slack:
        town.place.variables["SLACK_API_URL"] = slack.api_url
        _, checks = await doctor(town.place)
    assert checks["slack"]["state"] == "ok"
    assert checks["slack scopes"]["state"] == "fail"
    assert "lacks users:read" in checks["slack scopes"]["found"]
    assert "gatehouse slack manifest" in checks["slack scopes"]["fix"]
    assert "reinstall" in checks["slack scopes"]["fix"]


@pytest.mark.requirement("OPS-5", "SLK-9")
@pytest.mark.parametrize(("view", "state"), [("agent", "ok"), ("assistant", "warn")])
async def test_the_view_of_slack_is_said_by_what_the_running_gateway_heard(
    town: Town, view: Experience, state: str, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says("OK")
    town.slack.switch(installed(view))
    async with fail_after(120), town.serving():
        _, before = await doctor(town.place)
        if view == "agent":
            await town.slack.user_opens_home(ANNA)
        else:
            await town.slack.user_opens_assistant(ANNA)
        await town.slack.wait_for_quiet()
        _, after = await doctor(town.place)
    assert before["slack view"]["state"] == "ok"
    assert "may have" in before["slack view"]["found"]
    assert after["slack view"]["state"] == state
    assert f"has Slack's {view} view, as its events show" in after["slack view"]["found"]
    assert "cannot be undone" in after["slack view"]["found"]


@pytest.mark.requirement("OPS-5", "MDL-6")
@pytest.mark.parametrize(
    ("raw", "fix"),
    [
        (page("<h1>Welcome</h1>"), "OPENAI_BASE_URL ends in /v1"),
        (refusal("no such model", 404, code="model_not_found"), "Name a model"),
        (refusal("insufficient balance", 402), "Add credit"),
        (refusal("bad key", 401), "Check the key."),
    ],
)
async def test_why_a_model_does_not_answer_is_said_with_what_to_do(
    town: Town, raw: Raw, fix: str, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: raw
    async with fail_after(60):
        _, checks = await doctor(town.place)
    assert checks["model"]["state"] == "fail"
    assert fix in checks["model"]["fix"]


@pytest.mark.requirement("MDL-7")
async def test_the_model_is_asked_as_a_turn_asks_it(town: Town, fail_after: FailAfter) -> None:
    town.model.plays = lambda prompt: says("OK")
    async with fail_after(60):
        await doctor(town.place)
    (prompt,) = town.model.prompts
    assert prompt.body["stream"] is True
    assert prompt.body["tools"]
    assert [message["role"] for message in messages_of(prompt)] == ["system", "user"]


@pytest.mark.requirement("OPS-5")
async def test_wrong_tokens_and_a_wrong_key_are_said_apart(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: Answer(status=401)
    variables = town.place.variables
    variables["SLACK_APP_TOKEN"] = "xapp-made-up"
    variables["TELEGRAM_BOT_TOKEN"] = "654321:MADE-UP"
    async with fail_after(60):
        code, checks = await doctor(town.place)
        assert code == 1
        for name in ("model", "slack", "telegram", "telegram webhook"):
            assert checks[name]["state"] == "fail", checks[name]
        assert "key" in checks["model"]["fix"]
        assert "token" in checks["slack"]["fix"]
        assert "@BotFather" in checks["telegram"]["fix"]
        del variables["SLACK_APP_TOKEN"]
        _, checks = await doctor(town.place)
    assert checks["slack"]["found"] == "only the bot token is set, so no messages can arrive"
    assert "SLACK_APP_TOKEN" in checks["slack"]["fix"]
    assert "made-up" not in json.dumps(checks).lower()


@pytest.mark.requirement("OPS-5")
async def test_a_webhook_in_the_way_of_polling_is_named_without_its_path(
    town: Town, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        await set_webhook(town, f"{town.telegram.url}/a-secret-path")
        _, checks = await doctor(town.place)
    assert checks["telegram"]["state"] == "ok"
    assert checks["telegram webhook"]["state"] == "warn", checks["telegram webhook"]
    assert "a webhook is set to 127.0.0.1" in checks["telegram webhook"]["found"]
    assert "gatehouse serve" in checks["telegram webhook"]["fix"]
    assert "a-secret-path" not in json.dumps(checks)


@pytest.mark.requirement("OPS-5")
async def test_a_broken_configuration_is_a_check_too(town: Town, fail_after: FailAfter) -> None:
    town.place.configure('[slack]\nownerz = ["U0ANNA"]\nconnections = "many"\n')
    async with fail_after(60):
        ended = await command(town.place, "doctor", "--json")
        people = await command(town.place, "doctor")
    checks = json.loads(ended.out)
    assert (ended.code, people.code) == (1, 1)
    assert {one["name"] for one in checks} == {"config"}
    assert any("slack.owners" in one["found"] for one in checks)
    assert "gatehouse config schema" in checks[0]["fix"]
    assert "fix: " in people.out


@pytest.mark.requirement("OPS-5", "SCALE-4")
async def test_what_the_database_is_to_this_version(place: Place, fail_after: FailAfter) -> None:
    wanted = {
        ("0007", "0006"): ("fail", "Name another database"),
        ("9999", "0100"): ("warn", "Finish the upgrade"),
        ("9999", "9999"): ("fail", "Install the newer version"),
    }
    async with fail_after(90):
        await command(place, "migrate")
        for (revision, carried), (state, fix) in wanted.items():
            with closing(sqlite3.connect(place.home / "gatehouse.db")) as rows, rows:
                rows.execute("UPDATE alembic_version SET version_num = ?", (revision,))
                rows.execute(
                    "UPDATE settings SET value = ? WHERE name = 'schema_compatible_from'",
                    (carried,),
                )
            _, checks = await doctor(place)
            assert checks["database"]["state"] == state
            assert revision in checks["database"]["found"]
            assert checks["database"]["fix"].startswith(fix)
        (place.home / "gatehouse.db").write_bytes(b"no database at all" * 100)
        _, checks = await doctor(place)
    assert checks["database"]["state"] == "fail"


@pytest.mark.requirement("OPS-5", "SCALE-4")
def test_a_database_that_is_behind_is_migrated_next() -> None:
    check = schema("a.db", Schema("0100", "0100", "0101", Standing.BEHIND))
    assert (check.state, check.fix) == ("warn", "Run `gatehouse migrate`.")
    assert check.found == "a.db is at 0100, this version makes 0101"


@pytest.mark.requirement("OPS-5")
async def test_what_others_may_read_or_write_is_named(place: Place, fail_after: FailAfter) -> None:
    async with fail_after(60):
        await command(place, "migrate")
        (place.home / "gatehouse.db").chmod(0o644)
        _, checks = await doctor(place)
        assert checks["permissions"]["state"] == "warn"
        assert f"chmod 600 {place.home}/gatehouse.db" in checks["permissions"]["fix"]
        place.home.chmod(0o777)
        _, checks = await doctor(place)
    assert checks["permissions"]["state"] == "fail"
    assert checks["permissions"]["fix"] == f"chmod 700 {place.home}"


@pytest.mark.requirement("OPS-5")
async def test_the_fullest_disk_counts(place: Place, tmp_path: Path, fail_after: FailAfter) -> None:
    with disk(tmp_path / "small", megabytes=16) as small:
        place.variables["GATEHOUSE_WORKSPACE__PATH"] = str(small.path / "workspace")
        async with fail_after(60):
            _, checks = await doctor(place)
    assert checks["disk"]["state"] == "fail"
    assert checks["disk"]["found"].endswith(f"GiB free in {small.path}")
    assert "Free some space" in checks["disk"]["fix"]


@pytest.mark.requirement("OPS-5")
def test_a_clock_of_the_past_is_found() -> None:
    assert clock(RELEASED_MS - 1).state == "fail"
    assert "set-ntp" in clock(RELEASED_MS - 1).fix
    assert clock(RELEASED_MS).state != "fail"


@pytest.mark.requirement("OPS-5")
def test_a_clock_that_nobody_synchronises_is_found(tmp_path: Path) -> None:
    synchronised = tmp_path / "timesync" / "synchronized"
    assert clock(RELEASED_MS, synchronised=synchronised).state == "ok", "another daemon may do it"
    synchronised.parent.mkdir()
    found = clock(RELEASED_MS, synchronised=synchronised)
    assert (found.state, found.found) == ("warn", "systemd has not synchronised it")
    assert "timedatectl set-ntp true" in found.fix
    synchronised.touch()
    assert clock(RELEASED_MS, synchronised=synchronised).state == "ok"


@pytest.mark.requirement("OPS-5")
async def test_a_sandbox_that_is_refused_or_switched_off_is_named(
    place: Place, fail_after: FailAfter
) -> None:
    place.variables["PATH"] = str(place.path / "nothing-is-installed-here")
    place.variables["GATEHOUSE_TOOLS__SANDBOX"] = "bubblewrap"
    async with fail_after(60):
        code, checks = await doctor(place)
        assert (code, checks["sandbox"]["state"]) == (1, "fail")
        assert "no command is run" in checks["sandbox"]["found"]
        assert "bubblewrap was not taken" in checks["sandbox"]["found"]
        assert "apt install bubblewrap" in checks["sandbox"]["fix"]
        assert 'tools.sandbox = "auto"' in checks["sandbox"]["fix"]
        place.variables["GATEHOUSE_TOOLS__SANDBOX"] = "none"
        code, checks = await doctor(place)
    assert (code, checks["sandbox"]["state"]) == (0, "warn")
    assert checks["sandbox"]["fix"] == 'Set tools.sandbox = "auto".'


@pytest.mark.requirement("TOOL-5", "OPS-5")
def test_it_is_said_what_limits_the_processes_of_commands() -> None:
    group = Parent(Path("/sys/fs/cgroup"), "pids", 2)
    limited = sandbox(Landlock(SystemClock(), cgroups=Cgroups(pids=group)), "auto")
    assert limited.state == "ok"
    assert "the number of processes by a cgroup." in limited.found
    alone = sandbox(Landlock(SystemClock(), cgroups=Cgroups()), "auto")
    assert alone.state == "ok"
    if os.geteuid() == 0:
        assert "the number of processes by the supervisor, which counts them." in alone.found
    else:
        assert "the number of processes by RLIMIT_NPROC over all" in alone.found


@pytest.mark.requirement("OPS-5")
async def test_who_can_reach_it_is_named(place: Place, fail_after: FailAfter) -> None:
    place.variables["GATEHOUSE_HTTP__HOST"] = "0.0.0.0"
    async with fail_after(60):
        place.variables["GATEHOUSE_HTTP__ADMIN_TOKEN"] = "short"
        code, checks = await doctor(place)
        assert (code, checks["exposure"]["state"]) == (0, "warn")
        assert "short" in checks["exposure"]["found"]
        place.variables["GATEHOUSE_HTTP__ADMIN_TOKEN"] = "made-up-token-of-a-test"
        code, checks = await doctor(place)
    assert (code, checks["exposure"]["state"]) == (0, "warn")
    assert "TLS" in checks["exposure"]["fix"]


@pytest.mark.requirement("OPS-5")
async def test_a_workspace_that_cannot_be_written_is_named(
    place: Place, fail_after: FailAfter
) -> None:
    with disk(place.path / "small", megabytes=1) as small:
        place.variables["GATEHOUSE_WORKSPACE__PATH"] = str(small.path)
        small.read_only()
        async with fail_after(60):
            _, checks = await doctor(place)
    assert checks["workspace"]["state"] == "fail", os.fspath(small.path)
    assert "cannot be written" in checks["workspace"]["found"]


@pytest.mark.requirement("OPS-5", "CTX-5")
async def test_a_file_of_the_workspace_that_is_not_used_is_named(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        assert (await command(place, "init")).code == 0
        (place.workspace / "USER.md").write_bytes(b"Caf\xe9")
        _, checks = await doctor(place)
    assert checks["workspace"]["state"] == "warn"
    assert checks["workspace"]["found"] == "USER.md is skipped: it is not UTF-8 (byte 3)"


@pytest.mark.requirement("OPS-5")
async def test_a_home_that_cannot_be_made_is_a_failure(place: Place, fail_after: FailAfter) -> None:
    with disk(place.path / "small", megabytes=1) as small:
        place.variables["GATEHOUSE_HOME"] = str(small.path / "deep/home")
        small.read_only()
        async with fail_after(60):
            code, checks = await doctor(place)
    assert (code, checks["home"]["state"], checks["workspace"]["state"]) == (1, "fail", "fail")
    assert f"{small.path} cannot be written" in checks["home"]["found"]
    assert "GATEHOUSE_HOME" in checks["home"]["fix"]


@pytest.mark.requirement("OPS-5")
async def test_a_name_that_does_not_resolve_is_no_matter_of_tokens(
    town: Town, fail_after: FailAfter
) -> None:
    variables = town.place.variables
    variables["SLACK_API_URL"] = "http://slack.invalid/api/"
    variables["TELEGRAM_API_URL"] = "http://telegram.invalid"
    async with fail_after(60):
        code, checks = await doctor(town.place)
        people = await command(town.place, "doctor")
    assert code == 1
    for name in ("slack", "telegram", "telegram webhook"):
        host = f"{name.partition(' ')[0]}.invalid"
        assert f"the name {host} did not resolve" in checks[name]["found"]
        assert "Trying again" not in checks[name]["found"]
        assert "network" in checks[name]["fix"]
        assert "Check the token" not in checks[name]["fix"]
    assert max(len(line) for line in people.out.splitlines() if "/" not in line) <= 100


@pytest.mark.requirement("SEC-6", "OPS-5")
async def test_the_known_limits_of_a_sandbox_are_said(town: Town, fail_after: FailAfter) -> None:
    if (refused := await try_backend(Landlock(SystemClock(), cgroups=Cgroups()))) is not None:
        pytest.skip(f"Landlock does not confine here: {refused}")
    town.place.variables["GATEHOUSE_TOOLS__SANDBOX"] = "landlock"
    async with fail_after(60):
        _, checks = await doctor(town.place)
    assert checks["sandbox"]["found"].startswith("landlock: ")
    # The program runs as the same user as this test.
    assert known_limits() in checks["sandbox"]["found"]
