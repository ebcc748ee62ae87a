"""Where things are in a workspace: the working folder, and the known places beside it (TOOL-5).

Commands write in the working folder, ``files/``, and nowhere else; what instructs the agent, what
is private and what the gateway keeps lies beside it. A known place is reached by its name from
everywhere, and a file of the same name in the working folder hides none of them: that one is
called ``files/NAME``.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, Self

FILES: Final = "files"
"""The working folder: relative paths of file tools and commands begin there."""


@dataclass(frozen=True, slots=True)
class Place:
    """One known name at the top of a workspace, and what it is.

    `instructs`: the agent later acts on what stands there. `private`: it does not exist in groups,
    nor for guests and bots. `kept`: the gateway alone writes there, and each session finds its own.
    """

    name: str
    folder: bool = False
    instructs: bool = False
    private: bool = False
    kept: bool = False


PLACES: Final = (
    Place("AGENTS.md", instructs=True),
    Place("SOUL.md", instructs=True),
    Place("USER.md", instructs=True, private=True),
    Place("TOOLS.md", instructs=True),
    Place("IDENTITY.md", instructs=True),
    Place("skills", folder=True, instructs=True),
    Place("agents", folder=True, instructs=True),
    Place(".claude", folder=True, instructs=True),
    Place("personas", folder=True, instructs=True, private=True),
    Place("memory", folder=True, private=True),
    Place("uploads", folder=True, kept=True),
    Place(".gatehouse", folder=True, kept=True),
)
"""Every known place; nothing else at the top of a workspace exists for the agent."""
_KEPT: Final = tuple(place for place in PLACES if place.kept)
_NAMES: Final = tuple(place.name for place in PLACES)
_MOST_LISTED: Final = 256
"""Entries of a folder that cost less to list than a dozen names cost to look up in it."""


@dataclass(frozen=True, slots=True)
class Landmarks:
    """The known places of one workspace as canonical paths, with where links lead from there.

    `notes` are those of the private ones.
    """

    _spots: tuple[tuple[str, Place], ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, top: str) -> Self:
        """For the workspace at the canonical path `top`; looks at the links in it."""
        links = links_among(top, _NAMES)
        return cls(*_spots(top, tuple((name, os.path.realpath(f"{top}/{name}")) for name in links)))

    def places(self, path: PurePath | str) -> tuple[Place, ...]:
        """The known places that the canonical `path` is, or lies in: none for ordinary files, and
        several where a link joins them. Pure.

        Letters of either case are one: some file systems do not tell them apart.
        """
        asked = _inside(path)
        return tuple(place for spot, place in self._spots if asked.startswith(spot))

    def instructs(self, path: PurePath | str) -> bool:
        """Whether the agent later acts on what stands at the canonical `path`."""
        return any(place.instructs for place in self.places(path))

    def private(self, path: PurePath | str) -> bool:
        """Whether the canonical `path` is a private note."""
        return any(place.private for place in self.places(path))

    def kept(self, path: PurePath | str) -> bool:
        """Whether the gateway alone writes at the canonical `path`."""
        return any(place.kept for place in self.places(path))


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the paths of one session begin: the workspace at `home`, its working folder `files`.

    `names` are the known places that the session reaches by their names; in a worktree the others
    are names of its own files.
    """

    home: Path
    files: Path
    names: tuple[Place, ...] = PLACES

    @classmethod
    def of(cls, home: Path) -> Self:
        """The layout of the workspace at `home` itself."""
        return cls(home, home / FILES)

    @classmethod
    def of_worktree(cls, home: Path, files: Path) -> Self:
        """The layout of a session that works in the worktree `files` of that workspace."""
        return cls(home, files, _KEPT)

    @property
    def whole(self) -> bool:
        """Whether the session works in the workspace itself and not in a worktree."""
        return self.names == PLACES

    def locate(self, text: str) -> PurePosixPath:
        """Where the relative or absolute path `text` begins; `..` and links are not resolved."""
        path = PurePosixPath(text)
        if path.is_absolute():
            return path
        if path.parts[:1] == (FILES,):
            return PurePosixPath(os.path.normpath(self.files), *path.parts[1:])
        top = self.home if path.parts and self.reached(path.parts[0]) else self.files
        return PurePosixPath(os.path.normpath(top)) / path

    def reached(self, first: str) -> bool:
        """Whether a path with this `first` part is reached by the name of a known place."""
        return any(first == place.name for place in self.names)


class ResolvedLayout:
    """A layout with its links followed: the disk is asked once for each answer, when it is first
    needed. Good for one look at a call, and no longer: links change."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    @cached_property
    def home(self) -> Path:
        """The workspace's canonical path."""
        return canonical(self.layout.home)

    @cached_property
    def files(self) -> Path:
        """The working folder's canonical path."""
        if self.layout.files != self.layout.home / FILES:
            return canonical(self.layout.files)
        # The way to the workspace has been followed already.
        there = self.home / FILES
        return canonical(there) if os.path.islink(there) else there  # noqa: PTH114 - as above

    @cached_property
    def landmarks(self) -> Landmarks:
        """The known places of the workspace."""
        return Landmarks.of(str(self.home))

    def name(self, path: Path | str) -> str:
        """The canonical `path` as tools write it: `Layout.locate` leads back to it."""
        text = str(path)
        inside = inside_of(text, str(self.files))
        if inside is not None:
            first = inside.partition("/")[0]
            taken = first == FILES or self.layout.reached(first)
            return f"{FILES}/{inside}" if taken else inside or "."
        inside = inside_of(text, str(self.home))
        if inside is not None and self.layout.reached(inside.partition("/")[0]):
            return inside
        return text


@lru_cache(maxsize=128)
def _spots(
    top: str, links: tuple[tuple[str, str], ...]
) -> tuple[tuple[tuple[str, Place], ...], tuple[str, ...]]:
    """What `Landmarks` holds of the workspace at `top`, where those of its known places are links
    which `links` names, each with where it leads. Pure."""
    leads = dict(links)
    paths = [(f"{top}/{place.name}", place) for place in PLACES]
    paths += [(leads[place.name], place) for place in PLACES if place.name in leads]
    return (
        tuple((_inside(path), place) for path, place in paths),
        tuple(dict.fromkeys(path for path, place in paths if place.private)),
    )


def canonical(path: Path) -> Path:
    """`path.resolve()` without the look for loops of links, which is one more question to the disk.

    A path in a loop comes back as it was, and opens nowhere.
    """
    return Path(os.path.realpath(path))


def inside_of(path: str, folder: str) -> str | None:
    """The canonical `path` relative to the canonical `folder`, empty for that itself; None where it
    lies elsewhere. Pure, and ten times as fast as `Path.relative_to`."""
    if path == folder:
        return ""
    above = "/" if folder == "/" else f"{folder}/"
    return path[len(above) :] if path.startswith(above) else None


def links_among(folder: str, names: Sequence[str]) -> list[str]:
    """Those of the `names` that are links in the canonical `folder`.

    A folder is listed once before any name is looked up: where no entry is a link, no name is one,
    whichever spellings the file system takes for the same.
    """
    try:
        with os.scandir(folder or "/") as entries:
            listed = list(islice(entries, _MOST_LISTED + 1))
        if len(listed) <= _MOST_LISTED and not any(entry.is_symlink() for entry in listed):
            return []
    except FileNotFoundError:
        return []
    except OSError:
        # It cannot be listed; the names in it may be reached all the same.
        pass
    top = folder.rstrip("/")
    # `Path.is_symlink` raises where the folder may not be looked into.
    return [name for name in names if os.path.islink(f"{top}/{name}")]  # noqa: PTH114


def _inside(path: PurePath | str) -> str:
    return f"{path}/".casefold()
