"""Starting subagents. The call runs nothing itself: the unit that keeps it makes them (SUB-7)."""

from typing_extensions import override

from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect, Touches
from runtime.features.subagents.spawn.spawn_arguments import SPAWN, SpawnArguments
from runtime.sessions.open_calls import CHILDREN
from runtime.tools.base import Tool, ToolContext, ToolOutput, WaitsFor


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
