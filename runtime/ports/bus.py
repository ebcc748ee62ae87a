"""The bus: wake-ups and live events between the parts and replicas of a gateway.

It may lose anything (MSG-21). The database is the truth; a lost wake-up costs one tick, a lost
live event shows as a gap. Payloads are small JSON objects; wake-ups carry ids only.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from runtime.domain.value import JsonObject, Value

RUNS: Final = "runs"
"""There may be a queued run."""
CHILDREN: Final = "children"
"""A subagent may start, run, or has to end."""
SCHEDULES: Final = "schedules"
"""The next time of a schedule may be earlier than it was."""
TASKS: Final = "tasks"
"""A task printed, changed, or is to be stopped or told something; data: {task_id}."""
MAIL: Final = "mail"
"""There is a new message in an agent's mailbox."""
OUTBOX: Final = "outbox"
"""There may be a message to deliver; data: {channel, account}."""
CANCEL: Final = "cancel"
"""A run is to stop; data: {run_id}."""
EVENTS: Final = "events"
"""Durable events were committed; data: {session_id, position}."""
LIVE: Final = "live"
"""A live event; data: {type, ...} of domain.events."""


class Signal(Value):
    """One message of the bus. ``gap`` means that signals before it were dropped; one with a gap
    and no data stands for what was lost: look at the database.
    """

    topic: str
    data: JsonObject
    gap: bool = False


class Bus(Protocol):
    """Publish and subscribe, best effort, never blocking the publisher."""

    @property
    def connected(self) -> bool:
        """Whether signals reach the other replicas; a bus of one process always is."""
        ...

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def publish(self, topic: str, data: JsonObject) -> None:
        """Send to every subscriber of `topic`, here and on other replicas."""
        ...

    def subscribe(
        self, *topics: str, limit: int = 1024
    ) -> AbstractAsyncContextManager[AsyncIterator[Signal]]:
        """Signals of `topics` from the moment of entering; at most `limit` wait unread,
        the oldest are dropped beyond that and the next signal read says so by ``gap``. Word of a
        loss on the way comes on the first topic."""
        ...
