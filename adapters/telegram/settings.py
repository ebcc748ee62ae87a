"""What the operator configured about one Telegram bot; ``gateway.config`` builds it."""

from pydantic import Field, SecretStr

from runtime.domain.value import Value


class TelegramSettings(Value):
    """The credentials of one bot and how it is reached.

    ``api_url`` is the Bot API server without the token, Telegram's or one's own. ``poll_timeout_s``
    is how long Telegram holds a question for updates open, 50 seconds at most;
    ``request_timeout_s`` is the longest any other call may take, in seconds.
    """

    token: SecretStr
    api_url: str = "https://api.telegram.org"
    poll_timeout_s: int = Field(default=50, ge=1, le=50)
    request_timeout_s: float = Field(default=30.0, gt=0)
