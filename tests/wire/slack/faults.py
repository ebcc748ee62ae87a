"""Faults that a test orders: answers that come instead of the real one, or never.

A fault is matched by method and, where given, by channel, in the order of arming; each use
counts down. It decides nothing about the workspace.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
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
    holding: str | None = None
    status: int = 200
    retry_after: int | None = None
    body: JsonObject | str = ""
    gate: "Gate | None" = None

    def fits(self, call: Call) -> bool:
        """Whether the call is of its method and channel, and holds the argument it is about."""
        holds = self.holding is None or bool(call.arguments.get(self.holding))
        return self.method in {"*", call.method} and self.channel in {None, call.channel} and holds


@dataclass(slots=True, eq=False)
class Gate:
    """Holds an answer back after the method has run: both sides of a race are in hand."""

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        self.opened.set()


class Limits:
    """Refuses a share of all calls with 429, the same ones for the same seed.

    A method and channel that was refused stays so for `retry_after` seconds of `now`; who calls
    again before has not listened.
    """

    def __init__(
        self,
        share: float,
        seed: int,
        retry_after: int,
        now: Callable[[], float],
        complain: Callable[[str, str], None],
    ) -> None:
        self.refused = 0
        self._share = share
        self._random = Random(seed)
        self._retry_after = retry_after
        self._now = now
        self._complain = complain
        self._until: dict[tuple[str, str | None], float] = {}

    def refuse(self, call: Call) -> Fault | None:
        key = (call.method, call.channel)
        if self._now() < self._until.get(key, 0.0):
            self._complain(call.method, f"called again before Retry-After, in {call.channel}")
        elif self._random.random() >= self._share:
            return None
        self.refused += 1
        self._until[key] = self._now() + self._retry_after
        body: JsonObject = {"ok": False, "error": "ratelimited"}
        return Fault(
            method=call.method,
            kind="error",
            left=1,
            status=429,
            retry_after=self._retry_after,
            body=body,
        )


class Faults:
    """The faults that are armed."""

    def __init__(self) -> None:
        self.armed: list[Fault] = []
        self.gates: list[Gate] = []
        self.limits: Limits | None = None

    def take(self, call: Call, *, before: bool) -> Fault | None:
        """Spend and return the first fault that fits, of those that act before or after."""
        for fault in self.armed:
            acts_before = fault.kind in {"error", "http"}
            if acts_before is before and fault.fits(call):
                fault.left -= 1
                if fault.left <= 0:
                    self.armed.remove(fault)
                return fault
        if before and self.limits is not None and call.method != "apps.connections.open":
            return self.limits.refuse(call)
        return None
