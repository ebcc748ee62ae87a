"""What the model is told of a call: capped, with the whole kept, and fenced where untrusted.

Blocks on files where something is kept; call it off the event loop when output may be long.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import regex

from runtime.domain.errors import ToolError
from runtime.domain.fence import fence
from runtime.domain.tools import ToolCall, ToolResult
from runtime.tools.base import ToolContext, ToolOutput
from runtime.tools.binary_files import describe, is_binary
from runtime.tools.hidden_paths import OUTPUTS, file_name
from runtime.workspace.open_folders import opened

LIMIT = 32 * 1024
"""Bytes of a result that the model sees (TOOL-4)."""
_MARGIN = 1024
"""Bytes for the mark, the path and the fence, within the limit."""
_DETAIL = 4000
_ANSI = regex.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def error_result(call: ToolCall, error: ToolError) -> ToolResult:
    """The result of a call that failed; a detail that runs on is cut at 4,000 characters."""
    detail = error.detail if len(error.detail) <= _DETAIL else f"{error.detail[:_DETAIL]}..."
    content = detail.encode("utf-8", "replace").decode().replace("\0", "\u2400")
    return ToolResult(call_id=call.id, name=call.name, status="error", content=content)


def to_result(
    call: ToolCall, output: ToolOutput, *, context: ToolContext, limit: int = LIMIT
) -> ToolResult:
    """The result of `call`, at most `limit` bytes of UTF-8 (`limit` is at least 2 KiB).

    What is longer, or binary, is kept under `.gatehouse/outputs/<session>/<run>/` in the
    workspace, where only this session finds it.
    """
    raw = output.content.encode("utf-8", "replace")
    path, mark = None, ""
    if is_binary(raw):
        path = _keep(raw, context)
        content = f"binary output: {describe(raw)}; {_where(path, context)}"
    else:
        # A NUL beyond what was looked at: PostgreSQL's text cannot hold one.
        content = _ANSI.sub("", raw.decode()).replace("\0", "\u2400")
    if len(content.encode()) > limit - _MARGIN:
        path = path or _keep(raw, context)
        content, gone = _cut(content, limit - _MARGIN)
        mark = f"\n[{gone} were left out; {_where(path, context)}]"
    if output.untrusted:
        content = fence(content, output.source or call.name)
    return ToolResult(
        call_id=call.id,
        name=call.name,
        status="error" if output.failed else "ok",
        content=content + mark,
        untrusted=output.untrusted,
        outside=output.outside and not output.failed,
        whole_output_path=path,
    )


def _cut(content: str, limit: int) -> tuple[str, str]:
    """Head and tail of `content` with a mark between; and what was left out, in words."""
    raw = content.encode()
    head = raw[: limit * 2 // 3].decode(errors="ignore")
    tail = raw[-(limit // 3) :].decode(errors="ignore")
    head = head[: head.rfind("\n") + 1 or len(head)]
    tail = tail[tail.find("\n") + 1 :]
    gone = len(raw) - len(head.encode()) - len(tail.encode())
    left = f"{gone:,} of {len(raw):,} bytes"
    gap = "" if head.endswith("\n") else "\n"
    return f"{head}{gap}[... {left} left out here ...]\n{tail}", left


def _where(path: str | None, context: ToolContext) -> str:
    if path is None:
        return "all of it could not be kept"
    return f"all of it is in {context.resolved.name(Path(path))}"


def _keep(raw: bytes, context: ToolContext) -> str | None:
    """Write `raw` to a file of its own; None where the folder is not what it should be. Nothing
    here follows a link."""
    folders = (*OUTPUTS, file_name(context.session_id), file_name(context.run_id))
    name = f"{file_name(context.call_id)}-{hashlib.blake2b(raw, digest_size=4).hexdigest()}.txt"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with opened(context.layout.home.resolve(), folders, made=folders) as directory:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=directory)
            with os.fdopen(os.open(name, flags, 0o600, dir_fd=directory), "wb") as file:
                file.write(raw)
    except OSError:
        return None
    return str(context.layout.home.resolve().joinpath(*folders, name))
