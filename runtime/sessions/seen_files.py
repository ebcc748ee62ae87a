"""What sessions of a tree saw of their files, and who shares whose record (SUB-17).

Most sessions have no rows here: what they saw lives and dies with their process. Rows are what a
child was given at its spawn, and the record of a session that shares it with children.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, insert, select

from runtime.sessions.lanes import DELEGATES
from runtime.sessions.tables import lanes, seen_files
from runtime.sessions.unit import Kinds
from runtime.store.dialect import upsert
from runtime.store.statements import hot

Stamp = tuple[int, int, str]
"""When a file was changed last, in ns, its size in bytes, and the digest of its content."""


@dataclass(frozen=True, slots=True)
class Record:
    """Whose record of files a session uses. `shared`: another session uses it too. `files` are
    the rows of it by path."""

    owner: str
    shared: bool
    files: Mapping[str, Stamp]


_TREE = hot(
    select(lanes.c.parent_id, DELEGATES).where(lanes.c.session_id == bindparam("the_session"))
)


def record(conn: Connection, kinds: Kinds, session_id: str) -> Record:
    """The record of a session: its own, or the one that it shares with another of its tree."""
    tree = _TREE.first(conn, the_session=session_id)
    if tree is None or (tree.parent_id is None and not tree.delegates):
        return Record(session_id, False, {})
    found = kinds.delegations.sharing(conn, session_id)
    if tree.parent_id is None and not found.shared:
        return Record(session_id, False, {})
    return Record(found.owner, found.shared, _of(conn, found.owner))


def _of(conn: Connection, owner: str) -> Mapping[str, Stamp]:
    rows = conn.execute(
        select(seen_files.c.path, seen_files.c.mtime_ns, seen_files.c.size, seen_files.c.digest)
        .where(seen_files.c.session_id == owner)
        .order_by(seen_files.c.path)
    )
    return {row.path: (row.mtime_ns, row.size, row.digest) for row in rows}


def give(conn: Connection, session_id: str, files: Mapping[str, Stamp]) -> None:
    """Give a new session what another has seen."""
    if files:
        conn.execute(insert(seen_files), _rows(session_id, files))


def keep(
    conn: Connection, session_id: str, files: Mapping[str, Stamp], gone: Iterable[str] = ()
) -> None:
    """Put what was seen into a session's rows, and take out what its record lost."""
    paths = [{"the_path": path} for path in gone]
    if paths:
        conn.execute(
            delete(seen_files).where(
                seen_files.c.session_id == session_id, seen_files.c.path == bindparam("the_path")
            ),
            paths,
        )
    if files:
        # In one order, so that two who share a record do not wait for each other in a circle.
        statement = upsert(
            conn,
            seen_files,
            key=("session_id", "path"),
            change=("mtime_ns", "size", "digest"),
        )
        conn.execute(statement, _rows(session_id, files))


def forget(conn: Connection, session_id: str) -> None:
    """What an agent that settled had seen; it has no use for it."""
    conn.execute(delete(seen_files).where(seen_files.c.session_id == session_id))


def _rows(session_id: str, files: Mapping[str, Stamp]) -> list[dict[str, object]]:
    return [
        {"session_id": session_id, "path": path, "mtime_ns": at, "size": size, "digest": digest}
        for path, (at, size, digest) in sorted(files.items())
    ]
