"""Children in worktrees of their own: what they change stays apart, and is told (SUB-17)."""

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.decisions import PermissionMode
from runtime.domain.worktrees import branch_of, folder_of
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.ports.model import ModelRequest
from runtime.ports.sandbox import Sandbox
from runtime.sessions.bounds import PolicySettings
from tests.contract.store_support import dialect, migrated_url, on_sqlite, schema_templates
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cast import Cast, after, got_to, played, spawn
from tests.scenario.engine import World, setup_at, world, writes
from tests.scenario.subagents.children import settled, tree
from tests.scenario.subagents.repositories import confined, git, repository

__all__ = ["dialect", "migrated_url", "schema_templates"]

WRITE = ("write_file", json.dumps({"path": "plan.md", "content": "the child's\n"}))
READ = ("read_file", json.dumps({"path": "plan.md"}))


def run(command: str) -> tuple[str, str]:
    return ("exec", json.dumps({"command": command}))


def start(name: str = "one", **more: object) -> tuple[str, str]:
    return spawn(task="Do.", id=name, type="general", **{"workspace": "worktree", **more})


def working(
    path: Path, url: str, cast: Cast, sandbox: Sandbox
) -> AbstractAsyncContextManager[World]:
    """A world in which commands run, confined, and nobody is asked."""
    models = ScriptedModels(ScriptedModel(cast))
    setup = setup_at(path, url, models, alone=url.startswith("sqlite"), sandbox=sandbox)
    settings = replace(setup.settings, policy=PolicySettings(PermissionMode.BYPASS))
    return world(replace(setup, settings=settings))


async def cared(at: World, state: str, name: str = "one") -> Agent:
    """An agent, once that became of its worktree."""
    async with asyncio.timeout(120), writes(at.database) as news:
        while True:
            found = (await tree(at)).get(name)
            if found is not None and found.tree_state == state:
                return found
            await news.wait()
            news.clear()


@pytest.mark.requirement("SUB-17")
async def test_what_it_changes_stays_in_its_worktree_and_is_told(
    tmp_path: Path, migrated_url: str
) -> None:
    workspace = repository(tmp_path)
    cast = Cast(
        [Said(calls=(start(),)), "Done."],
        {"one": [Said(calls=(READ,)), Said(calls=(WRITE,)), "a"]},
    )
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        found = (await settled(at))["one"]
        assert found.tree_state == "kept"
    assert cast.told(1, "one") == ["old\n"]
    mine = folder_of(found.session_id)
    told = cast.told(1)[0]
    assert f"worktree {mine} (branch {branch_of(found.session_id)})." in told
    assert told.index(f"kept in the worktree {mine}") < told.index("a\n")
    assert (workspace.parent / mine / "plan.md").read_text() == "the child's\n"
    assert (workspace / "plan.md").read_text() == "old\n"
    assert branch_of(found.session_id) in git(workspace, "branch", "--list")


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize("mode", ["await", "background"])
async def test_a_worktree_without_changes_is_removed(
    tmp_path: Path, migrated_url: str, mode: str
) -> None:
    workspace = repository(tmp_path)
    answers = ["Done."] if mode == "await" else ["Sent.", "Done."]
    cast = Cast([Said(calls=(start(mode=mode),)), *answers], {"one": [Said(calls=(READ,)), "a"]})
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        await at.says("go")
        assert await at.sees(len(answers)) == answers
        found = await cared(at, "gone")
    assert "It changed nothing in its worktree, which is removed." in cast.words(-1)
    assert not (workspace.parent / folder_of(found.session_id)).exists()
    assert "gatehouse/" not in git(workspace, "branch", "--list", "--all")


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
@on_sqlite
async def test_its_commands_write_in_its_worktree_alone(
    tmp_path: Path, migrated_url: str, name: str
) -> None:
    workspace = repository(tmp_path)
    (workspace / "notes").mkdir()
    (workspace / "notes" / "day.md").write_text("day\n")
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message=Second")
    ways = " ; ".join(
        f"echo x > {place}"
        for place in (
            workspace / "plan.md",
            workspace / "new.md",
            workspace / ".git" / "config",
            workspace / ".git" / "hooks" / "pre-commit",
            workspace / ".git" / "objects" / "x",
            tmp_path / "out.md",
            "../beside.md",
        )
    )
    there = {one: one.read_bytes() for one in workspace.rglob("*") if one.is_file()}
    outside = ("write_file", json.dumps({"path": str(workspace / "plan.md"), "content": "x"}))
    calls = (
        run(ways),
        run("echo mine > notes/made.md && git status --short && git log --format=%s"),
        outside,
        ("read_file", json.dumps({"path": "../../../plan.md"})),
    )
    cast = Cast([Said(calls=(start(),)), "Done."], {"one": [Said(calls=calls), "a"]})
    async with working(tmp_path, migrated_url, cast, await confined(name)) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        found = (await settled(at))["one"]
    _, looked, written, read = cast.told(1, "one")
    assert "exit code 0" in looked
    assert looked.endswith("Second\nFirst\n")
    # Landlock can grant the folders at the top, and not the listing of the top itself.
    assert name == "landlock" or "?? notes/made.md\n" in looked
    assert "is outside of what may be reached" in written
    assert "is outside of what may be reached" in read
    assert {one: one.read_bytes() for one in there} == there
    assert not any((workspace / name).exists() for name in ("new.md", ".git/objects/x"))
    assert not (workspace / ".git" / "hooks" / "pre-commit").exists()
    mine = workspace.parent / folder_of(found.session_id)
    assert not (tmp_path / "out.md").exists()
    assert not (mine.parent / "beside.md").exists()
    assert (mine / "notes" / "made.md").read_text() == "mine\n"


@pytest.mark.requirement("SUB-17")
async def test_a_child_of_it_works_in_the_same_one_or_in_its_own(
    tmp_path: Path, migrated_url: str
) -> None:
    workspace = repository(tmp_path)
    cast = Cast(
        [Said(calls=(start(),)), "Done."],
        {
            "one": [
                Said(calls=(start("two", workspace=None), start("three"))),
                Said(calls=(READ,)),
                "a",
            ],
            "two": [Said(calls=(WRITE,)), "b"],
            "three": [Said(calls=(READ,)), "c"],
        },
    )
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        await cared(at, "gone", "three")
        found = await settled(at)
    one, two, three = (found[name] for name in ("one", "two", "three"))
    assert two.worktree == one.session_id
    assert three.worktree == three.session_id
    assert cast.told(2, "one") == ["the child's\n"]
    assert cast.told(1, "three") == ["old\n"]
    assert (workspace / "plan.md").read_text() == "old\n"


@pytest.mark.requirement("SUB-17")
async def test_a_child_that_is_taken_up_works_on_in_its_worktree(
    tmp_path: Path, migrated_url: str
) -> None:
    workspace = repository(tmp_path)
    held = Gate()
    cast = Cast(
        [Said(calls=(start(),))], {"one": [Said(calls=(WRITE,)), Said("never", before=held)]}
    )
    again = Cast(["Done."], {"one": [Said(calls=(READ,)), "a"]})
    sandbox = await confined()
    async with working(tmp_path, migrated_url, cast, sandbox) as at:
        await at.says("go")
        await got_to(held)
    async with working(tmp_path, migrated_url, again, sandbox) as at:
        assert await at.sees(1) == ["Done."]
    assert again.told(1, "one") == ["the child's\n"]
    assert (workspace / "plan.md").read_text() == "old\n"


@pytest.mark.requirement("SUB-17")
async def test_what_a_crash_left_is_removed_by_the_next_process(
    tmp_path: Path, migrated_url: str
) -> None:
    """The agent had settled, and nobody had looked at its worktree yet."""
    workspace = repository(tmp_path)
    cast = Cast([Said(calls=(start(),)), "Done."], {"one": ["a"]})
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        await at.says("go")
        found = await cared(at, "gone")
        await at.sees(1)
        again = str(workspace.parent / folder_of(found.session_id))
        git(workspace, "worktree", "add", again, found.base or "")
        await at.database.write(
            lambda conn: agents.change(conn, found.session_id, tree_state="open"), name="test"
        )
    async with working(tmp_path, migrated_url, Cast([]), await confined()) as at:
        await cared(at, "gone")
    assert not (workspace.parent / folder_of(found.session_id)).exists()


@pytest.mark.requirement("SUB-17")
async def test_one_that_is_spoken_to_again_has_its_worktree_again(
    tmp_path: Path, migrated_url: str
) -> None:
    workspace = repository(tmp_path)
    tell = ("subagents", json.dumps({"action": "message", "agent": "one", "text": "Write."}))
    cast = Cast(
        [Said(calls=(start(),)), "Done.", Said(calls=(tell,)), "Told.", "Again."],
        {"one": ["a", Said(calls=(WRITE,)), "b"]},
    )
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        mine = folder_of((await cared(at, "gone")).session_id)
        await at.says("more")
        await at.chat.until(lambda: "Told." in at.chat.texts())
        await cared(at, "kept")
    assert (workspace.parent / mine / "plan.md").read_text() == "the child's\n"
    assert (workspace / "plan.md").read_text() == "old\n"


@pytest.mark.requirement("SUB-17")
@on_sqlite
async def test_a_spawn_without_a_repository_is_refused(tmp_path: Path, migrated_url: str) -> None:
    cast = Cast([Said(calls=(start(),)), "I may not."])
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        await at.says("go")
        assert await at.sees(1) == ["I may not."]
        assert await tree(at) == {}
    assert (
        "there can be no worktree: the working folder is not the top of a git repository"
        in cast.told(1)[0]
    )


@pytest.mark.requirement("SUB-5", "SUB-17")
@on_sqlite
async def test_a_worktree_that_cannot_be_is_told_with_all_else(
    tmp_path: Path, migrated_url: str
) -> None:
    agents = [
        {"task": "x", "id": "a", "depends_on": ["b"], "type": "general"},
        {"task": "y", "id": "b", "depends_on": ["a"], "type": "genral"},
    ]
    cast = Cast([Said(calls=(spawn(agents=agents, workspace="worktree"),)), "I may not."])
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("go")
        assert await at.sees(1) == ["I may not."]
        assert await tree(at) == {}
    (told,) = cast.told(1)
    assert "- workspace: there can be no worktree" in told
    assert "- agents[1].type: there is no type genral" in told
    assert "- agents: these would wait for each other: a -> b -> a" in told


@pytest.mark.requirement("SUB-2", "SUB-17")
async def test_a_definition_may_ask_for_one(tmp_path: Path, migrated_url: str) -> None:
    workspace = repository(tmp_path)
    (workspace.parent / "agents").mkdir()
    (workspace.parent / "agents" / "tree.md").write_text(
        "---\nname: tree\ndescription: Works apart.\nisolation: worktree\n---\nWork."
    )
    (workspace.parent / "agents" / "near.md").write_text(
        "---\nname: near\ndescription: Works near.\nisolation: shared\n---\nWork."
    )
    calls = (spawn(task="Do.", id="one", type="tree"), spawn(task="Do.", id="two", type="near"))
    cast = Cast([Said(calls=calls), "Done."], {"one": [Said(calls=(WRITE,)), "a"], "two": ["b"]})
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        found = await settled(at)
    assert found["one"].worktree == found["one"].session_id
    assert found["one"].isolation == "full"
    assert (found["two"].worktree, found["two"].isolation) == (None, "shared")
    assert (workspace / "plan.md").read_text() == "old\n"


@pytest.mark.requirement("SUB-17")
@on_sqlite
async def test_without_a_sandbox_there_are_none(tmp_path: Path, migrated_url: str) -> None:
    repository(tmp_path)
    cast = Cast([Said(calls=(start(),)), "I may not."])
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("go")
        assert await at.sees(1) == ["I may not."]
    assert "- workspace: there can be no worktree" in cast.told(1)[0]


@pytest.mark.requirement("SUB-17")
@on_sqlite
async def test_what_takes_the_repositorys_place_is_not_shown_to_its_commands(
    tmp_path: Path, migrated_url: str
) -> None:
    workspace, secret = repository(tmp_path), tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "key").write_text("the secret\n")
    began = Gate()
    swap = run(f"mv .git was && ln -s {secret} .git")
    cast = Cast(
        [
            Said(calls=(start(mode="background"),)),
            Said(calls=(swap,), before=after(began)),
            "Sent.",
            "Done.",
        ],
        {"one": [Said(calls=(READ,)), Said(calls=(run(f"cat {secret}/key"),), before=began), "a"]},
    )
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        await at.says("go")
        assert await at.sees(1) == ["Sent."]
        assert (workspace / ".git").is_symlink()
        began.open.set()
        await settled(at)
    (said,) = cast.told(2, "one")
    assert "the secret" not in said
    assert f"{workspace / '.git'} is, or is reached through, a link" in said


@pytest.mark.requirement("SUB-17")
@on_sqlite
async def test_what_the_repository_names_does_not_run_for_a_new_worktree(
    tmp_path: Path, migrated_url: str
) -> None:
    """Whoever writes in the workspace could name a filter for what git checks out."""
    workspace = repository(tmp_path, **{".gitattributes": "*.md filter=mine\n"})
    git(workspace, "config", "filter.mine.smudge", "touch seen ../*/seen; cat")
    began = Gate()
    secret = ("write_file", json.dumps({"path": "secret", "content": "a pearl"}))
    cast = Cast(
        [
            Said(calls=(start(mode="background"),)),
            Said(calls=(start("two", mode="background"),), before=after(began)),
            "Sent.",
            "Done.",
            "Done.",
        ],
        {"one": [Said(calls=(secret,)), Said("a", before=began)], "two": ["b"]},
    )
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        await at.says("go")
        await cared(at, "gone", "two")
        began.open.set()
        found = await settled(at)
    one = workspace.parent / folder_of(found["one"].session_id)
    assert (one / "secret").exists()
    assert not (one / "seen").exists()


@pytest.mark.requirement("SUB-10", "SUB-17")
async def test_a_long_result_lies_where_an_agent_in_a_worktree_finds_it(
    tmp_path: Path, migrated_url: str
) -> None:
    repository(tmp_path)
    words = "a pearl\n" * 5000

    class Reader(Cast):
        """Reads the file that it is told of."""

        def __call__(self, request: ModelRequest) -> Said | str:
            said = super().__call__(request)
            if said != "read":
                return said
            path = self.told(-1, "one")[0].partition("all of it is in ")[2].split("]")[0]
            return Said(calls=(("read_file", json.dumps({"path": path, "limit": 2})),))

    cast = Reader(
        [Said(calls=(start(),)), "Done."],
        {"one": [Said(calls=(spawn(task="x", id="two"),)), "read", "a"], "two": [words]},
    )
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        assert (await settled(at))["one"].tree_state == "clean"
    (read,) = cast.told(2, "one")
    assert "a pearl\na pearl\n" in read
