"""The files that a command names as code: one value, and how several become one. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from posixpath import join

from runtime.policy.code_programs import OF_EACH_PROCESS
from runtime.policy.command_folders import MOST_LENGTH, MOST_STEPS, Folders, Place, spellings

MOST_NAMED = 512
"""Paths of one command, because each of them is looked up on the disk."""


@dataclass(frozen=True, slots=True)
class CodeFiles:
    """`paths` are relative to where the command begins, or absolute; those that are not there count
    too, because they could be put there. `scripts` are those of them that must be there, because
    something else would run in their place. `folders` hold programs that it may start. `known` is
    False where it may run more than these; `read` is False where the text could not be read, or
    names more than is looked at: then these are only the first of its files. `upward`
    are pairs of a folder and a name that is looked for in every folder above as well. `same` are
    spellings of one path each: where a link makes them several, nobody knows which one runs.

    A `..` stays as it is: what it leads to is known to whoever looks at the links before it."""

    paths: tuple[str, ...] = ()
    known: bool = True
    scripts: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    read: bool = True
    upward: tuple[tuple[str, str], ...] = ()
    same: tuple[Place, ...] = ()

    @property
    def names(self) -> bool:
        """Whether it names anything."""
        return bool(self.paths or self.folders or self.upward)

    @property
    def amount(self) -> int:
        """How many paths somebody has to look at."""
        several = sum(len(place) for place in self.same)
        return len(self.paths) + len(self.folders) + len(self.upward) + several

    def within(self, other: "CodeFiles") -> bool:
        """Whether all that it names is named by `other` as well."""
        named = {*self.paths, *self.folders, *self.upward}
        return self.read and named <= {*other.paths, *other.folders, *other.upward}


UNKNOWN = CodeFiles(known=False)
TOO_MUCH = CodeFiles(known=False, read=False)


def together(found: Iterable[CodeFiles]) -> CodeFiles:
    """What any of these runs; only the first of it where that is too much."""
    paths, scripts, folders = dict[str, None](), dict[str, None](), dict[str, None]()
    upward, same = dict[tuple[str, str], None](), dict[Place, None]()
    known = read = True
    for code in found:
        paths |= dict.fromkeys(code.paths)
        scripts |= dict.fromkeys(code.scripts)
        folders |= dict.fromkeys(code.folders)
        upward |= dict.fromkeys(code.upward)
        same |= dict.fromkeys(code.same)
        known, read = known and code.known, read and code.read
        several = sum(len(place) for place in same)
        if len(paths) + len(folders) + len(upward) + several > MOST_NAMED:
            break
    whole = (tuple(paths), known, tuple(scripts), tuple(folders), read, tuple(upward), tuple(same))
    return _bounded(CodeFiles(*whole))


def _bounded(code: CodeFiles) -> CodeFiles:
    """The first of what is named, where that is too much to look at."""
    if code.amount <= MOST_NAMED:
        return code
    paths, share = code.paths[: MOST_NAMED // 2], MOST_NAMED // 4
    return replace(TOO_MUCH, paths=paths, folders=code.folders[:share], upward=code.upward[:share])


def _short(code: CodeFiles) -> CodeFiles:
    """Without the paths that are too long to look at."""

    def short(*paths: str) -> bool:
        return all(len(path) <= MOST_LENGTH and path.count("/") <= MOST_STEPS for path in paths)

    upward = [base for base, _ in code.upward]
    places = [path for place in code.same for path in place]
    if short(*code.paths, *code.folders, *code.scripts, *upward, *places):
        return code
    return replace(
        TOO_MUCH,
        paths=tuple(filter(short, code.paths)),
        folders=tuple(filter(short, code.folders)),
        upward=tuple(pair for pair in code.upward if short(pair[0])),
    )


def run_in(here: Folders, code: CodeFiles) -> CodeFiles:
    """What a program runs in whichever of these folders; known where it is one."""
    if not code.names:
        return code
    code = _bounded(_short(code))
    # Counted before anything is placed, because each folder multiplies what is named.
    fitting = here.spellings[: max(1, MOST_NAMED // max(1, code.amount))]
    if len(fitting) < len(here.spellings):
        code = replace(code, known=False, scripts=(), read=False, same=())
    whole = together(_placed(code, folder) for folder in fitting)
    same = [place for place in here.places if len(place) > 1] if whole.read else []
    return replace(whole, known=whole.known and here.sure, same=(*whole.same, *same))


@lru_cache(maxsize=64)
def _placed(code: CodeFiles, folder: str) -> CodeFiles:
    def within(*paths: str) -> tuple[str, ...]:
        placed = (join(folder, one) for path in paths for one in spellings(path))
        return tuple(dict.fromkeys(one for path in placed for one in spellings(path)))

    paths = within(*code.paths)
    several = (within(path) for path in code.paths if ".." in path.split("/") or ".." in folder)
    return CodeFiles(
        paths,
        code.known and not any(path.startswith(OF_EACH_PROCESS) for path in paths),
        within(*code.scripts),
        within(*code.folders),
        code.read,
        tuple((base, name) for start, name in code.upward for base in within(start)),
        (*(one for one in several if len(one) > 1), *(within(*place) for place in code.same)),
    )
