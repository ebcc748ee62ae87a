"""Posts in Slack: made, replaced and deleted, once more without layout where Slack dislikes it."""

import structlog

from adapters.slack import egress
from adapters.slack.client import SlackClient
from adapters.slack.egress import Post
from adapters.slack.failures import (
    FORMAT_REFUSALS,
    Refused,
    SlackFailure,
    delivery_error,
    repeatable_error,
)
from runtime.domain.errors import DeliveryUnknown
from runtime.domain.messages import OutboundMessage
from runtime.domain.value import JsonObject

log = structlog.get_logger(__name__)


class Poster:
    """What one client can do with single posts. It keeps nothing."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client

    async def post(self, message: OutboundMessage, post: Post, number: int) -> str:
        """Make the `number`-th post and return its `ts`. Raises `DeliveryError`."""
        try:
            answer = await self._styled(
                "chat.postMessage",
                egress.post_payload(message, post, number),
                egress.post_payload(message, post, number, plain=True),
            )
        except SlackFailure as failure:
            raise delivery_error(failure) from failure
        ts = answer.get("ts")
        if not isinstance(ts, str):
            raise DeliveryUnknown("Slack took the message and named no id")
        return ts

    async def replace(self, message: OutboundMessage, post: Post, ts: str) -> None:
        """Put `post` in the place of the one at `ts`. Safe to repeat. Raises `DeliveryError`."""
        try:
            await self._styled(
                "chat.update",
                egress.update_payload(message, post, ts),
                egress.update_payload(message, post, ts, plain=True),
            )
        except SlackFailure as failure:
            raise repeatable_error(failure) from failure

    async def delete(self, chat: str, ts: str) -> None:
        """Safe to repeat. Raises `DeliveryError`."""
        try:
            await self._client.write("chat.delete", {"channel": chat, "ts": ts})
        except SlackFailure as failure:
            # Already gone: an earlier attempt deleted it.
            if not (isinstance(failure, Refused) and failure.error == "message_not_found"):
                raise repeatable_error(failure) from failure

    async def _styled(self, method: str, styled: JsonObject, plain: JsonObject) -> JsonObject:
        try:
            return await self._client.write(method, styled)
        except Refused as refusal:
            if refusal.error not in FORMAT_REFUSALS:
                raise
            log.warning("slack.sent_plain", reason=str(refusal))
        return await self._client.write(method, plain)
