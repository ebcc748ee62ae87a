"""Definitions of subagents from three kinds of folders (SUB-2).

Built-in ones first, then those of the user, then the workspace's; the last of a name wins. A file
with a mistake in it is listed with the reason and takes its name all the same: whoever wrote a
narrower definition over a wider one must not get the wider one because of a misspelt field.

Files are asked for their status at each look and read again where it differs (decision 13).
"""

import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from runtime.workspace.content import AGENTS_FOLDER
from runtime.workspace.definition_file import (
    DEFAULT_TURNS,
    Definition,
    DefinitionSource,
    Known,
    read,
)
from runtime.workspace.text_files import Status, real, status

__all__ = ["DEFAULT_TURNS", "Definition", "DefinitionShelf", "Definitions", "Known"]

FOLDERS: Final = (AGENTS_FOLDER, f".claude/{AGENTS_FOLDER}")
"""Below a workspace, the later of which wins."""
MAX_FILES: Final = 200
"""Of one folder with all that is below it."""
MAX_DEPTH: Final = 8
SUFFIX: Final = ".md"


@dataclass(frozen=True, slots=True)
class Definitions:
    """What was found: by name, and a warning for each file that has a problem."""

    items: tuple[Definition, ...]
    warnings: tuple[str, ...]

    def get(self, name: str) -> Definition | None:
        """The definition of this very name, usable or not."""
        return next((one for one in self.items if one.name == name), None)


NONE: Final = Definitions((), ())


@dataclass(frozen=True, slots=True)
class _Read:
    """What a file held when its status was this. Time stamps have a grain: a change within it, of
    the same size, looks like none, so a read is believed to hold once another agreed with it."""

    status: Status
    definition: Definition
    agreed: bool


@dataclass(frozen=True, slots=True)
class DefinitionShelf:
    """The definitions that a session sees, as the files are now; every method blocks on files.

    ``builtin`` is a folder with an ``agents`` folder in it, ``user`` are folders of definitions,
    the later of which wins, ``root`` is the workspace. ``skills`` gives the names of its skills.
    """

    root: Path
    builtin: Path | None = None
    user: Sequence[Path] = ()
    skills: Callable[[], Collection[str]] | None = None
    _kept: dict[tuple[Path, str], _Read] = field(default_factory=dict, compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def places(self) -> Iterator[tuple[DefinitionSource, Path, str]]:
        """Source, top folder and the folder below it, the later of which wins."""
        if self.builtin is not None:
            yield "built-in", self.builtin, AGENTS_FOLDER
        for folder in self.user:
            yield "user", folder, ""
        for below in FOLDERS:
            yield "workspace", self.root, below

    def load(self, known: Known | None = None) -> Definitions:
        """All definitions. With `known` the names of what is not there are dropped and told."""
        found: dict[str, Definition] = {}
        warnings: list[str] = []
        with self._lock:
            for here, warning in self._folders():
                found |= here
                warnings += warning
        if known is not None and known.skills is None and self.skills is not None:
            named = any(one.header.skills for one in found.values())
            known = replace(known, skills=self.skills() if named else None)
        items = [found[name] if known is None else found[name].checked(known) for name in found]
        items.sort(key=lambda one: one.name)
        for one in items:
            if one.reason:
                warnings.append(f"{one.file} is not used: {one.reason}")
            warnings.extend(f"{one.file}: {told}" for told in (*one.problems, *one.notes))
        return Definitions(tuple(items), tuple(warnings))

    def _folders(self) -> Iterator[tuple[dict[str, Definition], list[str]]]:
        """What each folder holds, by name, with a warning where it holds too much."""
        met: set[tuple[Path, str]] = set()
        for source, top, below in self.places():
            files = _files(top, below)
            place = below or str(top)
            many = f"{place}: only the first {MAX_FILES} definitions are read"
            here: dict[str, Definition] = {}
            for file in files[:MAX_FILES]:
                met.add((top, file))
                one = self._read(source, top, file)
                if one.name in here:
                    first = here[one.name].file
                    one = replace(one, reason=f"name: {first} beside it has the same")
                here[one.name] = one
            yield here, [many] if len(files) > MAX_FILES else []
        for gone in self._kept.keys() - met:
            del self._kept[gone]

    def _read(self, source: DefinitionSource, top: Path, file: str) -> Definition:
        # The status is taken before the content, so that a change in between is seen next time.
        now = status(top / file)
        before = self._kept.get((top, file))
        same = before is not None and before.status == now
        if before is not None and same and before.agreed:
            return before.definition
        one = read(source, top, file)
        agreed = before is not None and same and before.definition == one
        self._kept[top, file] = _Read(now, one, agreed)
        return one


def _files(top: Path, below: str) -> list[str]:
    """The definitions below a folder, relative to `top`, sorted; what is hidden or a link is not
    followed, and `below` itself must not lead out of `top`."""
    start = top / below
    if below and real(top) not in real(start).parents:
        return []
    found: list[str] = []
    for folder, folders, names in os.walk(start):
        inside = Path(folder).relative_to(top)
        deep = len(inside.parts) - len(Path(below).parts) >= MAX_DEPTH
        folders[:] = [] if deep else sorted(name for name in folders if name[:1] != ".")
        with suppress(UnicodeError):
            found += [
                (inside / name).as_posix()
                for name in sorted(names)
                if name.endswith(SUFFIX) and name[:1] != "."
            ]
        if len(found) > MAX_FILES:
            break
    return found
