"""What a repository's configuration names never runs: real git, through the real `exec` (POL-9)."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.ports.sandbox import SandboxCommand
from runtime.tools import git_programs, git_repositories
from runtime.tools.builtin.shell import Exec, ExecArguments, ExecSettings
from runtime.tools.git_config import Entry
from runtime.tools.git_programs import hardened, stand_in
from tests.fakes.sandbox import FakeSandbox, FakeStdio
from tests.unit.tools.playground import Playground, Trap, filled, playground
from tests.unit.tools.support import Desk, StillClock

__all__ = ["filled", "playground"]
pytestmark = [
    pytest.mark.requirement("POL-9", "TOOL-7"),
    pytest.mark.skipif(
        shutil.which("git") is None, reason="git is not installed (apt install git)"
    ),
]
ATTRIBUTES = "*.txt diff=evil filter=evil merge=evil\n"
NAMELESS = "*.txt diff= filter= merge=\n"


TRAPS = {
    "fsmonitor": Trap("git status", ("core.fsmonitor",), works="On branch main"),
    "pager": Trap("script -qec 'git log' /dev/null", ("core.pager", "pager.log"), works="First"),
    "external diff": Trap("git diff", ("diff.external",), works="+two"),
    "diff driver": Trap("git diff", ("diff.evil.command",), attributes=ATTRIBUTES, works="+two"),
    "textconv": Trap("git diff", ("diff.evil.textconv",), attributes=ATTRIBUTES, works="+two"),
    "clean filter": Trap(
        "git add a.txt && git show :a.txt",
        ("filter.evil.clean",),
        attributes=ATTRIBUTES,
        works="two",
    ),
    "filter process": Trap(
        "git add a.txt && git show :a.txt",
        ("filter.evil.process",),
        attributes=ATTRIBUTES,
        works="two",
    ),
    "smudge filter": Trap(
        "git checkout a.txt && cat a.txt",
        ("filter.evil.smudge",),
        attributes=ATTRIBUTES,
        works="one",
    ),
    "merge driver": Trap(
        "git commit -qam two && git merge -q other && cat a.txt",
        ("merge.evil.driver",),
        attributes=ATTRIBUTES,
        works="zero",
    ),
    "alias": Trap(
        "git st; echo $?", ("alias.st",), "!{evil}", works="this alias may start a program"
    ),
    "alias of options": Trap(
        "git st; true", ("alias.st",), "-c core.fsmonitor={evil} -c core.pager={evil} -p status"
    ),
    "alias of options in quotes": Trap(
        "git st; true", ("alias.st",), "'-c' core.fsmonitor={evil} status", works="it is off here"
    ),
    "alias of a search": Trap(
        "git st; true", ("alias.st",), "grep -O{evil} line", works="it is off here"
    ),
    "alias of a tool": Trap(
        "git st; true", ("alias.st",), "difftool -y -x {evil}", works="it is off here"
    ),
    "editor": Trap("git commit --allow-empty; true", ("core.editor", "sequence.editor")),
    "rebase editor": Trap(
        "git stash -q && git rebase -i --root", ("core.editor", "sequence.editor"), works=""
    ),
    "credential helper": Trap(
        "printf 'protocol=https\\nhost=x.test\\n\\n' | git credential fill; true",
        ("credential.helper", "credential.https://x.test.helper", "core.askPass"),
        "!{evil}",
    ),
    "ssh command": Trap("git fetch ssh://x.invalid/y; true", ("core.sshCommand",)),
    "proxy command": Trap("git fetch git://x.invalid/y; true", ("core.gitProxy",)),
    "ext transport": Trap(
        "git -c protocol.allow=user fetch other; true",
        ("remote.other.url",),
        "ext::{evil} x",
    ),
    "upload pack": Trap(
        "git fetch here; true", ("remote.here.uploadpack",), works="cannot be switched off"
    ),
    "receive pack": Trap(
        "git push -q here HEAD:new; true",
        ("remote.here.receivepack",),
        works="cannot be switched off",
    ),
    "signature": Trap("git log --show-signature", ("gpg.program", "gpg.openpgp.program")),
    "signing": Trap(
        "git commit -qS --allow-empty -m x; git -c gpg.format=ssh commit -qS -m x; true",
        ("gpg.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand"),
    ),
    "archive": Trap("git archive --format=evil HEAD", ("tar.evil.command",)),
    "trailer": Trap(
        "echo x | git interpret-trailers --trailer key=1",
        ("trailer.key.command", "trailer.key.cmd"),
    ),
    "mail": Trap(
        "git send-email --to=a@example.org HEAD~0 </dev/null; true",
        ("sendemail.toCmd", "sendemail.ccCmd", "sendemail.smtpServer"),
    ),
    "mail over a tunnel": Trap("echo x | git imap-send; true", ("imap.tunnel",)),
    "difftool": Trap(
        "git -c diff.tool=evil difftool -y; true",
        ("difftool.evil.cmd", "mergetool.evil.cmd", "mergetool.evil.path"),
    ),
    "interactive diff filter": Trap(
        "yes n | git -c color.ui=always add -p; true", ("interactive.diffFilter",)
    ),
    "submodule update": Trap(
        "git submodule update --init; true", ("submodule.sub.update",), "!{evil}"
    ),
    "diff driver without a name": Trap(
        "git diff", ("diff..command",), attributes=NAMELESS, works="+two"
    ),
    "textconv without a name": Trap(
        "git diff", ("diff..textconv",), attributes=NAMELESS, works="+two"
    ),
    "filter without a name": Trap(
        "git add a.txt && git show :a.txt", ("filter..clean",), attributes=NAMELESS, works="two"
    ),
    "merge driver without a name": Trap(
        "git commit -qam two && git merge -q other && cat a.txt",
        ("merge..driver",),
        attributes=NAMELESS,
        works="zero",
    ),
    "archive without a name": Trap("git archive --format= HEAD; true", ("tar..command",)),
    "remote helper by a path": Trap(
        "mkdir git-remote-x; git fetch other; true",
        ("remote.other.vcs", "remote.other.url"),
        "x/../.evil-hooks/pre-commit",
        works="cannot be switched off",
    ),
    "commit hook": Trap("git commit -qam two && git log", hook="pre-commit", works="two"),
    "checkout hook": Trap("git checkout -qf other", hook="post-checkout"),
    "hooks path": Trap("git commit -qam two && git log", ("core.hooksPath",), "{hooks}"),
}


@pytest.mark.parametrize("name", TRAPS)
async def test_no_program_that_a_repository_names_runs(playground: Playground, name: str) -> None:
    trap = TRAPS[name]
    playground.set(trap)
    said = await playground.runs(trap.command)
    assert not playground.ran(), said
    assert trap.works in said


WITHOUT = ("mail", "mail over a tunnel", "signature", "submodule update", "interactive diff filter")
"""Traps that need more than plain git to go off: what git has of them differs by machine."""


@pytest.mark.parametrize("name", sorted(TRAPS.keys() - set(WITHOUT)))
def test_every_trap_goes_off_where_nothing_is_hardened(playground: Playground, name: str) -> None:
    trap = TRAPS[name]
    playground.set(trap)
    env = {"PATH": os.environ["PATH"], "HOME": str(playground.mark.parent), "TERM": "dumb"}
    subprocess.run(
        ["sh", "-c", trap.command],
        cwd=playground.repository,
        env=env,
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    assert playground.ran()


Hide = Callable[[Playground, str], None]


def _include(ground: Playground, key: str) -> None:
    other = ground.repository / "other.cfg"
    ground.git("config", "--file", str(other), key, str(ground.evil))
    ground.git("config", "include.path", "../other.cfg")


def _include_if(ground: Playground, key: str) -> None:
    other = ground.repository / ".git/other.cfg"
    ground.git("config", "--file", str(other), key, str(ground.evil))
    ground.git("config", "includeIf.onbranch:main.path", "other.cfg")


def _of_worktree(ground: Playground, key: str) -> None:
    ground.git("config", "extensions.worktreeConfig", "true")
    ground.git("config", "--worktree", key, str(ground.evil))


def _include_through_proc(ground: Playground, key: str) -> None:
    ground.git("config", "--file", str(ground.repository / "other.cfg"), key, str(ground.evil))
    ground.git("config", "include.path", "/proc/self/cwd/other.cfg")


def _linked_through_proc(ground: Playground, key: str) -> None:
    ground.git("config", key, str(ground.evil))
    config = ground.repository / ".git/config"
    config.rename(ground.repository / "c.cfg")
    config.symlink_to("/proc/self/cwd/c.cfg")


def _include_of_a_home(ground: Playground, key: str) -> None:
    other = ground.repository / "other.cfg"
    ground.git("config", "--file", str(other), key, str(ground.evil))
    ground.git("config", "include.path", f"~root/../../../../../../..{other}")


def _include_of_a_prefix(ground: Playground, key: str) -> None:
    other = ground.repository / "other.cfg"
    ground.git("config", "--file", str(other), key, str(ground.evil))
    ground.git("config", "include.path", f"%(prefix)/../../../../../..{other}")


UNKNOWN = (_include_through_proc, _linked_through_proc, _include_of_a_home, _include_of_a_prefix)


@pytest.mark.parametrize("hide", UNKNOWN)
async def test_a_configuration_that_only_git_can_find_stops_git(
    playground: Playground, hide: Hide
) -> None:
    hide(playground, "diff.external")
    assert "git does not start here" in await playground.runs("git diff; true")
    assert not playground.ran()


async def test_a_path_that_is_too_long_to_be_read_stops_git(playground: Playground) -> None:
    _common_behind_a_long_path(playground, "diff.external")
    assert "git does not start here" in await playground.runs("git diff; true")
    assert not playground.ran()


@pytest.mark.parametrize("key", ["pull.twohead", "pull.octopus"])
async def test_a_strategy_of_a_repository_is_gits_own(playground: Playground, key: str) -> None:
    (playground.repository / "git-merge-..").mkdir()
    shutil.copy(playground.evil, playground.repository / "evil")
    playground.git("config", key, "../evil")
    said = await playground.runs("git -c user.name=T -c user.email=t@x cherry-pick other; true")
    assert "cannot be switched off" in said
    assert not playground.ran()
    playground.git("config", key, "ort resolve")
    assert "cannot be switched off" not in await playground.runs("git status; true")


async def test_a_remote_whose_name_holds_a_dot(playground: Playground) -> None:
    config = playground.repository / ".git/config"
    told = f'[remote.x "y"]\n\turl = here\n\tuploadpack = {playground.evil}\n'
    config.write_text(config.read_text() + told)
    assert "cannot be switched off" in await playground.runs("git fetch x.y; true")
    assert not playground.ran()


def _elsewhere(ground: Playground, key: str) -> None:
    ground.git("config", key, str(ground.evil))
    (ground.repository / ".git").rename(ground.repository / "moved")
    (ground.repository / ".git").write_text("gitdir: moved\n")


def _led_to(ground: Playground, key: str, inner: bytes, told: bytes) -> None:
    """A `.git` file with exactly these bytes leads to the repository at `inner`."""
    ground.git("config", key, str(ground.evil))
    moved = (ground.repository / ".git").rename(ground.repository / "moved")
    place = ground.repository / os.fsdecode(inner)
    place.parent.mkdir(parents=True, exist_ok=True)
    moved.rename(place)
    (ground.repository / ".git").write_bytes(told)


def _space_behind(ground: Playground, key: str) -> None:
    _led_to(ground, key, b"sub/.git/evil ", b"gitdir: sub/.git/evil \n")


def _space_before(ground: Playground, key: str) -> None:
    _led_to(ground, key, b" sub/.git/evil", b"gitdir:  sub/.git/evil\r\n")


def _no_text(ground: Playground, key: str) -> None:
    _led_to(ground, key, b"sub/.git/ev\xffil", b"gitdir: sub/.git/ev\xffil\n")


def _in_another(ground: Playground, key: str) -> None:
    _led_to(ground, key, b"sub/.git/evil", b"gitdir: sub/.git/evil")


def _common_without_text(ground: Playground, key: str) -> None:
    _led_to(ground, key, b"moved-away", b"")
    git = ground.repository / ".git"
    git.unlink()
    git.mkdir()
    common = (ground.repository / "moved-away").rename(git / os.fsdecode(b"c\xff "))
    for name in ("HEAD", "index"):
        shutil.copy(common / name, git / name)
    (git / "commondir").write_bytes(b"c\xff \n")


def _common_behind_a_long_path(ground: Playground, key: str) -> None:
    """What is read of `commondir` leads to an empty folder, and the whole of it to another."""
    ground.git("config", key, str(ground.evil))
    git, data, deep = ground.repository / ".git", ground.repository / "data", "a" * 200
    data.mkdir()
    for name in ("config", "objects", "refs"):
        (git / name).rename(data / name)
    way = f"{deep}/../" * 20
    last = "x" * (4096 - len(way))
    for folder in (deep, last, f"{last}\n\n"):
        (git / folder).mkdir()
    (git / "commondir").write_text(f"{way}{last}\n\n/../../data\n")


HIDDEN = (_include, _include_if, _of_worktree, _elsewhere, _space_behind, _space_before, _no_text)
HIDDEN_DEEPER = (_in_another, _common_without_text)


@pytest.mark.parametrize("hide", [*HIDDEN, *HIDDEN_DEEPER])
async def test_wherever_the_configuration_of_a_repository_is_kept(
    playground: Playground, hide: Hide
) -> None:
    hide(playground, "diff.external")
    assert "+two" in await playground.runs("git diff")
    assert not playground.ran()


async def test_a_folder_that_is_laid_out_as_a_repository_needs_no_configuration_of_its_own(
    playground: Playground,
) -> None:
    playground.git("config", "core.bare", "true")
    playground.git("config", "diff.external", str(playground.evil))
    common = (playground.repository / ".git").rename(playground.repository / "common")
    (common / "HEAD").rename(playground.repository / "HEAD")
    (playground.repository / "commondir").write_text("common\n")
    (playground.repository / "b.txt").write_text("b\n")
    assert "-two" in await playground.runs("git diff --no-index a.txt b.txt; true")
    assert not playground.ran()


async def test_what_leads_to_a_repository_and_cannot_be_read_stops_git(
    playground: Playground,
) -> None:
    _elsewhere(playground, "diff.external")
    (playground.repository / ".git").write_bytes(b"gitdir: " + b"x" * 5000)
    assert "holds no path" in await playground.runs("git diff; echo on")
    (playground.repository / ".git").unlink()
    (playground.repository / ".git").symlink_to(".git")
    assert "cannot be read" in await playground.runs("git diff; echo on")
    (playground.repository / ".git").unlink()
    os.mkfifo(playground.repository / ".git")
    assert "is not a plain file" in await playground.runs("echo on")
    assert not playground.ran()


async def test_repositories_below_and_linked_worktrees_are_found(playground: Playground) -> None:
    inner = playground.repository / "here"
    playground.git("config", "diff.external", str(playground.evil), folder=inner)
    assert "+two" in await playground.runs("git -C here diff")
    assert "+two" in await playground.runs("git diff", working_dir="here")
    playground.git("config", "diff.external", str(playground.evil))
    playground.git("worktree", "add", "--quiet", "linked", "other")
    (playground.repository / "linked/a.txt").write_text("two\n")
    assert "+two" in await playground.runs("git diff", working_dir="linked")
    assert not playground.ran()


@pytest.mark.parametrize(
    "command",
    [
        "cd .git/deep && git diff",
        "cd .git && cd deep/../deep && git diff",
        "git -C .git/deep diff",
        "git -C .git -C deep diff",
        "cd door && git diff",
        "(cd .git/deep && git diff)",
        "(cd .git && cd deep && git diff)",
        "cd nope; cd .git/deep; git diff",
        "cd -P .git/deep && git diff",
        "cd .git/deep && false || git diff",
        "sh -c 'cd .git/deep && git diff'",
        "env GIT_DIR=.git/deep/.git GIT_WORK_TREE=.git/deep git diff",
        "X=1 git -C .git/deep diff",
    ],
)
async def test_where_a_command_goes_on_inside_of_a_repository(
    playground: Playground, command: str
) -> None:
    """Nobody looks for repositories in there, but the text of the command leads to one."""
    deep = (playground.repository / "here").rename(playground.repository / ".git/deep")
    (playground.repository / "door").symlink_to(deep)
    playground.git("config", "diff.external", str(playground.evil), folder=deep)
    assert "+two" in await playground.runs(command)
    assert not playground.ran()


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        *(("checkout", True), ("log -1 --format=%s", True), ("log --oneline --graph", True)),
        *(("status -s", True), ("branch -a", True), ("!x", False), ("-c a=b status", False)),
        *(("'-c' a=b status", False), ('"!x"', False), ("grep -Ox .", False), ("\\!x", False)),
        *(("difftool -x x", False), ("reset HEAD --", False), ("", False), (" !x", False)),
        *(
            ("log --ext-diff", False),
            ("log '--ext-diff'", False),
            ("diff --output=x", False),
            ("log\n-p --ext-diff", False),
        ),
    ],
)
def test_an_alias_holds_where_it_is_known_to_start_nothing(value: str, kept: bool) -> None:
    assert (stand_in(Entry("alias", None, "x", value)) is None) is kept


async def test_a_repository_with_submodules_is_no_list_of_files(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_programs, "_MOST_FILES", 64)
    module = playground.repository / ".git/modules/sub"
    shutil.copytree(playground.repository / "here/.git", module)
    for number in range(256):
        (module / f"objects/{number:02x}").mkdir(exist_ok=True)
    (module / "config").write_text(f"[diff]\n\texternal = {playground.evil}\n")
    found = hardened([playground.repository], [playground.repository], granted={})
    assert not found.problem
    assert "diff.external" in found.variables.values()


async def test_a_repository_that_a_command_names(playground: Playground) -> None:
    (playground.repository / "here/.git").rename(playground.repository / ".git/evil")
    playground.git("--git-dir=.git/evil", "config", "diff.external", str(playground.evil))
    for named in ("--git-dir=.git/evil", "--git-dir .git/evil"):
        assert "+two" in await playground.runs(f"git {named} --work-tree=here diff")
    assert not playground.ran()


async def test_a_configuration_that_cannot_be_read_stops_git_and_nothing_else(
    playground: Playground,
) -> None:
    config = playground.repository / ".git/config"
    config.write_bytes(config.read_bytes() + b"[diff]\n\texternal = \xff\n")
    said = await playground.runs("git diff; echo on")
    assert "\non\n" in said
    assert "git does not start here: " in said
    assert ".git/config: it is not UTF-8" in said
    assert "one" not in said
    config.unlink()
    os.mkfifo(config)
    # Git itself waits for what nobody writes; the command's own time ends that.
    assert "is not a plain file" in await playground.runs("git diff; echo on", timeout_s=1)
    config.unlink()
    config.mkdir()
    assert "\non" in await playground.runs("git diff; echo on")
    assert not playground.ran()


async def test_a_list_of_programs_that_nothing_clears_stops_git(playground: Playground) -> None:
    playground.git("config", "gc.recentObjectsHook", str(playground.evil))
    assert "cannot be switched off" in await playground.runs("git gc")


async def test_too_many_programs_stop_git(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_programs, "_MOST_OVERRIDES", 2)
    for number in range(3):
        playground.git("config", f"filter.f{number}.clean", str(playground.evil))
    assert "more than 2 settings" in await playground.runs("git status")


async def test_what_people_set_in_a_repository_still_holds(playground: Playground) -> None:
    said = await playground.runs(
        "git commit -qam mine && git log -1 --format='%an %ae' && git config user.name Other "
        "&& git config alias.last 'log -1 --format=%s' && git last && git config user.name"
    )
    assert "Legit legit@example.org\nmine\nOther" in said


async def test_what_a_command_asks_for_itself_is_what_was_decided_about(
    playground: Playground,
) -> None:
    await playground.runs(f"git -c core.fsmonitor={playground.evil} status")
    assert playground.ran()


async def test_what_the_operator_grants_stands_above(playground: Playground) -> None:
    env = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(playground.evil),
        "GIT_EDITOR": "operators-own",
    }
    exec_tool = Exec(playground.desk.sandbox, ExecSettings(env=env))
    arguments = ExecArguments(command="git status; echo $GIT_EDITOR")
    said = (await exec_tool.run(arguments, playground.desk.context())).content
    assert playground.ran()
    assert "operators-own" in said


def test_what_the_operator_grants_is_read_as_git_reads_it(tmp_path: Path) -> None:
    def pairs(granted: dict[str, str], *, reading: bool = False) -> list[tuple[str, str]]:
        found = hardened((tmp_path,), (tmp_path,), granted=granted, reading=reading).variables
        numbers = range(int(found["GIT_CONFIG_COUNT"]))
        return [(found[f"GIT_CONFIG_KEY_{n}"], found[f"GIT_CONFIG_VALUE_{n}"]) for n in numbers]

    own = pairs({})
    two = {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "Ann",
        "GIT_CONFIG_KEY_1": "user.email",
        "GIT_CONFIG_VALUE_1": "ann@example.org",
    }
    first, second = ("user.name", "Ann"), ("user.email", "ann@example.org")
    assert pairs(two) == [*own, first, second], "the last one holds"
    assert pairs(two | {"GIT_CONFIG_COUNT": "1"}) == [*own, first]
    for count in ("", "x", "-1", "0"):
        assert pairs(two | {"GIT_CONFIG_COUNT": count}) == own
    for gone in two:
        left = {key: value for key, value in two.items() if key != gone}
        kept = [first] if gone.endswith("_1") else []
        assert pairs(left) == [*own, *kept]
    assert pairs(two, reading=True) == pairs({}, reading=True)


async def prints(stdio: FakeStdio) -> int:
    await stdio.write(b"x")
    return 0


@pytest.mark.parametrize("reading", [False, True])
async def test_commands_of_every_mode_get_it(desk: Desk, reading: bool) -> None:
    sandbox = FakeSandbox(StillClock(), {"ls": prints})
    context = replace(desk.context(), read_only=reading)
    await Exec(sandbox, ExecSettings()).run(ExecArguments(command="ls"), context)
    keys = _config(sandbox.started[-1])
    assert keys["core.fsmonitor"] == "false"
    assert keys["core.hooksPath"] == "/dev/null"
    assert keys["gpg.program"] == ("/bin/false" if reading else "gpg")
    assert ("GIT_ALLOW_PROTOCOL" in sandbox.started[-1].env) is reading


def _config(command: SandboxCommand) -> dict[str, str]:
    """What holds in the end: the last of each key."""
    env = command.env
    return {
        env[f"GIT_CONFIG_KEY_{number}"]: env[f"GIT_CONFIG_VALUE_{number}"]
        for number in range(int(env["GIT_CONFIG_COUNT"]))
    }


def test_repositories_that_share_a_folder_walk_it_once(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many names for one folder would hold up every command otherwise."""
    looked: list[str] = []
    walk = git_repositories._walk
    monkeypatch.setattr(
        git_repositories,
        "_walk",
        lambda tops, **how: looked.extend(map(str, tops)) or walk(tops, **how),
    )
    common = playground.repository / ".git"
    for number in range(9):
        fake = playground.repository / f"fake{number}/.git"
        fake.mkdir(parents=True)
        (fake / "commondir").write_text(f"{common}\n")
    environment = hardened((playground.repository,), (playground.repository,), granted={})
    assert not environment.problem
    assert len(looked) == len(set(looked))


def test_more_configuration_than_a_person_writes_stops_git(playground: Playground) -> None:
    for number in range(5):
        (playground.repository / f"c{number}").write_text("# " + "x" * 999_990 + "\n")
        playground.git("config", "--add", "include.path", f"../c{number}")
    environment = hardened((playground.repository,), (playground.repository,), granted={})
    assert environment.variables["GIT_CONFIG_COUNT"] == "refused"
    assert "bytes of configuration" in environment.problem


@pytest.mark.parametrize("key", ["merge.tool", "merge.guitool", "diff.tool", "diff.guitool"])
def test_a_tool_that_is_named_by_a_path_is_replaced(key: str) -> None:
    """Git reads the file of that name as shell, from a folder of its own."""
    section, _, name = key.partition(".")
    assert stand_in(Entry(section, None, name, "../../../tmp/evil")) == "vimdiff"
    assert stand_in(Entry(section, None, name, "meld")) is None
