"""Where many paths lead, for one decision: each folder on the way is asked about once.

A write is held against every file that an allowed command runs as code, which are some hundred
paths in a few folders. What is known before the disk is asked is worked out once for a command:
how its paths lie together in folders. Nothing that the disk said outlives a decision, because a
link may be there by the next one.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from posixpath import basename, join

from runtime.policy.code_files import code_files
from runtime.policy.command_folders import cleaned
from runtime.workspace.layout import links_among

_MOST_STEPS = 100
"""Folders that are followed one by one; a way that is longer is followed whole."""

_NO_NAMES = ("", ".", "..")

FolderNames = tuple[tuple[str, tuple[str, ...]], ...]
"""Folders, each with the names that matter in it."""


@dataclass(frozen=True, slots=True)
class CommandPaths:
    """What commands run as code, by folders relative to where the commands begin, or absolute.
    `whole` are paths that do not end with a name. `upward` pairs a folder with what is looked for
    in each one above it."""

    whole: tuple[str, ...]
    here: FolderNames
    upward: tuple[tuple[str, FolderNames], ...]


class CanonicalPaths:
    """Follows links; made for one decision, and good for no other."""

    def __init__(self) -> None:
        self._ways: dict[str, str] = {}

    def of(self, path: str) -> str:
        """The absolute `path` without links. One in a loop of links comes back as it was."""
        way = self._ways.get(path)
        if way is None:
            way = self._ways[path] = self._followed(path)
        return way

    def within(self, folder: str, names: tuple[str, ...]) -> frozenset[str]:
        """The paths of these `names` in a folder, without links."""
        real = self.of(folder)
        whole = _joined(real, names)
        links = links_among(real, names)
        if not links:
            return whole
        spelled = _joined(real, tuple(links))
        return (whole - spelled) | {os.path.realpath(path) for path in spelled}

    def of_commands(self, commands: tuple[str, ...], folder: str) -> frozenset[str]:
        """The paths of what `commands` run as code where they begin in `folder`: files, and
        folders of programs."""
        named = command_paths(commands)
        found = {self.of(cleaned(join(folder, path))) for path in named.whole}
        for below, names in named.here:
            found |= self.within(_placed(folder, below), names)
        for start, looked_for in named.upward:
            for parent in above(self.of(cleaned(join(folder, start)))):
                for below, names in looked_for:
                    found |= self.within(_placed(parent, below), names)
        return frozenset(found)

    def _followed(self, path: str) -> str:
        parent, _, name = path.rpartition("/")
        if name in _NO_NAMES or path.count("/") > _MOST_STEPS:
            return os.path.realpath(path)
        there = f"{self.of(parent).rstrip('/') if parent else ''}/{name}"
        # `Path.is_symlink` raises where the folder may not be looked into.
        return os.path.realpath(there) if os.path.islink(there) else there  # noqa: PTH114


def above(path: str) -> Iterator[str]:
    """The folders above a canonical path, the nearest first."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


@lru_cache(maxsize=64)
def command_paths(commands: tuple[str, ...]) -> CommandPaths:
    """What these commands run as code. Pure."""
    here, upward = dict[str, None](), dict[str, dict[str, None]]()
    for code in map(code_files, commands):
        here |= dict.fromkeys(map(cleaned, (*code.paths, *code.folders)))
        for start, name in code.upward:
            upward.setdefault(start, {})[name] = None
    named = [path for path in here if basename(path) not in _NO_NAMES]
    return CommandPaths(
        tuple(here.keys() - named),
        _by_folder(named),
        tuple((start, _by_folder(names)) for start, names in upward.items()),
    )


def _by_folder(paths: Iterable[str]) -> FolderNames:
    folders = dict[str, dict[str, None]]()
    for path in paths:
        folder, slash, name = path.rpartition("/")
        folders.setdefault(folder or slash, {})[name] = None
    return tuple((folder, tuple(names)) for folder, names in folders.items())


def _placed(folder: str, below: str) -> str:
    """The folder `below` another one; empty for that itself."""
    return cleaned(join(folder, below)) if below else folder


@lru_cache(maxsize=256)
def _joined(folder: str, names: tuple[str, ...]) -> frozenset[str]:
    top = folder.rstrip("/")
    return frozenset(f"{top}/{name}" for name in names)
