"""The checks of `doctor` that ask the chat platforms (OPS-5): tokens, scopes, the way in.

They send nothing and change nothing there.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from gateway import wiring, wiring_chats
from gateway.cli.check_result import Check
from gateway.config import Config
from runtime.domain.errors import GatehouseError, Unavailable
from runtime.ports.chat import ChatAdapter

PLATFORM_S: Final = 20.0

_TOKENS: Final = {
    "slack": (
        "Check the tokens; `gatehouse slack manifest` prints the application that they belong to."
    ),
    "telegram": "Check the token: @BotFather shows it when you send /token.",
}
_NETWORK: Final = (
    "Check this machine's network, its name service and its proxy, and {key} if it is set. "
    "Whether {name} accepts the token is not known yet."
)


async def platforms(config: Config) -> AsyncIterator[Check]:
    """Every configured account, one after the other."""
    slack, bots = config.settings.slack, config.settings.telegram
    half = slack_half(config)
    if half is not None:
        yield half
    elif slack.bot_token is None and not slack.workspaces:
        yield Check("slack", "ok", "not configured")
    if bots.token is None and not bots.bots:
        yield Check("telegram", "ok", "not configured")
    for adapter in wiring_chats.chat_adapters(config, wiring.system_clock()):
        async for found in _platform(adapter):
            yield found
    async for found in _webhooks(config):
        yield found


def slack_half(config: Config) -> Check | None:
    """What is missing where only a part of Slack's credentials is there."""
    slack = config.settings.slack
    way = slack.app_token or slack.signing_secret
    if slack.bot_token is not None and way is None:
        fix = "Set SLACK_APP_TOKEN (Socket Mode) or slack.signing_secret (HTTP)."
        return Check("slack", "fail", "only the bot token is set, so no messages can arrive", fix)
    if slack.bot_token is None and way is not None:
        return Check("slack", "fail", "the bot token is missing", "Set SLACK_BOT_TOKEN.")
    return None


async def _platform(adapter: ChatAdapter) -> AsyncIterator[Check]:
    name = adapter.channel
    try:
        async with asyncio.timeout(PLATFORM_S):
            await adapter.connect()
    except (GatehouseError, TimeoutError) as error:
        yield Check(name, "fail", _why(error), _fix(name, error))
        return
    finally:
        await adapter.close()
    yield Check(name, "ok", f"connected as {adapter.account}")
    if name == "slack":
        yield slack_scopes(adapter)


def slack_scopes(adapter: ChatAdapter) -> Check:
    """Whether the token of a connected adapter has the scopes of the manifest."""
    missing = wiring_chats.missing_scopes(adapter)
    if missing is None:
        found = f"Slack does not say which scopes {adapter.account} has"
        fix = "`gatehouse status` and the log name each missing scope when it is needed."
        return Check("slack scopes", "warn", found, fix)
    if not missing:
        return Check("slack scopes", "ok", f"{adapter.account} has all that the manifest asks for")
    fix = (
        "Put the text of `gatehouse slack manifest` into the application's App Manifest at "
        "api.slack.com/apps, then reinstall it to the workspace."
    )
    return Check("slack scopes", "fail", f"{adapter.account} lacks {', '.join(missing)}", fix)


async def _webhooks(config: Config) -> AsyncIterator[Check]:
    asked = wiring_chats.telegram_ways_in(config.settings.telegram, within_s=PLATFORM_S)
    try:
        async for bot, way in asked:
            told = f"{bot}: {way.found}" if bot else way.found
            if way.trouble:
                yield Check("telegram webhook", "warn", told, way.fix)
            else:
                yield Check("telegram webhook", "ok", told)
    except (GatehouseError, TimeoutError) as error:
        yield Check("telegram webhook", "fail", _why(error), _fix("telegram", error))


def _why(error: Exception) -> str:
    # Of what cannot be reached the adapter says that it tries again; this command does not.
    return str(error).removesuffix(" Trying again.") or f"no answer within {PLATFORM_S:g} s"


def _fix(name: str, error: Exception) -> str:
    if isinstance(error, Unavailable | TimeoutError):
        return _NETWORK.format(name=name.capitalize(), key=f"{name.upper()}_API_URL")
    return _TOKENS[name]
