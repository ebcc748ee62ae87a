"""What the file tools share: the guard of a context, a thread for blocking work, labels."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from runtime.domain.errors import ToolError
from runtime.domain.tools import Touches
from runtime.tools.base import ToolContext, ToolOutput
from runtime.tools.binary_files import describe
from runtime.tools.hidden_paths import UPLOADS
from runtime.tools.paths import PathGuard, foreign, os_error, shown

T = TypeVar("T")


def guard(context: ToolContext) -> PathGuard:
    return PathGuard(
        context.resolved,
        context.roots,
        hidden=context.hidden,
        within=context.within,
        writes=context.writes,
    )


def reads(path: str, context: ToolContext) -> Touches:
    """What a call touches that reads at `path` alone."""
    resolved = guard(context).resolve(path)
    return Touches(reads=(str(resolved),), subject=context.resolved.name(resolved))


async def off_loop(work: Callable[[], T], path: str) -> T:
    """Run blocking `work` in a thread; what the system says of `path` becomes a `ToolError`."""
    try:
        return await asyncio.to_thread(work)
    except ToolError:
        raise
    except OSError as error:
        raise os_error(error, path) from error


def decoded(content: bytes, path: str) -> str:
    """The text of the file at `path`. Raises `ToolError` where it is none."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{shown(path)} is not UTF-8 text: {describe(content)}") from error


def from_path(content: str, path: Path, context: ToolContext) -> ToolOutput:
    """Content that was found at `path`; what is not the agent's own is untrusted."""
    found = context.resolved.landmarks.places(path)
    return ToolOutput(
        content,
        untrusted=foreign(path, context.resolved),
        # Where the agent writes by asking alone, or never, what stands there is given.
        outside=any(place.instructs or place.name == UPLOADS for place in found),
        source=context.resolved.name(path),
    )


def below(folder: Path, context: ToolContext) -> str:
    """What to put before a path relative to `folder`, so that other tools take it as it is."""
    prefix = context.resolved.name(folder)
    return "" if prefix == "." else f"{prefix}/"
