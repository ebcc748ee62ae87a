"""Who the bot is in its workspace, and whether its credentials hold: asked once, at the start."""

from adapters.slack.client import SlackClient
from adapters.slack.failures import SlackFailure, TokenName, connection_error, wrong_token
from adapters.slack.ingress import Bot
from adapters.slack.settings import SlackSettings


def check_prefixes(settings: SlackSettings) -> None:
    """Two tokens that were swapped are the commonest mistake; Slack's codes do not say it.

    Raises `Forbidden`.
    """
    given: list[tuple[TokenName, str, str]] = [
        ("bot", "xoxb-", settings.bot_token.get_secret_value())
    ]
    if settings.app_token is not None:
        given.append(("app", "xapp-", settings.app_token.get_secret_value()))
    for name, prefix, token in given:
        if not token.startswith(prefix):
            raise wrong_token(name, f"it does not begin with {prefix}")


async def who_am_i(client: SlackClient) -> Bot:
    """The bot behind the token. Raises `Forbidden` or `Unavailable`."""
    try:
        answer = await client.write("auth.test", {})
    except SlackFailure as failure:
        raise connection_error(failure, "bot") from failure
    found = {key: answer.get(key) for key in ("team_id", "user_id", "bot_id")}
    known = {key: value for key, value in found.items() if isinstance(value, str)}
    if len(known) < len(found):
        raise wrong_token("bot", "it does not belong to a bot")
    return Bot(**known)


async def first_address(client: SlackClient) -> str:
    """Proves the app token; the address is good for one connection.

    Raises `Forbidden` or `Unavailable`.
    """
    try:
        return await client.socket_address()
    except SlackFailure as failure:
        raise connection_error(failure, "app") from failure
