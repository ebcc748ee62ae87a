"""What every Web API method stands on: the caller's view of the workspace.

Lookups here answer as Slack does for a bot token: a private channel that the application is not
in does not exist for it. Events that a method causes are collected and sent by the server before
it answers the call, so that a client meets its own echo before its receipt, as it may in reality.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.wire.slack import events
from tests.wire.slack.answers import SlackError
from tests.wire.slack.present import message_json
from tests.wire.slack.state import Channel, JsonObject, Message, Workspace

_PREFIX = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
_USER = re.compile(r"[UW][A-Z0-9]+")


@dataclass(slots=True)
class Api:
    """One call's hands: the workspace, the events it causes and a place to complain."""

    workspace: Workspace
    base_url: str
    complain: Callable[[str], None]
    ticket: Callable[[], str]
    events: list[JsonObject] = field(default_factory=list)

    @property
    def bot(self) -> str:
        return self.workspace.install.bot_user

    def need(self, scope: str) -> None:
        """Raises `SlackError` `missing_scope` when the installation lacks it."""
        if not self.workspace.may(scope):
            held = self.workspace.install.scopes or ()
            raise SlackError("missing_scope", needed=scope, provided=",".join(sorted(held)))

    def channel(self, key: str, family: str | None = None) -> Channel:
        """A conversation that the application can see; `family` is a scope such as `history`."""
        found = self.workspace.channels.get(key)
        if found is None or (found.kind != "channel" and self.bot not in found.members):
            raise SlackError("channel_not_found")
        if family is not None:
            self.need(f"{_PREFIX[found.kind]}:{family}")
        return found

    def open_channel(self, key: str) -> Channel:
        """A conversation that the application can write to. A person's id means their DM."""
        if _USER.fullmatch(key):
            if key not in self.workspace.users:
                raise SlackError("channel_not_found")
            key = self.workspace.im(key)
        found = self.channel(key)
        if self.bot not in found.members:
            raise SlackError("not_in_channel")
        if found.archived:
            raise SlackError("is_archived")
        return found

    def message(self, channel: Channel, ts: str, error: str = "message_not_found") -> Message:
        found = channel.messages.get(ts)
        if found is None or found.deleted or found.ephemeral_to is not None:
            raise SlackError(error)
        return found

    def own_message(self, channel: Channel, ts: str, refusal: str) -> Message:
        found = self.message(channel, ts)
        if found.bot_id != self.workspace.install.bot_id:
            raise SlackError(refusal)
        return found

    def thread_root(self, channel: Channel, ts: str, error: str = "thread_not_found") -> Message:
        """The first message of a thread. A reply's own `ts` is no thread: Slack says avoid it."""
        found = channel.messages.get(ts)
        if found is None:
            raise SlackError(error)
        if found.thread_ts is not None:
            self.complain(f"{ts} is a reply, not the first message of a thread")
        return found

    def json_of(self, message: Message, *, with_metadata: bool = False) -> JsonObject:
        return message_json(self.workspace, message, self.base_url, with_metadata=with_metadata)

    def announce(self, message: Message) -> None:
        self.events.append(events.posted(self.workspace, message, self.base_url))

    def announce_change(self, message: Message, before: JsonObject) -> None:
        self.events.append(events.changed(self.workspace, message, before, self.base_url))

    def announce_deletion(self, message: Message, before: JsonObject) -> None:
        self.events.append(events.deleted(self.workspace, message, before))
