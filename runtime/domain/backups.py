"""What a backup says about itself (OPS-6): its manifest, and what came of copying or restoring.

Values only. Nothing here reads a file or knows a database.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from runtime.domain.value import Value

DatabaseKind = Literal["sqlite", "postgresql"]
Size = Annotated[int, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class BackupFile(Value):
    """One file of the archive: `size` in bytes, `sha256` in hexadecimal, `mode` as of chmod."""

    path: str
    size: Size
    sha256: Digest
    mode: Annotated[int, Field(ge=0, le=0o777)] = 0o600


class BackupLink(Value):
    """A symbolic link of the workspace that stays inside it; kept as words, never as a member."""

    path: str
    target: str


class Manifest(Value):
    """`manifest.json`. `counts` are rows by table, all of one snapshot; times in milliseconds.

    `skipped` names what the workspace holds and the backup does not, each with the reason.
    """

    format: Literal[1] = 1
    version: str
    created_ms: int
    database: DatabaseKind
    revision: str
    counts: dict[str, int]
    files: tuple[BackupFile, ...]
    links: tuple[BackupLink, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DatabaseCopy:
    """A consistent copy of the database in one file of its own."""

    file: Path
    kind: DatabaseKind
    revision: str
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Settled:
    """What was done to restored rows: `held` counts the messages that will not be sent,
    `unfinished` the runs that go on."""

    held: int
    unfinished: int


@dataclass(frozen=True, slots=True)
class RestoredDatabase:
    """`kept` names what was there before, if anything was; `before` and `after` are revisions."""

    before: str
    after: str
    kept: str | None
    settled: Settled
