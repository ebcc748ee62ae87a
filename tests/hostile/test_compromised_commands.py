"""A wholly compromised model and commands: what was allowed is what runs (APR-9, POL-9)."""

import json
import shutil

import pytest

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import Cgroups, discover
from adapters.sandbox.landlock import Landlock
from adapters.sandbox.probe import try_backend
from adapters.sandbox.unconfined import Unconfined
from adapters.system.clock import SystemClock
from runtime.ports.sandbox import Sandbox
from runtime.sessions.bounds import PolicySettings, rule_lists
from runtime.tools.builtin.shell import Exec, ExecSettings
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import both, card, cards, offering, policy, results
from tests.scenario.conftest import Worlds, worlds
from tests.scenario.subagents.repositories import git

__all__ = ["worlds"]
BACKENDS = {"bubblewrap": Bubblewrap, "landlock": Landlock, "none": Unconfined}


@pytest.fixture(params=BACKENDS)
async def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Every backend that works on this machine, and none."""
    if request.param == "none":
        return Unconfined(SystemClock(), cgroups=Cgroups())
    backend = BACKENDS[request.param](SystemClock(), cgroups=discover())
    missing = await try_backend(backend)
    if missing is not None:
        pytest.skip(f"{backend.name} does not confine here: {missing}")
    return backend


def runs(command: str, **more: object) -> Said:
    return Said(calls=(("exec", json.dumps({"command": command, **more})),))


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed (apt install git)")
@pytest.mark.requirement("POL-9")
async def test_an_allowed_git_command_runs_nothing_that_a_repository_names(
    worlds: Worlds, sandbox: Sandbox
) -> None:
    model = ScriptedModel([runs("git status"), runs("git diff"), "done"])
    change = both(
        offering(Exec(sandbox, ExecSettings())),
        policy(PolicySettings(rules=rule_lists(allow=("exec(git status)", "exec(git diff)")))),
    )
    async with worlds(model, change=change) as world:
        files = world.workspace / "files"
        evil = files / "evil"
        evil.write_text("#!/bin/sh\necho ran > marker\n")
        evil.chmod(0o777)
        git(files, "init", "--quiet")
        (files / "a.txt").write_text("one\n")
        git(files, "add", "a.txt")
        (files / "a.txt").write_text("two\n")
        for key in ("core.fsmonitor", "diff.external", "core.hooksPath", "diff.x.command"):
            git(files, "config", key, "./evil")
        await world.says("go")
        await world.chat.until(lambda: "done" in world.chat.texts())
        assert "a.txt" in results(model.requests[1])[0].content
        assert "+two" in results(model.requests[2])[0].content
        assert not (files / "marker").exists()


@pytest.mark.requirement("APR-9")
async def test_a_rule_and_a_grant_hold_for_the_folder_and_the_script_that_were_seen(
    worlds: Worlds, sandbox: Sandbox
) -> None:
    first, again, elsewhere = (
        runs("sh run.sh"),
        runs("sh run.sh"),
        runs("sh run.sh", working_dir="o"),
    )
    made = runs("make test", working_dir="o")
    model = ScriptedModel([first, again, again, elsewhere, made, "done"])
    change = both(
        offering(Exec(sandbox, ExecSettings())),
        policy(PolicySettings(rules=rule_lists(allow=("exec(make test)",)))),
    )
    async with worlds(model, change=change) as world:
        files = world.workspace / "files"
        (files / "o").mkdir(mode=0o777)
        (files / "run.sh").write_text("echo first >> log\n")
        (files / "o/run.sh").write_text("touch ../marker\n")
        (files / "o/Makefile").write_text("test:\n\ttouch ../marker\n")
        await world.says("go")
        shown = await card(world)
        assert "with run.sh (sha256 " in shown.reason
        # The script is swapped between the card and the answer: it is asked about again.
        (files / "run.sh").write_text("touch marker\n")
        await world.presses(shown.open_call_id, "once")
        second = await card(world, 2)
        assert "has changed since it was allowed" in second.reason
        assert not (files / "marker").exists()
        (files / "run.sh").write_text("echo first >> log\n")
        await world.presses(second.open_call_id, "deny")
        third = await card(world, 3)
        await world.presses(third.open_call_id, "session")
        await world.chat.until(lambda: len(cards(world)) >= 4)
        fourth = await card(world, 4)
        assert json.loads(fourth.arguments)["working_dir"] == "o"
        assert (files / "log").read_text().count("first") == 2
        await world.presses(fourth.open_call_id, "deny")
        fifth = await card(world, 5)
        assert json.loads(fifth.arguments)["command"] == "make test"
        assert not (files / "marker").exists()


@pytest.mark.requirement("APR-9")
async def test_a_granted_script_that_was_rewritten_is_asked_about_again(
    worlds: Worlds, sandbox: Sandbox
) -> None:
    model = ScriptedModel([runs("sh run.sh"), "one", runs("sh run.sh"), "two"])
    async with worlds(model, change=offering(Exec(sandbox, ExecSettings()))) as world:
        files = world.workspace / "files"
        (files / "run.sh").write_text("echo fine\n")
        await world.says("go")
        await world.presses((await card(world)).open_call_id, "session")
        await world.chat.until(lambda: "one" in world.chat.texts())
        (files / "run.sh").write_text("touch marker\n")
        await world.says("again")
        await card(world, 2)
        assert not (files / "marker").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed (apt install git)")
@pytest.mark.requirement("APR-9", "POL-9")
async def test_a_step_that_fails_hides_no_script_and_a_push_runs_no_hook(worlds: Worlds) -> None:
    model = ScriptedModel([runs("cd o | true; sh run.sh"), runs("git push there HEAD:x"), "done"])
    change = both(
        offering(Exec(Unconfined(SystemClock(), cgroups=Cgroups()), ExecSettings())),
        policy(PolicySettings(rules=rule_lists(allow=("exec(git push there HEAD:x)",)))),
    )
    async with worlds(model, change=change) as world:
        files = world.workspace / "files"
        (files / "o").mkdir()
        (files / "o/run.sh").write_text("echo fine\n")
        (files / "run.sh").write_text("touch marker\n")
        git(files, "init", "--quiet")
        git(files, "add", "run.sh")
        git(files, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "--quiet", "-m", "x")
        git(files, "init", "--quiet", "--bare", "there.git")
        git(files, "remote", "add", "there", "./there.git")
        hook = files / "there.git/hooks/update"
        hook.write_text(f"#!/bin/sh\ntouch {files}/marker\n")
        hook.chmod(0o777)
        await world.says("go")
        shown = await card(world)
        assert "run.sh (sha256 " in shown.reason
        assert "o/run.sh (sha256 " in shown.reason
        assert "you can allow only this one call" in shown.reason
        await world.presses(shown.open_call_id, "deny")
        await world.chat.until(lambda: "done" in world.chat.texts())
        assert (
            "git cannot fetch from or push to other folders here"
            in results(model.requests[2])[0].content
        )
        assert not (files / "marker").exists()
