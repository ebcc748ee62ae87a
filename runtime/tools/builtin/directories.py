"""Finding files: a folder's entries, names by pattern, and where things are kept."""

import os
import stat
from pathlib import Path
from typing import Literal

from pydantic import Field
from typing_extensions import override

from runtime.domain.errors import ToolError
from runtime.domain.printable import printable_name
from runtime.domain.tools import Effect, Touches
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.builtin.file_context import below, from_path, guard, off_loop, reads
from runtime.tools.hidden_paths import OUTPUTS, file_name
from runtime.tools.paths import PathGuard, absent
from runtime.tools.patterns import Glob
from runtime.tools.tree import SKIPPED, Entry, Tree, entries

_ENTRIES = 500


class ListArguments(Arguments):
    path: str = "."


class ListDir(Tool[ListArguments]):
    """Names with sizes; folders end in a slash."""

    name = "list_dir"
    own_words = True
    description = "List a folder with sizes in bytes."
    arguments = ListArguments
    effect = Effect.READ
    example = '{"path": "notes"}'

    @override
    def touches(self, arguments: ListArguments, context: ToolContext) -> Touches:
        return reads(arguments.path, context)

    @override
    async def run(self, arguments: ListArguments, context: ToolContext) -> ToolOutput:
        def work() -> ToolOutput:
            guarded = guard(context)
            with guarded.directory(arguments.path) as (handle, spot):
                hides = guarded.hidden.below(spot.path)
                found = [entry for entry in entries(handle) if not hides(entry.name)]
                lines = [_line(entry, guarded, spot.path) for entry in found[:_ENTRIES]]
                if len(found) > _ENTRIES:
                    lines.append(f"[{len(found) - _ENTRIES} more; use glob]")
                return from_path("\n".join(lines) or "[empty folder]", spot.path, context)

        return await off_loop(work, arguments.path)


class GlobArguments(Arguments):
    pattern: str
    path: str = "."


class GlobFiles(Tool[GlobArguments]):
    """Files whose path below `path` matches."""

    name = "glob"
    own_words = True
    description = "Find files by name pattern (`**/*.py`)."
    arguments = GlobArguments
    effect = Effect.READ
    example = '{"pattern": "**/*.md", "path": "notes"}'

    @override
    def touches(self, arguments: GlobArguments, context: ToolContext) -> Touches:
        return reads(arguments.path, context)

    @override
    async def run(self, arguments: GlobArguments, context: ToolContext) -> ToolOutput:
        def work() -> ToolOutput:
            pattern = Glob(arguments.pattern)
            guarded = guard(context)
            with guarded.directory(arguments.path) as (handle, spot):
                tree = Tree(
                    handle,
                    skipped=SKIPPED.difference(pattern.parts),
                    hides=guarded.hidden.below(spot.path),
                )
                prefix = below(spot.path, context)
                lines: list[str] = []
                for entry in tree:
                    if entry.is_directory or not pattern.matches(entry.path):
                        continue
                    if len(lines) == _ENTRIES:
                        lines.append(f"[more than {_ENTRIES}; narrow the pattern]")
                        break
                    lines.append(f"{prefix}{printable_name(entry.path)}")
                if tree.truncated:
                    lines.append("[the tree is too large; parts were not searched]")
                return from_path("\n".join(lines) or "[no file matches]", spot.path, context)

        return await off_loop(work, arguments.path)


class ResolveArguments(Arguments):
    kind: Literal["workspace", "memory", "skills", "outputs"]
    filename: str = Field(min_length=1)


class ResolvePath(Tool[ResolveArguments]):
    """Where a file of a kind is, whether or not it exists."""

    name = "resolve_path"
    own_words = True
    description = "Absolute path of a file of this kind."
    arguments = ResolveArguments
    effect = Effect.READ
    example = '{"kind": "memory", "filename": "MEMORY.md"}'

    @override
    def touches(self, arguments: ResolveArguments, context: ToolContext) -> Touches:
        path = _of_kind(arguments, context)
        return Touches(reads=(str(path),), subject=context.resolved.name(path))

    @override
    async def run(self, arguments: ResolveArguments, context: ToolContext) -> ToolOutput:
        path = await off_loop(lambda: _of_kind(arguments, context), arguments.filename)
        if context.hidden.covers(path):
            raise absent(arguments.filename)
        return ToolOutput(str(path))


def _of_kind(arguments: ResolveArguments, context: ToolContext) -> Path:
    """Raises `ToolError` for a name that leads out of its folder."""
    guarded = guard(context)
    named = {"workspace": ".", "outputs": "/".join((*OUTPUTS, file_name(context.session_id)))}
    folder = guarded.resolve(named.get(arguments.kind, arguments.kind))
    path = guarded.resolve(str(folder / arguments.filename))
    if path != folder and folder not in path.parents:
        raise ToolError(f"{arguments.filename} is outside of {folder}")
    return path


def _line(entry: Entry, guarded: PathGuard, folder: Path) -> str:
    name = printable_name(entry.name)
    if entry.is_directory:
        return f"{name}/"
    if entry.is_file:
        return f"{name}  {entry.status.st_size}"
    if stat.S_ISLNK(entry.status.st_mode) and not _leads_to_hidden(entry, guarded, folder):
        return f"{name} -> {printable_name(os.readlink(entry.name, dir_fd=entry.directory))}"
    return f"{name}  [no regular file]"


def _leads_to_hidden(link: Entry, guarded: PathGuard, folder: Path) -> bool:
    """Whether the target is not to be named."""
    try:
        return guarded.hidden.covers(guarded.resolve(str(folder / link.name)))
    except ToolError:
        return False
