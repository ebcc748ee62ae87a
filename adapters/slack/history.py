"""Finding out what became of a send: the posts of an outbox row, by the metadata they carry.

It reads a bounded number of pages and refuses to guess: where the posts may lie further back than
it looks, the outcome stays unknown.
"""

import re
from collections.abc import Sequence

from adapters.slack.client import SlackClient
from adapters.slack.directory import messages_of, next_cursor
from adapters.slack.egress import part_number
from adapters.slack.failures import Refused, SlackFailure, lookup_error
from runtime.domain.errors import DeliveryRejected
from runtime.domain.messages import OutboundMessage

_TS = re.compile(r"\d+\.\d+")
PAGE = 200
MAX_PAGES = 20


async def find_posts(
    client: SlackClient, message: OutboundMessage, posted: Sequence[str]
) -> tuple[str, ...]:
    """The ids of the message's posts in order, from the first on without a gap.

    Fewer than the message needs when it broke off in the middle. Raises `DeliveryRetry`, or
    `DeliveryRejected` where the history is closed to the bot or too long to be sure.
    """
    try:
        found = await _numbered(client, message)
    except SlackFailure as failure:
        raise lookup_error(failure) from failure
    ids = list(posted)
    while len(ids) in found:
        ids.append(found[len(ids)])
    return tuple(ids)


async def _numbered(client: SlackClient, message: OutboundMessage) -> dict[int, str]:
    method, arguments = _query(message)
    found: dict[int, str] = {}
    for _ in range(MAX_PAGES):
        try:
            page = await client.read(method, arguments)
        except Refused as refusal:
            if refusal.error == "thread_not_found":
                return {}
            raise
        for posted in messages_of(page):
            number, ts = part_number(posted, message.outbox_id), posted.get("ts")
            if number is not None and isinstance(ts, str):
                found[number] = ts
        cursor = next_cursor(page)
        if not cursor:
            return found
        arguments = {**arguments, "cursor": cursor}
    raise DeliveryRejected(f"more than {MAX_PAGES * PAGE} messages came since: not looked further")


def _query(message: OutboundMessage) -> tuple[str, dict[str, str | int | bool]]:
    arguments: dict[str, str | int | bool] = {
        "channel": message.target.chat_id,
        "limit": PAGE,
        "include_all_metadata": True,
    }
    if message.reply_to is not None and _TS.fullmatch(message.reply_to):
        # Slack's own time of the question: this machine's clock may be wrong by any amount.
        arguments["oldest"] = message.reply_to
    if message.target.thread_id is None:
        return "conversations.history", arguments
    return "conversations.replies", {**arguments, "ts": message.target.thread_id}
