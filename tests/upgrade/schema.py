"""What a migration took from the tables that were there: nothing, if it only expands.

Two pictures of a database are compared. What is new is nobody's trouble; what an older version's
code knows must be there, of the same type, and as lenient as it was.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, inspect


@dataclass(frozen=True, slots=True)
class Column:
    """What an older version relies on."""

    type: str
    nullable: bool
    default: bool


@dataclass(frozen=True, slots=True)
class Table:
    """``rules``: what a row must fulfil beyond its columns, each as one line."""

    columns: Mapping[str, Column]
    rules: frozenset[str]


def picture(conn: Connection) -> dict[str, Table]:
    """Every table of the database."""
    inspector = inspect(conn)
    found = {}
    for name in inspector.get_table_names():
        key = inspector.get_pk_constraint(name)
        columns = {
            one["name"]: Column(
                str(one["type"]),
                bool(one["nullable"]),
                one["default"] is not None or one["name"] in key["constrained_columns"],
            )
            for one in inspector.get_columns(name)
        }
        rules = {f"primary key {key['constrained_columns']}"}
        rules |= {f"unique {one['column_names']}" for one in inspector.get_unique_constraints(name)}
        rules |= {f"check {one['sqltext']}" for one in inspector.get_check_constraints(name)}
        rules |= {
            f"unique index {one['name']} {one['column_names']}"
            for one in inspector.get_indexes(name)
            if one["unique"]
        }
        rules |= {
            f"reference {one['constrained_columns']} to {one['referred_table']}"
            for one in inspector.get_foreign_keys(name)
        }
        found[name] = Table(columns, frozenset(rules))
    return found


def taken(before: Mapping[str, Table], after: Mapping[str, Table]) -> Iterator[str]:
    """What an older version misses, or is newly held to."""
    for name, table in before.items():
        if name not in after:
            yield f"the table {name} is gone"
            continue
        yield from _columns(name, table, after[name])
        for rule in sorted(after[name].rules - table.rules):
            yield f"{name} has a new rule: {rule}"


def _columns(table: str, before: Table, after: Table) -> Iterator[str]:
    for name, column in before.columns.items():
        now = after.columns.get(name)
        if now is None:
            yield f"{table}.{name} is gone"
        elif now.type != column.type:
            yield f"{table}.{name} was {column.type} and is {now.type}"
        elif column.nullable and not now.nullable:
            yield f"{table}.{name} may no longer be NULL"
        elif column.default and not now.default and not now.nullable:
            yield f"{table}.{name} has lost its default"
    for name, column in after.columns.items():
        if name not in before.columns and not (column.nullable or column.default):
            yield f"{table}.{name} is new and has neither NULL nor a default"
