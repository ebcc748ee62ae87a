"""What a driver's error means to the caller, both databases side by side.

Nothing here talks to a database. An error that is the unit's own matter (a broken constraint,
a statement that does not parse) is returned as it came.
"""

import sqlite3
from typing import Final

from sqlalchemy.exc import DBAPIError, ResourceClosedError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from runtime.domain.errors import StoreAway, StoreCorrupt, StoreFull, StoreUnavailable

_CORRUPT_HINT: Final = (
    "Stop the gateway, keep the damaged file aside, and put back a backup with "
    "`gatehouse backup restore`; docs/backup.md says what to do without one."
)
_NO_FORMAT: Final = "unsupported file format"
"""What SQLite says of a damaged header, under a code that means nothing."""
_PRIMARY: Final = 0xFF
"""SQLite's extended result codes keep the primary code in the low byte (sqlite.org/rescode)."""

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_CORRUPT: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_OUT_OF_REACH: Final = {
    sqlite3.SQLITE_IOERR: "The disk refused to read or write",
    sqlite3.SQLITE_CANTOPEN: "The file cannot be opened",
    sqlite3.SQLITE_READONLY: "The file may not be written",
    sqlite3.SQLITE_PERM: "The file may not be opened",
    sqlite3.SQLITE_PROTOCOL: "The file's locks do not work (a network file system?)",
    sqlite3.SQLITE_NOMEM: "There was no memory left",
    sqlite3.SQLITE_INTERRUPT: "The statement was interrupted",
}

RETRIED: Final = frozenset({"40001", "40P01"})
"""Serialization failure and deadlock: the server rolled the unit back, another try may pass."""

READ_ONLY: Final = "25006"
"""The server takes no writes: a standby, or set so by its operator."""

CROWDED: Final = "53300"
"""Too many connections: the server refused one more, the unit did not begin."""

_PG_FULL: Final = frozenset({"53100"})
_PG_CORRUPT: Final = frozenset({"XX001", "XX002"})
_PG_LOST: Final = frozenset({"57P01", "57P02", "57P03"})
_PG_OWN: Final = frozenset({"22", "23", "42"})
"""Classes of what is wrong with a statement or its values. All others tell of the server
(postgresql.org/docs, appendix A)."""
_PG_ABORTED: Final = "25P02"
"""The unit hid an error and went on: its own matter too."""
_PG_AWAY: Final = "cannot be reached or is busy"
_CLOSED: Final = "This Connection is closed"
"""What SQLAlchemy says where a connection died and it did not take notice: it looks at the first
one of an engine by several statements."""
_JARGON: Final = ("cannot switch to state", "unexpected connection_lost() call", _CLOSED)
"""How the drivers say that a line broke, where nobody else would understand it."""
_NO_SUCH_SERVER: Final = "None of the hosts match the target attribute"
"""What asyncpg says where each server that is named is of another kind."""
_PG_SAID: Final = {
    **dict.fromkeys(RETRIED, "refused the unit again and again"),
    READ_ONLY: "takes no writes, it is read-only",
    "3D000": "refused the connection",
    "28": "refused the connection",
    **dict.fromkeys(("08", "53", "55", "57"), _PG_AWAY),
}
"""In words what a code says, or else its class."""
_PG_HINT: Final = {
    READ_ONLY: "Make it writable, or let database.url lead to the server that takes writes."
}


def sqlite_fault(error: BaseException, path: str) -> BaseException:
    """The store's error for a SQLite one, or `error` itself."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(error, PoolTimeoutError):
        return StoreUnavailable("Every reading connection is busy.")
    if not isinstance(cause, sqlite3.Error):
        return error
    code = getattr(cause, "sqlite_errorcode", 0) & _PRIMARY
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"The disk of {path} is full.", hint="Free space, then it works again.")
    if code in _CORRUPT or _NO_FORMAT in str(cause):
        return damaged(path, str(cause))
    if code in _BUSY:
        return StoreUnavailable(
            f"{path} is locked by another process.", hint="Close what else writes to it."
        )
    if code in _OUT_OF_REACH:
        return StoreUnavailable(f"{_OUT_OF_REACH[code]}: {path} ({cause}).")
    return error


def damaged(path: str, said: str) -> StoreCorrupt:
    """What is told of a file that is damaged, as SQLite `said`, and what to do."""
    words = " ".join(said.split()).removeprefix("*** in database main *** ")
    return StoreCorrupt(f"{path} is damaged or no database: {words}.", hint=_CORRUPT_HINT)


def sqlite_root_fault(error: BaseException, path: str) -> BaseException:
    """As `sqlite_fault`, for an error that may only be the last of several.

    When the transaction is gone, undoing a savepoint fails too, and hides why.
    """
    cause: BaseException | None = error
    while cause is not None:
        fault = sqlite_fault(cause, path)
        if fault is not cause:
            return fault
        cause = cause.__context__
    return error


def as_core_error(
    error: sqlite3.Error, statement: str, values: tuple[object, ...] = ()
) -> BaseException:
    """SQLAlchemy's error for one of a statement that went straight to the driver."""
    return DBAPIError.instance(statement, values, error, sqlite3.Error, hide_parameters=True)


def sqlstate(error: BaseException) -> str | None:
    """The five characters with which PostgreSQL classes an error, if it sent any."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(cause, "sqlstate", None)
    return state if isinstance(state, str) else None


def connection_lost(error: BaseException) -> bool:
    """Whether the connection died, so that the server alone knows what became of a COMMIT."""
    state = sqlstate(error)
    if state is not None:
        return state.startswith("08") or state in _PG_LOST
    if isinstance(error, DBAPIError):
        return error.connection_invalidated
    if isinstance(error, ResourceClosedError):
        return _CLOSED in str(error)
    return isinstance(error, OSError | TimeoutError)


def postgres_fault(error: BaseException, server: str) -> BaseException:
    """The store's error for one of PostgreSQL or of the way to it, or `error` itself.

    `server` names host, port and database, never the password.
    """
    if isinstance(error, PoolTimeoutError):
        return StoreUnavailable(f"Every connection to {server} is busy.")
    state = sqlstate(error)
    detail = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    if state is None:
        if _NO_SUCH_SERVER in detail:
            # In a failover there may be none that takes writes for a while.
            return StoreAway(
                f"{server} is not a server of the kind that target_session_attrs asks for.",
                hint="Name the server that takes writes in database.url.",
            )
        if not connection_lost(error):
            return error
        if any(words in detail for words in _JARGON):
            detail = "the connection broke"
        # A server that does not answer in time is an error without a word.
        words = f": {detail}" if detail else ""
        return StoreAway(f"{server} {_PG_AWAY}{words}.")
    if state in _PG_FULL:
        return StoreFull(f"The disk of {server} is full.", hint="Free space, then it works again.")
    if state in _PG_CORRUPT:
        return StoreCorrupt(
            f"{server} reports damaged data: {detail}.", hint="Restore a backup of the server."
        )
    if state[:2] in _PG_OWN or state == _PG_ABORTED:
        return error
    said = _PG_SAID.get(state) or _PG_SAID.get(state[:2], "is in trouble")
    away = state == CROWDED or connection_lost(error)
    kind = StoreAway if away else StoreUnavailable
    return kind(f"{server} {said}: {detail}.", hint=_PG_HINT.get(state, ""))
