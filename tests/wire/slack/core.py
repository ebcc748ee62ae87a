"""The shared inside of the wire server: state, records, deliveries and the one condition.

Everything that a test may wait for calls `changed`; waiting is on a condition, never on time.
"""

import asyncio
from collections.abc import Callable, Coroutine

from tests.wire.slack.answers import Call, Violation
from tests.wire.slack.deliveries import Deliveries, Delivery, DeliveryKind
from tests.wire.slack.events import event_callback, scope_of, subscription_of
from tests.wire.slack.faults import Faults
from tests.wire.slack.push import HttpPush
from tests.wire.slack.sockets import SocketHub
from tests.wire.slack.state import Install, JsonObject, Ticks, Workspace

WAIT = 120.0
"""Seconds of the real clock, against hanging alone: a loaded machine is slow, not wrong."""


class Core:
    """State and records. `now` gives seconds since the epoch and is the only clock."""

    def __init__(
        self, install: Install | None = None, now: Callable[[], float] | None = None
    ) -> None:
        self.install = install or Install()
        self.workspace = Workspace(self.install, now or Ticks())
        self.calls: list[Call] = []
        self.violations: list[Violation] = []
        self.faults = Faults()
        self.deliveries = Deliveries(self.workspace.new_id)
        self.hub = SocketHub(self.deliveries, self.install.app_id, self.complain, self.changed)
        self.push: HttpPush | None = None
        self.base_url = ""
        self.is_down = False
        self.files_moved_to = ""
        self.closing = asyncio.Event()
        self._condition = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def complain(self, where: str, detail: str) -> None:
        self.violations.append(Violation(where, detail))

    async def changed(self) -> None:
        """Wake everybody who waits for a condition."""
        async with self._condition:
            self._condition.notify_all()

    async def until(self, condition: Callable[[], bool], within: float = WAIT) -> None:
        """Wait until a condition over the server's state holds.

        Raises `TimeoutError` after `within` real seconds, a guard and never the thing tested.
        """
        async with asyncio.timeout(within), self._condition:
            await self._condition.wait_for(condition)

    async def tell(self, event: JsonObject) -> Delivery | None:
        """Send an event to the application, if it subscribes to it and holds its scope."""
        if subscription_of(self.workspace, event) not in self.install.events:
            return None
        scope = scope_of(self.workspace, event)
        if scope is not None and not self.workspace.may(scope):
            return None
        return await self.dispatch("events_api", event_callback(self.workspace, event))

    async def dispatch(
        self, kind: DeliveryKind, payload: JsonObject, *, accepts_response: bool = False
    ) -> Delivery:
        delivery = self.deliveries.add(
            Delivery(kind=kind, payload=payload, accepts_response=accepts_response)
        )
        await self.send(delivery)
        return delivery

    async def send(self, delivery: Delivery) -> None:
        """One try: over a socket, or as a request whose answer a task of its own awaits."""
        if self.push is not None:
            self.spawn(self.push.deliver(delivery), name="slack-wire-push")
        elif not self.is_down:
            await self.hub.deliver(delivery)
        await self.changed()

    def spawn(self, work: Coroutine[object, object, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish_tasks(self) -> None:
        """Cancel what the server still does. A failure of one is raised."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result
