"""The fixtures of every contract suite."""

from tests.contract.store_support import (
    clock,
    database,
    database_url,
    dialect,
    gate,
    migrated_url,
    points,
    schema_templates,
    store,
)

__all__ = [
    "clock",
    "database",
    "database_url",
    "dialect",
    "gate",
    "migrated_url",
    "points",
    "schema_templates",
    "store",
]
