"""How Slack writes its objects as JSON: users, channels, messages and files.

Pure: it reads the workspace and changes nothing.
"""

from pathlib import PurePosixPath

from tests.wire.slack.state import Channel, JsonObject, Message, StoredFile, User, Workspace


def user_json(workspace: Workspace, user: User) -> JsonObject:
    team = workspace.install.team_id
    return {
        "id": user.id,
        "team_id": team,
        "name": user.name,
        "deleted": user.deleted,
        "real_name": user.real_name,
        "tz": user.timezone,
        "profile": {
            "real_name": user.real_name,
            "display_name": user.name,
            "email": user.email,
            "team": team,
        },
        "is_admin": False,
        "is_owner": False,
        "is_restricted": False,
        "is_ultra_restricted": False,
        "is_bot": user.is_bot,
        "is_app_user": False,
        "updated": 1_700_000_000,
    }


def channel_json(workspace: Workspace, channel: Channel) -> JsonObject:
    bot = workspace.install.bot_user
    shared: JsonObject = {
        "id": channel.id,
        "created": 1_700_000_000,
        "is_archived": channel.archived,
        "is_channel": channel.kind == "channel",
        "is_group": channel.kind == "group",
        "is_im": channel.kind == "im",
        "is_mpim": channel.kind == "mpim",
        "is_private": channel.kind != "channel",
        "context_team_id": workspace.install.team_id,
        "is_shared": False,
        "is_ext_shared": False,
    }
    if channel.kind == "im":
        return {**shared, "user": next(u for u in sorted(channel.members) if u != bot)}
    return {
        **shared,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_general": channel.name == "general",
        "is_member": bot in channel.members,
        "topic": {"value": "", "creator": "", "last_set": 0},
        "purpose": {"value": "", "creator": "", "last_set": 0},
        "num_members": len(channel.members),
    }


def file_json(workspace: Workspace, stored: StoredFile, base_url: str) -> JsonObject:
    private = f"{base_url}/files-pri/{workspace.install.team_id}-{stored.id}"
    suffix = PurePosixPath(stored.name).suffix.removeprefix(".")
    return {
        "id": stored.id,
        "created": stored.created,
        "timestamp": stored.created,
        "name": stored.name,
        "title": stored.title,
        "mimetype": stored.mimetype,
        "filetype": suffix or "binary",
        "user": stored.user,
        "size": len(stored.content or b""),
        "mode": "hosted",
        "is_external": False,
        "is_public": False,
        "file_access": "visible",
        "url_private": f"{private}/{stored.name}",
        "url_private_download": f"{private}/download/{stored.name}",
        "channels": [c for c in stored.shared_in if c.startswith("C")],
        "ims": [c for c in stored.shared_in if c.startswith("D")],
    }


def message_json(
    workspace: Workspace, message: Message, base_url: str, *, with_metadata: bool = False
) -> JsonObject:
    """A message as history, answers and events carry it (without `channel`)."""
    body: JsonObject = {
        "type": "message",
        "ts": message.ts,
        "text": message.text,
        "team": workspace.install.team_id,
    }
    optional: JsonObject = {
        "subtype": message.subtype,
        "user": message.user,
        "client_msg_id": message.client_msg_id,
        "username": message.username,
        "thread_ts": message.thread_ts,
        "blocks": message.blocks or None,
        "attachments": message.attachments or None,
        "streaming_state": message.streaming,
    }
    body.update({key: value for key, value in optional.items() if value is not None})
    if message.bot_id is not None:
        body.update(_bot_fields(workspace, message))
    if message.files:
        body["files"] = [file_json(workspace, f, base_url) for f in message.files]
        body["upload"] = False
    if message.edited_by is not None:
        body["edited"] = {"user": message.edited_by, "ts": message.edited_ts}
    if message.assistant_title is not None:
        body["assistant_app_thread"] = {"title": message.assistant_title, "artifacts": []}
    if message.reactions:
        body["reactions"] = [
            {"name": name, "users": list(users), "count": len(users)}
            for name, users in message.reactions.items()
        ]
    if with_metadata and message.metadata is not None:
        body["metadata"] = message.metadata
    return {**body, **_thread_fields(workspace, message)}


def _bot_fields(workspace: Workspace, message: Message) -> JsonObject:
    install = workspace.install
    if message.bot_id != install.bot_id:
        return {"bot_id": message.bot_id, "app_id": "A0OTHER"}
    return {
        "bot_id": message.bot_id,
        "app_id": install.app_id,
        "bot_profile": {
            "id": install.bot_id,
            "app_id": install.app_id,
            "user_id": install.bot_user,
            "name": install.bot_name,
            "team_id": install.team_id,
            "deleted": False,
            "icons": {},
        },
    }


def _thread_fields(workspace: Workspace, message: Message) -> JsonObject:
    channel = workspace.channels[message.channel]
    if message.thread_ts is not None:
        root = channel.messages.get(message.thread_ts)
        return {"parent_user_id": root.user} if root is not None and root.user else {}
    replies = channel.replies(message.ts)
    if not replies:
        return {"thread_ts": message.ts} if message.subtype == "assistant_app_thread" else {}
    return {
        "thread_ts": message.ts,
        "reply_count": len(replies),
        "reply_users": sorted({r.user for r in replies if r.user}),
        "latest_reply": replies[-1].ts,
    }
