"""What commands find in their environment against the programs that a repository names (POL-9).

Commands may write in `.git/`, because git must. So whoever gets one command to run could leave a
hook, a pager, a filter or a file monitor behind for the next one. Every key by which git's
configuration starts a program is set above the repository's own, by the variables of
git-config(1) (`GIT_CONFIG_COUNT`). Keys that hold a name of the repository's choice, such as
``filter.NAME.clean``, are found by reading its files before the command begins. What a command
itself asks for (``git -c core.pager=less log``) stands above this again: that is what was decided
about.

The other side of a push or a fetch between folders is started by git with none of these variables.
So git speaks to other folders only where no repository that was found has a hook or names a
program.

Known limits: a repository that a command makes and configures itself; and one below more folders
than are looked at, or inside of another's `.git`, to which a script leads and not the text.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runtime.policy import harmless_git
from runtime.policy.shell_syntax import Word
from runtime.tools.git_config import BadConfig, Entry, entries
from runtime.tools.git_progress import PROGRESS
from runtime.tools.hidden import canonical, of_process

MOST_FOLDERS: Final = 2048
"""Folders below each root that are looked into for further repositories."""
_MOST_FILES: Final = 1024
_MOST_BYTES: Final = 1024 * 1024
_MOST_BYTES_IN_ALL: Final = 4 * _MOST_BYTES
_MOST_OVERRIDES: Final = 1000
_MOST_PATH: Final = 4096
_FALSE: Final = "/bin/false"

_DIFF: Final = (
    'f() { printf "diff --git a/%s b/%s\\n" "$1" "$1"; '
    'diff -u --label "a/$1" --label "b/$1" "$2" "$5"; return 0; }; f'
)
"""What an external diff is replaced by: git has no value that switches one off."""
_MERGE: Final = "git merge-file --marker-size=%L %A %O %B"
"""What git does itself where no driver is named."""
_ALIAS: Final = "!f() { echo 'git: this alias may start a program: it is off here' >&2; false; }; f"
_ALIAS_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_ALIAS_SPLIT: Final = re.compile(r"[ \t\r\n]+")
_ALIAS_QUOTES: Final = frozenset("'\"\\")

_ALWAYS: Final[Mapping[str, str]] = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.editor": ":",
    "core.sshCommand": "ssh",
    "sequence.editor": ":",
    "credential.helper": "",
    "protocol.ext.allow": "never",
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.x509.program": "gpgsm",
    "gpg.ssh.defaultKeyCommand": _FALSE,
}
"""Set whether or not a repository names something else: git's own defaults."""
_READING: Final[Mapping[str, str]] = {
    "log.showSignature": "false",
    "gpg.program": _FALSE,
    "gpg.openpgp.program": _FALSE,
    "gpg.ssh.program": _FALSE,
    "gpg.x509.program": _FALSE,
}
_VARIABLES: Final[Mapping[str, str]] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_ASKPASS": _FALSE,
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
_NAMED: Final = (
    (r"alias(\..+)?\.[^.]+", _ALIAS),
    (r"core\.alternaterefscommand", "true"),
    (r"diff\.external|diff\..+\.command", _DIFF),
    (r"diff\..+\.textconv", "cat"),
    (r"filter\..+\.(clean|smudge|process)", ""),
    (r"filter\..+\.required", "false"),
    (r"merge\..+\.driver", _MERGE),
    (r"(merge|diff)tool\..+\.cmd", _FALSE),
    (r"(merge|diff)tool\..+\.path", ""),
    (r"hook\..+\.command", "true"),
    (r"interactive\.difffilter", "cat"),
    (r"credential\..+\.helper", ""),
    (r"gpg\..+\.(program|defaultkeycommand)", _FALSE),
    (r"submodule\..+\.update", "checkout"),
    (r"trailer\..+\.(command|cmd)", "true"),
    (r"tar\..+\.command", "cat"),
    (r"sendemail\.(.+\.)?([^.]*cmd|smtpserver)", _FALSE),
    (r"imap\.(.+\.)?tunnel", _FALSE),
    (r"(browser|man|guitool)\..+\.(cmd|path)", _FALSE),
    (r"(web\.browser|help\.browser|instaweb\.(httpd|browser)|svn\.authorsprog)", _FALSE),
    (r"lfs\.(customtransfer|extension)\..+\.(path|clean|smudge)", _FALSE),
)
"""Keys that are set only where a repository has them, each with what takes its place."""
_PATTERNS: Final = tuple((re.compile(pattern, re.DOTALL), value) for pattern, value in _NAMED)
_TOOL: Final = re.compile(r"(merge|diff)\.(gui)?tool")
"""Names a script of git's own, which is read as shell; a path would lead to another."""
_PLAIN_NAME: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_-]*")
_STAY: Final = frozenset({"gc.recentobjectshook", "remote.x.uploadpack", "remote.x.receivepack"})
"""Keys of which git runs every value, or the first: nothing that is set above takes one away."""
_OWN: Final = frozenset({"git-upload-pack", "git-receive-pack"})
_OTHER_SIDE: Final = re.compile(r"core\.(hookspath|fsmonitor)|gpg\.(.+\.)?program", re.DOTALL)
"""Keys of which a value may start a program on the other side of a push, beside those above."""
_SAMPLE: Final = ".sample"
_MARKS: Final = frozenset({".git", "head"})
"""Names of which a folder with a repository holds one, in small letters."""


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
    always = {**_ALWAYS, **(_READING if reading else {})}
    variables = {**_VARIABLES, **(READING_VARIABLES if reading else granted)}
    try:
        survey = _surveyed(folders, roots)
        if not told and (reading or not survey.whole):
            raise BadConfig("the command's text does not tell in which folder git would run")
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


def stand_in(entry: Entry) -> str | None:
    """What to set above a variable of a repository; None where it starts no program. Raises
    `BadConfig` where nothing can be set above it."""
    # Git parts a key at its first and its last dot: `[remote.x "y"]` is the remote `x.y`.
    # Between them may be nothing: `[diff ""]` is a driver as well.
    section, *middle = entry.key.split(".")[:-1]
    plain = f"{section}.{'x.' if middle else ''}{entry.name}"
    value = entry.value or ""
    if plain in _STAY and value not in _OWN:
        raise BadConfig(f"{entry.key} starts a program and cannot be switched off")
    if plain == "remote.x.vcs" and not _PLAIN_NAME.fullmatch(value):
        raise BadConfig(f"{entry.key} leads to a program and cannot be switched off")
    if _TOOL.fullmatch(plain):
        return None if _PLAIN_NAME.fullmatch(value) else "vimdiff"
    if entry.section == "alias" and _harmless_alias(value):
        return None
    if entry.section == "submodule" and not value.lstrip().startswith("!"):
        return None
    return next((standing for pattern, standing in _PATTERNS if pattern.fullmatch(plain)), None)


def _harmless_alias(value: str) -> bool:
    """Whether an alias is another name of a subcommand, or words that are known to start nothing.
    One more would be a program in quotes (``'-c' core.pager=x``) or a flag (``grep -Ox``)."""
    if _ALIAS_PLAIN.fullmatch(value):
        return True
    if _ALIAS_QUOTES & set(value):
        return False
    words = [word for word in _ALIAS_SPLIT.split(value) if word]
    return harmless_git.git([Word(word, word) for word in words]) is None


def _overrides(survey: "_Survey") -> tuple[dict[str, str], str]:
    """What to set above the repositories' own, and why git must not speak to another folder."""
    found: dict[str, str] = {}
    alone = survey.hooked or ("" if survey.whole else "there are too many folders to look at")
    for path, read in _files(survey):
        for entry in read:
            standing = stand_in(entry)
            if standing is not None:
                found[entry.key] = standing
            if standing is not None or _OTHER_SIDE.fullmatch(entry.key):
                alone = alone or f"{_shown(path)} sets {entry.key}, which may start a program"
    if len(found) > _MOST_OVERRIDES:
        raise BadConfig(f"more than {_MOST_OVERRIDES:,} settings that start programs")
    return found, alone


def _refuse_progress(survey: "_Survey") -> None:
    """Raises `BadConfig` where a repository would go on with a work that starts a program."""
    for place in survey.places:
        for name, judged in PROGRESS.items():
            why = judged(_content(place / name) or b"")
            if why:
                path = _shown(place / name)
                given_up = f"change it, or remove {_shown((place / name).parent)} to give that up"
                raise BadConfig(f"{path}: {why}; {given_up}")


def _parsed(path: Path, raw: bytes) -> tuple[Entry, ...]:
    """The variables of a file. Raises `BadConfig`."""
    try:
        return entries(raw)
    except BadConfig as error:
        raise BadConfig(f"{_shown(path)}: {error}") from error


def _content(path: Path) -> bytes | None:
    """Raises `BadConfig` for what is there and cannot be read."""
    if of_process(path):
        raise BadConfig(f"{_shown(path)} leads through /proc, which is another for each process")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise BadConfig(f"{_shown(path)} cannot be read") from error
    raw = b""
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode):
            with os.fdopen(handle, "rb", closefd=False) as file:
                raw = file.read(_MOST_BYTES + 1)
    finally:
        os.close(handle)
    if stat.S_ISDIR(mode):
        return None
    if not stat.S_ISREG(mode) or len(raw) > _MOST_BYTES:
        raise BadConfig(f"{_shown(path)} is no plain file of at most {_MOST_BYTES:,} bytes")
    return raw


def _files(survey: "_Survey") -> Iterator[tuple[Path, tuple[Entry, ...]]]:
    """Every configuration file of the repositories, with those that they include, and what is in
    it. Raises `BadConfig`."""
    wanted = [place / name for place in survey.places for name in ("config", "config.worktree")]
    seen: set[Path] = set()
    size = 0
    # It grows while it is read, by at most what `_MOST_FILES` files include.
    for path in wanted:
        if path in seen:
            continue
        seen.add(path)
        if len(seen) > _MOST_FILES:
            raise BadConfig(f"more than {_MOST_FILES} files of configuration")
        raw = _content(path) or b""
        size += len(raw)
        if size > _MOST_BYTES_IN_ALL:
            raise BadConfig(f"more than {_MOST_BYTES_IN_ALL:,} bytes of configuration")
        found = _parsed(path, raw)
        yield path, found
        wanted += _included(path, found)


def _included(path: Path, found: Sequence[Entry]) -> Iterator[Path]:
    """What a file includes under any condition. A home is the command's own, and empty."""
    for entry in found:
        includes = entry.section in ("include", "includeif") and entry.name == "path"
        if not includes or not entry.value or entry.value.startswith("~/"):
            continue
        if entry.value[0] in "~%":
            raise BadConfig(f"{_shown(path)} includes {entry.value}, which only git can find")
        yield path.parent / entry.value


@dataclass(frozen=True, slots=True)
class _Survey:
    """`places` are the folders in which the repositories that a command may meet keep their
    configuration. `whole`: every folder below the roots was looked at. `hooked` names a hook, if
    there is one."""

    places: tuple[Path, ...]
    whole: bool
    hooked: str


def _surveyed(folders: Sequence[Path], roots: Iterable[Path]) -> _Survey:
    """Raises `BadConfig`."""
    found, whole = _repositories(folders, roots)
    places: dict[Path, None] = {}
    walked: set[Path] = set()
    left = MOST_FOLDERS
    for own in found:
        common = _led(own / "commondir", own) or own
        places |= dict.fromkeys((own, common))
        if common in walked:
            continue
        walked.add(common)
        # Those of submodules and of worktrees, which git keeps inside of the repository.
        for name in ("modules", "worktrees"):
            kept = _walk(common / name, leave="", most=left)
            left -= kept.looked
            places |= dict.fromkeys(kept.marked)
        # And any other that somebody put there.
        inside = _walk(common, leave="", most=left)
        left -= inside.looked
        whole = whole and inside.whole
        places |= dict.fromkeys(place for one in inside.marked for place in _git_of(one))
    return _Survey(tuple(places), whole, next(filter(None, map(_hook, places)), ""))


def _hook(place: Path) -> str:
    """Says that a repository has a hook; empty where it has none."""
    try:
        names = os.listdir(place / "hooks")  # noqa: PTH208 - one question to the disk
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        return f"{_shown(place / 'hooks')} cannot be read"
    named = next((name for name in names if not name.endswith(_SAMPLE)), None)
    return "" if named is None else f"{_shown(place / 'hooks' / named)} may be a hook"


def _repositories(folders: Sequence[Path], roots: Iterable[Path]) -> tuple[list[Path], bool]:
    """The repositories that `folders` may be in and those below the roots; whether these were
    looked at as a whole."""
    through = next((folder for folder in folders if of_process(folder)), None)
    if through is not None:
        raise BadConfig(f"{_shown(through)} leads through /proc, which is another for each process")
    begun = [canonical(folder) for folder in folders]
    above = dict.fromkeys(place for one in begun for place in (one, *one.parents))
    found = [git for place in above for git in _git_of(place)]
    whole = True
    for root in roots:
        looked = _walk(root)
        whole = whole and looked.whole
        found += [git for place in looked.marked for git in _git_of(place)]
    return list(dict.fromkeys(found)), whole


def _git_of(place: Path) -> Iterator[Path]:
    own = place / ".git"
    led = _led(own, place, b"gitdir: ")
    if led is not None:
        yield led
    elif own.is_dir():
        yield own
    # A folder that is laid out like one is a repository without a name.
    configured = any(os.path.lexists(place / name) for name in ("config", "commondir"))
    if configured and os.path.lexists(place / "HEAD"):
        yield place


def _led(file: Path, base: Path, word: bytes = b"") -> Path | None:
    """Where a small file that holds a path leads, relative to `base`, as git reads it: a path is
    bytes and ends with a NUL, and nothing but line ends is taken off. Raises `BadConfig`."""
    content = _content(file)
    if content is None or not content.startswith(word):
        return None
    path = content.removeprefix(word).rstrip(b"\r\n").partition(b"\0")[0]
    if len(path) > _MOST_PATH:
        raise BadConfig(f"{_shown(file)} holds no path")
    return base / os.fsdecode(path) if path else None


def _shown(path: Path) -> str:
    """A path as text, whatever bytes it is made of."""
    return os.fsencode(path).decode(errors="backslashreplace")


@dataclass(frozen=True, slots=True)
class _Walked:
    """`marked` are the folders that hold what looks like a repository. `whole`: every folder was
    looked at."""

    marked: tuple[Path, ...]
    whole: bool
    looked: int


def _walk(top: Path, *, leave: str = ".git", most: int | None = None) -> _Walked:
    """`top` and the folders below, the nearest first, without links and those of the name `leave`;
    at most `most`, or `MOST_FOLDERS`."""
    most = MOST_FOLDERS if most is None else most
    folders, marked, whole = [str(top)], list[str](), True
    # Paths as texts and one question for each folder: this is done before every command.
    for looked, folder in enumerate(folders):
        if looked == most:
            whole = False
            break
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            marked.append(folder)
            whole = False
            continue
        if not _MARKS.isdisjoint(entry.name.casefold() for entry in entries):
            marked.append(folder)
        with suppress(OSError):
            folders += (
                entry.path
                for entry in entries
                if entry.name != leave and entry.is_dir(follow_symlinks=False)
            )
    return _Walked(tuple(map(Path, marked)), whole, min(len(folders), most))
