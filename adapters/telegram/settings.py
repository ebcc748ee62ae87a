"""What the operator configured about one Telegram bot; ``gateway.config`` builds it."""

import re

from pydantic import Field, SecretStr, model_validator

from runtime.domain.value import Value

# `setWebhook`: which characters a secret token may have. The shortest is ours.
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")


class BotCommand(Value):
    """One line of the menu that Telegram shows; ``guests`` may use it too."""

    name: str
    help: str
    guests: bool = False


class TelegramSettings(Value):
    """The credentials of one bot and how it is reached.

    With ``webhook_url`` Telegram calls Gatehouse at that address, which names itself by
    ``webhook_secret``; without it Gatehouse asks for updates. ``name`` tells bots apart where there
    are several. ``api_url`` is the Bot API server without the token, Telegram's or one's own.
    ``poll_timeout_s`` is how long Telegram holds a question for updates open, 50 seconds at most;
    ``request_timeout_s`` is the longest any other call may take, in seconds. ``commands`` is the
    menu. With ``greeting`` the bot says a line when it is added to a group.
    """

    token: SecretStr
    name: str = ""
    api_url: str = "https://api.telegram.org"
    webhook_url: str = ""
    webhook_secret: SecretStr | None = None
    webhook_connections: int = Field(default=8, ge=1, le=100)
    poll_timeout_s: int = Field(default=50, ge=1, le=50)
    request_timeout_s: float = Field(default=30.0, gt=0)
    commands: tuple[BotCommand, ...] = ()
    greeting: bool = True

    @model_validator(mode="after")
    def _webhook_has_a_secret(self) -> "TelegramSettings":
        secret = self.webhook_secret.get_secret_value() if self.webhook_secret else ""
        if self.webhook_url and _SECRET.fullmatch(secret) is None:
            raise ValueError("the webhook needs a secret of 16 to 256 letters, digits, `_` and `-`")
        return self
