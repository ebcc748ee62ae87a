"""Event payloads as Slack's Events API sends them, and who subscribes to which.

Pure builders: they read the workspace and send nothing.
"""

from tests.wire.slack.present import message_json
from tests.wire.slack.state import Channel, JsonObject, Message, Workspace

_SUBSCRIPTION = {
    "channel": "message.channels",
    "group": "message.groups",
    "im": "message.im",
    "mpim": "message.mpim",
}


_SCOPES = {
    "app_mention": "app_mentions:read",
    "assistant_thread_context_changed": "assistant:write",
    "assistant_thread_started": "assistant:write",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
    "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read",
}


def subscription_of(workspace: Workspace, event: JsonObject) -> str:
    """The name under which an application subscribes to this event."""
    if event["type"] != "message":
        return str(event["type"])
    return _SUBSCRIPTION[workspace.channels[str(event["channel"])].kind]


def scope_of(workspace: Workspace, event: JsonObject) -> str | None:
    """The scope without which Slack sends no such event to the application."""
    name = subscription_of(workspace, event)
    if name == "member_joined_channel":
        private = workspace.channels[str(event["channel"])].kind != "channel"
        return "groups:read" if private else "channels:read"
    return _SCOPES.get(name)


def event_callback(workspace: Workspace, event: JsonObject) -> JsonObject:
    """The outer payload, with a new event id."""
    install = workspace.install
    return {
        "token": "verification-token",
        "team_id": install.team_id,
        "context_team_id": install.team_id,
        "context_enterprise_id": None,
        "api_app_id": install.app_id,
        "event": event,
        "type": "event_callback",
        "event_id": workspace.new_id("Ev"),
        "event_time": int(str(event["event_ts"]).partition(".")[0]),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": install.team_id,
                "user_id": install.bot_user,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
        "event_context": "4-test-context",
    }


def posted(workspace: Workspace, message: Message, base_url: str) -> JsonObject:
    """A `message` event for a new message, of a person or of the application itself."""
    channel = workspace.channels[message.channel]
    body = message_json(workspace, message, base_url)
    seen: JsonObject = {}
    if channel.kind == "im" and message.user in workspace.users and _tells_context(workspace):
        seen = {"app_context": workspace.context_of(message.user)}
    return {
        **{k: v for k, v in body.items() if k not in {"reply_count", "reply_users"}},
        **seen,
        "channel": channel.id,
        "channel_type": channel.kind,
        "event_ts": message.ts,
    }


def mentioned(workspace: Workspace, message: Message, base_url: str) -> JsonObject:
    """The `app_mention` twin of a `message` event: the same `ts`, no `channel_type`."""
    body = posted(workspace, message, base_url)
    body.pop("channel_type")
    return {**body, "type": "app_mention"}


def changed(
    workspace: Workspace, message: Message, before: JsonObject, base_url: str
) -> JsonObject:
    """A `message_changed` event; the changed message is nested and carries the author."""
    return {
        **_hidden(workspace, message, "message_changed"),
        "message": message_json(workspace, message, base_url),
        "previous_message": before,
    }


def deleted(workspace: Workspace, message: Message, before: JsonObject) -> JsonObject:
    return {
        **_hidden(workspace, message, "message_deleted"),
        "deleted_ts": message.ts,
        "previous_message": before,
    }


def _hidden(workspace: Workspace, message: Message, subtype: str) -> JsonObject:
    channel = workspace.channels[message.channel]
    moment = workspace.next_ts()
    return {
        "type": "message",
        "subtype": subtype,
        "hidden": True,
        "channel": channel.id,
        "channel_type": channel.kind,
        "ts": moment,
        "event_ts": moment,
    }


def reaction(
    workspace: Workspace, message: Message, *, user: str, name: str, added: bool
) -> JsonObject:
    return {
        "type": "reaction_added" if added else "reaction_removed",
        "user": user,
        "reaction": name,
        "item": {"type": "message", "channel": message.channel, "ts": message.ts},
        "item_user": message.user,
        "event_ts": workspace.next_ts(),
    }


def joined(workspace: Workspace, channel: Channel, user: str, ts: str) -> list[JsonObject]:
    """A join is two events: the channel's `channel_join` line and `member_joined_channel`."""
    line: JsonObject = {
        "type": "message",
        "subtype": "channel_join" if channel.kind == "channel" else "group_join",
        "user": user,
        "text": f"<@{user}> has joined the channel",
        "ts": ts,
        "channel": channel.id,
        "channel_type": channel.kind,
        "event_ts": ts,
    }
    member: JsonObject = {
        "type": "member_joined_channel",
        "user": user,
        "channel": channel.id,
        "channel_type": "C" if channel.kind == "channel" else "G",
        "team": workspace.install.team_id,
        "event_ts": ts,
    }
    return [line, member]


def assistant_thread(
    workspace: Workspace, kind: str, root: Message, *, user: str, context: str | None
) -> JsonObject:
    """`kind` is `assistant_thread_started` or `assistant_thread_context_changed`."""
    seen: JsonObject = {}
    if context is not None:
        seen = {
            "channel_id": context,
            "team_id": workspace.install.team_id,
            "enterprise_id": None,
        }
    return {
        "type": kind,
        "assistant_thread": {
            "user_id": user,
            "context": seen,
            "channel_id": root.channel,
            "thread_ts": root.ts,
        },
        "event_ts": workspace.next_ts(),
    }


def context_changed(workspace: Workspace, user: str) -> JsonObject:
    """What a person looks at beside the application; agent view alone."""
    return {
        "type": "app_context_changed",
        "user": user,
        "channel": workspace.im(user),
        "context": workspace.context_of(user),
        "event_ts": workspace.next_ts(),
    }


def session_stopped(workspace: Workspace, root: Message, user: str) -> JsonObject:
    """A person pressed Slack's own stop button of a thread."""
    streams = workspace.channels[root.channel].replies(root.ts)
    return {
        "type": "agent_session_stopped",
        "user": user,
        "channel": root.channel,
        "thread_ts": root.ts,
        "streaming_message_ts": [s.ts for s in streams if s.streaming == "stopped_by_user"],
        "event_ts": workspace.next_ts(),
    }


def _tells_context(workspace: Workspace) -> bool:
    install = workspace.install
    return install.experience == "agent" and "app_context_changed" in install.events


def home_opened(workspace: Workspace, user: str, tab: str) -> JsonObject:
    seen = {"context": workspace.context_of(user)} if _tells_context(workspace) else {}
    return {
        **seen,
        "type": "app_home_opened",
        "user": user,
        "channel": workspace.im(user),
        "tab": tab,
        "event_ts": workspace.next_ts(),
    }
