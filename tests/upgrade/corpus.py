"""What the code of one revision says to one kind of database, as files that people can read.

`REVISION.DIALECT.sql` has every statement once, sorted; on PostgreSQL each stands under a line with
the types of its parameters and of its columns. `REVISION.DIALECT.jsonl` is a short story: the
changes that were committed in it, in order; each line has the statement's number among those of the
other file, and its values.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from tests.upgrade.tap import Step

FOLDER: Final = Path(__file__).parent / "corpus"
Dialect = Literal["sqlite", "postgresql"]
DIALECTS: Final[tuple[Dialect, ...]] = ("sqlite", "postgresql")

_HEADER: Final = """\
-- What the code of revision {revision} says to {name}, each statement once.
-- Written by `python -m tests.upgrade.record` for a release. It is never written anew.
"""
_NAMES: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
_VALUE: Final = r"(?:\?|\$\d+(?:::[A-Z]+)?)"
_LIST: Final = re.compile(rf"IN \({_VALUE}(?:, {_VALUE})*\)")
_ROWS: Final = re.compile(r"VALUES (\([^()]*\))(?:, \([^()]*\))+")
_NUMBER: Final = re.compile(r"\$\d+")


@dataclass(frozen=True, slots=True)
class Corpus:
    """`types` tells for each statement of PostgreSQL ``parameters -> columns``."""

    revision: str
    dialect: Dialect
    types: Mapping[str, str]
    story: tuple[Step, ...]

    @property
    def statements(self) -> tuple[str, ...]:
        """In the file's order."""
        return tuple(self.types)


def distinct(statements: Iterable[str], needed: Iterable[str]) -> list[str]:
    """One of those that differ only in the length of a list, the shortest, and all that are
    needed; sorted."""
    kept: dict[str, str] = {}
    for one in sorted(statements, key=lambda text: (len(text), text)):
        key = _NUMBER.sub("$", _ROWS.sub(r"VALUES \1", _LIST.sub("IN ()", one)))
        kept.setdefault(key, one)
    return sorted({*kept.values(), *needed}, key=lambda text: (text.split(" ", 1)[0], text))


def write(corpus: Corpus, folder: Path = FOLDER) -> None:
    """Replace the files of this revision and database."""
    folder.mkdir(exist_ok=True)
    blocks = [
        f"\n-- {types}\n{statement};\n" if types else f"\n{statement};\n"
        for statement, types in corpus.types.items()
    ]
    header = _HEADER.format(revision=corpus.revision, name=_NAMES[corpus.dialect])
    _sql(folder, corpus.revision, corpus.dialect).write_text(header + "".join(blocks), "utf-8")
    number = {statement: place for place, statement in enumerate(corpus.statements, 1)}
    lines = [
        json.dumps([number[one.statement], *map(_out, one.values)]) + "\n" for one in corpus.story
    ]
    _story(folder, corpus.revision, corpus.dialect).write_text("".join(lines), "utf-8")


def read(revision: str, dialect: Dialect, folder: Path = FOLDER) -> Corpus:
    """The recorded corpus. Raises FileNotFoundError where none was recorded."""
    types: dict[str, str] = {}
    told = ""
    for line in _sql(folder, revision, dialect).read_text("utf-8").splitlines():
        if line.startswith("--"):
            told = line.removeprefix("--").strip()
        elif line:
            types[line.removesuffix(";")] = told if dialect == "postgresql" else ""
    rows = map(json.loads, _story(folder, revision, dialect).read_text("utf-8").splitlines())
    statements = tuple(types)
    story = tuple(Step(statements[row[0] - 1], tuple(map(_in, row[1:]))) for row in rows)
    return Corpus(revision, dialect, types, story)


def released(dialect: Dialect, folder: Path = FOLDER) -> list[str]:
    """The revisions whose corpus was recorded by a release, in order; none before 0.1.0."""
    return sorted(path.name.split(".")[0] for path in folder.glob(f"*.{dialect}.sql"))


def _sql(folder: Path, revision: str, dialect: Dialect) -> Path:
    return folder / f"{revision}.{dialect}.sql"


def _story(folder: Path, revision: str, dialect: Dialect) -> Path:
    return folder / f"{revision}.{dialect}.jsonl"


def _out(value: Any) -> Any:
    return {"bytes": value.hex()} if isinstance(value, bytes) else value


def _in(value: Any) -> Any:
    return bytes.fromhex(value["bytes"]) if isinstance(value, dict) else value
