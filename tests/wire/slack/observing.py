"""What a test sees of the application: its posts, its calls, its acknowledgements."""

from collections.abc import Callable

from tests.wire.slack.answers import Call
from tests.wire.slack.core import WAIT, Core
from tests.wire.slack.deliveries import Delivery
from tests.wire.slack.sockets import Link
from tests.wire.slack.state import Message, View


class Observing(Core):
    """Reads the records; changes nothing."""

    def posts(self, channel: str | None = None, thread_ts: str | None = None) -> list[Message]:
        """The application's messages that people can see now, oldest first."""
        return [
            m
            for m in self.workspace.all_messages()
            if m.bot_id == self.install.bot_id
            and not m.deleted
            and m.ephemeral_to is None
            and m.subtype != "assistant_app_thread"
            and channel in {None, m.channel}
            and thread_ts in {None, m.thread_ts}
        ]

    def ephemerals(self, user: str | None = None) -> list[Message]:
        """What the application showed to one person only."""
        return [
            m
            for m in self.workspace.all_messages()
            if m.ephemeral_to is not None and user in {None, m.ephemeral_to}
        ]

    def calls_to(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    @property
    def acked(self) -> list[str]:
        """The envelope ids of everything that was acknowledged, one for each delivery."""
        return [d.envelopes[-1] for d in self.deliveries.all if d.acked]

    @property
    def unacked(self) -> list[Delivery]:
        return self.deliveries.waiting()

    @property
    def sockets(self) -> list[Link]:
        """The sockets that are open now."""
        return self.hub.open_links()

    def home_of(self, user: str) -> View | None:
        return self.workspace.homes.get(user)

    def open_modals(self, user: str) -> list[View]:
        return [v for v in self.workspace.views.values() if v.user == user and v.open]

    async def wait_for_post(
        self,
        predicate: Callable[[Message], bool] = lambda _: True,
        within: float = WAIT,
        *,
        channel: str | None = None,
        thread_ts: str | None = None,
    ) -> Message:
        """The first post that fits, now or as soon as there is one. Raises `TimeoutError`.

        Looked at again after each change, so it also finds a post by its edited text.
        """

        def fitting() -> list[Message]:
            return [m for m in self.posts(channel, thread_ts) if predicate(m)]

        await self.until(lambda: bool(fitting()), within)
        return fitting()[0]

    async def wait_for_call(
        self,
        method: str,
        predicate: Callable[[Call], bool] = lambda _: True,
        within: float = WAIT,
    ) -> Call:
        """The first call of a method that fits. Raises `TimeoutError`."""

        def fitting() -> list[Call]:
            return [c for c in self.calls_to(method) if predicate(c)]

        await self.until(lambda: bool(fitting()), within)
        return fitting()[0]

    async def wait_for_ack(self, delivery: Delivery, within: float = WAIT) -> Delivery:
        await self.until(lambda: delivery.acked, within)
        return delivery

    async def wait_for_sockets(self, count: int, within: float = WAIT) -> None:
        """Until exactly `count` sockets are open."""
        await self.until(lambda: len(self.sockets) == count, within)

    async def wait_for_quiet(self, within: float = WAIT) -> None:
        """Until every delivery is acknowledged or given up."""
        await self.until(lambda: not self.unacked, within)
