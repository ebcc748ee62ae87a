"""`telegram`: a bot's webhook, looked at and changed by hand."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gateway.cli.common import AsJson, cell, fail, group, print_json, read_config, say
from runtime.domain.counts import counted
from runtime.domain.json_fields import number_of

if TYPE_CHECKING:
    from runtime.domain.value import JsonObject

app = group("Look after a Telegram bot.")
webhook = group("Where Telegram calls the gateway.")
app.add_typer(webhook, name="webhook")

Bot = Annotated[
    str,
    typer.Option("--bot", metavar="NAME", help="A bot of [telegram.bots]. Default: the first bot."),
]


@webhook.command("set")
def set_(context: typer.Context, bot: Bot = "") -> None:
    """Tell Telegram the configured address. The gateway does it too when it starts."""
    _do(context, bot, "set")
    say("Telegram calls the configured address now.")


@webhook.command()
def info(context: typer.Context, bot: Bot = "", as_json: AsJson = False) -> None:
    """Show where Telegram calls, what waits there and what went wrong."""
    found = _do(context, bot, "info")
    if as_json:
        print_json(found)
        return
    if not found.get("url"):
        waiting = number_of(found, "pending_update_count") or 0
        say(f"No webhook is set; waiting: {counted(waiting, 'update')}.")
        return
    for name, key in (
        ("address", "url"),
        ("waiting", "pending_update_count"),
        ("connections", "max_connections"),
        ("last error", "last_error_message"),
    ):
        say(f"{name:12} {cell(found.get(key))}")


@webhook.command()
def delete(context: typer.Context, bot: Bot = "") -> None:
    """Remove the webhook. Messages that wait at Telegram are kept for polling."""
    _do(context, bot, "delete")
    say("The webhook is removed. A gateway that is configured for it sets it again.")


def _do(context: typer.Context, bot: str, action: Literal["set", "info", "delete"]) -> "JsonObject":
    # Lazy: the composition root loads the adapters.
    from gateway import wiring_chats
    from runtime.domain.errors import GatehouseError

    section = read_config(context).settings.telegram
    try:
        return asyncio.run(wiring_chats.telegram_webhook(section, bot, action))
    except GatehouseError as error:
        fail(str(error))
