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
from tests.support.compiled_statements import compiled_once

__all__ = [
    "clock",
    "compiled_once",
    "database",
    "database_url",
    "dialect",
    "gate",
    "migrated_url",
    "points",
    "schema_templates",
    "store",
]
