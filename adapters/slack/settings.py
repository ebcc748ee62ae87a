"""What the operator configured about one Slack workspace; ``gateway.config`` builds it."""

from typing import Literal

from pydantic import Field, SecretStr

from runtime.domain.value import Value

ReplyInThread = Literal["always", "channel-thread", "never"]


class SlackSettings(Value):
    """Credentials and habits of one installed application.

    ``reply_in_thread``: ``always`` opens a thread for every question, ``channel-thread`` only
    outside direct messages, ``never`` answers where the question stands (SLK-3). With
    ``thread_without_mention`` a thread that the bot takes part in needs no further mention.
    ``connections`` are Socket Mode sockets held at once; with more than one, Slack does not keep
    the order of two messages that follow each other closely. ``request_timeout_s`` is the longest
    a Web API call may take, in seconds.
    """

    bot_token: SecretStr
    app_token: SecretStr
    api_url: str = "https://slack.com/api/"
    reply_in_thread: ReplyInThread = "channel-thread"
    thread_without_mention: bool = True
    connections: int = Field(default=1, ge=1, le=10)
    request_timeout_s: float = Field(default=30.0, gt=0)
