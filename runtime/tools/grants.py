"""What a command is granted of the files (TOOL-5).

It writes in the working folder and in the operator's other roots. Of the known places beside the
working folder it reads at most what its session may read, each by a grant of its own, so that
nothing which must stay hidden or unwritten lies inside of what is granted.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runtime.domain.worktrees import FOLDER as WORKTREES
from runtime.tools.base import ToolContext
from runtime.tools.hidden_paths import OUTPUTS, UPLOADS, file_name, is_folder
from runtime.workspace.layout import canonical


@dataclass(frozen=True, slots=True)
class Grants:
    """Absolute paths, as `SandboxCommand` takes them."""

    writable: tuple[str, ...]
    readable: tuple[str, ...]
    unlinked: tuple[str, ...]
    hidden: tuple[str, ...]


def grants_of(context: ToolContext) -> Grants:
    """What a command of this call may write and read; looks at the files as they are now."""
    context = context.again()
    roots = roots_of(context)
    beside = tuple(str(path) for path in _beside(context))
    return Grants(
        # Whoever allowed it, policy or a person: in a read-only mode no command can write.
        writable=() if context.read_only else roots,
        readable=(*roots, *beside) if context.read_only else beside,
        unlinked=tuple(str(path) for path in context.reads),
        # Where a private note is a link of its owner's into a root.
        hidden=context.hidden.masks,
    )


def roots_of(context: ToolContext) -> tuple[str, ...]:
    """The folders that may be written; one inside of what is hidden would be shown again."""
    hidden = context.hidden
    roots = [canonical(root) for root in (context.layout.files, *context.roots)]
    return tuple(str(root) for root in roots if not hidden.covers(root))


def _beside(context: ToolContext) -> Iterator[Path]:
    home = context.resolved.home
    for place in context.layout.names:
        path = home / place.name
        if not place.kept and (context.notes or not place.private) and _is_own(path):
            yield path
    for path in _kept(home, context):
        if _is_own(path) and is_folder(path):
            yield path


def _kept(home: Path, context: ToolContext) -> Iterator[Path]:
    """What the gateway keeps for this session, and the worktrees of its subagents."""
    yield home.joinpath(*OUTPUTS, file_name(context.session_id))
    if context.notes and context.layout.whole:
        yield home / WORKTREES
    uploads, hidden = home / UPLOADS, context.hidden
    if is_folder(uploads):
        yield from (one for one in sorted(uploads.iterdir()) if not hidden.covers(one))


def _is_own(path: Path) -> bool:
    """Whether it is there, and reached through no link: whatever one leads to would be granted."""
    return os.path.lexists(path) and canonical(path) == path
