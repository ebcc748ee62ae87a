"""What children of a type may do through the real path: modes, views, files to the chat."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import discover
from adapters.sandbox.probe import try_backend
from adapters.system.clock import SystemClock
from runtime.domain.decisions import PermissionMode, SessionMode
from runtime.domain.messages import FilePart
from runtime.features.subagents.tools import SessionsSpawn
from runtime.sessions.bounds import PolicySettings, rule_lists
from runtime.tools.builtin.files import WriteFile
from runtime.tools.builtin.shell import Exec, ExecSettings
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.scenario.cast import Cast, ask, spawn, tree
from tests.scenario.conftest import Worlds
from tests.scenario.engine import Setup, setup_at, world
from tests.scenario.subagents.typed import kept, played, session_of

__all__ = ["dialect", "migrated_url", "schema_templates"]


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
async def test_no_definition_below_widens_the_mode_again(tmp_path: Path, migrated_url: str) -> None:
    kept(tmp_path, "shy", "permissionMode: dontAsk")
    kept(tmp_path, "bold", "permissionMode: bypassPermissions")
    command = ("exec", json.dumps({"command": "make"}))
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", type="shy"),)), "Done."],
        {
            "one": [Said(calls=(spawn(task="Make.", id="two", type="bold"),)), "a"],
            "two": [Said(calls=(command,)), "b"],
        },
    )
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        two = await session_of(here, said.session_id, "two")
    assert two.permission_mode is PermissionMode.DONT_ASK
    assert "dontAsk turns every ask into no" in cast.told(1, "two")[0]


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
    assert not (tmp_path / "workspace/files" / "x.md").exists()


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
@pytest.mark.parametrize("kind", ["explore", "plan", "planning"])
async def test_who_explores_runs_only_what_reads_and_starts_only_explorers(
    worlds: Worlds, kind: str
) -> None:
    commands = [("exec", json.dumps({"command": one})) for one in ("touch x", "make")]
    below = [spawn(task="x", type=one) for one in ("general", "plan", "verification")]
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", type=kind),)), "Done."],
        {
            "one": [
                Said(calls=(*commands, *below)),
                Said(calls=(spawn(task="x", id="two", type="explore"),)),
                "a",
            ],
            "two": ["b"],
        },
    )
    async with worlds(ScriptedModel(cast)) as here:
        said = await here.says("look")
        assert await here.sees(1) == ["Done."]
        assert sorted(await tree(here, said.session_id)) == ["one", "two"]
    told = cast.told(1, "one")
    assert all("plan mode runs commands that only read" in one for one in told[:2])
    assert all("may not spawn" in one and "may spawn: explore" in one for one in told[2:])


@pytest.mark.requirement("SUB-1", "MSG-3")
@pytest.mark.parametrize("mode", ["await", "background"])
async def test_a_general_child_sends_a_file_to_the_chat_as_its_parent_could(
    tmp_path: Path, migrated_url: str, mode: str
) -> None:
    cast = Cast(
        [Said(calls=(spawn(task="Send.", id="one", type="general", mode=mode),)), "Done.", "Sent."],
        {"one": [Said(calls=(("send_file", json.dumps({"path": "note.md"})),)), "a"]},
    )
    at, _ = played(tmp_path, migrated_url, cast)
    async with at as here:
        (tmp_path / "workspace/files" / "note.md").write_text("hello\n")
        said = await here.says("send me the note")
        await here.chat.until(
            lambda: any(
                isinstance(one, FilePart) for sent in here.chat.sent for one in sent.message.parts
            )
        )
        await here.sees(1)
        files = [
            (sent.message.target.chat_id, part.name)
            for sent in here.chat.sent
            for part in sent.message.parts
            if isinstance(part, FilePart)
        ]
        key = (await session_of(here, said.session_id, "one")).key
    assert files == [("D-U-owner", "note.md")]
    assert re.fullmatch("subagent:ses_[a-z0-9]+", key)


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
        assert not (here.workspace / "files/x").exists()
    assert [one.name for one in cast.requests["one"][0].tools] == ["exec", "sessions_spawn"]
