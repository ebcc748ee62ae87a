"""A strict Slack for tests: the Web API, Socket Mode and the Events API on a local port.

    async with SlackServer().running() as slack:
        client = AsyncWebClient(token=slack.install.bot_token, base_url=slack.api_url)
        said = await slack.user_says(GENERAL, ANNA, "hello", mention=True)
        reply = await slack.wait_for_post(channel=GENERAL, thread_ts=said.ts)

Real clients talk to it over real sockets. What a correct client never sends is recorded in
`violations` and refused with Slack's own error; `running` raises at its end if there is any.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from aiohttp import web

from tests.wire.slack.connections import Connections
from tests.wire.slack.controls import Controls
from tests.wire.slack.interactions import Interactions
from tests.wire.slack.observing import Observing
from tests.wire.slack.people import People
from tests.wire.slack.routes import Routes

HOST = "127.0.0.1"


class SlackServer(People, Interactions, Controls, Connections, Observing):
    """One Slack workspace with one installed application, on an ephemeral port."""

    _runner: web.AppRunner | None = None
    _site: web.TCPSite | None = None

    @property
    def api_url(self) -> str:
        """The `base_url` for Slack's clients."""
        return f"{self.base_url}/api/"

    async def start(self) -> None:
        self._runner = web.AppRunner(Routes(self).application(), shutdown_timeout=0.5)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, HOST, 0)
        await self._site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}"

    async def stop(self) -> None:
        self.closing.set()
        for gate in self.faults.gates:
            gate.release()
        await self.hub.close()
        await self.finish_tasks()
        if self.push is not None:
            await self.push.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def down(self) -> None:
        """Nobody can connect any more, and every socket is cut. People still talk."""
        assert self._site is not None
        self.is_down = True
        await self._site.stop()
        self.hub.drop()
        await self.until(lambda: not self.hub.links)

    async def up(self) -> None:
        """Listen again on the same port; what people said meanwhile waits for a socket."""
        assert self._runner is not None
        port = int(self.base_url.rpartition(":")[2])
        self._site = web.TCPSite(self._runner, HOST, port)
        await self._site.start()
        self.is_down = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Start, serve, stop, and raise `AssertionError` if the client broke a rule."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()
        assert not self.violations, self.violations
