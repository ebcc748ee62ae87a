"""Posts in Slack: made, replaced and deleted, in a plainer form where Slack refuses one (REN-3)."""

from collections.abc import Callable, Sequence
from functools import partial

import structlog

from adapters.slack import egress
from adapters.slack.client import SlackClient
from adapters.slack.egress import Form, Post, Upload
from adapters.slack.failures import (
    Refused,
    SlackFailure,
    delivery_error,
    refuses_form,
    repeatable_error,
)
from adapters.slack.uploads import NoFile, Uploader
from runtime.domain.errors import DeliveryUnknown
from runtime.domain.messages import OutboundMessage, Receipt
from runtime.domain.value import JsonObject
from runtime.ports.chat import Posted

log = structlog.get_logger(__name__)

#: What was to be changed is not there, or may not be changed any more.
_LOST = frozenset(
    {"cant_update_message", "edit_window_closed", "message_not_found", "thread_not_found"}
)


class Poster:
    """What one client can do with posts. It keeps nothing."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._uploader = Uploader(client)

    async def post_rest(
        self, message: OutboundMessage, done: Sequence[str], on_posted: Posted
    ) -> Receipt:
        """Every post of the message that is not among `done`. Raises `DeliveryError`."""
        posts, ids = egress.posts_of(message), list(done)
        for number in range(len(ids), len(posts)):
            post = posts[number]
            if isinstance(post, Upload):
                ids.append(await self._upload(message, post, number))
            else:
                ids.append(await self.post(message, post, number))
            if len(ids) < len(posts):
                await on_posted(ids[-1])
        return Receipt(message_ids=tuple(ids))

    async def _upload(self, message: OutboundMessage, upload: Upload, number: int) -> str:
        try:
            blocks = egress.share_blocks(message, upload, number)
            return await self._uploader.upload(message.target, upload, blocks)
        except NoFile as error:
            log.error(
                "slack.file_not_sent",
                file=upload.name,
                reason=error.reason,
                refused=error.refused,
                outbox_id=message.outbox_id,
            )
            return await self.post(message, egress.file_not_sent(upload, error.reason), number)

    async def post(self, message: OutboundMessage, post: Post, number: int) -> str:
        """Make the `number`-th post and return its `ts`. Raises `DeliveryError`."""
        payload = partial(egress.post_payload, message, post, number)
        try:
            answer = await self._write("chat.postMessage", payload, Form())
        except SlackFailure as failure:
            raise delivery_error(failure) from failure
        ts = answer.get("ts")
        if not isinstance(ts, str):
            raise DeliveryUnknown("Slack took the message and named no id")
        return ts

    async def replace(
        self, message: OutboundMessage, post: Post, ts: str, *, mark: bool = False
    ) -> bool:
        """Put `post` in the place of the one at `ts`; False where that is gone. Safe to repeat.

        With `mark` it becomes the first post of its row, which a stream is not yet. Raises
        `DeliveryError`.
        """
        payload = partial(egress.update_payload, message, post, ts)
        try:
            await self._write("chat.update", payload, Form(marked=mark))
        except SlackFailure as failure:
            if isinstance(failure, Refused) and failure.error in _LOST:
                log.info("slack.not_replaced", reason=str(failure))
                return False
            raise repeatable_error(failure) from failure
        return True

    async def delete(self, chat: str, ts: str) -> None:
        """Safe to repeat. Raises `DeliveryError`."""
        try:
            await self._client.write("chat.delete", {"channel": chat, "ts": ts})
        except SlackFailure as failure:
            # Already gone: an earlier attempt deleted it.
            if not (isinstance(failure, Refused) and failure.error == "message_not_found"):
                raise repeatable_error(failure) from failure

    async def _write(
        self, method: str, payload: Callable[[Form], JsonObject], form: Form
    ) -> JsonObject:
        """Call a method in the first form that Slack does not refuse. Raises `SlackFailure`."""
        while True:
            try:
                return await self._client.write(method, payload(form))
            except Refused as refusal:
                plainer = form.plainer(refusal.error) if refuses_form(refusal) else None
                if plainer is None:
                    raise
                log.warning("slack.sent_plainer", reason=str(refusal), form=str(plainer))
                form = plainer
