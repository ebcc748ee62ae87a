"""The path guard: what a model calls a path becomes a handle inside the roots, or is refused.

Every component is opened relative to the handle of the one before and never follows a symbolic
link by itself (TOOL-2). A link is read and its target walked in the same way, so that one which
stays inside works, and one which is swapped between the look and the opening is refused by the
kernel. `..` goes back to a handle that was held, never to what the kernel calls the parent.
A name that is not there in its exact characters, but once in another spelling, is that one.
What is hidden from a call is not there at all, wherever the path comes from. Policy decides about
a path before it is used; what is opened is asked about again, because a link may be there by then.
"""

import os
import pwd
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from posixpath import dirname

from runtime.domain.counts import counted
from runtime.domain.errors import ToolError
from runtime.domain.name_spellings import folded_name, has_one_spelling
from runtime.domain.printable import printable_name
from runtime.tools.hidden_paths import Hidden
from runtime.workspace.layout import PLACES, Layout, ResolvedLayout, inside_of
from runtime.workspace.open_folders import FOLDER
from runtime.workspace.private_notes import NoteFiles

_HOPS = 40
"""As many links as Linux follows in one path, path_resolution(7)."""
_LENGTH = 4096
"""Characters; PATH_MAX of Linux."""
_NAMED_TWINS = 3
"""Names that an error lists where several look like the one that was asked for."""
_DEPTH = 128
"""Directories below a root; each is an open handle while a path is walked, the last one after."""
_KEPT = frozenset(place.name for place in PLACES if place.kept)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Spot:
    """A name in an open directory. `path` is canonical: absolute, without links.

    `name` is ``.`` for a root itself. `missing` says that a parent is not there; `directory` is
    then the last one that is.
    """

    directory: int
    name: str
    path: Path
    root: Path
    missing: bool = False
    notes: NoteFiles = field(default_factory=NoteFiles, compare=False)


class PathGuard:
    """What a session reaches: its workspace, where relative paths begin as the layout says, and
    the folders of `roots` besides it. Nothing is opened that is not ``within`` the session's scope;
    where a path leads may be asked of any. Nothing is made but what leads to one of ``writes``,
    where these are known: a folder on the way may have become a link since it was decided about."""

    def __init__(
        self,
        resolved: ResolvedLayout,
        roots: Sequence[Path] = (),
        *,
        hidden: Hidden | None = None,
        within: Callable[[str], bool] | None = None,
        writes: Sequence[str] | None = None,
    ) -> None:
        self.within = within
        self.writes = None if writes is None else tuple(writes)
        self.layout = resolved.layout
        self.roots = (self.layout.files, *roots)
        self.hidden = hidden or Hidden()
        self.notes = NoteFiles(self.hidden.masks)
        self._real: dict[str, str] = {}
        self._home, self._files = str(resolved.home), str(resolved.files)
        home = os.path.normpath(self.layout.home)
        # The working folder may be a link of its owner's to another disk.
        lexical = [home, self._files, *map(os.path.normpath, roots)]
        for root in lexical:
            # One inside another is reached through that one: on its own it could be swapped for
            # a link to anywhere by whoever may write in the outer one.
            if any(inside_of(root, outer) for outer in lexical):
                continue
            real = self._home if root == home else os.path.realpath(root)
            self._real[root] = self._real[real] = real

    @contextmanager
    def parent(
        self,
        text: str,
        *,
        follow_last: bool = True,
        make: bool = False,
        made: list[Path] | None = None,
    ) -> Iterator[Spot]:
        """The directory that holds what `text` names, open until the context is left.

        `make` creates missing parents and adds them to `made`, the outer ones first. Raises
        `ToolError` for whatever leads out of the roots, for a link as the last part where
        `follow_last` is False, and for what is hidden where `make` would put something in its
        place.
        """
        with closing(_Walk(self, text, follow_last=follow_last, make=make, made=made)) as walk:
            spot = walk.go()
            walk.let_go()
            if self.within is not None and not self.within(str(spot.path)):
                raise ToolError(f"{shown(text)} leads out of what this session may reach")
            if make:
                self.refuse_moved(text, str(spot.path), whole=True)
            yield spot

    @contextmanager
    def writing(self, text: str, *, make: bool = False) -> Iterator[Spot]:
        """As `parent`, for a file to be written. Raises `ToolError` also for a root, for what the
        gateway alone writes, and for what does not lead to what was decided about."""
        with self.parent(text, follow_last=False, make=make) as spot:
            self.refuse_kept(str(spot.path))
            self.refuse_moved(text, str(spot.path), whole=True)
            if spot.name == ".":
                raise is_directory(text)
            yield spot

    @contextmanager
    def file(self, text: str) -> Iterator[tuple[int, Spot]]:
        """A readable handle of the regular file that `text` names. Raises `ToolError`."""
        with self.parent(text) as spot:
            if spot.missing:
                raise absent(text)
            with opened_file(spot.directory, spot.name, text, spot.notes) as handle:
                yield handle, spot

    @contextmanager
    def directory(self, text: str) -> Iterator[tuple[int, Spot]]:
        """A handle of the directory that `text` names. Raises `ToolError`."""
        with self.parent(text) as spot:
            if spot.missing:
                raise absent(text)
            with opened_at(spot.name, FOLDER, spot.directory, text) as handle:
                yield handle, spot

    def take_away(self, made: Sequence[Path]) -> None:
        """Remove the folders that are empty; `made` has the outer ones first."""
        for path in reversed(made):
            with suppress(OSError, ToolError), self.parent(str(path), follow_last=False) as spot:
                if not spot.missing:
                    os.rmdir(spot.name, dir_fd=spot.directory)

    def refuse_moved(self, text: str, path: str, *, whole: bool = False) -> None:
        """Raises `ToolError` for what is not, or does not lead to, what was decided about."""
        if self.writes is None:
            return
        if path in self.writes or (
            not whole and any(one.startswith(f"{path}/") for one in self.writes)
        ):
            return
        raise ToolError(f"{shown(text)} leads elsewhere than when it was looked at; try again")

    def resolve(self, text: str) -> Path:
        """Where `text` leads, whether or not it exists. Raises `ToolError`."""
        with closing(_Walk(self, text, follow_last=True, make=False)) as walk:
            return walk.go().path

    def writable(self, text: str) -> Path:
        """As `resolve`, for a file to be written. Raises `ToolError` where the gateway alone
        writes, too."""
        with closing(_Walk(self, text, follow_last=False, make=False)) as walk:
            path = walk.go().path
            self.refuse_kept(str(path))
            return path

    def refuse_kept(self, path: str) -> None:
        """Raises `ToolError` for what the gateway alone writes."""
        if inside_of(path, self._files) is not None or inside_of(self._files, path) is not None:
            # In it, or on the way there: a worktree lies in the gateway's own folder.
            return
        if _is_kept(path, self._home):
            name = (inside_of(path, self._home) or "").partition("/")[0]
            raise ToolError(f"{name}/ belongs to the gateway: it may be read, not written")

    def place(self, path: PurePosixPath) -> tuple[str, deque[str]] | None:
        """The root that the absolute `path` enters first, and what is left to walk from there."""
        lexical = ""
        rest = deque(path.parts[1:])
        while True:
            real = self._real.get(lexical or "/")
            if real is not None:
                return real, rest
            if not rest:
                return None
            part = rest.popleft()
            lexical = lexical.rpartition("/")[0] if part == ".." else f"{lexical}/{part}"

    def refusal(self, text: str) -> ToolError:
        named = ", ".join(str(root) for root in self.roots)
        return ToolError(f"{shown(text)} is outside of what may be reached: {named}")


def foreign(path: Path, resolved: ResolvedLayout) -> bool:
    """Whether content at the canonical `path` is not the agent's own: that of other roots, kept
    outputs, uploads."""
    text, home = str(path), str(resolved.home)
    if inside_of(text, str(resolved.files)) is not None:
        return False
    return inside_of(text, home) is None or _is_kept(text, home)


def _is_kept(path: str, home: str) -> bool:
    """Whether the gateway alone writes at `path`; what lies outside of `home` is not its matter."""
    inside = inside_of(path, home) or ""
    return inside.partition("/")[0].casefold() in _KEPT


def absent(text: str) -> ToolError:
    """What is said of a path where there is nothing."""
    return ToolError(f"{shown(text)} does not exist")


def is_directory(text: str) -> ToolError:
    """What is said of a folder where a file is meant."""
    return ToolError(f"{shown(text)} is a directory")


def shown(text: str) -> str:
    """A path as an error names it: printable, and no longer than a line."""
    return printable_name(text)


@contextmanager
def opened_file(directory: int, name: str, text: str, notes: NoteFiles) -> Iterator[int]:
    """A handle of a regular file; FIFOs, devices and sockets are refused without waiting.

    One of the `notes` that are hidden is absent, whatever its name here (CTX-6).
    """
    with opened_at(name, _FILE, directory, text) as handle:
        opened = os.fstat(handle)
        mode = opened.st_mode
        if notes.hold(opened):
            raise absent(text)
        if stat.S_ISDIR(mode):
            raise is_directory(text)
        if not stat.S_ISREG(mode):
            raise ToolError(f"{shown(text)} is not a regular file")
        yield handle


@contextmanager
def opened_at(name: str, flags: int, directory: int, text: str) -> Iterator[int]:
    """A name below an open directory, closed behind the block. Raises `ToolError`, which calls it
    `text`."""
    try:
        handle = os.open(name, flags, dir_fd=directory)
    except OSError as error:
        raise os_error(error, text) from error
    try:
        yield handle
    finally:
        os.close(handle)


def os_error(error: OSError, text: str) -> ToolError:
    """What the operating system said of a path, as a sentence for the model."""
    match error:
        case FileNotFoundError():
            return absent(text)
        case NotADirectoryError():
            said = "is not a directory, or one of its parts is not"
        case _:
            said = f"cannot be used: {error.strerror or type(error).__name__}"
    return ToolError(f"{shown(text)} {said}")


class _Walk:
    """One path on its way from a root; holds a handle of every directory above, until `close`."""

    def __init__(
        self,
        guard: PathGuard,
        text: str,
        *,
        follow_last: bool,
        make: bool,
        made: list[Path] | None = None,
    ) -> None:
        self._guard = guard
        self._text = text
        self._follow_last = follow_last
        self._make = make
        self._made = [] if made is None else made
        self._root = ""
        self._handles: list[int] = []
        self._folders: list[str] = []
        self._hops = 0

    def go(self) -> Spot:
        try:
            return self._go(self._enter(_absolute(self._text, self._guard.layout)))
        except OSError as error:
            raise os_error(error, self._text) from error

    def _go(self, rest: deque[str]) -> Spot:
        while rest:
            name = rest.popleft()
            if name == "..":
                rest = self._up(rest)
                continue
            name = self._spelled(name)
            path = self._path(name)
            if self._guard.hidden.stray(path):
                raise self._guard.refusal(self._text)
            if self._guard.hidden.covers(path):
                return self._absent([name, *rest])
            target = self._link(name)
            if target is not None:
                rest = self._follow(target, rest)
                continue
            if not rest:
                return self._spot(name)
            if not self._down(name, path):
                return self._absent([name, *rest])
        covered = self._guard.hidden.covers(self._folders[-1])
        return self._absent([]) if covered else self._spot(".")

    def _enter(self, path: PurePosixPath) -> deque[str]:
        placed = self._guard.place(path)
        if placed is None:
            raise self._guard.refusal(self._text)
        self.close()
        self._root, rest = placed
        self._handles.append(os.open(self._root, FOLDER))
        self._folders.append(self._root)
        return rest

    def let_go(self) -> None:
        """Close all handles but the last: the way is over."""
        *above, last = self._handles
        self._handles = [last]
        for handle in above:
            os.close(handle)

    def close(self) -> None:
        while self._handles:
            os.close(self._handles.pop())
        self._folders.clear()

    def _up(self, rest: deque[str]) -> deque[str]:
        if len(self._folders) == 1:
            return self._enter(PurePosixPath(dirname(self._root), *rest))
        self._folders.pop()
        os.close(self._handles.pop())
        return rest

    def _spelled(self, name: str) -> str:
        """The name as the directory has it, where it is there in another spelling only. Raises
        `ToolError` where it is there in several."""
        if has_one_spelling(name):
            return name
        directory = self._handles[-1]
        with suppress(OSError):
            os.stat(name, dir_fd=directory, follow_symlinks=False)
            return name
        twins = [one for one in _twins(directory, name) if not self._is_hidden(one)]
        if len(twins) > 1:
            named = " and ".join(ascii(one) for one in sorted(twins)[:_NAMED_TWINS])
            raise ToolError(
                f"{shown(self._text)} does not exist, and {counted(len(twins), 'name')} there look "
                f"like it: {named}; use one of these with its exact characters"
            )
        return twins[0] if twins else name

    def _is_hidden(self, name: str) -> bool:
        path = self._path(name)
        return self._guard.hidden.stray(path) or self._guard.hidden.covers(path)

    def _link(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self._handles[-1])
        except OSError:
            # No link, or not there: what opens it next says which.
            return None

    def _follow(self, target: str, rest: deque[str]) -> deque[str]:
        if not rest and not self._follow_last:
            raise ToolError(
                f"{shown(self._text)} is a symbolic link to {shown(target)}; "
                "links are not written through: name the file itself"
            )
        self._hops += 1
        if self._hops > _HOPS:
            raise ToolError(f"{shown(self._text)} leads through too many symbolic links")
        path = PurePosixPath(target)
        if path.is_absolute():
            return self._enter(path / PurePosixPath(*rest))
        return deque([*path.parts, *rest])

    def _down(self, name: str, path: str) -> bool:
        """Go into a directory; False when it is not there."""
        if self._make:
            self._guard.refuse_kept(path)
            self._guard.refuse_moved(self._text, path)
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._handles[-1])
                self._made.append(Path(path))
        try:
            self._handles.append(os.open(name, FOLDER, dir_fd=self._handles[-1]))
        except FileNotFoundError:
            return False
        self._folders.append(path)
        if len(self._folders) > _DEPTH + 1:
            raise ToolError(f"{shown(self._text)} is more than {_DEPTH} directories deep")
        return True

    def _absent(self, rest: Sequence[str]) -> Spot:
        """Where a path leads that is hidden, or whose parent is not there.

        Nothing below is looked at, so nothing there can be a link.
        """
        if self._make:
            raise absent(self._text)
        below = (inside_of(self._folders[-1], self._root) or "").split("/")
        names = list(filter(None, below))
        for part in rest:
            if part != "..":
                names.append(part)
            elif names:
                names.pop()
            else:
                raise self._guard.refusal(self._text)
        root = Path(self._root)
        path = root.joinpath(*names)
        return Spot(self._handles[-1], path.name, path, root, missing=True)

    def _path(self, name: str) -> str:
        folder = self._folders[-1]
        return f"{folder}{name}" if folder == "/" else f"{folder}/{name}"

    def _spot(self, name: str) -> Spot:
        path = Path(self._folders[-1] if name == "." else self._path(name))
        return Spot(self._handles[-1], name, path, Path(self._root), notes=self._guard.notes)


def _twins(directory: int, name: str) -> list[str]:
    """The names in a directory that differ from `name` only in their spelling."""
    meant = folded_name(name)
    try:
        with os.scandir(directory) as entries:
            return [one.name for one in entries if folded_name(one.name) == meant]
    except OSError:
        # It may be entered and not listed: then only exact names are there.
        return []


def _absolute(text: str, layout: Layout) -> PurePosixPath:
    if "\0" in text:
        raise ToolError("a path cannot hold a NUL character")
    if len(text) > _LENGTH:
        raise ToolError(f"a path cannot be longer than {_LENGTH} characters")
    if text.startswith("~"):
        user, _, rest = text[1:].partition("/")
        # The password database rather than $HOME: only the configuration reads the environment.
        with suppress(KeyError):
            home = (pwd.getpwnam(user) if user else pwd.getpwuid(os.getuid())).pw_dir
            return PurePosixPath(home, rest.lstrip("/"))
    return layout.locate(text)
