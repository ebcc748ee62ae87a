"""The bad days of the sockets, as a test orders them."""

import asyncio
from contextlib import suppress

from tests.wire.slack.core import Core
from tests.wire.slack.deliveries import MAX_RETRIES
from tests.wire.slack.sockets import DisconnectReason, Link


class Connections(Core):
    """What happens to the sockets that are open now."""

    async def drop_sockets(self) -> None:
        """Cut every socket abruptly, and wait until the server has noticed."""
        cut = list(self.hub.links)
        self.hub.drop()
        await self.until(lambda: not any(link in self.hub.links for link in cut))

    def go_silent(self, count: int | None = None) -> None:
        """Open sockets (all, or the first `count`) stay open but say and hear nothing more."""
        speaking = [link for link in self.hub.open_links() if not link.silent]
        for link in speaking[:count]:
            link.silent = True

    async def disconnect(self, reason: DisconnectReason = "warning") -> None:
        """Send `disconnect` frames; all reasons but `warning` also close the sockets."""
        await self.hub.disconnect(reason)
        await self.changed()

    async def ping_sockets(self) -> None:
        """Ping every socket; `Link.pongs` counts the answers."""
        await self.hub.ping()

    def send_next_over(self, link: Link) -> None:
        """The next delivery goes to this socket, whose turn it may not be."""
        self.hub.next_link = link

    def repeat_events(self, after_s: float) -> None:
        """From now on repeat each event that is not acknowledged, `after_s` to twice `after_s`
        seconds of the real clock after its last try.

        Slack's own second and third repeats come minutes later, which no test waits for. Here they
        come at the same pace and do not end, so that a slow machine loses nothing to their number.
        """
        self.spawn(self._repeat(after_s), name="slack-wire-repeat")

    async def _repeat(self, after_s: float) -> None:
        while True:
            tries = {one: len(one.envelopes) for one in self.deliveries.waiting()}
            with suppress(TimeoutError):
                async with asyncio.timeout(after_s):
                    await self.closing.wait()
                    return
            for delivery in self.deliveries.waiting():
                unanswered = delivery.envelopes and len(delivery.envelopes) == tries.get(delivery)
                if unanswered and delivery.kind == "events_api":
                    delivery.retries = min(delivery.retries + 1, MAX_RETRIES)
                    delivery.retry_reason = "timeout"
                    await self.send(delivery)
