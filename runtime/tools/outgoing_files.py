"""Files on their way into a chat: copies as they were when the tool ran, and how many may go.

A copy lies below the folder of kept outputs, of which tools and commands see only their own
session's part, so nothing that they do later changes what is sent. It carries its digest, which
delivery compares once more before it goes out. `sweep` takes old ones away. What touches files
blocks.
"""

import hashlib
import os
import secrets
import stat
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from runtime.domain.errors import ToolError
from runtime.domain.files import UNKNOWN_TYPE, safe_name
from runtime.domain.messages import FilePart
from runtime.ports.chat import Capabilities
from runtime.sessions.recipients import RecipientsOf, nobody
from runtime.tools.base import ToolContext
from runtime.tools.binary_files import is_binary
from runtime.tools.file_types import TEXT, recognise
from runtime.tools.hidden_paths import OUTPUTS, made_folder
from runtime.workspace.open_folders import opened

SENT: Final = "sent"
"""The folder of copies, beside those that hold one session's outputs."""
_COPIES: Final = (*OUTPUTS, SENT)
TOOL: Final = "send_file"
_PIECE: Final = 1024 * 1024
_OVERLAP: Final = 4096
"""Bytes of the piece before that are looked at again: a secret may lie across the border."""
_HEAD: Final = 64 * 1024
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class SendLimits:
    """What the operator allows: bytes of one file, files of one run. `channels` are the platforms
    that this process knows, with what they can do."""

    file_bytes: int = 50_000_000
    per_run: int = 10
    channels: Mapping[str, Capabilities] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Room:
    """What a run may still send to its chat: `most` bytes of one file, `left` files.

    `files` says whether the chat takes files; `limit` names where `most` comes from, `per_run` is
    how many files a run may send.
    """

    most: int
    left: int
    per_run: int
    files: bool = True
    limit: str = "delivery.file_mb"
    channel: str = ""


RoomOf = Callable[[str], Awaitable[Room]]
"""What the run with this id may send. Raises `NotFound`."""


class Mail(Protocol):
    """Mailboxes of agents. The sender is the agent whose call it is."""

    async def send(self, context: ToolContext, to: str, text: str) -> str:
        """Put words into the mailbox of the agent `to`, once for a call; what the model is told.
        Raises `ToolError`."""
        ...

    async def others(self, session_id: str) -> Sequence[str]:
        """The names of those that the agent of a session may write to."""
        ...


@dataclass(frozen=True, slots=True)
class Sending:
    """What tools that send are given; `redact` takes the gateway's secrets out of a text."""

    room: RoomOf
    redact: Callable[[str], str] = str
    recipients: RecipientsOf = nobody
    mail: Mail | None = None


def room_for(limits: SendLimits, channel: str, sent: int) -> Room:
    """What may still go to a channel after `sent` files. Pure."""
    can = limits.channels.get(channel)
    own, limit = limits.file_bytes, "delivery.file_mb"
    if can is not None and can.file_bytes is not None and can.file_bytes < own:
        own, limit = can.file_bytes, f"the limit of {channel}"
    return Room(
        most=own,
        left=max(0, limits.per_run - sent),
        per_run=limits.per_run,
        files=can is None or can.files,
        limit=limit,
        channel=channel,
    )


def snapshot(workspace: Path, handle: int, name: str, *, most: int, sending: Sending) -> FilePart:
    """A copy of the file behind `handle`, on the disk on return.

    Raises `ToolError` for what holds a secret of the gateway, in its content or its name, for more
    than `most` bytes (the file may have grown since it was measured) and where the copy cannot be
    written.
    """
    if sending.redact(name) != name:
        raise ToolError("path: the file's name holds a secret of the gateway, so it is not sent")
    with _copies(workspace) as directory:
        copy = f"{secrets.token_hex(16)}"
        out = os.open(copy, _WRITE, 0o600, dir_fd=directory)
        try:
            digest, size, head = _copied(handle, out, most, sending.redact)
            os.fsync(out)
        except (OSError, ToolError):
            os.unlink(copy, dir_fd=directory)
            raise
        finally:
            os.close(out)
        os.fsync(directory)
    return FilePart(
        name=safe_name(name),
        path="/".join((*_COPIES, copy)),
        media_type=kind_of(head),
        size_bytes=size,
        digest=digest,
    )


def kind_of(head: bytes) -> str:
    """A media type by the first bytes, as far as platforms show kinds differently."""
    found = recognise(head).media_type
    if found == UNKNOWN_TYPE and head and not is_binary(head):
        return TEXT
    return "audio/ogg" if found == "application/ogg" and b"OpusHead" in head[:128] else found


def sweep(workspace: Path, *, before_ms: int, needed: Collection[str]) -> int:
    """Remove copies made before a time, but those whose path is still `needed`; how many.

    Paths are as rows keep them: of the workspace, or absolute.
    """
    root = workspace.resolve()
    folder, kept = root.joinpath(*_COPIES), {root / path for path in needed}
    removed = 0
    try:
        with opened(workspace.resolve(), _COPIES) as directory:
            for name in os.listdir(directory):  # noqa: PTH208 - of an open directory
                made = os.stat(name, dir_fd=directory, follow_symlinks=False)
                old = made.st_mtime * 1000 < before_ms and stat.S_ISREG(made.st_mode)
                if old and folder / name not in kept:
                    os.unlink(name, dir_fd=directory)
                    removed += 1
    except OSError:
        # Nothing was ever sent, or somebody else is sweeping too: the next round finds the rest.
        return removed
    return removed


def _copied(
    handle: int, out: int, most: int, redact: Callable[[str], str]
) -> tuple[str, int, bytes]:
    """The digest, the size and the first bytes of what was copied."""
    found, size, head, tail = hashlib.sha256(), 0, b"", b""
    while piece := os.read(handle, _PIECE):
        size += len(piece)
        if size > most:
            raise ToolError("path: the file grows while it is copied; send it once it is finished")
        seen = (tail + piece).decode("latin-1")
        if redact(seen) != seen:
            raise ToolError("path: the file holds a secret of the gateway, so it is not sent")
        found.update(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(out, view) :]
        head = head or piece[:_HEAD]
        tail = piece[-_OVERLAP:]
    return found.hexdigest(), size, head


@contextmanager
def _copies(workspace: Path) -> Iterator[int]:
    if made_folder(workspace, OUTPUTS) is None:
        raise ToolError("the copy cannot be kept: something took the place of the gateway's folder")
    with opened(workspace.resolve(), _COPIES, made=(SENT,)) as directory:
        yield directory
