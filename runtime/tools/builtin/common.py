"""What the file tools share: the guard of a context, a thread for blocking work, labels."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from runtime.domain.errors import ToolError
from runtime.tools.base import ToolContext, ToolOutput
from runtime.tools.paths import PathGuard, foreign, os_error, relative

T = TypeVar("T")


def guard(context: ToolContext) -> PathGuard:
    return PathGuard(context.roots, hidden=context.hidden, within=context.within)


async def off_loop(work: Callable[[], T], path: str) -> T:
    """Run blocking `work` in a thread; what the system says of `path` becomes a `ToolError`."""
    try:
        return await asyncio.to_thread(work)
    except ToolError:
        raise
    except OSError as error:
        raise os_error(error, path) from error


def from_path(content: str, path: Path, context: ToolContext) -> ToolOutput:
    """Content that was found at `path`; what is not the workspace's own is untrusted."""
    return ToolOutput(
        content,
        untrusted=foreign(path, context.workspace),
        source=relative(path, context.roots),
    )


def below(folder: Path, context: ToolContext) -> str:
    """What to put before a path relative to `folder`, so that other tools take it as it is."""
    prefix = relative(folder, context.roots)
    return "" if prefix == "." else f"{prefix}/"


def printable(name: str) -> str:
    """A name on one line: a break in it would look like another entry."""
    return "".join(c if c.isprintable() else "?" for c in name)
