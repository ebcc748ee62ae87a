"""Leases: who holds a process, a poller, a deliverer or the timers, and under which fence.

A fence only grows. Whoever takes a lease over gets a higher one, so a write that carries an old
one is recognised (I6). Times are the store's, never a replica's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    bindparam,
    exists,
    select,
    update,
)

from runtime.domain.runs import Holder
from runtime.store.database import DIALECTS, STORE_TIME, DialectName, clock_ms, now_ms
from runtime.store.dialect import dialect_name, one_of
from runtime.store.statements import hot, insert_new
from runtime.store.tables import leases

PROCESS = "process:"


def delivery(channel: str, account: str) -> str:
    """The name of the lease under which an account's messages are sent."""
    return f"deliver:{channel}:{account}"


@dataclass(frozen=True, slots=True)
class Lease:
    """One row: `expires_ms` 0 means that it was given back."""

    name: str
    holder: str
    fence: int
    expires_ms: int


# The time is read with the row, so it is never older than what the row says.
_SELECT = {
    name: hot(
        select(leases, STORE_TIME[name].label("at_ms")).where(
            leases.c.name == bindparam("lease_name")
        )
    )
    for name in DIALECTS
}


def held_by(on: DialectName) -> ColumnElement[bool]:
    """Whether a lease is a holder's at this moment, by the store's time; for a WHERE clause.

    It is told what `held_params` gives, and `clock_ms`.
    """
    return exists().where(
        leases.c.name == bindparam("lease_name"),
        leases.c.holder == bindparam("lease_holder"),
        leases.c.fence == bindparam("lease_fence"),
        leases.c.expires_ms > STORE_TIME[on],
    )


def held_params(name: str, holder: Holder) -> dict[str, object]:
    """The parameters of `held_by`."""
    return {
        "lease_name": name,
        "lease_holder": holder.worker,
        "lease_fence": holder.fence,
    }


# Whoever takes a lease over changes its row, and then the server asks all of this once more.
_RENEW = {
    name: hot(
        update(leases)
        .where(
            one_of(name, leases.c.name, "lease_names"),
            leases.c.holder == bindparam("by"),
            leases.c.expires_ms > STORE_TIME[name],
        )
        .values(expires_ms=STORE_TIME[name] + bindparam("life_ms", type_=BigInteger()))
        .returning(leases.c.name, leases.c.fence)
    )
    for name in DIALECTS
}
_TAKE = hot(
    update(leases)
    .where(leases.c.name == bindparam("lease_name"), leases.c.fence == bindparam("old_fence"))
    .values(
        holder=bindparam("new_holder"),
        fence=bindparam("new_fence"),
        expires_ms=bindparam("new_expiry"),
    )
)


def acquire(conn: Connection, *, name: str, holder: str, ttl_ms: int) -> int | None:
    """Take or keep a lease for `ttl_ms`; its fence, or None while another holds it."""
    row = _SELECT[dialect_name(conn)].first(conn, lease_name=name, clock_ms=clock_ms(conn))
    now = now_ms(conn) if row is None else row.at_ms
    if row is None:
        first = {"name": name, "holder": holder, "fence": 1, "expires_ms": now + ttl_ms}
        return 1 if insert_new(conn, leases, first) else None
    if row.holder == holder and row.expires_ms > now:
        fence = row.fence
    elif row.expires_ms > now:
        return None
    else:
        fence = row.fence + 1
    taken = _TAKE.change(
        conn,
        lease_name=name,
        old_fence=row.fence,
        new_holder=holder,
        new_fence=fence,
        new_expiry=now + ttl_ms,
    )
    return fence if taken == 1 else None


def renew(
    conn: Connection, names: Sequence[str], *, holder: str, ttl_ms: int
) -> frozenset[tuple[str, int]]:
    """Extend leases that are still `holder`'s; (name, fence) of those that did not run out."""
    rows = _RENEW[dialect_name(conn)].rows(
        conn, lease_names=list(names), by=holder, life_ms=ttl_ms, clock_ms=clock_ms(conn)
    )
    return frozenset((row.name, row.fence) for row in rows)


def release(conn: Connection, *, name: str, holder: str, fence: int) -> None:
    """Give a lease back; the row stays, because its fence must never start again."""
    conn.execute(
        update(leases)
        .where(leases.c.name == name, leases.c.holder == holder, leases.c.fence == fence)
        .values(expires_ms=0)
    )


def void_all(conn: Connection) -> None:
    """End every lease: an embedded gateway that holds the file lock is alone by definition."""
    conn.execute(update(leases).values(expires_ms=0))


def holds(conn: Connection, name: str, holder: Holder) -> bool:
    """Whether a lease is the holder's at this moment, by the store's time."""
    row = _SELECT[dialect_name(conn)].first(conn, lease_name=name, clock_ms=clock_ms(conn))
    return (
        row is not None
        and (row.holder, row.fence) == (holder.worker, holder.fence)
        and row.expires_ms > row.at_ms
    )


def listing(conn: Connection) -> Sequence[Lease]:
    """All unexpired leases, for /v1/status and metrics."""
    rows = conn.execute(
        select(leases).where(leases.c.expires_ms > now_ms(conn)).order_by(leases.c.name)
    )
    return [Lease(row.name, row.holder, row.fence, row.expires_ms) for row in rows]
