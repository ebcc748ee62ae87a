"""A bot's webhook by hand: set it, look at it, take it away; and whether updates arrive by it, for
`gatehouse doctor`, which changes nothing.

The gateway sets and removes it by itself as configured; this is for looking, and for moving a bot
from one gateway to another.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from adapters.telegram.client import TelegramClient
from adapters.telegram.failures import TelegramFailure, connection_error
from adapters.telegram.settings import TelegramSettings
from adapters.telegram.webhook import webhook_payload
from runtime.domain.errors import Forbidden, InvalidInput
from runtime.domain.json_fields import number_of, text_of
from runtime.domain.value import JsonObject

Action = Literal["set", "info", "delete"]


async def webhook(settings: TelegramSettings, action: Action) -> JsonObject:
    """Set it as configured, or take it away and leave what waits at Telegram. Gives `WebhookInfo`
    as Telegram has it then, which holds no secret.

    Raises `InvalidInput` where no address to set is configured, `Forbidden` and `Unavailable`.
    """
    if action == "set" and not settings.webhook_url:
        raise InvalidInput("telegram.webhook_url", "is not set, so the bot is polled")
    client = TelegramClient(settings)
    try:
        if action == "set":
            await client.call("setWebhook", webhook_payload(settings))
        elif action == "delete":
            await client.call("deleteWebhook", {"drop_pending_updates": False})
        answer = await client.call("getWebhookInfo", {})
    except TelegramFailure as failure:
        raise connection_error(failure) from failure
    finally:
        await client.close()
    return answer if isinstance(answer, dict) else {}


@dataclass(frozen=True, slots=True)
class WayIn:
    """How updates arrive. `trouble` is empty where they do; `fix` is what to do about it."""

    found: str
    trouble: bool = False
    fix: str = ""


async def way_in(settings: TelegramSettings, *, within_s: float) -> WayIn:
    """Compare `getWebhookInfo` with the settings.

    Raises `Forbidden` for a wrong token, `Unavailable` or TimeoutError where nothing is learnt.
    """
    if not TelegramClient(settings).token_is_plausible:
        raise Forbidden("the token does not look like one")
    async with asyncio.timeout(within_s):
        info = await webhook(settings, "info")
    set_to, error = text_of(info, "url"), text_of(info, "last_error_message")
    waiting = number_of(info, "pending_update_count") or 0
    if not settings.webhook_url:
        return _polled(set_to)
    if set_to != settings.webhook_url:
        return WayIn(
            f"the webhook is set to {_host(set_to)}",
            trouble=bool(set_to),
            fix="`gatehouse serve` sets it; stop the other program that uses this bot's token.",
        )
    if error and waiting:
        return WayIn(
            f"Telegram cannot call the webhook: {error} ({waiting} updates wait)",
            trouble=True,
            fix=f"Let {_host(set_to)} be reached from outside with a valid certificate.",
        )
    return WayIn(f"Telegram calls {_host(set_to)}")


def _polled(set_to: str) -> WayIn:
    if not set_to:
        return WayIn("long polling, no webhook in the way")
    return WayIn(
        f"long polling is configured, but a webhook is set to {_host(set_to)}",
        trouble=True,
        fix="`gatehouse serve` removes it; another program that sets it needs a bot of its own.",
    )


def _host(url: str) -> str:
    # Never the whole address: its path may be somebody's secret.
    return urlsplit(url).hostname or "nothing"
