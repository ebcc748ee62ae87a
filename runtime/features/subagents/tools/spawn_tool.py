"""Starting subagents. The call runs nothing itself: the unit that keeps it makes them (SUB-7)."""

from typing import Final, Literal

from pydantic import Field
from typing_extensions import override

from runtime.domain.decisions import PermissionMode
from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect, Touches
from runtime.features.subagents.rows.agents import Retention, Share
from runtime.features.subagents.spawn.child_capabilities import Asked, Folder, Patterns, SpendAsked
from runtime.features.subagents.spawn.isolation import WorkspaceName
from runtime.features.subagents.spawn.spawn_requests import (
    MAX_BATCH,
    SPAWN,
    AgentRequest,
    ModelName,
    Name,
    RequestKey,
    SpawnRequest,
    Task,
    TypeName,
)
from runtime.sessions.open_calls import CHILDREN
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput, WaitsFor

LONGEST_S: Final = 30 * 86_400
PLACES: Final = ("shared", "worktree")
"""What a `workspace` says that is no folder."""


class SpawnArguments(Arguments):
    task: Task = ""
    type: TypeName = "explore"
    mode: Literal["await", "background"] = "await"
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
    isolation: Literal["full", "selective", "shared"] | None = None
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
    def request(self) -> SpawnRequest:
        """What of it decides what is started."""
        one = AgentRequest(
            task=self.task,
            type=self.type,
            id=self.id,
            depends_on=self.depends_on,
            group=self.group,
        )
        return SpawnRequest(mode=self.mode, model=self.model, one=one, agents=self.agents)


class SessionsSpawn(Tool[SpawnArguments]):
    """The turn hands it to the unit that parks or answers the call."""

    name = SPAWN
    own_words = True
    description = (
        "Start subagents for parts of the work: await their results, or go on and get them later."
    )
    arguments = SpawnArguments
    effect = Effect.READ
    example = '{"task": "Find where retries are configured.", "type": "explore"}'

    @override
    def touches(self, arguments: SpawnArguments, context: ToolContext) -> Touches:
        return Touches(delegates=True, spawns=True, subject=arguments.type)

    @override
    def waits_for(self, arguments: SpawnArguments, context: ToolContext) -> WaitsFor:
        return WaitsFor(CHILDREN)

    @override
    async def run(self, arguments: SpawnArguments, context: ToolContext) -> ToolOutput:
        raise ToolError("no subagent can be started here")
