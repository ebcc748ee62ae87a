"""The registry of Web API methods: one handler for each name of the argument tables."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tests.wire.slack import (
    api_chat,
    api_conversations,
    api_files,
    api_streams,
    api_views,
)
from tests.wire.slack.answers import SlackError
from tests.wire.slack.api import Api
from tests.wire.slack.arguments import METHODS, Arguments
from tests.wire.slack.state import Install, JsonObject

Handler: TypeAlias = Callable[[Api, Arguments], JsonObject]

HANDLERS: Mapping[str, Handler] = {
    "api.test": api_conversations.api_test,
    "auth.test": api_conversations.auth_test,
    "apps.connections.open": api_conversations.connections_open,
    "agents.sessions.setStatus": api_streams.set_session_status,
    "assistant.threads.setStatus": api_streams.set_status,
    "assistant.threads.setSuggestedPrompts": api_streams.set_suggested_prompts,
    "assistant.threads.setTitle": api_streams.set_title,
    "bots.info": api_conversations.bots_info,
    "chat.appendStream": api_streams.append_stream,
    "chat.delete": api_chat.delete,
    "chat.getPermalink": api_chat.permalink,
    "chat.postEphemeral": api_chat.post_ephemeral,
    "chat.postMessage": api_chat.post_message,
    "chat.startStream": api_streams.start_stream,
    "chat.stopStream": api_streams.stop_stream,
    "chat.update": api_chat.update,
    "conversations.history": api_conversations.history,
    "conversations.info": api_conversations.info,
    "conversations.list": api_conversations.list_channels,
    "conversations.members": api_conversations.members,
    "conversations.open": api_conversations.open_conversation,
    "conversations.replies": api_conversations.replies,
    "files.completeUploadExternal": api_files.complete_upload,
    "files.delete": api_files.delete,
    "files.getUploadURLExternal": api_files.get_upload_url,
    "files.info": api_files.info,
    "reactions.add": api_conversations.add_reaction,
    "reactions.remove": api_conversations.remove_reaction,
    "team.info": api_conversations.team_info,
    "users.conversations": api_conversations.list_channels,
    "users.info": api_conversations.user_info,
    "users.list": api_conversations.list_users,
    "views.open": api_views.open_view,
    "views.publish": api_views.publish_view,
    "views.push": api_views.open_view,
    "views.update": api_views.update_view,
}


def authorise(install: Install, method: str, token: str | None) -> None:
    """Raises `SlackError` unless the token is the right one and holds the method's scope."""
    if token is None:
        raise SlackError("not_authed")
    if token not in {install.bot_token, install.app_token}:
        raise SlackError("invalid_auth")
    expected = METHODS[method].token
    if token != (install.app_token if expected == "app" else install.bot_token):
        raise SlackError("not_allowed_token_type")
