"""Reading, writing and editing one file (TOOL-2, TOOL-3)."""

import os
from pathlib import Path

from pydantic import Field
from typing_extensions import override

from runtime.domain.counts import counted
from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect, Touches
from runtime.tools.atomic_write import HASHED, exclusive, present, read_all, refuse_changed, replace
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.binary_files import describe, is_binary
from runtime.tools.builtin.file_context import decoded, from_path, guard, off_loop, reads
from runtime.tools.builtin.line_range import Window, window
from runtime.tools.nearest_text import nearest
from runtime.tools.paths import shown
from runtime.tools.seen_versions import Seen


class ReadArguments(Arguments):
    path: str
    offset: int = Field(default=1, ge=1, description="first line, from 1")
    limit: int | None = Field(default=None, ge=1, description="lines")


class ReadFile(Tool[ReadArguments]):
    """Text by lines; what is no text is described."""

    name = "read_file"
    description = "Read a text file, or a range of its lines."
    arguments = ReadArguments
    effect = Effect.READ
    example = '{"path": "notes/plan.md", "offset": 1, "limit": 200}'

    @override
    def touches(self, arguments: ReadArguments, context: ToolContext) -> Touches:
        return reads(arguments.path, context)

    @override
    async def run(self, arguments: ReadArguments, context: ToolContext) -> ToolOutput:
        return await off_loop(lambda: _read(arguments, context), arguments.path)


class WriteArguments(Arguments):
    path: str
    content: str


class WriteFile(Tool[WriteArguments]):
    """The whole content at once; missing parents are made."""

    name = "write_file"
    own_words = True
    description = "Create a file or replace all of it."
    arguments = WriteArguments
    effect = Effect.IDEMPOTENT
    example = '{"path": "notes/plan.md", "content": "# Plan\\n"}'

    @override
    def touches(self, arguments: WriteArguments, context: ToolContext) -> Touches:
        path = guard(context).writable(arguments.path)
        return Touches(writes=(str(path),), subject=context.resolved.name(path))

    @override
    async def run(self, arguments: WriteArguments, context: ToolContext) -> ToolOutput:
        return ToolOutput(await off_loop(lambda: _write(arguments, context), arguments.path))


class EditArguments(Arguments):
    path: str
    old_text: str = Field(min_length=1)
    new_text: str
    count: int | None = Field(
        default=None, ge=1, description="replace this many, from the top; else it must be unique"
    )


class EditFile(Tool[EditArguments]):
    """One exact replacement. ``once``: what it did may have made the same edit possible again."""

    name = "edit_file"
    own_words = True
    description = "Replace exact text in a file."
    arguments = EditArguments
    effect = Effect.ONCE
    example = '{"path": "notes/plan.md", "old_text": "draft", "new_text": "final"}'

    @override
    def touches(self, arguments: EditArguments, context: ToolContext) -> Touches:
        path = str(guard(context).writable(arguments.path))
        subject = context.resolved.name(Path(path))
        return Touches(reads=(path,), writes=(path,), subject=subject)

    @override
    async def run(self, arguments: EditArguments, context: ToolContext) -> ToolOutput:
        return ToolOutput(await off_loop(lambda: _edit(arguments, context), arguments.path))


def _read(arguments: ReadArguments, context: ToolContext) -> ToolOutput:
    with guard(context).file(arguments.path) as (handle, spot):
        status = os.fstat(handle)
        ranged = arguments.limit is not None
        head = os.pread(handle, 64 * 1024, 0)
        if is_binary(head):
            context.files.note(spot.path, Seen.of(status, None))
            said = f"[no text: {describe(head, status.st_size)}]"
            return from_path(said, spot.path, context)
        if status.st_size > HASHED and not ranged:
            raise ToolError(
                f"{shown(arguments.path)} has {status.st_size:,} bytes, more than {HASHED:,}: "
                "read a range of it, with offset and limit"
            )
        part = window(handle, arguments.offset, arguments.limit)
        whole = None if status.st_size > HASHED else _again(handle)
        context.files.note(spot.path, Seen.of(status, whole))
    return from_path(_told(part, whole, arguments), spot.path, context)


def _again(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    return read_all(handle)


def _told(part: Window, whole: bytes | None, arguments: ReadArguments) -> str:
    if not part.lines:
        if part.first == 1:
            return "[empty file]"
        raise ToolError(f"{shown(arguments.path)} has only {counted(part.seen, 'line')}")
    notes = []
    if part.long:
        notes.append(f"line {part.last} is too long: only its first {part.long:,} bytes are shown")
    if part.first > 1 or part.more:
        total = "" if whole is None else f" of {_count(whole)}"
        notes.append(f"lines {part.first}-{part.last}{total}")
    if part.more:
        notes.append(f"offset={part.last + 1} goes on")
    text = part.text.decode(errors="replace").replace("\r\n", "\n").removeprefix("\ufeff")
    if not notes:
        return text
    gap = "" if text.endswith("\n") else "\n"
    return f"{text}{gap}[{'; '.join(notes)}]"


def _count(content: bytes) -> int:
    return content.count(b"\n") + (content[-1:] != b"\n")


def _write(arguments: WriteArguments, context: ToolContext) -> str:
    content = arguments.content.encode()
    with guard(context).writing(arguments.path, make=True) as spot, exclusive(spot):
        found = present(spot, arguments.path)
        if found is not None:
            refuse_changed(spot, arguments.path, found, context.files)
        seen = replace(spot, arguments.path, content, found and found[0])
        context.files.note(spot.path, seen)
        done = "created" if found is None else "replaced"
        return f"{done} {context.resolved.name(spot.path)}, {len(content):,} bytes"


def _edit(arguments: EditArguments, context: ToolContext) -> str:
    with guard(context).writing(arguments.path) as spot, exclusive(spot):
        found = None if spot.missing else present(spot, arguments.path)
        if found is None:
            raise ToolError(f"{shown(arguments.path)} does not exist; write_file creates it")
        refuse_changed(spot, arguments.path, found, context.files)
        text = _text(found[1], arguments.path)
        edited, done = _replaced(text, arguments)
        seen = replace(spot, arguments.path, edited.encode(), found[0])
        context.files.note(spot.path, seen)
        times = "once" if done == 1 else f"{done} times"
        return f"replaced {times} in {context.resolved.name(spot.path)}"


def _text(content: bytes | None, path: str) -> str:
    if content is None:
        raise ToolError(f"{shown(path)} has more than {HASHED:,} bytes: edit it with a command")
    return decoded(content, path)


def _replaced(text: str, arguments: EditArguments) -> tuple[str, int]:
    old, new = arguments.old_text, arguments.new_text
    if old == new:
        raise ToolError("old_text and new_text are the same")
    breaks = text.count("\n")
    if breaks and breaks == text.count("\r\n"):
        # read_file shows CRLF as LF; the file keeps its own.
        old, new = _crlf(old), _crlf(new)
    found = text.count(old)
    wanted = arguments.count or 1
    if not found:
        near = nearest(text.replace("\r\n", "\n"), arguments.old_text)
        raise ToolError(f"old_text is not in the file; {near or 'nothing in it is similar'}")
    if found < wanted:
        raise ToolError(f"old_text is in the file {found} times, not {wanted}")
    if found > 1 and arguments.count is None:
        lines = ", ".join(str(line) for line in _lines(text, old))
        raise ToolError(
            f"old_text is in the file {found} times (lines {lines}): "
            "make it longer so that it is unique, or give count"
        )
    return text.replace(old, new, wanted), wanted


def _crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _lines(text: str, part: str) -> list[int]:
    lines: list[int] = []
    at = text.find(part)
    while at >= 0 and len(lines) < 10:
        lines.append(text.count("\n", 0, at) + 1)
        at = text.find(part, at + len(part))
    return lines
