"""The one thing that a card shows, an answer allows and an execution does (APR-9). Pure.

An action is the tool, its arguments as they passed the check, and for a command the folder that it
begins in and the files that it runs as code. Its digest is over all of that, so whoever allowed an
action allowed these bytes.
"""

import hashlib
import json
import re

from runtime.domain.printable import printable_name
from runtime.domain.value import JsonObject, Value

_SHA256 = re.compile("[0-9a-f]{64}")
_SHOWN = 12
"""Files that a card names; the digest is over all of them."""


class CodeFile(Value):
    """A file that a command runs: its canonical path, its name for people, and the SHA-256 of its
    content. In words where that is not what counts: ``leads to`` a program of the system, ``a
    folder``, or ``not read``. None where it is not there, which is part of the action as well."""

    path: str
    name: str
    digest: str | None = None

    @property
    def shown(self) -> str:
        """The file as a card names it."""
        hashed = self.digest is not None and _SHA256.fullmatch(self.digest)
        told = f"sha256 {self.digest:.12}" if hashed else printable_name(self.digest or "absent")
        return f"{printable_name(self.name)} ({told})"


class Action(Value):
    """`folder` is where a command begins, as people call it, and None for other tools. `known`:
    the command runs no code beyond `files`, as far as its program is known."""

    tool: str
    arguments: JsonObject
    folder: str | None = None
    files: tuple[CodeFile, ...] = ()
    known: bool = True

    @property
    def text(self) -> str:
        """The arguments as they are kept, shown and run."""
        return json.dumps(self.arguments, ensure_ascii=False)

    def digest(self) -> str:
        """What an approval and a grant are bound to (APR-3)."""
        arguments = json.dumps(self.arguments, sort_keys=True, separators=(",", ":"))
        whole = f"{self.tool}\0{arguments}"
        if self.folder is not None:
            files = [[one.path, one.digest] for one in self.files]
            whole += f"\0{json.dumps([self.folder, files])}"
        return hashlib.sha256(whole.encode()).hexdigest()

    @property
    def circumstances(self) -> str:
        """What a card says besides the arguments: where a command runs, and which files."""
        if self.folder is None:
            return ""
        where = "the working folder" if self.folder == "." else printable_name(self.folder)
        said = f"Runs in {where}"
        there = [one for one in self.files if one.digest is not None]
        named = [one.shown for one in there[:_SHOWN]]
        if len(there) > _SHOWN:
            named.append(f"{len(there) - _SHOWN} more")
        return f"{said}, with {', '.join(named)}." if named else f"{said}."
