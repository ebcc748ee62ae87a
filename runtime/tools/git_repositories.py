"""Which repositories a command may meet, and the small files in them (POL-9). Blocks on files.

It reads no configuration and decides nothing. Everything is bounded, because whoever writes files
without being asked could make every later command wait.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from runtime.domain.printable import printable_path
from runtime.tools.git_config import BadConfig

MOST_FOLDERS: Final = 2048
"""Folders below each root that are looked into for further repositories."""
MOST_REPOSITORIES: Final = 512
_INSIDE: Final = 4
"""So many times more folders are looked into inside of all repositories: git makes 256 of them for
the objects of each."""
_MOST_NAMES: Final = 65_536
"""Names below each root, whatever has them."""
_MOST_PATH: Final = 4096
_MOST_PARTS: Final = 128
_MOST_LINKS: Final = 16_384
"""Parts of all paths together."""
_PROCESSES: Final = "/proc"
_MOST_INDEX: Final = 32 * 1024 * 1024
_MOST_INDEXES: Final = 128 * 1024 * 1024
_SAMPLE: Final = ".sample"
_MOST_SAMPLES: Final = 100
_MARKS: Final = frozenset({".git", "head"})
"""Names of which a folder with a repository holds one, in small letters."""
_LAID_OUT: Final = ("config", "commondir", "objects")
_GITLINK: Final = b"\x00\x00\xe0\x00"
"""The mode of a submodule in an index, in every version of its format."""
_OFFSETS: Final = b"IEOT"
"""The part of an index that says where entries begin, which then may be anywhere."""
_MOST_STRAY: Final = 1000


@dataclass(frozen=True, slots=True)
class Survey:
    """`places` are the folders in which the repositories that a command may meet keep their
    configuration, and `trees` those in which their files may be. `whole`: every folder below the
    roots was looked at. `hooked` names a hook, if there is one."""

    places: tuple[Path, ...]
    trees: tuple[Path, ...]
    whole: bool
    hooked: str


def laid_out(there: Callable[[str], bool]) -> bool:
    """Whether a folder may be a repository without a name. `there` says which names it holds.

    Git asks for more; but what is missing may come later, by a write that nobody is asked about.
    """
    return there("HEAD") and any(map(there, _LAID_OUT))


class Paths:
    """Where paths lead. Each part of them is asked for once: many lie in a few folders."""

    def __init__(self) -> None:
        self._links: dict[str, str | None] = {}

    def real(self, path: Path) -> Path:
        """An absolute path without links, so that each repository has one name.

        Raises `BadConfig` where it leads through /proc, by its name or by a link: there every
        process finds something else.
        """
        at, left = "", str(path).split("/")[::-1]
        for _ in range(_MOST_PARTS):
            if not left:
                return Path(at or "/")
            part = left.pop()
            if part in ("", "."):
                continue
            below, at = at, at.rpartition("/")[0] if part == ".." else f"{at}/{part}"
            if at == _PROCESSES:
                raise BadConfig(
                    f"{printable_path(path)} leads through {_PROCESSES}, "
                    "which is another for each process"
                )
            target = None if part == ".." else self._link(at)
            if target is not None:
                at = "" if target.startswith("/") else below
                left += target.split("/")[::-1]
        raise BadConfig(
            f"{printable_path(path)} cannot be read: it leads through too many folders or links"
        )

    def _link(self, text: str) -> str | None:
        if text not in self._links:
            if len(self._links) >= _MOST_LINKS:
                raise BadConfig(
                    f"{printable_path(Path(text))}: too many paths lead through folders here"
                )
            self._links[text] = None
            with suppress(OSError, ValueError):
                self._links[text] = os.readlink(text)  # noqa: PTH115 - a text is faster
        return self._links[text]


class SmallFiles:
    """Files of at most `most` bytes in all; `what` says what they hold."""

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._left = most
        self._what = what
        self._paths = Paths()

    def content(self, path: Path) -> bytes | None:
        """None where there is no file. Raises `BadConfig` for what is there and cannot be read."""
        self._paths.real(path)
        raw = _head(path, self._left + 1)
        if raw is None:
            return None
        self._left -= len(raw)
        if self._left < 0:
            raise BadConfig(
                f"{printable_path(path)}: this is more than {self._most:,} bytes of {self._what}"
            )
        return raw


def _head(path: Path, most: int) -> bytes | None:
    """The first `most` bytes. Raises `BadConfig` for what is there and cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise BadConfig(f"{printable_path(path)} cannot be read") from error
    raw = b""
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode):
            with os.fdopen(handle, "rb", closefd=False) as file:
                raw = file.read(most)
    except OSError as error:
        raise BadConfig(f"{printable_path(path)} cannot be read") from error
    finally:
        os.close(handle)
    if stat.S_ISDIR(mode):
        return None
    if not stat.S_ISREG(mode):
        raise BadConfig(f"{printable_path(path)} is not a plain file")
    return raw


def surveyed(folders: Sequence[Path], roots: Iterable[Path]) -> Survey:
    """The repositories that `folders` may be in and those below the roots, with those inside of
    them. Raises `BadConfig`."""
    paths = Paths()
    begun = [paths.real(folder.absolute()) for folder in folders]
    trees = dict.fromkeys(place for one in begun for place in (one, *one.parents))
    whole = True
    for root in roots:
        looked = _walk([paths.real(root.absolute())], leave=".git", most=MOST_FOLDERS)
        whole = whole and looked.whole
        trees |= dict.fromkeys(looked.marked)
    places, inside = _insides(tuple(trees), paths)
    hooked = next(filter(None, map(_hook, places)), "")
    return Survey(places, tuple(trees), whole and inside, hooked)


def _insides(trees: Iterable[Path], paths: Paths) -> tuple[tuple[Path, ...], bool]:
    """The repositories that belong to `trees`, those that they lead to and those inside of all of
    these; whether these were looked at as a whole."""
    queue = _Queue()
    queue.add(git for tree in trees for git in _git_of(tree, paths))
    places: dict[Path, None] = {}
    walked: set[Path] = set()
    left, whole = _INSIDE * MOST_FOLDERS, True
    # It grows by what is found inside.
    for own in queue.repositories:
        both = dict.fromkeys((own, _led(own / "commondir", own, paths) or own))
        places |= both
        if len(places) > MOST_REPOSITORIES:
            raise _too_many()
        for folder in both:
            if not walked.isdisjoint((folder, *folder.parents)):
                continue
            walked.add(folder)
            # First those of submodules and of worktrees, which git keeps there.
            kept = [folder / name for name in ("modules", "worktrees")]
            inside = _walk([*kept, folder], leave="", most=left)
            left -= inside.looked
            whole = whole and inside.whole
            queue.add(git for place in inside.marked for git in _git_of(place, paths))
    return tuple(places), whole


class _Queue:
    """Repositories in the order in which they were found, each once."""

    def __init__(self) -> None:
        self.repositories: list[Path] = []
        self._known: set[Path] = set()

    def add(self, found: Iterable[Path]) -> None:
        """Raises `BadConfig` where there are too many."""
        for repository in found:
            if repository in self._known:
                continue
            self._known.add(repository)
            self.repositories.append(repository)
            if len(self._known) > MOST_REPOSITORIES:
                raise _too_many()


def _too_many() -> BadConfig:
    return BadConfig(f"there are more than {MOST_REPOSITORIES} repositories to look at")


def _hook(place: Path) -> str:
    """Says that a repository has a hook; empty where it has none."""
    try:
        with os.scandir(place / "hooks") as found:
            first = islice(found, _MOST_SAMPLES)
            named = next((one for one in first if not one.name.endswith(_SAMPLE)), None)
            named = named or next(found, None)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        return f"{printable_path(place / 'hooks')} cannot be read"
    return "" if named is None else f"{printable_path(Path(named.path))} may be a hook"


def _git_of(tree: Path, paths: Paths) -> Iterator[Path]:
    own = tree / ".git"
    led = _led(own, tree, paths, b"gitdir: ")
    if led is not None:
        yield led
    elif is_there(own) and _is_folder(own):
        yield paths.real(own)
    if laid_out(lambda name: os.path.lexists(tree / name)):
        yield tree


def _led(file: Path, base: Path, paths: Paths, word: bytes = b"") -> Path | None:
    """Where a small file that holds a path leads, relative to `base`, as git reads it: a path is
    bytes and ends with a NUL, and nothing but line ends is taken off. Raises `BadConfig`."""
    if not os.path.lexists(file):
        return None
    content = _head(paths.real(file), len(word) + _MOST_PATH + 2)
    if content is None or not content.startswith(word):
        return None
    path = content.removeprefix(word).rstrip(b"\r\n").partition(b"\0")[0]
    # What is longer was not read to its end: git may read another path there.
    if len(content) > len(word) + _MOST_PATH or path.count(b"/") > _MOST_PARTS:
        raise BadConfig(f"{printable_path(file)} holds no path")
    return paths.real(base / os.fsdecode(path)) if path else None


@dataclass(frozen=True, slots=True)
class _Walked:
    """`marked` are the folders that hold what looks like a repository. `whole`: every folder was
    looked at."""

    marked: tuple[Path, ...]
    whole: bool
    looked: int


def _walk(tops: Sequence[Path], *, leave: str, most: int) -> _Walked:
    """`tops` and the folders below, the nearest first, without links and those of the name `leave`;
    at most `most` of them."""
    folders, marked, whole = [str(top) for top in tops], list[str](), True
    queued = set(folders)
    names_left = _MOST_NAMES
    # Paths as texts and one question for each folder: this is done before every command.
    for looked, folder in enumerate(folders):
        if looked >= most or names_left < 0:
            return _Walked(tuple(map(Path, marked)), whole=False, looked=looked)
        try:
            with os.scandir(folder) as found:
                entries = list(islice(found, names_left + 1))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            # It may be entered all the same.
            if _can_be_asked(folder):
                marked.append(folder)
            whole = False
            continue
        names_left -= len(entries)
        # Of one with too many names, nobody knows what else it holds.
        if names_left < 0 or not _MARKS.isdisjoint(entry.name.casefold() for entry in entries):
            marked.append(folder)
        with suppress(OSError):
            below = sorted(
                entry.path
                for entry in entries
                if entry.name != leave and entry.is_dir(follow_symlinks=False)
            )
            folders += (path for path in below if path not in queued)
    return _Walked(tuple(map(Path, marked)), whole and names_left >= 0, len(folders))


def _can_be_asked(folder: str) -> bool:
    """Whether anybody here can look for a repository in a folder: not where it is closed to the
    gateway's user, and not where its path is too long for the system."""
    try:
        os.lstat(f"{folder}/.git")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def is_there(path: Path) -> bool:
    """Whether something has this path. Raises `BadConfig` where nobody can tell."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        raise BadConfig(f"{printable_path(path)} cannot be read") from error
    return True


def _is_folder(path: Path) -> bool:
    """Also one that a link leads to. Raises `BadConfig` where nobody can tell."""
    try:
        return path.is_dir()
    except OSError as error:
        raise BadConfig(f"{printable_path(path)} cannot be read") from error


def submodules(survey: Survey) -> str:
    """Says that git may go on from a repository into submodules; empty where it cannot."""
    named = next((tree for tree in survey.trees if os.path.lexists(tree / ".gitmodules")), None)
    if named is not None:
        return f"{printable_path(named)} may have submodules"
    read = 0
    for place in survey.places:
        if os.path.lexists(place / "modules"):
            return f"{printable_path(place)} may have submodules"
        for index in _indexes(place):
            raw = b"" if read > _MOST_INDEXES else _head(index, _MOST_INDEX + 1)
            if raw is None:
                continue
            read += len(raw)
            if max(read - _MOST_INDEXES, len(raw) - _MOST_INDEX) > 0:
                return f"{printable_path(index)} is too large to look for submodules in it"
            if _holds_gitlink(raw):
                return f"{printable_path(index)} may hold submodules"
    return ""


def _indexes(place: Path) -> list[Path]:
    try:
        with os.scandir(place) as found:
            names = [one.name for one in islice(found, _MOST_NAMES + 1)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise BadConfig(f"{printable_path(place)} cannot be read") from error
    if len(names) > _MOST_NAMES:
        raise BadConfig(f"{printable_path(place)} holds more than {_MOST_NAMES:,} names")
    plain = (name for name in names if name.casefold().startswith(("index", "sharedindex.")))
    return [place / name for name in plain if not name.endswith(".lock")]


def _holds_gitlink(raw: bytes) -> bool:
    """Whether an index may hold a submodule.

    The bytes may also be a part of something else, such as the size of a file. In versions 2 and 3
    each entry begins at a multiple of eight behind the head, so modes stand where no size does.
    """
    anywhere = raw[4:8] not in (b"\0\0\0\2", b"\0\0\0\3") or _OFFSETS in raw
    place = -1
    for _ in range(_MOST_STRAY):
        place = raw.find(_GITLINK, place + 1)
        if place < 0:
            return False
        if anywhere or place % 8 == 4:
            return True
    return True
