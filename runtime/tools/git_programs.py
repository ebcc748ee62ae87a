"""What commands find in their environment against the programs that a repository names (POL-9).

Commands may write in `.git/`, because git must. So whoever gets one command to run could leave a
hook, a pager, a filter or a file monitor behind for the next one. Every key by which git's
configuration starts a program is set above the repository's own, by the variables of
git-config(1) (`GIT_CONFIG_COUNT`). Keys that hold a name of the repository's choice, such as
``filter.NAME.clean``, are found by reading its files before the command begins. What a command
itself asks for (``git -c core.pager=less log``) stands above this again: that is what was decided
about.

The other side of a push or a fetch between folders is started by git with none of these variables.
So git speaks to other folders only where no repository that was found has a hook, or a key that is
not known to be harmless over there.

Known limits: a repository that a command makes and configures itself; and one below more folders
than are looked at, to which a script leads and not the text, or which the command itself makes a
submodule.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runtime.domain.printable import printable_name, printable_path, quoted
from runtime.tools.git_config import MOST_BYTES, MOST_ENTRIES, BadConfig, Entry, entries
from runtime.tools.git_keys import ALWAYS, FALSE, PARTLY_SEEN, READING, may_be_across, stand_in
from runtime.tools.git_progress import GONE_ON_BY_SCRIPTS, PROGRESS
from runtime.tools.git_repositories import SmallFiles, Survey, is_there, submodules, surveyed

_MOST_FILES: Final = 1024
_MOST_PROGRESS: Final = 512 * 1024
"""Bytes of what repositories keep of works that stopped."""
_MOST_OVERRIDES: Final = 1000
_MOST_OVERRIDDEN: Final = 256 * 1024
"""Characters of all that is set above repositories: a command starts with no more than this and
much else in its environment."""

_VARIABLES: Final[Mapping[str, str]] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_ASKPASS": FALSE,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_SSH_COMMAND": "ssh",
    "GIT_PROXY_COMMAND": "",
}
"""Each stands above the key of the same meaning, in every repository."""
READING_VARIABLES: Final[Mapping[str, str]] = {
    # `git status` writes what it learned into the index otherwise, and starts a hook then.
    "GIT_OPTIONAL_LOCKS": "0",
    # An object that is missing is fetched otherwise, over whatever the repository names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
"""Beyond the others, in a mode in which nothing may be changed."""


@dataclass(frozen=True, slots=True)
class GitEnvironment:
    """`variables` for a command. `problem` says why git refuses to start in it, empty where it
    does start: a configuration that cannot be read cannot be kept from anything. `alone` says why
    git speaks to no other folder, empty where it does."""

    variables: Mapping[str, str]
    problem: str = ""
    alone: str = ""


def hardened(
    folders: Sequence[Path],
    roots: Iterable[Path],
    *,
    told: bool = True,
    reading: bool = False,
    granted: Mapping[str, str],
) -> GitEnvironment:
    """The environment of a command that may write in `roots`. It begins in the first of `folders`
    and goes on in the others; not `told`, wherever else it goes.

    What the operator `granted` stands above it; in a `reading` mode nothing is granted. Blocks on
    files.
    """
    always = {**ALWAYS, **(READING if reading else {})}
    variables = {**_VARIABLES, **(READING_VARIABLES if reading else granted)}
    try:
        survey = surveyed(folders, roots)
        if not told and (reading or not survey.whole):
            raise BadConfig("the command's text does not tell in which folder git would run")
        if not survey.whole:
            why = submodules(survey)
            if why:
                # Git would go on into a folder that was not looked at.
                raise BadConfig(f"{why}, and there are too many folders to look at all of them")
            always |= PARTLY_SEEN
        if not reading:
            _refuse_progress(survey)
        found, alone = _overrides(survey)
    except BadConfig as error:
        # Git ends with an error of its own where this is no number, and no program is started.
        return GitEnvironment({**variables, "GIT_CONFIG_COUNT": "refused"}, str(error))
    own = {"protocol.file.allow": "never"} if alone else {}
    # Those of the operator come last, because the last one holds.
    granted_pairs = () if reading else _granted_pairs(granted)
    pairs = (*always.items(), *own.items(), *found.items(), *granted_pairs)
    return GitEnvironment({**variables, **_numbered(pairs)}, alone=alone)


def _numbered(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _granted_pairs(granted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The configuration that an operator sets by the same variables."""
    count = granted.get("GIT_CONFIG_COUNT", "0")
    for number in range(int(count) if count.isdecimal() else 0):
        key = granted.get(f"GIT_CONFIG_KEY_{number}")
        value = granted.get(f"GIT_CONFIG_VALUE_{number}")
        if key is None or value is None:
            return
        yield key, value


def _overrides(survey: Survey) -> tuple[dict[str, str], str]:
    """What to set above the repositories' own, and why git must not speak to another folder."""
    found: dict[str, str] = {}
    alone = survey.hooked or ("" if survey.whole else "there are too many folders to look at")
    size = 0
    for path, read in _files(survey):
        for entry in read:
            standing = stand_in(entry)
            if standing is not None and entry.key not in found:
                found[entry.key] = standing
                size += len(entry.key) + len(standing)
            if not alone and not may_be_across(entry):
                key = printable_name(entry.key)
                alone = f"{printable_path(path)} sets {key}, which may start a program"
    if len(found) > _MOST_OVERRIDES:
        raise BadConfig(f"more than {_MOST_OVERRIDES:,} settings that start programs")
    if size > _MOST_OVERRIDDEN:
        raise BadConfig("settings that start programs have names that are too long")
    return found, alone


def _refuse_progress(survey: Survey) -> None:
    """Raises `BadConfig` where a repository would go on with a work that starts a program."""
    files = SmallFiles(_MOST_PROGRESS, "works that stopped")
    for place in survey.places:
        for name, why in GONE_ON_BY_SCRIPTS.items():
            if is_there(place / name):
                raise BadConfig(f"{printable_path(place / name)}: {why}; remove it to give that up")
        for name, judged in PROGRESS.items():
            path = place / name
            why = judged(files.content(path) or b"") if is_there(path) else ""
            if why:
                # What is kept in a folder of its own is given up with all of it.
                given_up = path if path.parent == place else path.parent
                do = f"change it, or remove {printable_path(given_up)} to give that up"
                raise BadConfig(f"{printable_path(path)}: {why}; {do}")


def _files(survey: Survey) -> Iterator[tuple[Path, tuple[Entry, ...]]]:
    """Every configuration file of the repositories, with those that they include, and what is in
    it. Raises `BadConfig`."""
    wanted = [place / name for place in survey.places for name in ("config", "config.worktree")]
    files = SmallFiles(MOST_BYTES, "configuration")
    seen: set[Path] = set()
    count = 0
    # It grows while it is read, by at most what `_MOST_FILES` files include.
    for path in wanted:
        if path in seen:
            continue
        seen.add(path)
        if len(seen) > _MOST_FILES:
            raise BadConfig(f"more than {_MOST_FILES} files of configuration")
        found = _parsed(path, files.content(path) or b"")
        count += len(found)
        if count > MOST_ENTRIES:
            raise BadConfig(f"more than {MOST_ENTRIES:,} variables of configuration")
        yield path, found
        wanted += _included(path, found)


def _parsed(path: Path, raw: bytes) -> tuple[Entry, ...]:
    """The variables of a file. Raises `BadConfig`."""
    try:
        return entries(raw)
    except BadConfig as error:
        raise BadConfig(f"{printable_path(path)}: {error}") from error


def _included(path: Path, found: Sequence[Entry]) -> Iterator[Path]:
    """What a file includes under any condition. A home is the command's own, and empty."""
    for entry in found:
        section = entry.section.partition(".")[0]
        includes = section in ("include", "includeif") and entry.name == "path"
        if not includes or not entry.value or entry.value.startswith("~/"):
            continue
        if entry.value[0] in "~%":
            value = quoted(entry.value, 200)
            raise BadConfig(f"{printable_path(path)} includes {value}, which only git can find")
        yield path.parent / entry.value
