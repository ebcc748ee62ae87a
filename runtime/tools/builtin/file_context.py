"""What the file tools share: the guard of a context, a thread for blocking work, labels."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from runtime.domain.errors import ToolError
from runtime.tools.base import ToolContext, ToolOutput
from runtime.tools.hidden_paths import UPLOADS
from runtime.tools.paths import PathGuard, foreign, os_error

T = TypeVar("T")


def guard(context: ToolContext) -> PathGuard:
    return PathGuard(
        context.resolved,
        context.roots,
        hidden=context.hidden,
        within=context.within,
        writes=context.writes,
    )


async def off_loop(work: Callable[[], T], path: str) -> T:
    """Run blocking `work` in a thread; what the system says of `path` becomes a `ToolError`."""
    try:
        return await asyncio.to_thread(work)
    except ToolError:
        raise
    except OSError as error:
        raise os_error(error, path) from error


def from_path(content: str, path: Path, context: ToolContext) -> ToolOutput:
    """Content that was found at `path`; what is not the agent's own is untrusted."""
    return ToolOutput(
        content,
        untrusted=foreign(path, context.resolved),
        outside=_kept_from_agent(path, context),
        source=context.resolved.name(path),
    )


def _kept_from_agent(path: Path, context: ToolContext) -> bool:
    """Whether the agent writes at `path` by asking alone, or never: what stands there is given."""
    found = context.resolved.landmarks.places(path)
    return any(place.instructs or place.name == UPLOADS for place in found)


def below(folder: Path, context: ToolContext) -> str:
    """What to put before a path relative to `folder`, so that other tools take it as it is."""
    prefix = context.resolved.name(folder)
    return "" if prefix == "." else f"{prefix}/"
