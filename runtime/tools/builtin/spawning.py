"""Starting subagents. The call runs nothing itself: the unit that keeps it makes them (SUB-7)."""

from typing import Final, Literal

from pydantic import Field
from typing_extensions import override

from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect, Touches
from runtime.subagents.requests import MAX_BATCH, AgentRequest, Name, SpawnRequest, Task, TypeName
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput

SPAWN: Final = "sessions_spawn"


class SpawnArguments(Arguments):
    task: Task = ""
    type: TypeName = "explore"
    mode: Literal["await", "background"] = "await"
    id: Name | None = None
    label: str = Field(default="", max_length=80)
    depends_on: tuple[Name, ...] = Field(default=(), max_length=MAX_BATCH)
    on_dependency_failure: Literal["fail", "continue"] = "fail"
    group: Name | None = None
    isolation: Literal["full", "selective", "shared"] | None = None
    workspace: Literal["shared", "worktree"] | None = None
    agents: tuple[AgentRequest, ...] = Field(default=(), max_length=MAX_BATCH)

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
        return SpawnRequest(mode=self.mode, one=one, agents=self.agents)


class SessionsSpawn(Tool[SpawnArguments]):
    """The turn hands it to the unit that parks or answers the call."""

    name = SPAWN
    description = (
        "Start subagents for parts of the work: await their results, or go on and get them later."
    )
    arguments = SpawnArguments
    effect = Effect.READ
    example = '{"task": "Find where retries are configured.", "type": "explore"}'

    @override
    def touches(self, arguments: SpawnArguments, context: ToolContext) -> Touches:
        return Touches(subject=arguments.type)

    @override
    async def run(self, arguments: SpawnArguments, context: ToolContext) -> ToolOutput:
        raise ToolError("no subagent can be started here")
