"""What the database's schema is to this version (SCALE-4). Values only."""

from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    """What a database is to this version.

    Ahead: a newer version has migrated it and still carries this one's code. Too new: it does not.
    Unreleased: code from before the first release made it, and no released version can use it.
    """

    EMPTY = "empty"
    BEHIND = "behind"
    CURRENT = "current"
    AHEAD = "ahead"
    TOO_NEW = "too_new"
    UNRELEASED = "unreleased"


@dataclass(frozen=True, slots=True)
class Schema:
    """A database's schema as this version sees it.

    `compatible_from` is the oldest revision whose code may use it, as the migration that was last
    applied has written down; None where none has.
    """

    revision: str | None
    compatible_from: str | None
    head: str
    standing: Standing
