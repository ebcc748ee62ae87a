"""Asking the agent that one works for: the run parks until that answers (AGT-4)."""

from pydantic import Field
from typing_extensions import override

from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect, Touches
from runtime.policy.decide import Bounds
from runtime.sessions.open_calls import CLARIFICATION
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput, WaitsFor


class ClarifyArguments(Arguments):
    question: str = Field(min_length=1, max_length=4000)


class RequestParentClarification(Tool[ClarifyArguments]):
    """The turn hands it to the unit that parks; only children are offered it:
    their tools are named."""

    name = "request_parent_clarification"
    description = "Ask the agent that started you, and wait for its answer."
    arguments = ClarifyArguments
    effect = Effect.READ
    example = '{"question": "Which of the two folders do you mean?"}'

    @override
    def offered(self, bounds: Bounds) -> bool:
        return bounds.tools is not None and super().offered(bounds)

    @override
    def touches(self, arguments: ClarifyArguments, context: ToolContext) -> Touches:
        return Touches(subject=arguments.question)

    @override
    def waits_for(self, arguments: ClarifyArguments, context: ToolContext) -> WaitsFor:
        return WaitsFor(CLARIFICATION, arguments.question)

    @override
    async def run(self, arguments: ClarifyArguments, context: ToolContext) -> ToolOutput:
        raise ToolError("nobody can be asked here; go on with what is known")
