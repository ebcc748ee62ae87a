"""Where git must not go: folders that nobody knows, and the other side of a push (POL-9)."""

import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from runtime.tools import git_repositories
from runtime.tools.git_programs import hardened
from tests.unit.tools.playground import Playground, filled, playground

__all__ = ["filled", "playground"]
pytestmark = [
    pytest.mark.requirement("POL-9"),
    pytest.mark.skipif(
        shutil.which("git") is None, reason="git is not installed (apt install git)"
    ),
]


@pytest.mark.parametrize("command", ["X=deep; cd .git/$X && git diff", "cd .git/d*p && git diff"])
async def test_git_stops_where_nobody_knows_which_repository_it_meets(
    playground: Playground, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all folders were looked at, every repository is known, wherever it goes."""
    playground.git("config", "diff.external", str(playground.evil))
    assert "+two" in await playground.runs("X=here; cd $X && git diff; cd .. && git diff")
    deep = (playground.repository / "here").rename(playground.repository / ".git/deep")
    playground.git("config", "diff.external", str(playground.evil), folder=deep)
    assert "+two" in await playground.runs(command)
    assert not playground.ran()
    monkeypatch.setattr(git_repositories, "MOST_FOLDERS", 1)
    (playground.repository / "more").mkdir()
    said = await playground.runs(command)
    assert "does not tell in which folder git would run" in said
    assert "+two" in await playground.runs("git diff")
    assert not playground.ran()


def test_in_a_mode_that_reads_git_runs_in_no_folder_that_is_not_told(tmp_path: Path) -> None:
    stopped = hardened([tmp_path], [tmp_path], told=False, reading=True, granted={})
    assert stopped.variables["GIT_CONFIG_COUNT"] == "refused"
    assert not hardened([tmp_path], [tmp_path], told=False, granted={}).problem
    through = hardened([tmp_path, Path("/proc/self/cwd")], [tmp_path], granted={})
    assert through.variables["GIT_CONFIG_COUNT"] == "refused"


async def test_git_speaks_to_other_folders_that_start_nothing(playground: Playground) -> None:
    said = await playground.runs(
        "git clone -q here copy && cd copy && git pull -q && git checkout -q -b new "
        "&& git push -q ../here new && git -C ../here rev-parse --abbrev-ref new"
    )
    assert "exit code 0" in said
    assert said.rstrip().endswith("new")


def _stop(ground: Playground, *words: str) -> None:
    """Let git stop in the middle of a work, at a conflict that is given up then."""
    (ground.repository / "a.txt").write_text("one\n" + "line\n" * 9 + "mine\n")
    ground.git("commit", "--quiet", "-am", "Mine")
    with pytest.raises(subprocess.CalledProcessError):
        ground.git(*words)
    ground.git("checkout", "--quiet", "-f")


def _put(ground: Playground, name: str, text: str) -> None:
    (ground.repository / ".git" / name).write_text(text)


def _strategy_by_path(ground: Playground) -> None:
    """A strategy of the name `../evil` is the program `git-merge-../evil`."""
    folder = ground.repository / "git-merge-.."
    folder.mkdir()
    shutil.copy(ground.evil, folder / "evil")


def _rebase_list(ground: Playground) -> str:
    _stop(ground, "rebase", "--merge", "other")
    _put(ground, "rebase-merge/git-rebase-todo", f"noop\n  x {ground.evil}\n")
    return "rebase --continue"


def _rebase_strategy(ground: Playground) -> str:
    _stop(ground, "rebase", "--merge", "-s", "ort", "other")
    _put(ground, "rebase-merge/git-rebase-todo", "pick main\n")
    _put(ground, "rebase-merge/strategy", "../evil\n")
    _strategy_by_path(ground)
    return "rebase --continue"


def _pick_strategy(ground: Playground) -> str:
    _stop(ground, "cherry-pick", "other", "main")
    (ground.repository / ".git/CHERRY_PICK_HEAD").unlink(missing_ok=True)
    _put(ground, "sequencer/opts", "[options]\n\tstrategy = ../evil\n")
    _strategy_by_path(ground)
    return "cherry-pick --continue"


@pytest.mark.parametrize("leave", [_rebase_list, _rebase_strategy, _pick_strategy])
async def test_a_work_that_stopped_goes_on_with_no_program(
    playground: Playground, leave: Callable[[Playground], str]
) -> None:
    command = leave(playground)
    copy = playground.desk.workspace.parent / "copy"
    shutil.copytree(playground.repository, copy)
    with suppress(subprocess.CalledProcessError):
        playground.git(*command.split(), folder=copy)
    assert playground.ran()
    for text in (f"git {command}", "git commit -m x"):
        said = await playground.runs(text)
        assert "starts a program" in said
        assert "to give that up" in said
    assert not playground.ran()


async def test_a_work_that_stopped_and_starts_nothing_goes_on(playground: Playground) -> None:
    _stop(playground, "rebase", "--merge", "-s", "ort", "other")
    assert "exit code 0" in await playground.runs("git rebase --abort")


def _hook_over_there(ground: Playground) -> None:
    shutil.copy(ground.evil, ground.repository / "here/.git/hooks/update")


def _hooks_path_over_there(ground: Playground) -> None:
    hooks = ground.repository / "hooks"
    hooks.mkdir()
    shutil.copy(ground.evil, hooks / "update")
    ground.git("config", "core.hooksPath", str(hooks), folder=ground.repository / "here")


def _bare_with_hook(ground: Playground) -> None:
    here = ground.repository / "here"
    git = (here / ".git").rename(ground.repository / "bare")
    shutil.rmtree(here)
    git.rename(here)
    ground.git("config", "core.bare", "true", folder=here)
    shutil.copy(ground.evil, here / "hooks/post-receive")


def _bare_inside_of_another(ground: Playground) -> None:
    _bare_with_hook(ground)
    inside = (ground.repository / "here").rename(ground.repository / ".git/objects/aa-deep")
    ground.git("config", "remote.here.url", str(inside))


OTHER_SIDES = (_hook_over_there, _hooks_path_over_there, _bare_with_hook, _bare_inside_of_another)


@pytest.mark.parametrize("lay", OTHER_SIDES)
async def test_the_other_side_of_a_push_runs_no_hook(
    playground: Playground, lay: Callable[[Playground], None]
) -> None:
    lay(playground)
    playground.git("push", "--quiet", "here", "HEAD:refs/heads/seen")
    assert playground.ran()
    said = await playground.runs("git push -q here HEAD:new")
    assert "[git cannot fetch from or push to other folders here: " in said
    assert not playground.ran()


async def test_git_speaks_to_no_other_folder_where_not_all_were_looked_at(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_repositories, "MOST_FOLDERS", 1)
    said = await playground.runs("git fetch here")
    assert "too many folders" in said
    allowed = "git -c protocol.file.allow=always fetch -q here"
    assert "exit code 0" in await playground.runs(allowed)


async def test_named_limit_a_command_obeys_the_repository_that_it_makes_and_configures(
    playground: Playground,
) -> None:
    """Such a text says itself what runs: who allowed it, allowed that. Nothing else is kept off."""
    made = (
        "git init -q n && cd n && git config user.name A && git config user.email a@b.c"
        " && cp ../a.txt . && git add . && git commit -qm x && echo y >> a.txt && git config "
    )
    await playground.runs(f"{made} core.fsmonitor {playground.evil} && git status")
    assert not playground.ran()
    shutil.rmtree(playground.repository / "n")
    await playground.runs(f"{made} diff.external {playground.evil} && git diff")
    assert playground.ran()
    assert "+y" in await playground.runs("git diff", working_dir="n")
    assert not playground.ran()
    shutil.rmtree(playground.repository / "n")
    hooked = f"git init -q --bare b && cp {playground.evil} b/hooks/update && git push -q b HEAD:x"
    await playground.runs(hooked)
    assert playground.ran()
    assert "git cannot fetch from or push to other folders" in await playground.runs(
        "git push -q b HEAD:y"
    )
    assert not playground.ran()
