"""Types and definitions through the real path: steps, models, modes and views of children."""

import json
import shutil
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import discover
from adapters.sandbox.probe import try_backend
from adapters.system.clock import SystemClock
from runtime.agent.settings import AgentSettings, ChildModels, ChildSettings
from runtime.domain.decisions import PermissionMode, SessionMode
from runtime.policy.bounds import PolicySettings, rule_lists
from runtime.store import sessions
from runtime.store.sessions import Session
from runtime.subagents.requests import Limits
from runtime.tools.builtin.files import WriteFile
from runtime.tools.builtin.shell import Exec, ExecSettings
from runtime.tools.builtin.spawning import SessionsSpawn
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cast import Cast, ask, spawn, tree
from tests.scenario.conftest import Worlds
from tests.scenario.engine import Setup, World, setup_at, world

__all__ = ["dialect", "migrated_url", "schema_templates"]

LOOK = ("list_dir", "{}")


def kept(path: Path, name: str, header: str) -> None:
    """A definition in the workspace."""
    folder = path / "workspace" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"---\n{header}\n---\n\nYou look things up.\n")


def played(
    path: Path, url: str, cast: Cast, *names: str, **changes: object
) -> tuple[AbstractAsyncContextManager[World], dict[str, ScriptedModel]]:
    """A world with models of these names, the first of which is the default."""
    models = {name: ScriptedModel(cast, name=name) for name in names or ("m:main",)}
    setup = setup_at(path, url, ScriptedModels(*models.values()), alone=url.startswith("sqlite"))
    return world(changed(setup, **changes)), models


def changed(setup: Setup, max_steps: int = 40, **children: object) -> Setup:
    """With other settings of children."""
    agent = AgentSettings(max_steps=max_steps, children=replace(ChildSettings(), **children))
    return replace(setup, settings=replace(setup.settings, agent=agent))


async def session_of(at: World, root: str | None, name: str) -> Session:
    """The session of a child."""
    agent = (await tree(at, root))[name]
    return await at.database.read(lambda conn: sessions.get(conn, agent.session_id))


@pytest.mark.requirement("SUB-2")
@pytest.mark.parametrize(("field", "operators"), [("maxTurns", 40), ("max_iterations", 40)])
async def test_a_definition_ends_its_child_after_its_steps(
    tmp_path: Path, migrated_url: str, field: str, operators: int
) -> None:
    kept(tmp_path, "scout", f"{field}: 2")
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", type="scout"),)), "Done."],
        {"one": [Said("So far so good.", calls=(LOOK,)), Said(calls=(LOOK,))]},
    )
    at, _ = played(tmp_path, migrated_url, cast, max_steps=operators)
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        child = (await tree(here, said.session_id))["one"]
    assert (child.status, child.steps) == ("forced", 2)
    assert "So far so good." in child.result
    assert "more than 2 steps" in child.result


@pytest.mark.requirement("SUB-2")
async def test_a_childs_steps_are_capped_by_its_parents(tmp_path: Path, migrated_url: str) -> None:
    """A child of a child too: the middle one has three, so the last one has no fifty."""
    kept(tmp_path, "scout", "maxTurns: 3")
    kept(tmp_path, "deep", "maxTurns: 900")
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", type="scout"),)), "Done."],
        {
            "one": [Said(calls=(spawn(task="Look.", id="two", type="deep"),)), "a"],
            "two": [Said(calls=(LOOK,))] * 3,
        },
    )
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        found = await tree(here, said.session_id)
        assert (found["one"].status, found["two"].status) == ("completed", "forced")
        assert (await session_of(here, said.session_id, "two")).max_steps == 3


@pytest.mark.requirement("SUB-15")
async def test_a_model_is_the_calls_then_the_definitions_then_by_depth_then_the_sessions(
    tmp_path: Path, migrated_url: str
) -> None:
    kept(tmp_path, "scout", "model: m:defined")
    everywhere = ("m:main", "m:called", "m:defined", "m:first", "m:all", "m:chosen")
    models = ChildModels("m:all", {1: "m:first"}, frozenset(everywhere))
    deeper = spawn(task="Look.", id="deeper", type="general")
    calls = (
        spawn(task="Look.", id="called", type="scout", model="m:called"),
        spawn(task="Look.", id="defined", type="scout"),
        spawn(task="Look.", id="first", type="general"),
    )
    cast = Cast(
        [Said(calls=calls), "Done."],
        {
            "called": ["a"],
            "defined": ["b"],
            "first": [Said(calls=(deeper,)), "c"],
            "deeper": ["d"],
        },
    )
    at, asked = played(tmp_path, migrated_url, cast, *everywhere, models=models)
    async with at as here:
        await here.says("look")
        assert await here.sees(1) == ["Done."]
    assert {name: len(one.requests) for name, one in asked.items()} == {
        "m:main": 2,
        "m:called": 1,
        "m:defined": 1,
        "m:first": 2,
        "m:all": 1,
        "m:chosen": 0,
    }


@pytest.mark.requirement("SUB-15")
async def test_without_any_a_child_has_the_model_of_the_session_that_starts_it(
    tmp_path: Path, migrated_url: str
) -> None:
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one"),)), "Done."],
        {"one": ["a"]},
    )
    at, asked = played(tmp_path, migrated_url, cast, "m:main", "m:chosen")
    async with at as here:
        intake = here.engine.settings.intake
        commands = replace(intake.commands, models=("m:main", "m:chosen"))
        here.engine.intake.change(replace(intake, commands=commands))
        await here.says("/model m:chosen")
        await here.sees(1)
        await here.says("look")
        assert (await here.sees(2))[1] == "Done."
    assert (len(asked["m:main"].requests), len(asked["m:chosen"].requests)) == (0, 3)


@pytest.mark.requirement("SUB-15", "SUB-5")
async def test_a_model_that_is_not_offered_starts_nothing(
    tmp_path: Path, migrated_url: str
) -> None:
    kept(tmp_path, "scout", "model: m:secret")
    cast = Cast(
        [
            Said(calls=(spawn(task="", id="one", type="scot", model="m:smal"),)),
            Said(calls=(spawn(task="Look.", id="two", type="scout"),)),
            "Done.",
        ],
        {"two": ["a"]},
    )
    models = ChildModels(offered=frozenset({"m:main", "m:small"}))
    at, asked = played(tmp_path, migrated_url, cast, "m:main", "m:secret", models=models)
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        assert list(await tree(here, said.session_id)) == ["two"]
    (told,) = cast.told(1)
    assert "task: say what the agent is to do" in told
    assert "type: there is no type scot; near it: scout" in told
    assert "model: no model m:smal is offered here; near it: m:small" in told
    assert not asked["m:secret"].requests, "a file of the workspace chose it"


@pytest.mark.requirement("SUB-2")
async def test_a_definition_is_seen_at_the_next_spawn_when_it_changes(
    tmp_path: Path, migrated_url: str
) -> None:
    gates = [Gate(), Gate()]
    cast = Cast(
        [
            Said(calls=(spawn(task="Look.", id="one", type="scout"),)),
            Said(calls=(spawn(task="Look.", id="two", type="scout"),), before=gates[0]),
            Said(calls=(spawn(task="Look.", id="three", type="scout"),), before=gates[1]),
            "Done.",
        ],
        {"one": ["a"], "two": ["b"]},
    )
    kept(tmp_path, "scout", "tools: read_file")
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        said = await here.says("look")
        await gates[0].reached.wait()
        kept(tmp_path, "scout", "tools: grep, glob")
        gates[0].open.set()
        await gates[1].reached.wait()
        (tmp_path / "workspace" / "agents" / "scout.md").unlink()
        gates[1].open.set()
        assert await here.sees(1) == ["Done."]
        first = await session_of(here, said.session_id, "one")
        second = await session_of(here, said.session_id, "two")
    assert (first.tools, second.tools) == ({"read_file"}, {"grep", "glob"})
    assert "type: there is no type scout" in cast.told(3)[0]
    assert [one.name for one in cast.requests["two"][0].tools] == ["glob", "grep"]


@pytest.mark.requirement("SUB-2")
async def test_a_definition_may_want_the_background(tmp_path: Path, migrated_url: str) -> None:
    """Where the call says nothing; a call that awaits is obeyed, and a batch needs all of them."""
    kept(tmp_path, "scout", "background: true")
    mixed = [{"task": "Look.", "id": "x", "type": "scout"}, {"task": "Look.", "id": "y"}]
    cast = Cast(
        [
            Said(calls=(spawn(task="Look.", id="one", type="scout", mode="await"),)),
            Said(calls=(spawn(agents=mixed),)),
            Said(calls=(spawn(task="Look.", id="two", type="scout"),)),
            "It looks.",
            "Done.",
        ],
        {"one": ["a"], "x": ["b"], "y": ["c"], "two": ["d"]},
    )
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        said = await here.says("look")
        await here.sees(1)
        found = await tree(here, said.session_id)
    modes = {name: one.mode for name, one in found.items()}
    assert modes == {"one": "await", "x": "await", "y": "await", "two": "background"}


@pytest.mark.requirement("SUB-2")
@pytest.mark.parametrize(
    ("wanted", "operators", "has"),
    [
        ("bypassPermissions", PermissionMode.DEFAULT, PermissionMode.DEFAULT),
        ("dontAsk", PermissionMode.DEFAULT, PermissionMode.DONT_ASK),
        ("acceptEdits", PermissionMode.DONT_ASK, PermissionMode.DONT_ASK),
    ],
)
async def test_a_definitions_mode_narrows_and_never_widens(
    tmp_path: Path,
    migrated_url: str,
    wanted: str,
    operators: PermissionMode,
    has: PermissionMode,
) -> None:
    kept(tmp_path, "scout", f"permissionMode: {wanted}")
    command = ("exec", json.dumps({"command": "make"}))
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", type="scout"),)), "Done."],
        {"one": [Said(calls=(command,)), "a"]},
    )
    models = ScriptedModels(ScriptedModel(cast))
    setup = setup_at(tmp_path, migrated_url, models, alone=migrated_url.startswith("sqlite"))
    policy = PolicySettings(operators)
    async with world(replace(setup, settings=replace(setup.settings, policy=policy))) as here:
        await here.says("look")
        if has is PermissionMode.DEFAULT:
            # A card: it is asked about, as it is of its parent.
            await here.chat.until(lambda: bool(here.chat.sent))
            assert "exec" in str(here.chat.sent[0].message.parts)
        else:
            await here.sees(1)
            assert "dontAsk turns every ask into no" in cast.told(1, "one")[0]


@pytest.mark.requirement("SUB-2")
async def test_who_is_defined_to_plan_spawns_nobody_who_writes(
    tmp_path: Path, migrated_url: str
) -> None:
    kept(tmp_path, "scout", "permissionMode: plan")
    write = ("write_file", json.dumps({"path": "x.md", "content": "x"}))
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", type="scout"),)), "Done."],
        {
            "one": [Said(calls=(spawn(task="Write.", id="two", type="general"),)), "a"],
            "two": [Said(calls=(write,)), "b"],
        },
    )
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        two = await session_of(here, said.session_id, "two")
    assert two.mode is SessionMode.PLAN
    assert two.permission_mode is PermissionMode.PLAN
    assert not (tmp_path / "workspace" / "x.md").exists()


@pytest.mark.requirement("SUB-14")
async def test_where_the_first_level_is_the_last_nobody_is_offered_the_tool(
    tmp_path: Path, migrated_url: str
) -> None:
    cast = Cast([Said(calls=(spawn(task="Look.", id="one"), ("agents_list", "{}"))), "Done."])
    at, asked = played(tmp_path, migrated_url, cast, limits=Limits(max_depth=1))
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        assert await tree(here, said.session_id) == {}
    tools = {one.name for one in asked["m:main"].requests[0].tools}
    assert "sessions_spawn" not in tools
    assert "agents_list" in tools
    assert "sessions_spawn" not in asked["m:main"].requests[0].system
    spawned, listed = cast.told(1)
    assert "there is no tool named sessions_spawn" in spawned
    assert listed.startswith("You may spawn no subagents.")


@pytest.mark.requirement("POL-2")
async def test_plan_mode_spawns_who_only_reads_and_ask_mode_spawns_nobody(
    tmp_path: Path, migrated_url: str
) -> None:
    write = ("write_file", json.dumps({"path": "x.md", "content": "x"}))
    cast = Cast(
        [
            Said(calls=(spawn(task="Write.", id="one", type="general"),)),
            "Planned.",
            Said(
                calls=(
                    spawn(task="Look.", id="two"),
                    ask("message", agent="one", text="Go on."),
                    ask("steer", agent="one", text="Go on."),
                    ask("list"),
                )
            ),
            "Answered.",
        ],
        {"one": [Said(calls=(write,)), "a"]},
    )
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        await here.says("/plan")
        said = await here.says("look")
        assert (await here.sees(2))[1] == "Planned."
        assert (await session_of(here, said.session_id, "one")).mode is SessionMode.PLAN
        assert "plan mode is read-only" in cast.told(1, "one")[0]
        await here.says("/ask")
        await here.says("and now?")
        assert (await here.sees(4))[3] == "Answered."
        assert list(await tree(here, said.session_id)) == ["one"]
    *refused, listed = cast.told(3)
    assert all("ask mode gives no subagent work" in one for one in refused)
    assert "one" in listed


@pytest.mark.requirement("SUB-1")
async def test_who_verifies_runs_any_command_in_a_view_that_cannot_be_written(
    worlds: Worlds,
) -> None:
    sandbox = Bubblewrap(SystemClock(), cgroups=discover())
    missing = await try_backend(sandbox)
    if missing is not None:
        pytest.skip(f"{sandbox.name} does not confine here: {missing}")
    command = ("exec", json.dumps({"command": f"{shutil.which('sh')} -c 'echo ran; echo x > x'"}))
    cast = Cast(
        [Said(calls=(spawn(task="Check.", id="one", type="verification"),)), "Done."],
        {"one": [Said(calls=(command,)), "a"]},
    )

    def change(setup: Setup) -> Setup:
        policy = PolicySettings(rules=rule_lists(allow=("exec",)))
        tools = (WriteFile(), Exec(sandbox, ExecSettings()), SessionsSpawn())
        return replace(setup, tools=tools, settings=replace(setup.settings, policy=policy))

    model = ScriptedModel(cast)
    async with worlds(model, change=change) as here:
        said = await here.says("check")
        assert await here.sees(1) == ["Done."]
        assert (await session_of(here, said.session_id, "one")).mode is SessionMode.EDIT
        (told,) = cast.told(1, "one")
        assert "ran" in told
        assert "Read-only file system" in told
        assert not (here.workspace / "x").exists()
    assert [one.name for one in cast.requests["one"][0].tools] == ["exec", "sessions_spawn"]
