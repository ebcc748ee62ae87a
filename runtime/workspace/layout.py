"""Where things are in a workspace: the working folder, and the known places beside it (TOOL-5).

Commands write in the working folder, ``files/``, and nowhere else; what instructs the agent, what
is private and what the gateway keeps lies beside it. A known place is reached by its name from
everywhere, and a file of the same name in the working folder hides none of them: that one is
called ``files/NAME``.
"""

import os
from dataclasses import dataclass
from functools import cached_property
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
        paths = [(f"{top}/{place.name}", place) for place in PLACES]
        # `Path.is_symlink` raises where the folder may not be looked into.
        links = [(path, place) for path, place in paths if os.path.islink(path)]  # noqa: PTH114
        paths += [(os.path.realpath(path), place) for path, place in links]
        return cls(
            tuple((_inside(path), place) for path, place in paths),
            tuple(dict.fromkeys(path for path, place in paths if place.private)),
        )

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
        top = self.home if self.reached(path.parts[:1]) else self.files
        return PurePosixPath(os.path.normpath(top)) / path

    def reached(self, first: tuple[str, ...]) -> bool:
        """Whether a path that begins so is reached by the name of a known place."""
        return any(first == (place.name,) for place in self.names)


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

    def name(self, path: Path) -> str:
        """The canonical `path` as tools write it: `Layout.locate` leads back to it."""
        layout = self.layout
        if path.is_relative_to(self.files):
            inside = path.relative_to(self.files)
            taken = inside.parts[:1] == (FILES,) or layout.reached(inside.parts[:1])
            return str(Path(FILES, inside) if taken else inside)
        if path.is_relative_to(self.home):
            inside = path.relative_to(self.home)
            if layout.reached(inside.parts[:1]):
                return str(inside)
        return str(path)


def canonical(path: Path) -> Path:
    """`path.resolve()` without the look for loops of links, which is one more question to the disk.

    A path in a loop comes back as it was, and opens nowhere.
    """
    return Path(os.path.realpath(path))


def _inside(path: PurePath | str) -> str:
    return f"{path}/".casefold()
