"""The bad days of the sockets, as a test orders them."""

from tests.wire.slack.core import Core
from tests.wire.slack.sockets import DisconnectReason


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
