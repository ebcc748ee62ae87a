"""Writing to another conversation (TOOL-14). Policy asks before; the tool only looks up where the
words go, and the unit that keeps its result puts them out, so a crash sends nothing twice."""

from typing import Annotated, Final

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
AGENT: Final = "agent:"
"""How an agent is written to, before its name."""
_OTHERS: Final = f"{AGENT}ses_"
"""How one of another conversation is."""
Key = Annotated[str, StringConstraints(strip_whitespace=True, max_length=400, pattern=r"^\S*$")]


class MessageArguments(Arguments):
    to: Key = Field(default="", description="its key, or agent:NAME; empty lists them")
    text: str = Field(default="", max_length=MOST_TEXT)


class SendMessage(Tool[MessageArguments]):
    """``idempotent``: nothing is sent until the result is kept."""

    name = "send_message"
    own_words = True
    description = "Send Markdown to another chat or agent."
    arguments = MessageArguments
    effect = Effect.IDEMPOTENT
    example = '{"to": "slack:T1:C1", "text": "The report is ready."}'

    def __init__(self, sending: Sending) -> None:
        self._sending = sending
        self._mail = sending.mail

    @override
    def effect_of(self, arguments: MessageArguments) -> Effect:
        return Effect.IDEMPOTENT if arguments.to else Effect.READ

    @override
    def touches(self, arguments: MessageArguments, context: ToolContext) -> Touches:
        if not arguments.to:
            return Touches()
        if arguments.to.startswith(AGENT) and not arguments.to.startswith(_OTHERS):
            return Touches(own_agents=True, delegates=True, subject=arguments.to)
        return Touches(sends=(arguments.to,), subject=arguments.to)

    @override
    async def run(self, arguments: MessageArguments, context: ToolContext) -> ToolOutput:
        if not arguments.to:
            return ToolOutput(await self._listed(context))
        text = self._sending.redact(arguments.text).strip()
        if not text:
            raise ToolError("text: say what is to be sent")
        if arguments.to.startswith(AGENT) and self._mail is not None:
            to = arguments.to.removeprefix(AGENT)
            return ToolOutput(await self._mail.send(context, to, text))
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
        others = () if self._mail is None else await self._mail.others(context.session_id)
        agents = [f"- {AGENT}{name}" for name in others]
        if not found and not agents:
            return "There is no other conversation that may be written to."
        more = len(found) - _LISTED
        keys = [f"- {one.key} ({one.address.chat_kind})" for one in found[:_LISTED]]
        older = [f"and {more} older ones"] if more > 0 else []
        return "\n".join(["These may be written to:", *agents, *keys, *older])
