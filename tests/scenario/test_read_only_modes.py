"""Plan and ask mode with real sandboxes: what only reads runs, and nothing can write (TOOL-7)."""

import shutil
import subprocess
from pathlib import Path

import pytest

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import discover
from adapters.sandbox.landlock import Landlock
from adapters.sandbox.probe import try_backend
from adapters.system.clock import SystemClock
from runtime.domain.decisions import PermissionMode
from runtime.ports.sandbox import Sandbox
from runtime.sessions.bounds import PolicySettings, rule_lists
from runtime.tools.builtin.shell import Exec, ExecSettings
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import both, card, offering, policy, results, rows
from tests.scenario.conftest import Worlds
from tests.scenario.engine import World
from tests.scenario.test_policy import tool

CANARY = "canary"
FILTER = f"sh -c 'echo filtered; echo dead > {CANARY}; cat \"$0\"'"
"""A program that a repository names: it says that it ran, and tries to kill the canary."""
ANYTHING = policy(PolicySettings(PermissionMode.BYPASS, rule_lists(allow=("exec",))))


@pytest.fixture(params=[Bubblewrap, Landlock], ids=["bubblewrap", "landlock"])
async def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Every backend that confines on this machine."""
    backend = request.param(SystemClock(), cgroups=discover())
    missing = await try_backend(backend)
    if missing is not None:
        pytest.skip(f"{backend.name} does not confine here: {missing}")
    return backend


@pytest.mark.requirement("TOOL-7", "POL-2")
@pytest.mark.parametrize("mode", ["plan", "ask"])
async def test_a_read_only_mode_runs_what_reads_and_denies_what_writes(
    worlds: Worlds, sandbox: Sandbox, mode: str
) -> None:
    commands = ("cat note.md | head -1", f"touch {CANARY}", f"cat note.md > {CANARY}")
    asked = Said(calls=tuple(tool("exec", command=one) for one in commands))
    model = ScriptedModel([asked, "done"])
    async with worlds(model, change=offering(Exec(sandbox, ExecSettings()))) as world:
        (world.workspace / "files/note.md").write_text("hello\nworld\n")
        await world.says(f"/{mode}")
        accepted = await world.says("look around")
        await world.sees(2)
        told = results(model.requests[1])
        assert [one.status for one in told] == ["ok", "denied", "denied"]
        assert told[0].content.endswith("\nhello\n")
        assert f"{mode} mode runs commands that only read, and refuses touch" in told[1].content
        found = [row.decision for row in await rows(world, accepted.run_id)]
        assert all(one and one.rule.startswith(f"mode: {mode} mode") for one in found)
        assert not (world.workspace / "files" / CANARY).exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed (apt install git)")
@pytest.mark.requirement("TOOL-7", "POL-2", "POL-9")
@pytest.mark.parametrize("mode", ["plan", "ask"])
async def test_what_a_hostile_repository_names_starts_in_no_mode(
    worlds: Worlds, sandbox: Sandbox, mode: str
) -> None:
    shows = Said(calls=(tool("exec", command="git diff"),))
    model = ScriptedModel([shows, "read", shows, "edited"])
    change = both(offering(Exec(sandbox, ExecSettings())), ANYTHING)
    async with worlds(model, change=change) as world:
        _hostile(world)
        await world.says(f"/{mode}")
        await world.says("what has changed?")
        await world.sees(2)
        (told,) = results(model.requests[1])
        assert (told.status, "+two" in told.content) == ("ok", True), told.content
        await world.says("/edit")
        await world.says("and now?")
        await world.sees(4)
        assert "+two" in results(model.requests[3])[0].content
        assert (world.workspace / "files" / CANARY).read_text() == "alive\n"


@pytest.mark.requirement("TOOL-7", "POL-2")
async def test_a_command_that_a_person_allows_in_plan_mode_cannot_write_either(
    worlds: Worlds, sandbox: Sandbox
) -> None:
    asked = Said(calls=(tool("exec", command="git diff"),))
    model = ScriptedModel([asked, "done"])
    ask = policy(PolicySettings(rules=rule_lists(ask=("exec",))))
    async with worlds(model, change=both(offering(Exec(sandbox, ExecSettings())), ask)) as world:
        _hostile(world)
        await world.says("/plan")
        await world.says("what has changed?")
        part = await card(world)
        await world.presses(part.open_call_id, "once")
        await world.chat.until(lambda: "done" in world.chat.texts())
        assert "+two" in results(model.requests[1])[0].content
        assert (world.workspace / "files" / CANARY).read_text() == "alive\n"


def _hostile(world: World) -> None:
    """A repository in the working folder whose configuration names a program, and a canary."""
    folder = world.workspace / "files"
    (folder / CANARY).write_text("alive\n")
    _git(folder, "init", "--quiet", "--template=")
    (folder / ".gitattributes").write_text("*.txt diff=evil\n")
    (folder / "x.txt").write_text("one\n")
    _git(folder, "add", "x.txt")
    _git(folder, "config", "diff.evil.textconv", FILTER)
    (folder / "x.txt").write_text("two\n")


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
