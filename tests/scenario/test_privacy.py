"""Private notes and what others kept, as people ask for them (CTX-6, POL-4, I10)."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.probe import candidates, try_backend
from adapters.sandbox.unconfined import Unconfined
from adapters.system.clock import SystemClock
from runtime.domain.decisions import PermissionMode
from runtime.domain.messages import ChatKind
from runtime.domain.tools import ToolResult
from runtime.ports.model import ModelRequest
from runtime.ports.sandbox import Sandbox
from runtime.sessions.bounds import PolicySettings
from runtime.tools.builtin import builtin_tools
from runtime.tools.builtin.shell import ExecSettings
from runtime.workspace.snapshot import Workspace
from tests.fakes.fetch import FakeFetch
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import GUEST, MEMBER, both, policy, results
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OPEN, OWNER, Setup, World

SECRET = "the-safe-is-behind-the-painting"
BYPASS = policy(PolicySettings(PermissionMode.BYPASS))
OPEN_TO_ALL = both(
    intake(access={"test": replace(OPEN, dm_policy="open", allow_users=frozenset({MEMBER}))}),
    BYPASS,
)
OUTSIDERS: list[tuple[str, ChatKind]] = [
    (GUEST, "direct"),
    (GUEST, "group"),
    (MEMBER, "group"),
    (OWNER, "group"),
]
PATHS = (
    "USER.md",
    "memory/MEMORY.md",
    "memory",
    "personas/kind/USER.md",
    "personas/kind",
    "notes/../../USER.md",
    "memory/../USER.md",
    "link.md",
    "folder/MEMORY.md",
    "folder",
    "notes/up/MEMORY.md",
)
ON_EACH: tuple[tuple[str, dict[str, object]], ...] = (
    ("read_file", {}),
    ("list_dir", {}),
    ("grep", {"pattern": "painting"}),
    ("glob", {"pattern": "**"}),
    ("edit_file", {"old_text": "painting", "new_text": "sofa"}),
    ("write_file", {"content": "mine"}),
)
FROM_ABOVE = [
    ("grep", {"pattern": "painting"}),
    ("grep", {"pattern": ".*", "path": ".", "include": "*.md"}),
    ("grep", {"pattern": "painting", "path": "notes/.."}),
    ("glob", {"pattern": "**"}),
    ("list_dir", {"path": "."}),
    ("grep", {"pattern": "painting", "path": ".."}),
    ("glob", {"pattern": "**", "path": ".."}),
    ("list_dir", {"path": ".."}),
]


def tool(name: str, **arguments: object) -> tuple[str, str]:
    """A call of a real tool."""
    return name, json.dumps(arguments)


def furnish(workspace: Path) -> None:
    """Private notes with something in them, and ways to them."""
    (workspace / "memory").mkdir(exist_ok=True)
    (workspace / "personas/kind").mkdir(parents=True, exist_ok=True)
    notes = ("USER.md", "memory/MEMORY.md", "memory/diary-of-may.md", "personas/kind/USER.md")
    for name in notes:
        (workspace / name).write_text(SECRET)
    (workspace / "files/notes").mkdir(exist_ok=True)
    (workspace / "files/notes/plan.md").write_text("a painting for the hall")
    (workspace / "files/link.md").symlink_to("../USER.md")
    (workspace / "files/folder").symlink_to("../memory")
    (workspace / "files/notes/up").symlink_to(workspace / "memory")


class Asked:
    """A model that makes `calls` in the first step of a turn and then ends."""

    def __init__(self, *calls: tuple[str, str]) -> None:
        self.calls = calls
        self.model = ScriptedModel(self._next)

    def _next(self, request: ModelRequest) -> Said | str:
        return Said(calls=self.calls) if request.step == 1 else "done"

    async def by(self, world: World, user: str, kind: ChatKind) -> Sequence[ToolResult]:
        """What the model is told when this person asks."""
        chat_id = f"{kind}-{user}"
        seen = len(world.chat.texts(chat_id))
        await world.says("read it to me", user=user, kind=kind, chat_id=chat_id)
        await world.sees(seen + 1, chat_id)
        return results(self.model.requests[-1])


@pytest.mark.requirement("CTX-6", "POL-4", "TOOL-2")
@pytest.mark.parametrize(("user", "kind"), OUTSIDERS)
async def test_no_file_tool_reaches_private_notes(
    worlds: Worlds, user: str, kind: ChatKind
) -> None:
    calls = [tool(name, path=path, **more) for path in PATHS for name, more in ON_EACH]
    asked = Asked(*calls)
    async with worlds(asked.model, change=OPEN_TO_ALL) as world:
        furnish(world.workspace)
        found = await asked.by(world, user, kind)
        assert len(found) == len(calls)
        assert {one.status for one in found} <= {"denied", "error"}
        assert SECRET not in str(asked.model.requests)
        assert "diary" not in str(found)
        assert (world.workspace / "USER.md").read_text() == SECRET
        assert (world.workspace / "memory/MEMORY.md").read_text() == SECRET


@pytest.mark.requirement("CTX-6", "POL-4")
@pytest.mark.parametrize(("user", "kind"), OUTSIDERS)
async def test_a_search_from_above_passes_private_notes_over(
    worlds: Worlds, user: str, kind: ChatKind
) -> None:
    asked = Asked(*(tool(name, **arguments) for name, arguments in FROM_ABOVE))
    async with worlds(asked.model, change=OPEN_TO_ALL) as world:
        furnish(world.workspace)
        found = await asked.by(world, user, kind)
        assert {one.status for one in found} == {"ok"}
        assert found[0].content == "notes/plan.md:1:a painting for the hall"
        assert SECRET not in str(asked.model.requests)
        for one in found:
            assert not re.search(r"(?m)USER\.md|diary|^memory/", one.content)


@pytest.mark.requirement("CTX-6", "POL-4")
async def test_known_people_read_all_of_it_in_their_own_chat(worlds: Worlds) -> None:
    reads = [tool("read_file", path=path) for path in ("USER.md", "link.md", "notes/up/MEMORY.md")]
    above = [tool(name, **arguments) for name, arguments in FROM_ABOVE]
    asked = Asked(*reads, *above)
    async with worlds(asked.model, change=OPEN_TO_ALL) as world:
        furnish(world.workspace)
        for user in (OWNER, MEMBER):
            found = await asked.by(world, user, "direct")
            assert [one.content for one in found[:3]] == [SECRET] * 3
            assert f"memory/diary-of-may.md:1:{SECRET}" in found[-3].content
            assert "memory/diary-of-may.md" in found[-2].content
            assert "USER.md" in found[-1].content


@pytest.mark.requirement("TOOL-2", "TOOL-4")
async def test_a_kept_result_is_found_by_its_own_session_only(worlds: Worlds) -> None:
    asked = Asked()
    async with worlds(asked.model, change=OPEN_TO_ALL) as world:
        kept, named = await keeps(world, asked)
        (world.workspace / "files/way").symlink_to(kept.parent)
        asked.calls = (
            tool("grep", pattern="the-safe", path=".gatehouse"),
            tool("glob", pattern="**", path=".gatehouse"),
            tool("read_file", path=named, limit=1),
            tool("read_file", path=f"way/{kept.name}", limit=1),
            tool("list_dir", path=str(Path(named).parent)),
        )
        found = await asked.by(world, OWNER, "direct")
        assert all(SECRET in one.content or kept.name in one.content for one in found)
        missing = [f"{named} does not exist", f"way/{kept.name} does not exist"]
        for user, kind in (*OUTSIDERS, (MEMBER, "direct")):
            found = await asked.by(world, user, kind)
            assert "[no match]" in found[0].content
            assert "[no file matches]" in found[1].content
            assert [one.content for one in found[2:4]] == missing
            assert found[4].status == "error"


async def keeps(world: World, asked: Asked) -> tuple[Path, str]:
    """The file of a long result of the owner's own chat, and how its session names it."""
    long = world.workspace / "files/long.txt"
    long.write_text(f"{SECRET} {'x' * 250}\n" * 200)
    asked.calls = (tool("grep", pattern="the-safe", path="long.txt"),)
    (result,) = await asked.by(world, OWNER, "direct")
    long.unlink()
    kept = Path(result.whole_output_path or "")
    return kept, str(kept.relative_to(world.workspace))


def commands(sandbox: Sandbox) -> Callable[[Setup], Setup]:
    """A setup whose commands run in `sandbox`."""

    def change(setup: Setup) -> Setup:
        tools = builtin_tools(
            sandbox=sandbox,
            fetch=FakeFetch(),
            skills=Workspace(setup.workspace).skills,
            clock=setup.clock,
            commands=ExecSettings(),
        )
        return replace(OPEN_TO_ALL(setup), tools=tools)

    return change


@pytest.fixture(params=["bubblewrap", "landlock"])
async def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """What confines commands here; skips where the host cannot have it."""
    backends = {one.name: one for one in candidates(SystemClock(), Cgroups())}
    backend = backends[request.param]
    refused = await try_backend(backend)
    if refused is not None:
        pytest.skip(f"{backend.name} does not confine here: {refused}")
    return backend


TRIES = (
    "cat ../USER.md",
    "cat ../memory/MEMORY.md",
    "cat link.md folder/MEMORY.md notes/up/MEMORY.md",
    "cat /proc/self/root$PWD/../USER.md",
    "cat notes/../../memory/*",
    "ls ../memory folder/ notes/up/",
    "ls -R . ..",
    "grep -r painting . ..",
    "mv ../memory moved; cat moved/MEMORY.md",
    "rm -rf ../memory ../USER.md",
    "ln ../USER.md notes/copy; cat notes/copy",
    "cp -r ../memory notes/; cat notes/memory/MEMORY.md",
    "echo sofa > ../USER.md; echo sofa > ../memory/MEMORY.md",
)


@pytest.mark.requirement("CTX-6", "POL-4", "TOOL-5")
async def test_no_command_of_a_group_reaches_private_notes(
    worlds: Worlds, sandbox: Sandbox
) -> None:
    asked = Asked(tool("exec", command="; ".join((*TRIES, "cat notes/plan.md"))))
    async with worlds(asked.model, change=commands(sandbox)) as world:
        furnish(world.workspace)
        for user in (OWNER, MEMBER):
            (ran,) = await asked.by(world, user, "group")
            assert ran.content.startswith("[exit code 0")
            assert "a painting for the hall" in ran.content
            assert SECRET not in ran.content
            assert "diary" not in ran.content
        for name in ("USER.md", "memory/MEMORY.md", "memory/diary-of-may.md"):
            assert (world.workspace / name).read_text() == SECRET
        (ran,) = await asked.by(world, GUEST, "group")
        assert ran.status == "denied"


@pytest.mark.requirement("CTX-6", "TOOL-5")
async def test_notes_that_are_not_there_keep_no_command_from_running(
    worlds: Worlds, sandbox: Sandbox
) -> None:
    asked = Asked(tool("exec", command="echo ran"))
    async with worlds(asked.model, change=commands(sandbox)) as world:
        (world.workspace / "USER.md").unlink()
        shutil.rmtree(world.workspace / "memory")
        (ran,) = await asked.by(world, MEMBER, "group")
        assert ran.content.endswith("\nran\n")


@pytest.mark.requirement("CTX-6", "TOOL-4", "TOOL-5")
async def test_a_command_finds_what_its_own_session_kept_and_the_owner_all_notes(
    worlds: Worlds, sandbox: Sandbox
) -> None:
    asked = Asked()
    async with worlds(asked.model, change=commands(sandbox)) as world:
        furnish(world.workspace)
        kept, named = await keeps(world, asked)
        asked.calls = (
            tool("exec", command=f"head -n 1 ../{named} || true"),
            tool("exec", command="cat ../USER.md link.md ../memory/MEMORY.md"),
            tool("exec", command=f"echo x > ../{named}; find ../.gatehouse; echo end"),
        )
        found = await asked.by(world, OWNER, "direct")
        assert SECRET in found[0].content
        assert found[1].content.count(SECRET) == 3
        assert found[2].content.endswith("end\n")
        assert kept.read_text().count(SECRET) == 200
        for user, kind in ((MEMBER, "direct"), (MEMBER, "group"), (OWNER, "group")):
            found = await asked.by(world, user, kind)
            assert SECRET not in found[0].content
            assert kept.name not in found[2].content.replace(named, "")
        assert kept.read_text().count(SECRET) == 200


@pytest.mark.requirement("CTX-6", "TOOL-5")
async def test_unconfined_commands_are_refused_where_notes_are_closed(worlds: Worlds) -> None:
    asked = Asked(tool("exec", command="cat ../USER.md"))
    change = commands(Unconfined(SystemClock(), cgroups=Cgroups()))
    async with worlds(asked.model, change=change) as world:
        furnish(world.workspace)
        for user in (OWNER, MEMBER):
            (refused,) = await asked.by(world, user, "group")
            assert refused.status == "error"
            assert "private notes are closed here" in refused.content
        (ran,) = await asked.by(world, OWNER, "direct")
        assert ran.content.endswith(SECRET)
