"""What a child may, through the real path: narrower than its parent, and held to it (SUB-18)."""

import json
from pathlib import Path

import pytest

from runtime.domain.decisions import PermissionMode
from runtime.features.subagents.tools import SessionsSpawn
from runtime.ports.fetch import Page
from runtime.ports.model import ModelRequest
from runtime.sessions.bounds import PolicySettings
from runtime.tools.base import ToolContext, ToolOutput
from runtime.tools.builtin.files import ReadArguments, ReadFile
from runtime.tools.builtin.web import WebFetch
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.fetch import FakeFetch
from tests.fakes.model import Gate, Said
from tests.scenario.cards import offering, policy
from tests.scenario.subagents.children import engine, name_of, settled, spawn, told, tree
from tests.scenario.subagents.family import grown, results

__all__ = ["dialect", "migrated_url", "schema_templates"]


def calls(*wanted: tuple[str, dict[str, object]]) -> Said:
    return Said("", calls=tuple((name, json.dumps(arguments)) for name, arguments in wanted))


@pytest.mark.requirement("SUB-18", "POL-5")
async def test_a_child_keeps_to_its_scope_and_gives_no_wider_one(
    tmp_path: Path, migrated_url: str
) -> None:
    seen: dict[str, list[str]] = {}

    def script(request: ModelRequest) -> Said | str:
        name, step = name_of(request), request.step
        seen[f"{name}{step}"] = results(request)
        if not name:
            if "completed after" in told(request):
                return "Done."
            return spawn(
                task="look", type="general", id="child", paths=["notes"], network=["example.org"]
            )
        if step == 1:
            wanted = (
                ("read_file", {"path": "notes/a.md"}),
                ("read_file", {"path": "SOUL.md"}),
                ("exec", {"command": "cat SOUL.md"}),
                ("web_fetch", {"url": "https://b.org/"}),
                ("write_file", {"path": "notes/b.md", "content": "b"}),
            )
            return calls(*wanted)
        if step == 2 and name == "child":
            wide = {"task": "x", "paths": ["."], "network": ["b.org"]}
            return calls(("sessions_spawn", wide))
        if step == 3:
            return spawn(task="look", type="general", id="below")
        return "done"

    async with engine(tmp_path, migrated_url, script) as at:
        (at.workspace / "files/notes").mkdir()
        (at.workspace / "files/notes" / "a.md").write_text("a pearl")
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        for name in ("child2", "below2"):
            read, soul, command, web, wrote = seen[name]
            assert "a pearl" in read
            assert soul.startswith("denied: Denied by policy (capability scope: paths: ")
            assert "paths" in command
            assert web.startswith("denied: Denied by policy (capability scope: network: ")
            assert wrote.startswith("ok")
        (refused,) = seen["child3"]
        assert "Nothing was started" in refused
        assert "wider on the axis paths" in refused
        assert "wider on the axis network" in refused
        assert set(await tree(at)) == {"child", "below"}


@pytest.mark.requirement("SUB-18", "POL-2")
async def test_an_explicit_permission_mode_is_pinned_and_never_wider(
    tmp_path: Path, migrated_url: str
) -> None:
    seen: dict[str, list[str]] = {}

    def script(request: ModelRequest) -> Said | str:
        name, step = name_of(request), request.step
        seen[f"{name}{step}"] = results(request)
        if not name:
            mode = {1: "bypassPermissions", 2: "dontAsk"}.get(step)
            return spawn(task="x", type="general", id="a", permission_mode=mode) if mode else "Done"
        return calls(("exec", {"command": "make"})) if step == 1 else "done"

    default = policy(PolicySettings(mode=PermissionMode.DEFAULT))
    async with grown(tmp_path, migrated_url, script, default) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done"]
        (refused,) = seen["2"]
        assert "permission_mode: wider on the axis mode: bypassPermissions" in refused
        (denied,) = seen["a2"]
        assert "dontAsk turns every ask into no" in denied


@pytest.mark.requirement("SUB-18")
async def test_the_operator_says_which_tools_subagents_may_have(
    tmp_path: Path, migrated_url: str
) -> None:
    offered: dict[str, set[str]] = {}

    def script(request: ModelRequest) -> Said | str:
        name = name_of(request)
        offered[name] = {tool.name for tool in request.tools}
        if name:
            return "done"
        return "Done." if "completed after" in told(request) else spawn(task="x", type="general")

    allow, deny = ("read_*", "exec", "write_file"), ("exec",)
    async with engine(tmp_path, migrated_url, script, allow=allow, deny=deny) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        await settled(at)
        assert offered["general-1"] == {"read_file", "write_file"}
        assert "exec" in offered[""]


@pytest.mark.requirement("SUB-18")
async def test_a_call_names_the_tools_of_its_child(tmp_path: Path, migrated_url: str) -> None:
    offered: dict[str, set[str]] = {}
    seen: list[str] = []

    def script(request: ModelRequest) -> Said | str:
        name = name_of(request)
        offered[name] = {tool.name for tool in request.tools}
        if name:
            return "done"
        seen.extend(results(request))
        if request.step == 1:
            return spawn(task="x", allowed_tools=["write_file", "grep"])
        if request.step == 2:
            return spawn(task="x", allowed_tools=["grep", "read_file"], denied_tools=["grep"])
        return "Done."

    async with engine(tmp_path, migrated_url, script) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        assert "allowed_tools: wider on the axis tools: write_file" in seen[0]
        assert offered["explore-1"] == {"read_file"}


@pytest.mark.requirement("SUB-18")
async def test_a_redirect_leads_no_child_out_of_its_hosts(
    tmp_path: Path, migrated_url: str
) -> None:
    start, there = "https://example.org/", "https://b.org/"
    fetch = FakeFetch({there: page(there)}, moved={start: there})
    seen: list[str] = []

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            seen.extend(results(request))
            return calls(("web_fetch", {"url": start})) if request.step == 1 else "done"
        steps = [spawn(task="x", network=["example.org"]), spawn(task="x")]
        return steps[request.step - 1] if request.step <= len(steps) else "Done."

    change = offering(WebFetch(fetch), SessionsSpawn())
    async with grown(tmp_path, migrated_url, script, change) as at:
        await at.says(f"go to {start}")
        assert await at.sees(1) == ["Done."]
        bound, free = seen
        assert "b.org is outside of what may be reached" in bound
        assert "a pearl" in free


class Later(ReadFile):
    """Reads once the gate is open, after policy decided."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    async def run(self, arguments: ReadArguments, context: ToolContext) -> ToolOutput:
        await self.gate.wait()
        return await super().run(arguments, context)


@pytest.mark.requirement("SUB-18", "POL-5")
async def test_a_link_that_comes_later_leads_no_child_out_of_its_paths(
    tmp_path: Path, migrated_url: str
) -> None:
    gate, seen = Gate(), list[str]()

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            seen.extend(results(request))
            return calls(("read_file", {"path": "notes/a"})) if request.step == 1 else "done"
        return "Done." if "completed after" in told(request) else spawn(task="x", paths=["notes"])

    change = offering(Later(gate), SessionsSpawn())
    async with grown(tmp_path, migrated_url, script, change) as at:
        (at.workspace / "files/notes").mkdir()
        (at.workspace / "files/notes" / "a").write_text("a pearl")
        await at.says("go")
        await gate.reached.wait()
        (at.workspace / "files/notes" / "a").unlink()
        (at.workspace / "files/notes" / "a").symlink_to("../../SOUL.md")
        gate.open.set()
        assert await at.sees(1) == ["Done."]
    assert seen == ["error: notes/a leads out of what this session may reach"]


def page(url: str) -> Page:
    return Page(url, 200, "text/plain", b"a pearl", "utf-8", truncated=False)
