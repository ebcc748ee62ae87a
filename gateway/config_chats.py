"""The settings of the chat platforms: who may talk there, credentials, habits. Shapes only."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from gateway.config_section import Section

DmPolicy = Literal["pairing", "allowlist", "open", "disabled"]
GroupPolicy = Literal["allowlist", "open", "disabled"]
Scope = Literal["room", "thread", "user", "account"]


class ChannelAccess(Section):
    """Who may talk to the agent on one platform (ACC-1). Ids are the platform's."""

    dm_policy: DmPolicy = Field("pairing", description="What happens to strangers who write.")
    group_policy: GroupPolicy = Field("allowlist", description="In which groups it answers.")
    require_mention: bool = Field(True, description="Whether a group must mention it.")
    thread_without_mention: bool = Field(
        True, description="A thread or reply chain that it takes part in needs no mention."
    )
    owners: tuple[str, ...] = Field((), description="Users who own the gateway.")
    allow_users: tuple[str, ...] = Field((), description="Users who are members.")
    allow_groups: tuple[str, ...] = Field((), description="Groups and channels it answers in.")
    allow_bots: bool = Field(False, description="Whether other bots are heard.")
    stream: bool = Field(True, description="Whether replies are shown while they are written.")
    group_trust: Literal["guest", "member"] = Field(
        "guest", description="The trust of unknown people in a group that is let in."
    )
    channel_scope: Scope = Field("thread", description="What one session covers in channels.")
    group_scope: Scope = Field("room", description="What one session covers in groups.")


class SlackWorkspace(Section):
    """`[slack.workspaces.NAME]`: the credentials of one more workspace's application. What
    `[slack]` says about access and habits holds there too."""

    bot_token: SecretStr = Field(description="`xoxb-...`")
    app_token: SecretStr | None = Field(None, description="`xapp-...`, for Socket Mode.")
    signing_secret: SecretStr | None = Field(
        None, description="For HTTP, at `/hooks/slack/NAME`; unused with an app token."
    )

    @model_validator(mode="after")
    def _one_way_in(self) -> "SlackWorkspace":
        if self.app_token is None and self.signing_secret is None:
            raise ValueError("needs an app_token (Socket Mode) or a signing_secret (HTTP)")
        return self


def _workspaces(given: dict[str, SlackWorkspace]) -> dict[str, SlackWorkspace]:
    for name in given:
        if not re.fullmatch(r"[a-z0-9-]{1,40}", name):
            raise ValueError(f"names are small letters, digits and hyphens, not {name!r}")
    return given


class Slack(ChannelAccess):
    """`[slack]`: one workspace, and what holds in all of them. The bot token switches it on, with
    an app token (Gatehouse calls Slack) or a signing secret (Slack calls `/hooks/slack`)."""

    bot_token: SecretStr | None = Field(None, description="`xoxb-...`; also `SLACK_BOT_TOKEN`.")
    app_token: SecretStr | None = Field(None, description="`xapp-...`; also `SLACK_APP_TOKEN`.")
    signing_secret: SecretStr | None = Field(
        None, description="Also `SLACK_SIGNING_SECRET`; unused with an app token."
    )
    api_url: str = Field("https://slack.com/api/", description="Also `SLACK_API_URL`.")
    reply_in_thread: Literal["always", "channel-thread", "never"] = Field(
        "channel-thread", description="Where replies go."
    )
    greeting: bool = Field(True, description="Whether it says a line where it is added.")
    connections: int = Field(1, ge=1, le=10, description="Socket Mode connections at once.")
    request_timeout_s: float = Field(30.0, gt=0, description="The longest a call may take.")
    workspaces: Annotated[dict[str, SlackWorkspace], AfterValidator(_workspaces)] = Field(
        default_factory=dict, description="More workspaces, each with an application of its own."
    )


def _webhook_url(url: str) -> str:
    # Plain http only to this machine: Telegram itself calls nothing but https.
    if url and not re.match(r"https://[^/]|http://(127\.0\.0\.1|localhost)[:/]", url):
        raise ValueError(f"must begin with https://, not {url!r}")
    return url


WebhookUrl = Annotated[str, AfterValidator(_webhook_url)]
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")


def _check_webhook(url: str, secret: SecretStr | None) -> None:
    given = "" if secret is None else secret.get_secret_value()
    if url and _SECRET.fullmatch(given) is None:
        raise ValueError(
            "webhook_url needs a webhook_secret of 16 to 256 letters, digits, `_` and `-`"
        )


class TelegramBot(Section):
    """`[telegram.bots.NAME]`: the credentials of one more bot. What `[telegram]` says about access
    and habits holds there too."""

    token: SecretStr = Field(description="From @BotFather.")
    webhook_url: WebhookUrl = Field(
        "", description="Where Telegram calls, ending in `/hooks/telegram/NAME`; empty: polling."
    )
    webhook_secret: SecretStr | None = Field(None, description="What Telegram shows there.")

    @model_validator(mode="after")
    def _secret_is_there(self) -> "TelegramBot":
        _check_webhook(self.webhook_url, self.webhook_secret)
        return self


def _bots(given: dict[str, TelegramBot]) -> dict[str, TelegramBot]:
    for name in given:
        if not re.fullmatch(r"[a-z0-9-]{1,40}", name):
            raise ValueError(f"names are small letters, digits and hyphens, not {name!r}")
    return given


class Telegram(ChannelAccess):
    """`[telegram]`: one bot, and what holds for all of them. The token switches it on; with
    `webhook_url` Telegram calls Gatehouse, without it Gatehouse asks Telegram."""

    token: SecretStr | None = Field(None, description="From @BotFather; also `TELEGRAM_BOT_TOKEN`.")
    api_url: str = Field("https://api.telegram.org", description="Also `TELEGRAM_API_URL`.")
    webhook_url: WebhookUrl = Field(
        "", description="Where Telegram calls, ending in `/hooks/telegram`; empty: long polling."
    )
    webhook_secret: SecretStr | None = Field(
        None, description="What Telegram shows there: 16 to 256 letters, digits, `_` and `-`."
    )
    webhook_connections: int = Field(
        8, ge=1, le=100, description="How many calls Telegram may make at once."
    )
    greeting: bool = Field(True, description="Whether it says a line where it is added.")
    request_timeout_s: float = Field(30.0, gt=0, description="The longest a call may take.")
    bots: Annotated[dict[str, TelegramBot], AfterValidator(_bots)] = Field(
        default_factory=dict, description="More bots, each with a token of its own."
    )

    @model_validator(mode="after")
    def _secret_is_there(self) -> "Telegram":
        _check_webhook(self.webhook_url, self.webhook_secret)
        return self
