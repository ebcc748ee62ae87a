"""Personas: folders of identity files that a session can be given instead of the workspace's own.

They are read when one is bound and never again (CTX-11), so what cannot be read is refused, not
skipped. No link is followed: commands may write here, and a link could bring private notes, or a
file of the host, into a prompt that a group hears.
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from runtime.domain.errors import InvalidInput
from runtime.domain.personas import Persona
from runtime.workspace.content import IDENTITY_FILES, PERSONAS_FOLDER
from runtime.workspace.text_files import Skipped, read_text, real

MOST_NAMED: Final = 50
"""Personas that are named to a person at once."""
MOST_LOOKED: Final = 10_000
"""Entries of the folder that are looked at for it: what is more was not made by a person."""
_FIELD: Final = "persona"
PERSONA_NAME: Final = r"^[a-z0-9][a-z0-9-]{0,63}$"
_NAME: Final = re.compile(PERSONA_NAME)
_RULE: Final = (
    "must be the name of a folder in personas/: lower-case letters, digits and hyphens, at most 64"
)


def read_persona(root: Path, name: str) -> Persona:
    """The persona `name` of the workspace at `root`. Blocks on the disk.

    Raises `InvalidInput`, saying what to mend: no name of a persona, none of that name, one with
    no identity file, and one with a file that cannot be taken as it is.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput(_FIELD, _RULE)
    folder = f"{PERSONAS_FOLDER}/{name}"
    files: dict[str, str] = {}
    for file in IDENTITY_FILES:
        try:
            text = read_text(root, f"{folder}/{file}", links=False)
        except Skipped as skipped:
            raise InvalidInput(_FIELD, f"{folder}/{file} cannot be used: {skipped}") from None
        if text is not None:
            files[file] = text
    if not any(text.strip() for text in files.values()):
        raise InvalidInput(_FIELD, _missing(root, folder))
    return Persona(name, files, _digest(files))


def persona_names(root: Path) -> Sequence[str]:
    """The folders in `personas/` that may be personas, sorted. Blocks on the disk."""
    found: list[str] = []
    top = real(root) / PERSONAS_FOLDER
    # What is not there, or may not be looked into, has no personas.
    with suppress(OSError):
        if real(top) == top:
            with os.scandir(top) as entries:
                looked = islice(entries, MOST_LOOKED)
                found = [one.name for one in looked if one.is_dir(follow_symlinks=False)]
    return sorted(name for name in found if _NAME.fullmatch(name))


def _missing(root: Path, folder: str) -> str:
    there = persona_names(root)
    if folder.removeprefix(f"{PERSONAS_FOLDER}/") in there:
        return f"{folder}/ has none of {', '.join(IDENTITY_FILES)} with words in it"
    known = ", ".join(there[:MOST_NAMED]) if there else "none"
    return f"there is no {folder}/ in the workspace; there are: {known}"


def _digest(files: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name].encode()):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
    return digest.hexdigest()
