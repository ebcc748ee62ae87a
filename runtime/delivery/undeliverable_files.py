"""Files on their way out: what a platform cannot take is named instead."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import structlog

from runtime.delivery.file_copies import located, open_copy
from runtime.domain.files import safe_name, size_text
from runtime.domain.messages import FilePart, OutboundMessage, OutboundPart, TextPart
from runtime.ports.chat import Capabilities

log = structlog.get_logger(__name__)


def fitting(
    message: OutboundMessage, can: Capabilities, commands: frozenset[str]
) -> OutboundMessage:
    """The message with a sentence in the place of each file that its platform does not take, and
    with our `commands` in its spelling.

    The same at every attempt, so that the n-th post stays the n-th.
    """

    def why(part: FilePart) -> str:
        if not can.files:
            return "this chat takes no files"
        if can.file_bytes is not None and part.size_bytes > can.file_bytes:
            most = size_text(can.file_bytes)
            return f"it has {size_text(part.size_bytes)}, and this chat takes at most {most}"
        return ""

    return _with_sentences(_in_its_spelling(message, can.command_prefix, commands), why)


def _in_its_spelling(
    message: OutboundMessage, prefix: str, names: frozenset[str]
) -> OutboundMessage:
    parts = tuple(
        part.model_copy(update={"markdown": spelled(part.markdown, names=names, prefix=prefix)})
        if isinstance(part, TextPart) and part.names_commands
        else part
        for part in message.parts
    )
    return message if parts == message.parts else message.model_copy(update={"parts": parts})


def spelled(text: str, *, names: frozenset[str], prefix: str) -> str:
    """A text of ours with each command between backticks as people type it: from `prefix` on."""
    if prefix == "/":
        return text
    listed = "|".join(sorted(names))
    return re.sub(rf"`/(?=(?:{listed})\b)", f"`{prefix}", text)


async def intact(message: OutboundMessage, workspace: Path) -> OutboundMessage:
    """The message as an adapter takes it: each file with its absolute path, and a sentence in the
    place of each that is not what was to be sent."""
    parts = [part for part in message.parts if isinstance(part, FilePart) and part.digest]
    if not parts:
        return message
    spoilt = [part for part in parts if not await asyncio.to_thread(_is_there, workspace, part)]
    whole = _with_sentences(message, lambda part: "its copy is gone" if part in spoilt else "")
    found = (
        located(workspace, part) if isinstance(part, FilePart) else part for part in whole.parts
    )
    return whole.model_copy(update={"parts": tuple(found)})


def _is_there(workspace: Path, part: FilePart) -> bool:
    copy = open_copy(workspace, part)
    if copy is None:
        return False
    copy.close()
    return True


def _with_sentences(message: OutboundMessage, why: Callable[[FilePart], str]) -> OutboundMessage:
    def said(part: OutboundPart) -> OutboundPart:
        reason = why(part) if isinstance(part, FilePart) else ""
        if not isinstance(part, FilePart) or not reason:
            return part
        log.warning("file_not_sent", outbox_id=message.outbox_id, reason=reason)
        name = safe_name(part.name)
        return TextPart(markdown=f"The file `{name}` could not be sent: {reason}.")

    parts = tuple(said(part) for part in message.parts)
    return message if parts == message.parts else message.model_copy(update={"parts": parts})
