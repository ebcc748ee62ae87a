"""The checks of `doctor` that ask the chat platforms (OPS-5): tokens, scopes, the way in.

They send nothing and change nothing there.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final

from pydantic import SecretStr

from gateway import home_socket, home_token, wiring, wiring_chats
from gateway.cli.answers import Refused, Unreachable
from gateway.cli.check_result import Check
from gateway.cli.client import GatewayClient
from gateway.config import Config
from runtime.domain.errors import GatehouseError, Unavailable
from runtime.domain.json_fields import objects_of, text_of
from runtime.ports.chat import ChatAdapter

PLATFORM_S: Final = 20.0
_FOR_GOOD: Final = "Switching an application to the agent view cannot be undone."

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
    kinds = await _kinds_seen(config) if half is None else {}
    for adapter in wiring_chats.chat_adapters(config, wiring.system_clock()):
        async for found in _platform(adapter, kinds):
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


async def _kinds_seen(config: Config) -> Mapping[tuple[str, str], str]:
    """What the running gateway learned of each account from what arrived, by channel and account;
    empty where none runs or it does not say."""
    home, token = config.home, home_token.read(config.home)
    if not await asyncio.to_thread(home_socket.live, home):
        return {}
    try:
        async with GatewayClient("", SecretStr(token) if token else None, home=home) as client:
            status = await client.get("/v1/status")
    except (Refused, Unreachable):
        # The check of the gateway says why.
        return {}
    return {
        (text_of(one, "channel"), text_of(one, "account")): text_of(one, "kind")
        for one in objects_of(status, "adapters")
    }


async def _platform(
    adapter: ChatAdapter, kinds: Mapping[tuple[str, str], str]
) -> AsyncIterator[Check]:
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
        yield slack_view(adapter, kinds.get((name, adapter.account), ""))


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
        "api.slack.com/apps, then reinstall it to the workspace. If its manifest there says "
        "assistant_view, use `gatehouse slack manifest --assistant-view`; if it has neither view, "
        "only add the scopes. Otherwise the application gets the agent view, which cannot be "
        "undone."
    )
    return Check("slack scopes", "fail", f"{adapter.account} lacks {', '.join(missing)}", fix)


def slack_view(adapter: ChatAdapter, seen: str) -> Check:
    """Which of Slack's experiences for agents the application has. `seen` is the one that the
    events of the running gateway prove, or ""; without it the scopes say what they can."""
    name, known = adapter.account, wiring_chats.slack_experience(adapter, seen=seen)
    if known.ends:
        found = (
            f"{name} has Slack's {known.view}, as its events show. Slack ends it in {known.ends}. "
            f"{_FOR_GOOD}"
        )
        fix = (
            "Before that, put the text of `gatehouse slack manifest` into the application's App "
            "Manifest at api.slack.com/apps, and reinstall it."
        )
        return Check("slack view", "warn", found, fix)
    if known.view:
        found = f"{name} has Slack's {known.view}, as its events show."
    elif known.scopes == "none":
        found = (
            f"{name} has neither Slack's agent view nor its assistant view: it lacks the scope "
            "assistant:write."
        )
    else:
        why = "it has the scope of both" if known.scopes else "Slack does not say its scopes"
        found = (
            f"{name} may have Slack's agent view or its assistant view: {why}. Its App Manifest at "
            "api.slack.com/apps says which, and so does this check while the gateway runs, once "
            "somebody has used the application in Slack."
        )
    return Check("slack view", "ok", f"{found} {_FOR_GOOD}")


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
