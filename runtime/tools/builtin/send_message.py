"""Writing to another conversation (TOOL-14). Policy asks before; the tool only looks up where the
words go, and the unit that keeps its result puts them out, so a crash sends nothing twice."""

from typing import Annotated

from pydantic import Field, StringConstraints
from typing_extensions import override

from runtime.domain.errors import ToolError
from runtime.domain.messages import Dispatch, TextPart
from runtime.domain.tools import Effect, Touches
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.outgoing_files import Sending
from runtime.tools.paths import shown

MOST_TEXT = 20_000
_LISTED = 20
Key = Annotated[str, StringConstraints(strip_whitespace=True, max_length=400, pattern=r"^\S*$")]


class MessageArguments(Arguments):
    to: Key = Field(default="", description="its key; empty lists them")
    text: str = Field(default="", max_length=MOST_TEXT)


class SendMessage(Tool[MessageArguments]):
    """``idempotent``: nothing is sent until the result is kept."""

    name = "send_message"
    own_words = True
    description = "Send Markdown to another chat."
    arguments = MessageArguments
    effect = Effect.IDEMPOTENT
    example = '{"to": "slack:T1:C1", "text": "The report is ready."}'

    def __init__(self, sending: Sending) -> None:
        self._sending = sending

    @override
    def effect_of(self, arguments: MessageArguments) -> Effect:
        return Effect.IDEMPOTENT if arguments.to else Effect.READ

    @override
    def touches(self, arguments: MessageArguments, context: ToolContext) -> Touches:
        if not arguments.to:
            return Touches()
        return Touches(sends=(arguments.to,), subject=arguments.to)

    @override
    async def run(self, arguments: MessageArguments, context: ToolContext) -> ToolOutput:
        if not arguments.to:
            return ToolOutput(await self._listed(context))
        text = self._sending.redact(arguments.text).strip()
        if not text:
            raise ToolError("text: say what is to be sent")
        found = await self._sending.recipients(context.run_id, arguments.to)
        if not found:
            # The same for one that is not there and one that this person does not reach.
            there = await self._listed(context)
            raise ToolError(f"to: {shown(arguments.to)} is not another conversation here. {there}")
        (place,) = found
        sends = Dispatch(
            parts=(TextPart(markdown=text),), target=place.address, session_id=place.session_id
        )
        return ToolOutput(f"it is on its way to {place.key}", sends=sends)

    async def _listed(self, context: ToolContext) -> str:
        found = await self._sending.recipients(context.run_id, "")
        if not found:
            return "There is no other conversation that may be written to."
        more = len(found) - _LISTED
        keys = [f"- {one.key} ({one.address.chat_kind})" for one in found[:_LISTED]]
        return "\n".join(
            ["These may be written to:", *keys, *([f"and {more} older ones"] if more > 0 else [])]
        )
