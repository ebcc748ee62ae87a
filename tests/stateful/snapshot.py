"""Everything in the database at one moment, in the shape in which invariants ask for it."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Table, select

from runtime.domain.runs import RunState
from runtime.domain.transcript import TRANSCRIPT_MESSAGE, TranscriptMessage
from runtime.sessions.tables import (
    events,
    inputs,
    lanes,
    messages,
    open_calls,
    outbox,
    runs,
    tool_calls,
)
from runtime.store.statements import hot

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Said:
    """One message of a transcript."""

    seq: int
    run_id: str | None
    step: int
    message: TranscriptMessage


@dataclass(frozen=True)
class Snapshot:
    """Rows as they are, each table in its own order."""

    lanes: Sequence[Record]
    runs: Sequence[Record]
    inputs: Sequence[Record]
    messages: Sequence[Record]
    tool_calls: Sequence[Record]
    open_calls: Sequence[Record]
    outbox: Sequence[Record]
    events: Sequence[Record]

    @cached_property
    def run(self) -> Mapping[str, Record]:
        """Runs by their id."""
        return {row["id"]: row for row in self.runs}

    @cached_property
    def runs_of(self) -> Mapping[str, Sequence[Record]]:
        """A session's runs in their order."""
        return _grouped(self.runs, "session_id")

    @cached_property
    def inputs_of(self) -> Mapping[str, Sequence[Record]]:
        """A session's inputs in the order of their arrival."""
        return _grouped(self.inputs, "session_id")

    @cached_property
    def calls_of(self) -> Mapping[tuple[str, int], Sequence[Record]]:
        """The calls of a run's step, in the order in which the model made them."""
        found: dict[tuple[str, int], list[Record]] = defaultdict(list)
        for row in self.tool_calls:
            found[row["run_id"], row["step"]].append(row)
        return found

    @cached_property
    def transcript_of(self) -> Mapping[str, Sequence[Said]]:
        """A session's transcript."""
        return {
            session: [
                Said(
                    row["seq"],
                    row["run_id"],
                    row["step"],
                    TRANSCRIPT_MESSAGE.validate_json(row["payload"]),
                )
                for row in rows
            ]
            for session, rows in _grouped(self.messages, "session_id").items()
        }

    def state(self, run_id: str) -> RunState:
        """A run's state."""
        return RunState(self.run[run_id]["state"])

    def open_of(self, run_id: str) -> Sequence[Record]:
        """The run's open calls that nobody has answered."""
        return [
            row for row in self.open_calls if row["run_id"] == run_id and row["state"] == "open"
        ]

    def finals_of(self, run_id: str) -> Sequence[Record]:
        """The run's final replies."""
        return [row for row in self.outbox if row["run_id"] == run_id and row["kind"] == "final"]


_ORDER: Mapping[Table, tuple[str, ...]] = {
    lanes: ("session_id",),
    runs: ("session_id", "seq"),
    inputs: ("session_id", "seq"),
    messages: ("session_id", "seq"),
    tool_calls: ("run_id", "step", "place"),
    open_calls: ("session_id", "created_ms", "run_id", "step", "place"),
    outbox: ("position",),
    events: ("position",),
}
_QUERIES = {
    table.name: hot(select(table).order_by(*(table.c[name] for name in names)))
    for table, names in _ORDER.items()
}


def take(conn: Connection) -> Snapshot:
    """Read everything, as a unit."""
    return Snapshot(
        **{name: [row._mapping for row in query.rows(conn)] for name, query in _QUERIES.items()}
    )


def verdict_of(row: Record) -> str | None:
    """The verdict of a call's recorded decision."""
    return None if row["decision"] is None else json.loads(row["decision"])["verdict"]


def result_of(row: Record) -> dict[str, Any] | None:
    """A call's recorded result."""
    return None if row["result"] is None else json.loads(row["result"])


def _grouped(rows: Sequence[Record], column: str) -> Mapping[str, Sequence[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found
