"""What git reads as flags, lists or shell, from keys and files that look like data (POL-9)."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from runtime.tools.git_programs import hardened
from runtime.tools.git_progress import GONE_ON_BY_SCRIPTS, PROGRESS
from tests.unit.tools.playground import Playground, filled, playground

__all__ = ["filled", "playground"]
pytestmark = [
    pytest.mark.requirement("POL-9"),
    pytest.mark.skipif(
        shutil.which("git") is None, reason="git is not installed (apt install git)"
    ),
]


def unhardened(ground: Playground, command: str) -> None:
    """The command as a person runs it, in another copy of the repository."""
    env = {"PATH": os.environ["PATH"], "HOME": str(ground.mark.parent), "GIT_EDITOR": ":"}
    copy = ground.desk.workspace.parent / "copy"
    shutil.copytree(ground.repository, copy, symlinks=True)
    subprocess.run(
        ["sh", "-c", command],
        cwd=copy,
        env=env,
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


@dataclass(frozen=True)
class Attack:
    """What is left in a repository, and the command that would start its program."""

    leave: Callable[[Playground], None]
    command: str
    works: str = ""


def _apart(ground: Playground, subject: str = "Mine") -> None:
    """Let `main` and `other` each have a commit that the other one has not."""
    ground.git("checkout", "--quiet", "-f")
    (ground.repository / "b.txt").write_text("b\n")
    ground.git("add", "b.txt")
    ground.git("commit", "--quiet", "-m", subject)


def _instructions(ground: Playground) -> None:
    _apart(ground)
    ground.git("config", "rebase.instructionFormat", f"%s%nexec {ground.evil}")
    ground.git("config", "pull.rebase", "true")


def _encoding(ground: Playground) -> None:
    """In CP856 this character is a line break."""
    _apart(ground, f"Mine\u25d9exec {ground.evil}")
    ground.git("config", "i18n.logOutputEncoding", "IBM856")


def _merge_flags(ground: Playground) -> None:
    ground.git("commit", "--quiet", "-am", "Mine")
    flags = f"-s octopus -X '' -X a -X '$({ground.evil})'"
    ground.git("config", "branch.main.mergeOptions", flags)


def _layout(ground: Playground) -> None:
    """A script of git's builds the call of an editor from it, and reads that as shell."""
    folder = ground.repository / "bin"
    folder.mkdir()
    (folder / "vim").write_text("#!/bin/sh\nexit 0\n")
    (folder / "vim").chmod(0o755)
    shutil.copy(ground.evil, folder / "evil")
    (ground.repository / "a.txt").write_text("one\n" + "line\n" * 9 + "mine\n")
    ground.git("commit", "--quiet", "-am", "Mine")
    with pytest.raises(subprocess.CalledProcessError):
        ground.git("merge", "other")
    ground.git("config", "mergetool.vimdiff.layout", "`evil`")


def _server(ground: Playground, folder: str) -> None:
    place = ground.repository / folder
    place.mkdir(parents=True)
    shutil.copy(ground.evil, place / "lighttpd")
    (place / "lighttpd.conf").touch()
    (place / "gitweb_config.perl").touch()


def _server_of_config(ground: Playground) -> None:
    _server(ground, "web")
    ground.git("config", "instaweb.gitwebdir", "web")


def _server_inside(ground: Playground) -> None:
    _server(ground, ".git/gitweb")


def _early_hook(ground: Playground) -> None:
    shutil.copy(ground.evil, ground.repository / ".git/hooks/reference-transaction")


PULL = "git pull -q . other"
ATTACKS = {
    "rebase": Attack(_instructions, "git rebase other; git log --format=%s", "Other"),
    "rebase -i": Attack(_instructions, "git rebase -i other"),
    "rebase -r": Attack(_instructions, "git rebase -r other"),
    "pull by a rebase": Attack(_instructions, PULL),
    "encoding of a list": Attack(_encoding, "git rebase other; git log --format=%s", "Other"),
    "flags of a merge": Attack(_merge_flags, "git merge -q other; cat a.txt", "zero"),
    "layout of a merge tool": Attack(_layout, "PATH=$PWD/bin:$PATH git mergetool -y -t vimdiff"),
    "server in a folder": Attack(_server_of_config, "git instaweb start"),
    "server in the repository": Attack(_server_inside, "git instaweb start", "remove it"),
    "hook before any setting": Attack(_early_hook, "git bisect start HEAD HEAD", "remove it"),
    "server by a flag": Attack(_server_inside, "git instaweb --httpd=lighttpd start"),
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_no_program_runs_by_what_looks_like_data(playground: Playground, name: str) -> None:
    attack = ATTACKS[name]
    attack.leave(playground)
    unhardened(playground, attack.command)
    assert playground.ran(), "this attack needs another setting"
    said = await playground.runs(attack.command)
    assert not playground.ran(), said
    assert attack.works in said


def _stopped(ground: Playground, name: str, text: str) -> None:
    """A rebase that stopped, of which one more file is written."""
    (ground.repository / "a.txt").write_text("one\n" + "line\n" * 9 + "mine\n")
    ground.git("commit", "--quiet", "-am", "Mine")
    with pytest.raises(subprocess.CalledProcessError):
        ground.git("rebase", "--merge", "-s", "ort", "other")
    ground.git("checkout", "--quiet", "-f")
    kept = ground.repository / ".git/rebase-merge"
    (kept / "git-rebase-todo").write_text("pick main\n")
    (kept / name).write_text(text)


def _octopus_options(ground: Playground) -> None:
    _stopped(ground, "strategy", "octopus\n")
    options = ground.repository / ".git/rebase-merge/strategy_opts"
    options.write_text(f" '--' '--a' '--$({ground.evil})'\n")


def _program_of_index(ground: Playground) -> None:
    """`git merge-index` takes its first argument for a program."""
    _stopped(ground, "strategy", "index\n")
    folder = ground.repository / "--.."
    folder.mkdir()
    shutil.copy(ground.evil, folder / "evil")
    (ground.repository / ".git/rebase-merge/strategy_opts").write_text(" '--../evil'\n")


@pytest.mark.parametrize("leave", [_octopus_options, _program_of_index])
async def test_a_rebase_that_stopped_goes_on_with_no_strategy_that_starts_a_program(
    playground: Playground, leave: Callable[[Playground], None]
) -> None:
    leave(playground)
    said = await playground.runs("git rebase --continue")
    assert "git does not start here" in said
    assert not playground.ran()


@pytest.mark.parametrize(
    ("name", "content", "goes_on"),
    [
        *(("rebase-merge/git-rebase-todo", text, True) for text in (b"pick 1 exec\n", b"exe\n")),
        *(("rebase-merge/git-rebase-todo", b"pick 1\n" + b, False) for b in (b"x a", b"\t exec")),
        *(("rebase-merge/git-rebase-todo", text, False) for text in (b"exec a", b"p 1\rx\0b")),
        *(("rebase-merge/strategy", name, True) for name in (b"ort\n", b"", b"octopus")),
        *(("rebase-merge/strategy", name, False) for name in (b"index", b"one-file", b"../evil")),
        ("rebase-merge/strategy_opts", b" '--subtree=a/b' '--ours'\n", True),
        ("rebase-merge/strategy_opts", b" --diff-algorithm=patience", True),
        *(("rebase-merge/strategy_opts", text, False) for text in (b"$(a)", b"`a`", b";a", b"a&b")),
        ("sequencer/opts", b"[options]\n\tedit = true\n\tstrategy-option = ours\n", True),
        ("sequencer/opts", b"[options]\n\tstrategy-option = $(a)\n", False),
        ("sequencer/opts", b"[options]\n\tstrategy = index\n", False),
        ("sequencer/opts", b"[options\n", False),
        *(("BISECT_NAMES", text, True) for text in (b"\n", b" 'a b' 'c'\\''d'\n")),
        *(("BISECT_NAMES", text, False) for text in (b"'a' ; b", b"$(a)", b"'a", b"a")),
    ],
)
def test_with_which_files_git_goes_on(name: str, content: bytes, goes_on: bool) -> None:
    assert (PROGRESS[name](content) == "") is goes_on


@pytest.mark.parametrize("name", GONE_ON_BY_SCRIPTS)
def test_git_does_not_go_on_with_what_scripts_of_its_own_would_read(
    playground: Playground, name: str
) -> None:
    (playground.repository / ".git" / name).mkdir(parents=True)
    told = hardened((playground.repository,), (playground.repository,), granted={})
    assert "remove it to give that up" in told.problem
    reading = hardened((playground.repository,), (playground.repository,), reading=True, granted={})
    assert not reading.problem


def _promised(ground: Playground, key: str, value: str, *, remote: str) -> None:
    """Take an object away over there, which is fetched from a remote then."""
    there = ground.repository / "here"
    ground.git("checkout", "--quiet", "-f", folder=there)
    for named, told in (
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "o"),
        ("remote.o.promisor", "true"),
        ("remote.o.url", remote),
        ("receive.denyCurrentBranch", "updateInstead"),
        (key, value),
    ):
        ground.git("config", named, told, folder=there)
    done = subprocess.run(
        ["git", "rev-parse", "HEAD^{tree}"], cwd=there, check=True, capture_output=True, text=True
    )
    name = done.stdout.strip()
    (there / ".git/objects" / name[:2] / name[2:]).unlink()


def _promised_by_ext(ground: Playground) -> None:
    _promised(ground, "protocol.ext.allow", "always", remote=f"ext::{ground.evil} x")


def _promised_by_helper(ground: Playground) -> None:
    """A proxy that asks for a password, which nobody needs to reach."""
    there = ground.repository / "here"
    ground.git("config", "http.proxy", "http://me@127.0.0.1:1/", folder=there)
    _promised(ground, "credential.helper", f"!{ground.evil}", remote="http://x.invalid/y")


OTHER_SIDES = {
    "archive by ext": Attack(_promised_by_ext, "git archive --remote=./here HEAD"),
    "push by ext": Attack(_promised_by_ext, "git commit -qam x; git push -q here main:main"),
    "archive by a helper": Attack(_promised_by_helper, "git archive --remote=./here HEAD"),
}


@pytest.mark.parametrize("name", OTHER_SIDES)
async def test_the_other_side_fetches_nothing_by_a_program(
    playground: Playground, name: str
) -> None:
    attack = OTHER_SIDES[name]
    attack.leave(playground)
    me = "GIT_AUTHOR_NAME=A GIT_COMMITTER_NAME=A EMAIL=a@b.c"
    unhardened(playground, f"export {me}; {attack.command}")
    assert playground.ran()
    said = await playground.runs(attack.command)
    assert not playground.ran()
    assert "[git cannot fetch from or push to other folders here: " in said
