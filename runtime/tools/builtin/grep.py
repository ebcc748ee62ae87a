"""Searching the content of files, in bounded time whatever the pattern."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import regex
from pydantic import Field
from typing_extensions import override

from runtime.domain.counts import counted
from runtime.domain.errors import ToolError
from runtime.domain.printable import printable_name
from runtime.domain.tools import Effect, Touches
from runtime.ports.clock import Clock
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.binary_files import is_binary
from runtime.tools.builtin.file_context import below, from_path, guard, off_loop, reads
from runtime.tools.paths import PathGuard, Spot, absent, opened_file
from runtime.tools.patterns import Glob
from runtime.tools.tree import Tree

_MATCHES = 200
_FILE_BYTES = 10 * 1024 * 1024
_LINE = 300
_TIME_S = 10.0
_PATTERN = 1000


class GrepArguments(Arguments):
    pattern: str = Field(min_length=1, max_length=_PATTERN)
    path: str = "."
    include: str | None = Field(default=None, description="glob")
    ignore_case: bool = False
    context: int = Field(default=0, ge=0, le=20, description="lines around")


class Grep(Tool[GrepArguments]):
    """Lines that match a regular expression, as ``path:line:text``; context as ``path-line-``."""

    name = "grep"
    description = "Search file contents by regex."
    arguments = GrepArguments
    effect = Effect.READ
    example = '{"pattern": "def \\\\w+_id", "path": "src", "include": "**/*.py"}'

    def __init__(self, clock: Clock, *, time_s: float = _TIME_S) -> None:
        self._clock = clock
        self._time_s = time_s

    @override
    def touches(self, arguments: GrepArguments, context: ToolContext) -> Touches:
        return reads(arguments.path, context)

    @override
    async def run(self, arguments: GrepArguments, context: ToolContext) -> ToolOutput:
        def work() -> ToolOutput:
            search = _Search(arguments, context, self._clock, self._time_s)
            path = search.run()
            return from_path(search.told(), path, context)

        return await off_loop(work, arguments.path)


@dataclass(slots=True)
class _Search:
    arguments: GrepArguments
    context: ToolContext
    clock: Clock
    time_s: float
    found: list[str] = field(default_factory=list)
    matches: int = 0
    skipped: int = 0
    truncated: bool = False

    def run(self) -> Path:
        pattern = self._pattern()
        include = Glob(self.arguments.include) if self.arguments.include else None
        deadline = self.clock.monotonic() + self.time_s
        guarded = guard(self.context)
        with guarded.parent(self.arguments.path) as spot:
            if spot.missing:
                raise absent(self.arguments.path)
            for label, content in self._files(guarded, spot, include):
                left = deadline - self.clock.monotonic()
                if self.matches >= _MATCHES or left <= 0:
                    self.truncated = True
                    break
                try:
                    self._file(pattern, label, content, deadline)
                except TimeoutError as error:
                    raise ToolError(
                        f"the search took more than {self.time_s:g} s at {label}: "
                        "use a simpler pattern, or narrow path or include"
                    ) from error
            return spot.path

    def told(self) -> str:
        lines = self.found or ["[no match]"]
        if self.truncated:
            lines = [*lines, "[cut here: narrow the pattern, path or include]"]
        if self.skipped:
            lines = [
                *lines,
                f"[not searched: {counted(self.skipped, 'file')}, over 10 MiB or unreadable]",
            ]
        return "\n".join(lines)

    def _pattern(self) -> regex.Pattern[str]:
        flags = regex.MULTILINE | (regex.IGNORECASE if self.arguments.ignore_case else 0)
        try:
            return regex.compile(self.arguments.pattern, flags)
        except (regex.error, OverflowError, RecursionError) as error:
            raise ToolError(
                f"pattern: is not a regular expression ({error}); a literal ( or [ needs a "
                "backslash"
            ) from error

    def _files(
        self, guarded: PathGuard, spot: Spot, include: Glob | None
    ) -> Iterator[tuple[str, str]]:
        status = os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            content = self._content(spot, self.arguments.path, only=True)
            if content is not None:
                yield self.arguments.path, content
            return
        with guarded.directory(self.arguments.path) as (handle, folder):
            tree = Tree(handle, hides=guarded.hidden.below(folder.path))
            prefix = below(folder.path, self.context)
            for entry in tree:
                if not entry.is_file or (include and not _included(include, entry.path)):
                    continue
                content = self._content(
                    replace(folder, directory=entry.directory, name=entry.name),
                    entry.path,
                    only=False,
                )
                if content is not None:
                    yield f"{prefix}{printable_name(entry.path)}", content
            self.truncated = self.truncated or tree.truncated

    def _content(self, spot: Spot, label: str, *, only: bool) -> str | None:
        try:
            with (
                opened_file(spot.directory, spot.name, label, spot.notes) as handle,
                os.fdopen(os.dup(handle), "rb") as f,
            ):
                raw = f.read(_FILE_BYTES + 1)
        except ToolError:
            if only:
                raise
            raw = None
        if raw is None or len(raw) > _FILE_BYTES:
            self.skipped += 1
            return None
        return None if is_binary(raw) else raw.decode(errors="replace")

    def _file(self, pattern: regex.Pattern[str], label: str, text: str, deadline: float) -> None:
        matched: list[int] = []
        at = counted = 0
        number = 1
        while at <= len(text) and self.matches < _MATCHES:
            left = max(deadline - self.clock.monotonic(), 0.001)
            # Concurrent: a search that backtracks for seconds must not hold up the event loop.
            match = pattern.search(text, at, timeout=left, concurrent=True)
            if match is None or (match.start() == len(text) and text[-1:] in {"", "\n"}):
                break
            number += text.count("\n", counted, match.start())
            counted = match.start()
            matched.append(number)
            self.matches += 1
            end = text.find("\n", match.start())
            at = len(text) + 1 if end < 0 else end + 1
        if matched:
            self._note(label, text.split("\n"), matched)

    def _note(self, label: str, lines: list[str], matched: list[int]) -> None:
        around = self.arguments.context
        marks: dict[int, str] = {}
        for number in matched:
            for index in range(max(number - around, 1), min(number + around, len(lines)) + 1):
                marks.setdefault(index, "-")
        marks.update(dict.fromkeys(matched, ":"))
        for index in sorted(marks):
            mark = marks[index]
            self.found.append(f"{label}{mark}{index}{mark}{_line(lines[index - 1])}")


def _included(include: Glob, path: str) -> bool:
    """As people mean it: a pattern without a folder is for names anywhere below."""
    return include.matches(path if len(include.parts) > 1 else path.rpartition("/")[2])


def _line(text: str) -> str:
    text = text.rstrip("\r")
    return text if len(text) <= _LINE else f"{text[:_LINE]}..."
