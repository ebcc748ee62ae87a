"""A `Gatehouse` that remembers instead of deciding: what the chat adapters are tested against.

It keeps the port's one promise, that `accept` returns after the message is stored, and dedupes by
identity as the engine does. It knows no access, no sessions and no commands.
"""

import asyncio
from collections.abc import Callable

from runtime.domain.errors import StoreUnavailable
from runtime.domain.messages import ButtonPress, Deletion, InboundMessage, Move
from runtime.domain.people import Sender
from runtime.domain.request_keys import RequestKey
from runtime.ports.gatehouse import Accepted, Home, Pressed


class FakeGatehouse:
    """`messages`, `presses`, `revisions`, `deletions` and `moves` hold what is stored, `homes` who
    asked for their home page, which is `shown`; every `accept` is counted in `offered`.

    While `gate` is cleared, calls wait before they store anything. With `break_store`, the
    next calls raise `StoreUnavailable` and store nothing.
    """

    def __init__(self) -> None:
        self.messages: list[InboundMessage] = []
        self.presses: list[ButtonPress] = []
        self.offered: list[InboundMessage] = []
        self.pressed = Pressed(accepted=True, text="Done.")
        self.revisions: list[InboundMessage] = []
        self.deletions: list[Deletion] = []
        self.moves: list[Move] = []
        self.homes: list[Sender] = []
        self.shown = Home(known=True)
        self.gate = asyncio.Event()
        self.gate.set()
        self._failures = 0
        self._failure: Exception = StoreUnavailable("the test broke the store")
        self._changed = asyncio.Condition()

    def break_store(self, times: int = 1) -> None:
        """The next `times` calls find the store down."""
        self._failures, self._failure = times, StoreUnavailable("the test broke the store")

    def fail(self, failure: Exception, times: int = 1) -> None:
        """The next `times` calls meet a defect."""
        self._failures, self._failure = times, failure

    @property
    def is_broken(self) -> bool:
        """Whether the next call still meets what the test ordered."""
        return self._failures > 0

    @property
    def texts(self) -> list[str]:
        """The text of each stored message, in the order of storing."""
        return [message.text for message in self.messages]

    @property
    def identities(self) -> list[str]:
        return [message.identity for message in self.messages]

    async def accept(
        self,
        message: InboundMessage,
        *,
        session_id: str | None = None,
        key: RequestKey | None = None,
    ) -> Accepted:
        """Raises `StoreUnavailable` where the test asked for it."""
        self.offered.append(message)
        await self._notify()
        await self.gate.wait()
        await self._fail_if_asked()
        if message.identity in self.identities:
            return Accepted(disposition="duplicate")
        self.messages.append(message)
        await self._notify()
        return Accepted(disposition="queued", input_id=f"inp_{len(self.messages)}")

    async def press(self, press: ButtonPress) -> Pressed:
        """Raises `StoreUnavailable` where the test asked for it."""
        await self.gate.wait()
        await self._fail_if_asked()
        self.presses.append(press)
        await self._notify()
        return self.pressed

    async def revise(self, message: InboundMessage) -> Accepted:
        """Raises `StoreUnavailable` where the test asked for it."""
        await self.gate.wait()
        await self._fail_if_asked()
        if message.identity in [one.identity for one in self.revisions]:
            return Accepted(disposition="duplicate")
        self.revisions.append(message)
        await self._notify()
        return Accepted(disposition="queued")

    async def withdraw(self, deletion: Deletion) -> Accepted:
        """Raises `StoreUnavailable` where the test asked for it."""
        await self.gate.wait()
        await self._fail_if_asked()
        self.deletions.append(deletion)
        await self._notify()
        return Accepted(disposition="queued")

    async def move(self, move: Move) -> None:
        """Raises `StoreUnavailable` where the test asked for it."""
        await self.gate.wait()
        await self._fail_if_asked()
        self.moves.append(move)
        await self._notify()

    async def home(self, *, channel: str, account: str, sender: Sender) -> Home:
        """Raises `StoreUnavailable` where the test asked for it."""
        await self._fail_if_asked()
        self.homes.append(sender)
        await self._notify()
        return self.shown

    async def until(self, condition: Callable[[], bool], within: float = 10.0) -> None:
        """Wait until a condition over what is stored holds.

        Raises `TimeoutError` after `within` real seconds, a guard against hanging.
        """
        async with asyncio.timeout(within), self._changed:
            await self._changed.wait_for(condition)

    async def wait_for(self, count: int) -> list[InboundMessage]:
        """The first `count` stored messages, as soon as there are that many."""
        await self.until(lambda: len(self.messages) >= count)
        return self.messages[:count]

    async def _fail_if_asked(self) -> None:
        if self._failures:
            self._failures -= 1
            await self._notify()
            raise self._failure

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
