"""The migrations as facts: the order of the revisions, and which older code each still carries.

Read from the scripts' text, because a gateway whose database is current has no need of Alembic.
What a database of another revision means to this version is decided here and nowhere else: see
`docs/decisions/0018-rolling-upgrades.md`. It opens no database.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runtime.domain.schemas import Schema, Standing

_NAMED: Final = re.compile(
    r"""^(revision|down_revision|compatible_from)\b[^=\n]*=\s*["'](\w+)["']""", re.MULTILINE
)

_TABLE: Final = re.compile(
    r"""\b(op\.create_table|op\.drop_table|sa\.Table)\(\s*(?:op\.f\()?["'](\w+)["']"""
)

UNRELEASED: Final = frozenset(f"{number:04}" for number in range(1, 8))
"""The revisions from before the first release; their names are never used again."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One migration: `parent` is None for the first, which carries no older code. `tables` are
    those that it makes (True) and takes away, in the order of its text."""

    name: str
    parent: str | None
    compatible_from: str
    tables: tuple[tuple[str, bool], ...] = ()


class Revisions:
    """Every migration of this version, in order. Raises ValueError unless they are one line."""

    def __init__(self, scripts: Path) -> None:
        found = {one.name: one for one in map(_read, sorted(_files(scripts))) if one}
        self.ordered = _in_order(found)
        self._names = [one.name for one in self.ordered]

    @property
    def head(self) -> str:
        """The newest."""
        return self.ordered[-1].name

    @property
    def compatible_from(self) -> str:
        """The oldest revision whose code may use this version's schema."""
        return self.ordered[-1].compatible_from

    @property
    def tables(self) -> frozenset[str]:
        """The tables of this version's schema, whichever modules of it have been imported."""
        there = dict(change for one in self.ordered for change in one.tables)
        return frozenset(name for name, made in there.items() if made)

    def knows(self, revision: str) -> bool:
        """Whether this version can bring a database at `revision` to its own schema."""
        return revision in self._names

    def after(self, revision: str | None) -> tuple[str, ...]:
        """What follows a revision, in order; everything follows None."""
        start = 0 if revision is None else self._names.index(revision) + 1
        return tuple(self._names[start:])

    def schema(self, revision: str | None, compatible_from: str | None) -> Schema:
        """What a database at `revision` is to this version."""
        return Schema(
            revision, compatible_from, self.head, self._standing(revision, compatible_from)
        )

    def _standing(self, revision: str | None, compatible_from: str | None) -> Standing:
        if revision is None:
            return Standing.EMPTY
        if revision == self.head:
            return Standing.CURRENT
        if revision in self._names:
            return Standing.BEHIND
        if revision in UNRELEASED:
            return Standing.UNRELEASED
        # The names of the future mean nothing here, but one that we know is not of the future.
        return Standing.AHEAD if compatible_from in self._names else Standing.TOO_NEW


def _files(scripts: Path) -> list[Path]:
    return list((scripts / "versions").glob("*.py"))


def _read(file: Path) -> Revision | None:
    text = file.read_text("utf-8")
    named: dict[str, str] = dict(_NAMED.findall(text))
    name = named.get("revision")
    if name is None:
        return None
    parent = named.get("down_revision")
    tables = tuple((table, verb != "op.drop_table") for verb, table in _TABLE.findall(text))
    return Revision(name, parent, named.get("compatible_from") or name, tables)


def _in_order(found: dict[str, Revision]) -> tuple[Revision, ...]:
    parents = {one.parent for one in found.values()}
    heads = [one for one in found.values() if one.name not in parents]
    ordered: list[Revision] = []
    one = heads[0] if len(heads) == 1 else None
    while one is not None:
        ordered.append(one)
        one = None if one.parent is None else found.get(one.parent)
    if not ordered or len(ordered) != len(found) or ordered[-1].parent is not None:
        raise ValueError(f"the migrations are not one line: {', '.join(sorted(found)) or 'none'}")
    return tuple(reversed(ordered))
