"""Worktrees as git makes them: whole after a crash, and deaf to a hostile repository (SUB-17)."""

import shutil
from pathlib import Path

import pytest

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.unconfined import Unconfined
from adapters.system.clock import SystemClock
from runtime.domain.errors import ModelRejected, ToolError
from runtime.domain.worktrees import branch_of, folder_of
from runtime.features.subagents.files.worktrees import Worktrees
from runtime.workspace.layout import FILES
from tests.scenario.subagents.repositories import confined, git, repository

CHILD = "ses_1"


class Books:
    """A ledger; `left_` says whether the agent has ended."""

    def __init__(self, *, left: bool = True) -> None:
        self.kept: list[bool] = []
        self._left = left

    async def left(self, session_id: str) -> bool:
        assert session_id == CHILD
        return self._left

    async def ended(self, session_id: str, *, kept: bool) -> None:
        assert session_id == CHILD
        self.kept.append(kept)


async def worktrees(workspace: Path, name: str = "bubblewrap") -> Worktrees:
    return Worktrees(await confined(name), workspace.parent, SystemClock())


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
async def test_it_is_made_once_looked_at_and_removed(tmp_path: Path, name: str) -> None:
    workspace = repository(tmp_path)
    trees = await worktrees(workspace, name)
    base = await trees.base()
    site = await trees.ensure(CHILD, base)
    assert site.layout.files == workspace.parent / folder_of(CHILD)
    assert (site.layout.files / "plan.md").read_text() == "old\n"
    assert git(site.layout.files, "branch", "--show-current").strip() == branch_of(CHILD)
    assert await trees.ensure(CHILD, base) == site
    assert not await trees.changed(CHILD, base)
    assert not await trees.changed(CHILD, base)
    books = Books()
    await trees.finish(CHILD, base, books)
    assert books.kept == [False]
    assert not site.layout.files.exists()
    assert branch_of(CHILD) not in git(workspace, "branch", "--list", "--all")
    assert git(workspace, "worktree", "list", "--porcelain").count("worktree ") == 1


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize("how", ["edited", "added", "removed", "committed", "branched"])
async def test_it_stays_with_whatever_changed(tmp_path: Path, how: str) -> None:
    workspace = repository(tmp_path)
    trees = await worktrees(workspace)
    base = await trees.base()
    path = (await trees.ensure(CHILD, base)).layout.files
    if how == "edited":
        (path / "plan.md").write_text("new\n")
    elif how == "added":
        (path / "more.md").write_text("more\n")
    elif how == "removed":
        (path / "plan.md").unlink()
    else:
        git(path, "commit", "--quiet", "--allow-empty", "--message=Mine")
        if how == "branched":
            git(path, "switch", "--quiet", "--detach")
    books = Books()
    await trees.finish(CHILD, base, books)
    assert books.kept == [True]
    assert path.is_dir()


@pytest.mark.requirement("SUB-17")
async def test_one_whose_agent_is_at_work_again_is_left_alone(tmp_path: Path) -> None:
    trees = await worktrees(repository(tmp_path))
    base = await trees.base()
    path = (await trees.ensure(CHILD, base)).layout.files
    books = Books(left=False)
    await trees.finish(CHILD, base, books)
    assert books.kept == []
    assert path.is_dir()


@pytest.mark.requirement("SUB-17")
async def test_what_a_crash_left_half_made_is_made_again(tmp_path: Path) -> None:
    """Git locks a worktree while it makes it, and says with which word."""
    workspace = repository(tmp_path)
    trees = await worktrees(workspace)
    base = await trees.base()
    path = (await trees.ensure(CHILD, base)).layout.files
    (workspace / ".git" / "worktrees" / CHILD / "locked").write_text("initializing")
    (path / "plan.md").unlink()
    assert (await trees.ensure(CHILD, base)).layout.files == path
    assert (path / "plan.md").read_text() == "old\n"


@pytest.mark.requirement("SUB-17")
async def test_what_a_crash_left_half_removed_is_removed_or_made_again(tmp_path: Path) -> None:
    workspace = repository(tmp_path)
    trees = await worktrees(workspace)
    base = await trees.base()
    path = (await trees.ensure(CHILD, base)).layout.files
    path.rename(path.with_name(f"{CHILD}.gone"))
    assert (await trees.ensure(CHILD, base)).layout.files == path
    assert (path / "plan.md").read_text() == "old\n"
    path.rename(path.with_name(f"{CHILD}.gone"))
    books = Books()
    await trees.finish(CHILD, base, books)
    assert books.kept == [False]
    assert sorted(one.name for one in path.parent.iterdir()) == [".lock"]
    assert branch_of(CHILD) not in git(workspace, "branch", "--list", "--all")


@pytest.mark.requirement("SUB-17")
async def test_work_of_which_the_repository_lost_track_is_never_removed(tmp_path: Path) -> None:
    workspace = repository(tmp_path)
    trees = await worktrees(workspace)
    base = await trees.base()
    path = (await trees.ensure(CHILD, base)).layout.files
    (path / "plan.md").write_text("new\n")
    (workspace / ".git" / "worktrees" / CHILD / "HEAD").unlink()
    books = Books()
    await trees.finish(CHILD, base, books)
    assert books.kept == [True]
    shutil.rmtree(workspace / ".git" / "worktrees" / CHILD)
    with pytest.raises(ModelRejected, match="does not know it any more"):
        await trees.ensure(CHILD, base)
    assert (path / "plan.md").read_text() == "new\n"


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
async def test_programs_that_a_repository_names_do_not_get_out(tmp_path: Path, name: str) -> None:
    """Hooks and monitors do not run; filters, which git must run, can write nowhere."""
    workspace = repository(tmp_path, **{".gitattributes": "* filter=evil\n"})
    marks = [workspace / "pwned", tmp_path / "pwned"]
    program = tmp_path / "workspace" / "evil.sh"
    program.write_text("#!/bin/sh\n" + "".join(f"echo x > {mark}\n" for mark in marks) + "cat\n")
    program.chmod(0o755)
    hooked = workspace / ".git" / "hooked"
    for hook in ("post-checkout", "post-index-change"):
        file = workspace / ".git" / "hooks" / hook
        file.write_text(f"#!/bin/sh\necho {hook} >> {hooked}\n")
        file.chmod(0o755)
    git(workspace, "config", "filter.evil.smudge", str(program))
    git(workspace, "config", "filter.evil.clean", str(program))
    git(workspace, "config", "core.fsmonitor", f"echo monitor >> {hooked}; false")
    hooked.unlink(missing_ok=True)
    for mark in marks:
        mark.unlink(missing_ok=True)
    trees = await worktrees(workspace, name)
    base = await trees.base()
    await trees.ensure(CHILD, base)
    await trees.changed(CHILD, base)
    await trees.finish(CHILD, base, Books())
    assert not hooked.exists()
    assert not any(mark.exists() for mark in marks)
    # The trap is a good one: whoever runs git by hand is caught.
    git(workspace, "worktree", "add", str(tmp_path / "caught"))
    assert hooked.exists()
    assert all(mark.exists() for mark in marks)


@pytest.mark.requirement("SUB-17")
async def test_there_is_none_without_a_repository_a_commit_or_a_sandbox(tmp_path: Path) -> None:
    bare = tmp_path / "bare" / FILES
    bare.mkdir(parents=True)
    with pytest.raises(ToolError, match="not the top of a git repository"):
        await (await worktrees(bare)).base()
    git(bare, "init", "--quiet")
    with pytest.raises(ToolError, match="has no commit"):
        await (await worktrees(bare)).base()
    linked = tmp_path / "linked" / FILES
    linked.mkdir(parents=True)
    workspace = repository(tmp_path)
    (linked / ".git").symlink_to(workspace / ".git")
    with pytest.raises(ToolError, match="not the top of a git repository"):
        await (await worktrees(linked)).base()
    open_to_all = Unconfined(SystemClock(), cgroups=Cgroups())
    with pytest.raises(ToolError, match="not confined"):
        await Worktrees(open_to_all, workspace.parent, SystemClock()).base()


@pytest.mark.requirement("SUB-17")
async def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    workspace = repository(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (workspace.parent / ".gatehouse").mkdir()
    (workspace.parent / ".gatehouse" / "worktrees").symlink_to(elsewhere)
    trees = await worktrees(workspace)
    with pytest.raises(ModelRejected, match="is not a folder"):
        await trees.ensure(CHILD, await trees.base())
    assert list(elsewhere.iterdir()) == []


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize("name", ["../ses_1", "a/b", "", "-f"])
async def test_no_other_name_than_a_session_gets_one(tmp_path: Path, name: str) -> None:
    trees = await worktrees(repository(tmp_path))
    with pytest.raises(ModelRejected):
        await trees.ensure(name, await trees.base())
    with pytest.raises(ModelRejected):
        await trees.ensure(CHILD, "--orphan")
