"""Listening to what a database is asked."""

import re
from typing import Any

from sqlalchemy import event
from sqlalchemy.pool import Pool

CONTROL = re.compile(r"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|PRAGMA|-- )", re.IGNORECASE)
"""What begins and ends transactions; SQLite tells of what its triggers do by comments."""


class Heard(list[str]):
    """Every statement that a driver sent, on connections that are opened while this listens."""

    def __init__(self) -> None:
        super().__init__()
        event.listen(Pool, "connect", self._follow)

    def close(self) -> None:
        """Follow no more connections."""
        event.remove(Pool, "connect", self._follow)

    def _follow(self, adapter: Any, _record: object) -> None:
        raw = getattr(adapter, "driver_connection", adapter)
        if hasattr(raw, "add_query_logger"):
            raw.add_query_logger(lambda record: self._hear(record.query))
        else:
            raw.set_trace_callback(self._hear)

    def _hear(self, statement: str) -> None:
        if not CONTROL.match(statement):
            self.append(statement)
