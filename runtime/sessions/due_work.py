"""What waits for a process to look at it, by one statement: the net under the bus (MSG-21).

A look only says that there is something; whoever is told asks for it and checks again what it
changes. It reads, and gives no rows away.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    bindparam,
    exists,
    literal_column,
    or_,
    select,
    text,
    union_all,
)

from runtime.sessions.outbox import OPEN
from runtime.sessions.runs import worker_is_dead
from runtime.sessions.tables import lanes, open_calls, outbox, runs
from runtime.store.database import STORE_TIME, DialectName, clock_ms
from runtime.store.dialect import dialect_name
from runtime.store.statements import Hot, hot

Place = tuple[str, str]
"""A platform's account: its channel and its name there."""


@dataclass(frozen=True, slots=True)
class DueCheck:
    """What a feature has to look after: a `condition` of the store's time, which holds where there
    is something. It becomes a part of the one statement, so it reads an index."""

    name: str
    condition: Callable[[ColumnElement[int]], ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a process would do something about: claim runs, take over those of dead workers, end
    what waited too long, what `features` look after, and send for `accounts`."""

    runs: bool = False
    abandoned: bool = False
    expired: bool = False
    features: tuple[DueCheck, ...] = ()
    accounts: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Due:
    """What there is of it. `features` are the names of those that have something to do; `accounts`
    have messages that may be sent now, or are in hand."""

    runs: bool = False
    abandoned: bool = False
    expired: bool = False
    features: frozenset[str] = frozenset()
    accounts: frozenset[Place] = frozenset()


_RUNS: Final = "runs"
_ABANDONED: Final = "abandoned"
_EXPIRED: Final = "expired"
_FEATURE: Final = "feature"
_OUTBOX: Final = "outbox"


def look(conn: Connection, wanted: Wanted) -> Due:
    """Which parts of `wanted` wait. One statement; nothing is asked where nothing is wanted."""
    if wanted == Wanted():
        return Due()
    statement = _statement(dialect_name(conn), replace(wanted, accounts=()), len(wanted.accounts))
    params: dict[str, object] = {"clock_ms": clock_ms(conn)}
    for number, (channel, account) in enumerate(wanted.accounts):
        params |= {f"channel_{number}": channel, f"account_{number}": account}
    found = {(row.what, row.place) for row in statement.rows(conn, **params)}
    kinds = {what for what, _ in found}
    return Due(
        runs=_RUNS in kinds,
        abandoned=_ABANDONED in kinds,
        expired=_EXPIRED in kinds,
        features=frozenset(
            wanted.features[place].name for what, place in found if what == _FEATURE
        ),
        accounts=frozenset(wanted.accounts[place] for what, place in found if what == _OUTBOX),
    )


@cache
def _statement(on: DialectName, wanted: Wanted, accounts: int) -> Hot[Any]:
    parts: list[Select[str, int]] = []
    # Read once: a time of its own for each row could not be looked for in an index.
    now = select(STORE_TIME[on]).scalar_subquery()
    if wanted.runs:
        parts.append(_told(_RUNS, 0).where(exists().where(lanes.c.ready_ms <= now)))
    # The very words of the partial indexes: SQLite uses them for nothing else.
    if wanted.abandoned:
        running = exists().where(text("runs.state = 'running'"), worker_is_dead(on))
        parts.append(_told(_ABANDONED, 0).where(running.select_from(runs)))
    if wanted.expired:
        over = exists().where(text("open_calls.state = 'open'"), open_calls.c.expires_ms <= now)
        parts.append(_told(_EXPIRED, 0).where(over))
    for number, check in enumerate(wanted.features):
        parts.append(_told(_FEATURE, number).where(check.condition(now)))
    for number in range(accounts):
        mine = exists().where(
            outbox.c.channel == bindparam(f"channel_{number}"),
            outbox.c.account == bindparam(f"account_{number}"),
            text(f"outbox.{OPEN}"),
            or_(outbox.c.state != literal_column("'pending'", Text()), outbox.c.next_ms <= now),
        )
        parts.append(_told(_OUTBOX, number).where(mine))
    told = union_all(*parts).subquery("told")
    return hot(select(told.c.what, told.c.place))


def _told(what: str, place: int) -> Select[str, int]:
    return select(
        literal_column(f"'{what}'", Text()).label("what"),
        literal_column(str(place), Integer()).label("place"),
    )
