"""Sending a file into the chat that the run answers.

The tool only copies the file; the message is put out by the unit that keeps the tool's result, so
a call that is run again after a crash has sent nothing before (MSG-7, MSG-9).
"""

import os

from pydantic import Field
from typing_extensions import override

from runtime.domain.errors import ToolError
from runtime.domain.files import size_text
from runtime.domain.messages import Dispatch, FilePart, OutboundPart, TextPart
from runtime.domain.tools import Effect, Touches
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.builtin.file_context import guard, off_loop, reads
from runtime.tools.outgoing_files import TOOL, Room, Sending, snapshot
from runtime.tools.paths import shown

CAPTION = 1_000
"""Characters; what Telegram still shows below a file (sendDocument: 1,024)."""


class SendArguments(Arguments):
    path: str
    caption: str = Field(default="", max_length=CAPTION, description="Markdown, beside the file")


class SendFile(Tool[SendArguments]):
    """A copy of one file as it is now. ``idempotent``: nothing is sent until the result is kept."""

    name = TOOL
    own_words = True
    description = "Send a file to this chat, as it is now; it arrives before your answer."
    arguments = SendArguments
    effect = Effect.IDEMPOTENT
    example = '{"path": "reports/june.pdf", "caption": "The report for June"}'

    def __init__(self, sending: Sending) -> None:
        self._sending = sending

    @override
    def touches(self, arguments: SendArguments, context: ToolContext) -> Touches:
        return reads(arguments.path, context).model_copy(update={"replies": True})

    @override
    async def run(self, arguments: SendArguments, context: ToolContext) -> ToolOutput:
        room = await self._sending.room(context.run_id)
        _refuse(room)
        part = await off_loop(lambda: self._copy(arguments, context, room), arguments.path)
        caption = self._sending.redact(arguments.caption).strip()
        words: tuple[OutboundPart, ...] = (TextPart(markdown=caption),) if caption else ()
        facts = f"{part.media_type}, {size_text(part.size_bytes)}"
        said = f"{part.name} ({facts}) is on its way to this chat, before your answer"
        return ToolOutput(said, sends=Dispatch(parts=(*words, part)))

    def _copy(self, arguments: SendArguments, context: ToolContext, room: Room) -> FilePart:
        with guard(context).file(arguments.path) as (handle, spot):
            size = os.fstat(handle).st_size
            if size > room.most:
                raise ToolError(
                    f"path: {shown(arguments.path)} has {size_text(size)}, more than "
                    f"{size_text(room.most)} ({room.limit}); send a smaller part of it"
                )
            if size == 0:
                raise ToolError(f"path: {shown(arguments.path)} is empty; chats take no empty file")
            return snapshot(
                context.layout.home, handle, spot.path.name, most=room.most, sending=self._sending
            )


def _refuse(room: Room) -> None:
    if not room.files:
        raise ToolError(
            f"path: {room.channel} takes no files; put what matters into your answer instead"
        )
    if room.left <= 0:
        raise ToolError(
            f"path: this run has sent {room.per_run} files, the most that it may "
            "(delivery.files_per_run); pack several into one, or go on in the next message"
        )
