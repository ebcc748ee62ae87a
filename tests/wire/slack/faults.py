"""Faults that a test orders: answers that come instead of the real one, or never.

A fault is matched by method and, where given, by channel, in the order of arming; each use
counts down. It decides nothing about the workspace.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from tests.wire.slack.answers import Call
from tests.wire.slack.state import JsonObject

Kind = Literal["error", "http", "hang", "cut", "gate"]


@dataclass(slots=True, kw_only=True, eq=False)
class Fault:
    """`error` and `http` answer instead of the method; the others act after it has run."""

    method: str
    kind: Kind
    left: int
    channel: str | None = None
    status: int = 200
    retry_after: int | None = None
    body: JsonObject | str = ""
    gate: "Gate | None" = None


@dataclass(slots=True, eq=False)
class Gate:
    """Holds an answer back after the method has run: both sides of a race are in hand."""

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        self.opened.set()


class Faults:
    """The faults that are armed."""

    def __init__(self) -> None:
        self.armed: list[Fault] = []
        self.gates: list[Gate] = []

    def take(self, call: Call, *, before: bool) -> Fault | None:
        """Spend and return the first fault that fits, of those that act before or after."""
        for fault in self.armed:
            acts_before = fault.kind in {"error", "http"}
            fits = fault.method in {"*", call.method} and fault.channel in {None, call.channel}
            if acts_before is before and fits:
                fault.left -= 1
                if fault.left <= 0:
                    self.armed.remove(fault)
                return fault
        return None
