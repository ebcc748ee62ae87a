"""The settings of the chat platforms: who may talk there, credentials, habits. Shapes only."""

import re
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, SecretStr, model_validator

from gateway.config_section import Section
from gateway.config_text import TRIMMED, Address, Credential, address_problem

DmPolicy = Literal["pairing", "allowlist", "open", "disabled"]
GroupPolicy = Literal["allowlist", "open", "disabled"]
Scope = Literal["room", "thread", "user", "account"]
S = TypeVar("S", bound=Section)


def _by_name(given: dict[str, S]) -> dict[str, S]:
    for name in given:
        if not re.fullmatch(r"[a-z0-9-]{1,40}", name):
            raise ValueError(f"names are small letters, digits and hyphens, not {name!r}")
    return given


class ChannelAccess(Section):
    """Who may talk to the agent on one platform (ACC-1). Ids are the platform's."""

    dm_policy: DmPolicy = Field(
        "pairing",
        description="What happens when a stranger writes. `pairing` gives them a code that you "
        "can approve, `allowlist` ignores them, `open` lets them in as guests, "
        "`disabled` ignores all direct messages.",
    )
    group_policy: GroupPolicy = Field(
        "allowlist",
        description="In which groups the agent answers: those in `allow_groups`, all, or none.",
    )
    require_mention: bool = Field(
        True, description="Whether people in a group must mention the agent."
    )
    thread_without_mention: bool = Field(
        True,
        description="Whether threads and replies that the agent takes part in need no mention.",
    )
    owners: tuple[str, ...] = Field((), description="Users who own the gateway.")
    allow_users: tuple[str, ...] = Field((), description="Users who are members.")
    allow_groups: tuple[str, ...] = Field(
        (), description="Groups and channels in which the agent answers."
    )
    allow_bots: bool = Field(False, description="Whether the agent hears other bots.")
    stream: bool = Field(True, description="Whether people see replies while they are written.")
    group_trust: Literal["guest", "member"] = Field(
        "guest", description="The trust of unknown people in a group that is let in."
    )
    channel_scope: Scope = Field(
        "thread",
        description="What one session covers in channels: the channel, a thread, one person in "
        "the channel, or all channels of the account.",
    )
    group_scope: Scope = Field(
        "room",
        description="What one session covers in groups: the group, a thread, one person in the "
        "group, or all groups of the account.",
    )


class SlackWorkspace(Section):
    """`[slack.workspaces.NAME]`: the credentials of one more workspace's application. The other
    settings of `[slack]` apply there too."""

    bot_token: Credential = Field(description="The bot token, `xoxb-...`.")
    app_token: Credential | None = Field(
        None, description="The app-level token, `xapp-...`, for Socket Mode."
    )
    signing_secret: Credential | None = Field(
        None, description="For HTTP, at `/hooks/slack/NAME`. Not used with an app token."
    )

    @model_validator(mode="after")
    def _one_way_in(self) -> "SlackWorkspace":
        if self.app_token is None and self.signing_secret is None:
            raise ValueError("needs an app_token (Socket Mode) or a signing_secret (HTTP)")
        return self


class Slack(ChannelAccess):
    """`[slack]`: one workspace, and what applies to all of them. To switch Slack on, set the bot
    token, and an app token (Gatehouse calls Slack) or a signing secret (Slack calls it)."""

    bot_token: Credential | None = Field(
        None, description="The bot token, `xoxb-...`. Also read from `SLACK_BOT_TOKEN`."
    )
    app_token: Credential | None = Field(
        None, description="The app-level token, `xapp-...`. Also read from `SLACK_APP_TOKEN`."
    )
    signing_secret: Credential | None = Field(
        None,
        description="The signing secret. Also read from `SLACK_SIGNING_SECRET`. Not used with "
        "an app token.",
    )
    api_url: Address = Field(
        "https://slack.com/api/",
        description="The address of Slack's API. Also read from `SLACK_API_URL`.",
    )
    reply_in_thread: Literal["always", "channel-thread", "never"] = Field(
        "channel-thread",
        description="Where replies go. `channel-thread` opens threads only outside direct "
        "messages.",
    )
    greeting: bool = Field(
        True, description="Whether the bot says hello in a channel that it is added to."
    )
    connections: int = Field(
        1, ge=1, le=10, description="Socket Mode connections that are open at once."
    )
    request_timeout_s: float = Field(
        30.0, gt=0, description="Seconds that a call to Slack may take."
    )
    workspaces: Annotated[dict[str, SlackWorkspace], AfterValidator(_by_name)] = Field(
        default_factory=dict, description="More workspaces, each with an application of its own."
    )


def _webhook_url(url: str) -> str:
    # Plain http only to this machine: Telegram itself calls nothing but https.
    if url and not re.match(r"https://[^/]|http://(127\.0\.0\.1|localhost)[:/]", url):
        raise ValueError("must begin with https://")
    if url and (problem := address_problem(url)):
        raise ValueError(problem)
    return url


WebhookUrl = Annotated[str, TRIMMED, AfterValidator(_webhook_url)]
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")


def _check_webhook(url: str, secret: SecretStr | None) -> None:
    given = "" if secret is None else secret.get_secret_value()
    if url and _SECRET.fullmatch(given) is None:
        raise ValueError(
            "webhook_url needs a webhook_secret of 16 to 256 letters, digits, `_` and `-`"
        )


class TelegramBot(Section):
    """`[telegram.bots.NAME]`: the credentials of one more bot. The other settings of `[telegram]`
    apply to it too."""

    token: Credential = Field(description="The token from @BotFather.")
    webhook_url: WebhookUrl = Field(
        "",
        description="The address that Telegram calls, ending in `/hooks/telegram/NAME`. Empty: "
        "polling.",
    )
    webhook_secret: Credential | None = Field(
        None, description="The secret that Telegram sends with each call."
    )

    @model_validator(mode="after")
    def _secret_is_there(self) -> "TelegramBot":
        _check_webhook(self.webhook_url, self.webhook_secret)
        return self


class Telegram(ChannelAccess):
    """`[telegram]`: one bot, and what applies to all of them. The token switches Telegram on. With
    `webhook_url` Telegram calls Gatehouse, without it Gatehouse asks Telegram."""

    token: Credential | None = Field(
        None, description="The token from @BotFather. Also read from `TELEGRAM_BOT_TOKEN`."
    )
    api_url: Address = Field(
        "https://api.telegram.org",
        description="The address of Telegram's Bot API. Also read from `TELEGRAM_API_URL`.",
    )
    webhook_url: WebhookUrl = Field(
        "",
        description="The address that Telegram calls, ending in `/hooks/telegram`. Empty: long "
        "polling.",
    )
    webhook_secret: Credential | None = Field(
        None,
        description="The secret that Telegram sends with each call: 16 to 256 letters, digits, "
        "`_` and `-`.",
    )
    webhook_connections: int = Field(
        8, ge=1, le=100, description="How many calls Telegram may make at once."
    )
    greeting: bool = Field(
        True, description="Whether the bot says hello in a group that it is added to."
    )
    request_timeout_s: float = Field(
        30.0, gt=0, description="Seconds that a call to Telegram may take."
    )
    bots: Annotated[dict[str, TelegramBot], AfterValidator(_by_name)] = Field(
        default_factory=dict, description="More bots, each with a token of its own."
    )

    @model_validator(mode="after")
    def _secret_is_there(self) -> "Telegram":
        _check_webhook(self.webhook_url, self.webhook_secret)
        return self
