"""The application manifest: exactly the scopes and events that the adapter uses (SLK-6, SLK-9).

It prints text and installs nothing. A scope that is added here without a use, or used without
being here, fails a test. Fields and limits: the schema in github.com/slackapi/manifest-schema.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import yaml

from adapters.slack.assistant import PROMPTS
from adapters.slack.experience import ASSISTANT_VIEW_ENDS, Experience
from runtime.domain.errors import InvalidInput
from runtime.domain.value import JsonObject

ASSISTANT_VIEW_NOTE = (
    "this manifest is for an app that was installed with Slack's assistant view. Slack takes no "
    f"new app with it and ends it in {ASSISTANT_VIEW_ENDS}. Until then, switch the app to the "
    "agent view with the manifest that `gatehouse slack manifest` prints; the switch cannot be "
    "undone."
)

#: Each event with its use, in both views.
EVENTS = {
    "app_home_opened": "show the App Home, and suggest what to ask in the agent view",
    "app_mention": "hear mentions",
    "member_joined_channel": "greet a channel",
    "message.channels": "hear threads it takes part in, edits and deletions",
    "message.groups": "the same in private channels",
    "message.im": "hear direct messages",
    "message.mpim": "hear group direct messages",
}
#: The events of one view alone, each with its use.
VIEW_EVENTS: Mapping[Experience, Mapping[str, str]] = {
    "agent": {
        "agent_session_stopped": "stop when a person presses Slack's own stop",
        "app_context_changed": "have Slack say with a message what its writer looks at",
    },
    "assistant": {
        "assistant_thread_context_changed": "suggest what to ask about the channel beside it",
        "assistant_thread_started": "suggest what to ask",
    },
}
COMMAND = "/gatehouse"
_DESCRIPTION = "An agent for your team, on your own machine"

#: Each scope with its use.
SCOPES = {
    "app_mentions:read": "hear mentions",
    "assistant:write": "suggested prompts and titles of threads",
    "channels:history": "hear public channels, read their threads, look up unsure posts",
    "channels:read": "names of channels, whether it is in one, and being added to one",
    "chat:write": "post, stream, edit and show that it works",
    "commands": "the command /gatehouse",
    "files:read": "fetch the files that people share with it",
    "files:write": "send files",
    "groups:history": "the same in private channels",
    "groups:read": "the same in private channels",
    "im:history": "the same in direct messages",
    "mpim:history": "the same in group direct messages",
    "users:read": "names of the people who write",
}


def events_of(view: Experience) -> frozenset[str]:
    """The events that an application with this view subscribes to."""
    return frozenset(EVENTS) | frozenset(VIEW_EVENTS[view])


def manifest(url: str | None = None, *, view: Experience = "agent") -> str:
    """YAML for "Create New App > From a manifest" at https://api.slack.com/apps.

    Slack takes new applications with the agent view only. The assistant view is for updating an
    application that was installed with it: the agent view cannot be undone there.

    Without `url` for Socket Mode, whose App-Level Token (scope connections:write) is made by hand
    afterwards: a manifest has none. With it for HTTP: the gateway's public address, or the one of
    the workspace's hook below it. Raises `InvalidInput`.
    """
    called = None if url is None else hook_address(url)
    # A request URL, where there is one; Socket Mode takes none.
    request: JsonObject = {} if called is None else {"request_url": called}
    command: JsonObject = {
        "command": COMMAND,
        "description": "Talk to Gatehouse",
        "usage_hint": "help | status | approve CODE",
        "should_escape": True,
        **({} if called is None else {"url": called}),
    }
    application: JsonObject = {
        "display_information": {
            "name": "Gatehouse",
            "description": _DESCRIPTION,
        },
        "features": {
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            f"{view}_view": {
                f"{view}_description": _DESCRIPTION,
                "suggested_prompts": [*PROMPTS],
            },
            "bot_user": {"display_name": "gatehouse", "always_online": True},
            "slash_commands": [command],
        },
        "oauth_config": {"scopes": {"bot": [*sorted(SCOPES)]}},
        "settings": {
            "event_subscriptions": {**request, "bot_events": [*sorted(events_of(view))]},
            "interactivity": {"is_enabled": True, **request},
            "org_deploy_enabled": False,
            "socket_mode_enabled": called is None,
            "token_rotation_enabled": False,
        },
    }
    return yaml.safe_dump(application, sort_keys=False, allow_unicode=True)


def hook_address(url: str) -> str:
    """Where Slack calls a gateway whose public address is `url`. Raises `InvalidInput`."""
    address = url.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        proper = parts.scheme == "https" and bool(parts.hostname) and not parts.query
    except ValueError:
        proper = False
    if not proper:
        raise InvalidInput("--http", "must be an https address such as https://bot.example.org")
    return address if "/hooks/" in address else f"{address}/hooks/slack"


def missing(granted: Iterable[str]) -> tuple[str, ...]:
    """The scopes that an installation lacks: installed by an older manifest, or by hand."""
    return tuple(sorted(set(SCOPES) - set(granted)))
