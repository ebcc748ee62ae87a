"""One line when the bot is let into a channel, once for each channel and never twice.

Slack may tell of the same arrival again, and to another process: the greeting carries a mark, and
the channel is asked for it first.
"""

import structlog

from adapters.platforms.json_fields import object_of, objects_of
from adapters.slack.ack_deadline import within
from adapters.slack.client import SlackClient
from adapters.slack.failures import SlackFailure
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

MARK = "gatehouse_greeting"
_LOOKED_AT = 200


class Greeting:
    """Greets the channels of one workspace."""

    def __init__(self, client: SlackClient, bot_user: str, clock: Clock) -> None:
        self._clock = clock
        self._client = client
        self._bot_user = bot_user

    async def greet(self, chat: str) -> None:
        """Say hello where it was not said yet. What Slack refuses is logged."""
        try:
            async with within(self._clock):
                await self._greet(chat)
        except (SlackFailure, TimeoutError) as failure:
            log.info("slack.not_greeted", chat=chat, reason=str(failure))

    async def _greet(self, chat: str) -> None:
        page = await self._client.read(
            "conversations.history",
            {"channel": chat, "limit": _LOOKED_AT, "include_all_metadata": True},
        )
        if not any(_is_greeting(message) for message in objects_of(page, "messages")):
            await self._client.write("chat.postMessage", self._line(chat))

    def _line(self, chat: str) -> JsonObject:
        return {
            "channel": chat,
            "text": (
                f"Hello. Mention me, <@{self._bot_user}>, and I answer in a thread; "
                "`/gatehouse help` lists what else I know. "
                f"If I stay silent, my operator has not allowed this channel yet (`{chat}`)."
            ),
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": {"event_type": MARK, "event_payload": {"chat": chat}},
        }


def _is_greeting(message: JsonObject) -> bool:
    return object_of(message, "metadata").get("event_type") == MARK
