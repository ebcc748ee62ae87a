"""The App Home: published when a person opens it, and after what they did there.

It shows what the engine tells about that person and keeps nothing.
"""

import structlog

from adapters.slack.ack_deadline import within
from adapters.slack.cards import home_view
from adapters.slack.client import SlackClient
from adapters.slack.directory import Directory
from adapters.slack.failures import SlackFailure
from adapters.slack.ingress import CHANNEL, Bot
from runtime.domain.people import Sender
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse

log = structlog.get_logger(__name__)


class HomePages:
    """The App Homes of one workspace."""

    def __init__(self, client: SlackClient, bot: Bot, directory: Directory, clock: Clock) -> None:
        self._clock = clock
        self._client = client
        self._bot = bot
        self._directory = directory

    async def publish(self, user: str, gatehouse: Gatehouse, *, note: str = "") -> None:
        """Show it as it is now. What Slack refuses is logged. Raises `StoreUnavailable`."""
        sender = Sender(id=user, name=await self._directory.name(user))
        home = await gatehouse.home(channel=CHANNEL, account=self._bot.team_id, sender=sender)
        view = home_view(home, note)
        try:
            async with within(self._clock):
                await self._client.write("views.publish", {"user_id": user, "view": view})
        except (SlackFailure, TimeoutError) as failure:
            log.warning("slack.no_home", reason=str(failure))
