"""What the model may ask for in a spawn: the arguments of `sessions_spawn`. Values only."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, PositiveInt, StringConstraints

from runtime.domain.budgets import micro_usd
from runtime.domain.capabilities import Spend
from runtime.domain.decisions import PermissionMode
from runtime.domain.value import Value
from runtime.features.subagents.rows.agents import Isolation, Mode, Retention, Share
from runtime.tools.base import Arguments

SPAWN: Final = "sessions_spawn"
"""The tool that spawns."""
MAX_BATCH: Final = 64
MOST: Final = 64
"""Patterns of one axis in a request."""
LONGEST_S: Final = 30 * 86_400
PLACES: Final = ("shared", "worktree")
"""What a `workspace` says that is no folder."""
Task = Annotated[str, StringConstraints(strip_whitespace=True, max_length=100_000)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
TypeName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
RequestKey = Annotated[str, StringConstraints(pattern=r"^[ -~]{1,200}$")]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Patterns = Annotated[tuple[Pattern, ...], Field(max_length=MOST)]
Folder = Annotated[str, StringConstraints(min_length=1, max_length=500)]
WorkspaceName = Literal["shared", "worktree"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that a request breaks: `field` names the argument, `rule` what to do."""

    field: str
    rule: str

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}"


class SpendAsked(Value):
    """What each child may use at most: tokens and US dollars with all agents below it, and steps of
    its own. None is no bound of its own."""

    tokens: PositiveInt | None = None
    usd: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)] | None = None
    steps: PositiveInt | None = None

    @property
    def spend(self) -> Spend:
        """As a bound of the lattice."""
        money = None if self.usd is None else max(1, micro_usd(self.usd))
        return Spend(tokens=self.tokens, micro_usd=money, steps=self.steps)


class Asked(Value):
    """What a spawn asks for its children. None asks nothing of that axis: the child gets what its
    parent has. An empty list is nothing at all. Paths are files or folders, absolute or in the
    workspace, with all below them, and a `folder` is one of these; hosts and the names of `secrets`
    as in `Capabilities`."""

    permission_mode: PermissionMode | None = None
    allowed_tools: Patterns | None = None
    denied_tools: Patterns = ()
    paths: Patterns | None = None
    folder: Folder | None = None
    network: Patterns | None = None
    secrets: Patterns | None = None
    budget: SpendAsked | None = None


NOTHING_ASKED: Final = Asked()


class AgentRequest(Value):
    """One agent of a batch."""

    task: Task = ""
    type: TypeName = "explore"
    id: Name | None = None
    depends_on: tuple[Name, ...] = Field(default=(), max_length=MAX_BATCH)
    group: Name | None = None


class SpawnArguments(Arguments):
    task: Task = ""
    type: TypeName = "explore"
    mode: Mode = "await"
    id: Name | None = None
    label: str = Field(default="", max_length=80)
    description: str = Field(default="", max_length=200)
    depends_on: tuple[Name, ...] = Field(default=(), max_length=MAX_BATCH)
    on_dependency_failure: Literal["fail", "continue"] = "fail"
    group: Name | None = None
    memory_share_mode: Share | None = None
    retention: Retention = "retain"
    spawn_request_id: RequestKey | None = None
    model: ModelName | None = None
    isolation: Isolation | None = None
    workspace: Folder | None = None
    budget: SpendAsked | None = None
    timeout_s: int | None = Field(default=None, ge=1, le=LONGEST_S)
    agents: tuple[AgentRequest, ...] = Field(default=(), max_length=MAX_BATCH)
    permission_mode: PermissionMode | None = None
    allowed_tools: Patterns | None = None
    denied_tools: Patterns = ()
    paths: Patterns | None = None
    network: Patterns | None = None

    @property
    def asked(self) -> Asked:
        """What its children are to have of what the caller has; all of them, in a batch."""
        return Asked(
            permission_mode=self.permission_mode,
            allowed_tools=self.allowed_tools,
            denied_tools=self.denied_tools,
            paths=self.paths,
            folder=None if self.workspace in PLACES else self.workspace,
            network=self.network,
            budget=self.budget,
        )

    @property
    def place(self) -> WorkspaceName | None:
        """Where its children are to be; one with a folder of its own has it in the workspace."""
        if self.workspace is None:
            return None
        return "worktree" if self.workspace == "worktree" else "shared"

    @property
    def wanted(self) -> tuple[AgentRequest, ...]:
        """What is to be started: the batch, or the one."""
        if self.agents:
            return self.agents
        return (
            AgentRequest(
                task=self.task,
                type=self.type,
                id=self.id,
                depends_on=self.depends_on,
                group=self.group,
            ),
        )

    def where(self, place: int) -> str:
        """What the field of the agent at `place` is called: ``agents[2].`` or nothing."""
        return f"agents[{place}]." if self.agents else ""
