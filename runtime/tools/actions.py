"""A prepared call as one action, with the files that its command runs as they are now (APR-9)."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from posixpath import join

from runtime.domain.actions import Action, CodeFile
from runtime.domain.tools import ToolCall, Touches
from runtime.policy.code_files import code_files
from runtime.policy.code_programs import INTERPRETERS, SHELLS
from runtime.policy.code_references import CodeFiles
from runtime.policy.command_folders import cleaned
from runtime.tools.base import Prepared, ToolContext
from runtime.tools.canonical_paths import CanonicalPaths, above
from runtime.tools.hidden_paths import of_process
from runtime.workspace.layout import inside_of

_MOST_BYTES = 8 * 1024 * 1024
"""Of a file that is held to its content; what is larger cannot be allowed for a session."""
_MOST_BYTES_IN_ALL = 64 * 1024 * 1024
_MOST_FILES = 1024
"""Files that are looked at for one action, with those that are looked for in folders above."""


def action_of(call: ToolCall, prepared: Prepared, touches: Touches, context: ToolContext) -> Action:
    """The action of a call. Blocks on the files that a command names."""
    arguments = prepared.arguments.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if touches.command is None or touches.folder is None:
        return Action(tool=call.name, arguments=arguments)
    code, folder = code_files(touches.command), touches.folder
    look = _Look(context)
    named = list(islice(_named(code, folder, look.paths), _MOST_FILES + 1))
    found = [look.at(path, sought=sought) for path, sought in named[:_MOST_FILES]]
    # Two spellings may be one file.
    files = tuple({one.path: one for one in found if one is not None}.values())
    scripts = [look.at(_placed(folder, path)) for path in code.scripts]
    # An interpreter looks elsewhere for a script that is no file here, and a program of the system
    # that is spelt like one's own reads what no table says.
    absent = any(one is None or one.digest in (None, _FOLDER) for one in scripts)
    # `./tool`, a link to /usr/bin/env, runs whatever its arguments say.
    renamed = any(one is not None and _leads_to_another(one) for one in scripts)
    linked = any(
        len({look.paths.of(_placed(folder, path)) for path in place}) > 1 for place in code.same
    )
    unread = any(one.digest == _UNREAD for one in files)
    return Action(
        tool=call.name,
        arguments=arguments,
        folder=context.resolved.name(folder),
        files=files,
        known=code.known
        and len(named) <= _MOST_FILES
        and not (unread or absent or linked or renamed),
    )


def _named(code: CodeFiles, folder: str, paths: CanonicalPaths) -> Iterator[tuple[str, bool]]:
    """The files that a command may run where it begins in `folder`, each once; whether it is one
    that is only looked for in the folders above."""
    seen = set[str]()
    sought_above = (
        (_placed(parent, name), True)
        for base, name in code.upward
        for parent in above(paths.of(_placed(folder, base)))
    )
    beside = ((_placed(folder, path), False) for path in code.paths)
    for path, sought in chain(beside, sought_above):
        if path not in seen:
            seen.add(path)
            yield path, sought


def _placed(folder: str, path: str) -> str:
    return cleaned(join(folder, path))


def _leads_to_another(file: CodeFile) -> bool:
    """Whether a link leads to a program of the system other than the interpreter of its name, of
    which alone it is known what it runs: ``python`` may lead to `python3.11`, and ``sh`` to
    ``dash``."""
    digest = file.digest or ""
    if not digest.startswith(_LEADS):
        return False
    name, target = Path(file.path).name, Path(digest.removeprefix(_LEADS)).name
    versioned = name in INTERPRETERS and re.fullmatch(rf"{re.escape(name)}[\d.]*", target)
    return not versioned and not {name, target} <= SHELLS


_LEADS = "leads to "
_UNREAD = "not read"
_FOLDER = "a folder"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store", "/gnu/store")
"""What the operator installed, which no session writes."""
_OTHER = ("/proc", "/dev", "/sys", "/run", "/tmp", "/var/tmp")
"""Where a command finds other files than the gateway."""


class _Look:
    """Looks at files as they are now, for one action."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self.paths = CanonicalPaths()
        roots = (context.layout.home, context.layout.files, *context.roots)
        self._roots = tuple(os.path.realpath(root) for root in roots)
        self._digests: dict[str, str | None] = {}
        self._left = _MOST_BYTES_IN_ALL

    def at(self, path: str, *, sought: bool = False) -> CodeFile | None:
        """A file; None for one that no session writes: a program of the system, or what is `sought`
        and found in a folder above the roots.

        It is not read where the way leads through /proc, which shows the gateway another file than
        the command, nor where a command sees other files or none."""
        real, spelled = self.paths.of(path), os.path.normpath(path)
        if real != path and of_process(Path(path)):
            return self._file(spelled, _UNREAD)
        if not sought and self._context.hidden.covers(real):
            return self._file(real, _UNREAD)
        if _below(real, self._roots):
            return self._file(real, self._digest(real))
        led = real != spelled
        if _below(real, _SYSTEM):
            # Which program it is counts, because a session may let the link lead to another.
            return self._file(spelled, f"{_LEADS}{real}") if led else None
        if sought and not led:
            return None
        return self._file(real, _UNREAD if _below(real, _OTHER) else self._digest(real))

    def _digest(self, real: str) -> str | None:
        """Read once, whatever the number of its spellings."""
        if real not in self._digests:
            self._digests[real], taken = _digest(real, most=min(self._left, _MOST_BYTES))
            self._left -= taken
        return self._digests[real]

    def _file(self, path: str, digest: str | None) -> CodeFile:
        return CodeFile(path=path, name=self._context.resolved.name(path), digest=digest)


def _below(path: str, folders: Iterable[str]) -> bool:
    return any(inside_of(path, folder) is not None for folder in folders)


def _digest(path: str, *, most: int) -> tuple[str | None, int]:
    """The SHA-256 of a file of at most `most` bytes, through one handle, and the bytes that were
    read; None where nothing is there."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None, 0
    except OSError:
        return _UNREAD, 0
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return (_FOLDER if stat.S_ISDIR(status.st_mode) else _UNREAD), 0
        if status.st_size > most:
            return _UNREAD, 0
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(handle)
    digest = _UNREAD if len(content) > most else hashlib.sha256(content).hexdigest()
    return digest, len(content)
