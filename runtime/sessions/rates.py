"""Rows of rate limits: what each person and room began in its present windows (POL-8).

A row is held until its unit ends, so any number of replicas count on the same figures; rows are
taken in the order of their names, after the lane, so that two units do not wait for each other.
Each name has one small fact of the gateway's, used again in every window. Nothing is decided here.
"""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, bindparam, select, update

from runtime.domain.rates import Tally, Window
from runtime.store.database import DIALECTS
from runtime.store.dialect import dialect_name, lock_rows, one_of
from runtime.store.statements import hot, insert_new
from runtime.store.tables import settings

_PREFIX = "rate:"
_NAMED = {
    name: select(settings.c.name, settings.c.value)
    .where(one_of(name, settings.c.name, "the_names"))
    .order_by(settings.c.name)
    for name in DIALECTS
}
_READ = {name: hot(query) for name, query in _NAMED.items()}
_LOCK = {name: hot(lock_rows(query, skip_locked=False)) for name, query in _NAMED.items()}
_KEEP = hot(
    update(settings)
    .where(settings.c.name == bindparam("the_name"))
    .values(value=bindparam("new_value"), updated_ms=bindparam("now"))
)


def lock(conn: Connection, names: Sequence[str], *, now: int) -> Mapping[str, Tally]:
    """The tallies of `names`, held until the unit ends; their rows are made where they are new."""
    held = _tallies(conn, names, locked=True)
    missing = sorted(set(names) - set(held))
    if not missing:
        return held
    for name in missing:
        row = {"name": f"{_PREFIX}{name}", "value": _written(Tally()), "updated_ms": now}
        insert_new(conn, settings, row)
    return _tallies(conn, names, locked=True)


def standings(conn: Connection, names: Sequence[str]) -> Mapping[str, Tally]:
    """The tallies of `names`; an empty one where nothing was counted yet."""
    found = _tallies(conn, names, locked=False)
    return {name: found.get(name, Tally()) for name in names}


def keep(conn: Connection, tallies: Mapping[str, Tally], *, now: int) -> None:
    """Write the tallies of rows that this unit holds."""
    _KEEP.each(
        conn,
        [
            {"the_name": f"{_PREFIX}{name}", "new_value": _written(tally), "now": now}
            for name, tally in tallies.items()
        ],
    )


def _tallies(conn: Connection, names: Sequence[str], *, locked: bool) -> dict[str, Tally]:
    statement = (_LOCK if locked else _READ)[dialect_name(conn)]
    rows = statement.rows(conn, the_names=[f"{_PREFIX}{name}" for name in names])
    return {row.name.removeprefix(_PREFIX): _read(row.value) for row in rows}


def _written(tally: Tally) -> str:
    return json.dumps([[one.ends_ms, one.count] for one in (tally.minute, tally.hour)])


def _read(value: str) -> Tally:
    minute, hour = json.loads(value)
    return Tally(Window(*minute), Window(*hour))
