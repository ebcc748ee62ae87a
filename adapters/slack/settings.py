"""What the operator configured about one Slack workspace; ``gateway.config`` builds it."""

from typing import Literal

from pydantic import Field, SecretStr, model_validator

from runtime.domain.value import Value

ReplyInThread = Literal["always", "channel-thread", "never"]


class SlackSettings(Value):
    """Credentials and habits of one installed application.

    The credentials choose the way in (SLK-1): with ``app_token`` Gatehouse calls Slack (Socket
    Mode), with ``signing_secret`` alone Slack calls Gatehouse. ``name`` tells workspaces apart
    where there are several. ``reply_in_thread``: ``always`` opens a thread for every question,
    ``channel-thread`` only outside direct messages, ``never`` answers where the question stands
    (SLK-3). With ``thread_without_mention`` a thread that the bot takes part in needs no further
    mention. With ``greeting`` it says a line when it is added to a channel. ``connections`` are
    Socket Mode sockets held at once; with more than one, Slack does not keep the order of two
    messages that follow each other closely. ``request_timeout_s`` is the longest a Web API call may
    take, in seconds.
    """

    bot_token: SecretStr
    app_token: SecretStr | None = None
    signing_secret: SecretStr | None = None
    name: str = ""
    api_url: str = "https://slack.com/api/"
    reply_in_thread: ReplyInThread = "channel-thread"
    thread_without_mention: bool = True
    greeting: bool = True
    connections: int = Field(default=1, ge=1, le=10)
    request_timeout_s: float = Field(default=30.0, gt=0)

    @model_validator(mode="after")
    def _one_way_in(self) -> "SlackSettings":
        if self.app_token is None and self.signing_secret is None:
            raise ValueError("give an app token (Socket Mode) or a signing secret (HTTP)")
        return self

    @property
    def by_http(self) -> bool:
        """Whether Slack calls us."""
        return self.app_token is None
