"""Asking a person. It has no effect of its own: the run parks until somebody answers (APR-6)."""

from pydantic import Field
from typing_extensions import override

from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect, Touches
from runtime.sessions.open_calls import QUESTION
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput, WaitsFor


class AskArguments(Arguments):
    question: str = Field(min_length=1, max_length=4000)
    options: tuple[str, ...] = Field(default=(), max_length=10)


class AskUser(Tool[AskArguments]):
    """The call becomes a card; the answer becomes its result."""

    name = "ask_user"
    description = "Ask the person and wait for the answer."
    arguments = AskArguments
    effect = Effect.READ
    example = '{"question": "Which branch?", "options": ["main", "next"]}'

    @override
    def touches(self, arguments: AskArguments, context: ToolContext) -> Touches:
        return Touches(subject=arguments.question)

    @override
    def waits_for(self, arguments: AskArguments, context: ToolContext) -> WaitsFor:
        return WaitsFor(QUESTION, arguments.question, arguments.options)

    @override
    async def run(self, arguments: AskArguments, context: ToolContext) -> ToolOutput:
        raise ToolError("nobody can be asked here; go on with what is known")
