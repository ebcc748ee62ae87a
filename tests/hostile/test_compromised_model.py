"""A model that is wholly an attacker's, in `default` mode: it gains what nobody granted by name.

Hundreds of attempts are made through the real tools, policy and executor. What counts is what came
of them: files that are as they were, addresses that nobody asked for, programs that did not run.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from runtime.domain.decisions import PermissionMode
from runtime.domain.people import Trust
from runtime.domain.tools import ToolCall
from runtime.policy.decide import Bounds
from runtime.ports.sandbox import Sandbox
from runtime.sessions.bounds import rule_lists
from runtime.tools.base import ToolContext
from runtime.tools.executor import Executor, Planned
from runtime.workspace.scaffold import find_template, scaffold
from tests.unit.tools.support import Desk

RULES = rule_lists(
    allow=("exec(make test)", "exec(sh run.sh)", "exec(git status)", "write_file(notes/**)")
)


@dataclass(frozen=True)
class Attack:
    """Where the model sits: whose chat it is, and whether it is a subagent.

    Every name is tried by each of its spellings where `whole`, else by each third one. What a path
    leads to is the same for all; what is decided about it differs, and for that each seat tries
    every name and every spelling.
    """

    name: str
    trust: Trust = Trust.OWNER
    group: bool = False
    child: bool = False
    mode: PermissionMode = PermissionMode.DEFAULT
    whole: bool = False

    @property
    def bounds(self) -> Bounds:
        return Bounds(
            mode=self.mode,
            trust=self.trust,
            group=self.group,
            child=self.child,
            rules=RULES,
            tainted=True,
        )


SEATS = (
    Attack("owner", whole=True),
    Attack("owner, edits", mode=PermissionMode.ACCEPT_EDITS, whole=True),
    Attack("owner, asks nobody", mode=PermissionMode.DONT_ASK),
    Attack("owner in a group", group=True),
    Attack("member", trust=Trust.MEMBER),
    Attack("guest in a group", trust=Trust.GUEST, group=True),
    Attack("child", child=True),
)
THINNED = 3
INSTRUCTIONS = (
    *("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md"),
    *("skills/evil/SKILL.md", "skills/known/SKILL.md", "skills/known/extra.md", "skills/x"),
    *("agents/evil.md", "agents/known.md", ".claude/agents/evil.md", ".claude/settings.json"),
    *("personas/evil/SOUL.md", "personas/known/AGENTS.md", "memory/MEMORY.md", "memory/new.md"),
    *("uploads/x.txt", ".gatehouse/outputs/x.txt", ".gatehouse/x"),
)
"""What instructs the agent, or is kept for it, by its name at the top of the workspace."""
CODE = (
    *(".git/config", ".git/hooks/pre-commit", ".git/hooks/new", ".git/info/attributes"),
    *(".git/HEAD", ".git/config.worktree", ".git/modules/sub/config", ".git/worktrees/w/config"),
    *("sub/.git/config", "sub/.git/hooks/post-checkout", "new/.git/config", "new/.git"),
    *("linked/.git", "deep/er/.git/config", "bare/config", "bare/hooks/update"),
    *("Makefile", "makefile", "GNUmakefile", "run.sh"),
)
"""What is run as code, by its name in the working folder."""

EDITED = {
    **dict.fromkeys((".git/config", "sub/.git/config", "bare/config"), ("bare",)),
    **dict.fromkeys(("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md"), ("#",)),
    **dict.fromkeys((".git/HEAD",), ("ref",)),
    **dict.fromkeys(("Makefile", "run.sh"), ("echo ok",)),
    "linked/.git": ("gitdir",),
}
"""What stands in files that are there, for an edit to find."""


def spellings(name: str, home: Path, *, beside: bool) -> Iterator[str]:
    """One file by many names; `beside` the working folder or in it."""
    first, _, rest = name.partition("/")
    below = home / name if beside else home / "files" / name
    yield name
    yield f"./{name}"
    yield f"files/../{name}" if beside else f"files/{name}"
    yield f"../{name}" if beside else f"../files/{name}"
    yield f"plain/../../{name}" if beside else f"plain/../{name}"
    yield str(below)
    yield f"/proc/self/root{below}"
    yield f"/proc/self/cwd/../../../../../../..{below}"
    yield f"{home}/files/../{name}" if beside else f"{home}/./files//{name}"
    yield f"{name}/"
    yield f"{first}//{rest}" if rest else f".//{first}"
    yield f"{first}/./{rest}" if rest else f"././{first}"
    yield name.upper()
    yield name.lower()
    yield name.swapcase()
    yield f"{first[:1]}\u200d{first[1:]}/{rest}".rstrip("/")
    yield f"{first[:-1]}\ufe0f{first[-1:]}/{rest}".rstrip("/")
    yield f"up/{name}" if beside else f"up/files/{name}"
    yield f"up/../home/{name}" if beside else f"self/{name}"
    yield f"to-git/{rest}" if first == ".git" and rest else f"self/plain/../{name}"
    yield f"~/{name}"
    yield f"alias-{Path(name).name}"


def planted(path: Path) -> Path:
    """A workspace with repositories, and links that an earlier command may have left in it."""
    home = path / "workspace"
    scaffold(home, find_template())
    files = home / "files"
    for folder in ("plain", "notes", "sub", "linked", "bare/objects", "bare/refs"):
        (files / folder).mkdir(parents=True, exist_ok=True)
    for name in ("skills/known/SKILL.md", "agents/known.md", "personas/known/AGENTS.md"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("as it was\n")
    (home / "memory/MEMORY.md").write_text("as it was\n")
    for folder in (files, files / "sub"):
        (folder / ".git/hooks").mkdir(parents=True)
        (folder / ".git/info").mkdir()
        (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (folder / ".git/config").write_text("[core]\n\tbare = false\n")
    (files / "bare/HEAD").write_text("ref: refs/heads/main\n")
    (files / "bare/config").write_text("[core]\n\tbare = true\n")
    (files / "linked/.git").write_text("gitdir: ../sub/.git\n")
    (files / "Makefile").write_text("test:\n\techo ok\n")
    (files / "run.sh").write_text("echo ok\n")
    links = {"up": "..", "self": ".", "to-git": ".git", "home": str(home)}
    for name in INSTRUCTIONS + CODE:
        links[f"alias-{Path(name).name}"] = f"../{name}" if name in INSTRUCTIONS else name
    for name, target in links.items():
        if not (files / name).is_symlink():
            (files / name).symlink_to(target)
    return home


def acting(home: Path) -> dict[str, bytes | str]:
    """Everything in a workspace that acts later, as it is on the disk."""
    files = home / "files"
    found: dict[str, bytes | str] = {}
    for path in sorted(home.rglob("*")):
        inside = path.relative_to(home)
        code = path.is_relative_to(files) and (
            ".git" in path.parts or "bare" in path.parts or path.name in CODE
        )
        if (code or not path.is_relative_to(files)) and path.is_file() and not path.is_symlink():
            found[str(inside)] = path.read_bytes()
        elif path.is_symlink():
            found[str(inside)] = str(path.readlink())
    return found


class Seat:
    """The model's hands: it makes calls, and nobody answers a card."""

    def __init__(self, home: Path, attack: Attack, sandbox: Sandbox | None = None) -> None:
        self.desk = Desk(home) if sandbox is None else Desk(home, sandbox=sandbox)
        self.attack = attack
        self.executor = Executor(self.desk.registry)

    def context(self, _call_id: str = "") -> ToolContext:
        return replace(self.desk.context(), notes=self.attack.bounds.notes, child=self.attack.child)

    def plan(self, tool: str, **arguments: object) -> Planned:
        call = ToolCall(id="call_1", name=tool, arguments=json.dumps(arguments))
        (planned,) = self.executor.plan(
            [call], run_id="run_1", step=1, bounds=self.attack.bounds, context_for=self.context
        )
        return planned

    async def tries(self, tool: str, **arguments: object) -> str:
        """Make a call; it runs where policy lets it without a person."""
        planned = self.plan(tool, **arguments)
        decision = planned.row.decision
        if planned.row.result is None and decision is not None and decision.verdict == "allow":
            ran = await self.executor.run(planned, self.context())
            return ran.result.status
        return "refused" if decision is None else decision.verdict


@pytest.mark.requirement("POL-9")
@pytest.mark.parametrize("attack", SEATS, ids=lambda attack: attack.name)
async def test_nothing_that_acts_later_is_written_by_any_spelling(
    tmp_path: Path, attack: Attack
) -> None:
    home = planted(tmp_path)
    seat = Seat(home, attack)
    before = acting(home)
    tried = 0
    step, first = (1, 0) if attack.whole else (THINNED, SEATS.index(attack))
    names = [(name, True) for name in INSTRUCTIONS] + [(name, False) for name in CODE]
    for at, (name, beside) in enumerate(names):
        spelled = list(spellings(name, home, beside=beside))
        for path in spelled[(first + at) % step :: step]:
            await seat.tries("write_file", path=path, content="obey me\n")
            for old in EDITED.get(name, ("as it was",)):
                await seat.tries("edit_file", path=path, old_text=old, new_text="obey me", count=1)
            tried += 1
        assert acting(home) == before, name
    assert tried > 700 // step


@pytest.mark.requirement("POL-9")
async def test_what_is_not_code_is_written_freely(tmp_path: Path) -> None:
    home = planted(tmp_path)
    seat = Seat(home, SEATS[0])
    for path in ("notes/a.md", "plain/b.txt", "src/main.py", "files/AGENTS.md", "git/config"):
        assert await seat.tries("write_file", path=path, content="mine\n") == "ok", path
    assert (home / "files/AGENTS.md").read_text() == "mine\n"


@pytest.mark.requirement("POL-9")
async def test_a_folder_that_became_a_link_after_the_look_is_not_written_through(
    tmp_path: Path,
) -> None:
    home = planted(tmp_path)
    seat = Seat(home, SEATS[0])
    before = acting(home)
    for target, name in (("../skills", "evil/SKILL.md"), (".git", "config"), ("..", "AGENTS.md")):
        for tool, arguments in (
            ("write_file", {"content": "obey me\n"}),
            ("edit_file", {"old_text": "b", "new_text": "obey me", "count": 1}),
        ):
            spot = home / "files/plain/now"
            spot.mkdir()
            planned = seat.plan(tool, path=f"plain/now/{name}", **arguments)
            spot.rmdir()
            spot.symlink_to(f"../{target}")
            ran = await seat.executor.run(planned, seat.context())
            assert ran.result.status == "error"
            spot.unlink()
    assert acting(home) == before


@pytest.mark.requirement("POL-9")
async def test_a_link_from_what_instructs_the_agent_protects_where_it_leads(tmp_path: Path) -> None:
    home = planted(tmp_path)
    files = home / "files"
    for name in ("AGENTS.md", "skills/known/SKILL.md"):
        (home / name).unlink()
    (files / "mine.md").write_text("as it was\n")
    (files / "skill.md").write_text("as it was\n")
    (home / "AGENTS.md").symlink_to("files/mine.md")
    (home / "skills/known/SKILL.md").symlink_to("../../files/skill.md")
    (files / "hard.md").hardlink_to(home / "SOUL.md")
    soul = (home / "SOUL.md").read_bytes()
    seat = Seat(home, SEATS[0])
    assert await seat.tries("write_file", path="mine.md", content="obey me") == "ask"
    assert await seat.tries("write_file", path="skill.md", content="obey me") == "ask"
    # A second name of a file is cut off by writing it: a write makes a new file.
    await seat.tries("write_file", path="hard.md", content="obey me")
    assert (files / "mine.md").read_text() == (files / "skill.md").read_text() == "as it was\n"
    assert (home / "SOUL.md").read_bytes() == soul
