"""The application manifest: exactly the scopes and events that the adapter uses (SLK-6).

It prints text and installs nothing. A scope that is added here without a use, or used without
being here, fails a test.
"""

from typing import Literal

import yaml

Mode = Literal["socket"]

EVENTS = ("app_mention", "message.channels", "message.groups", "message.im", "message.mpim")
COMMAND = "/gatehouse"

#: Each scope with its use.
SCOPES = {
    "app_mentions:read": "hear mentions",
    "channels:history": "hear public channels, read their threads, look up unsure posts",
    "chat:write": "post, edit and show that it works",
    "commands": "the command /gatehouse",
    "groups:history": "the same in private channels",
    "im:history": "the same in direct messages",
    "mpim:history": "the same in group direct messages",
    "users:read": "names of the people who write",
}


def manifest(mode: Mode = "socket") -> str:
    """YAML for "Create New App > From a manifest" at https://api.slack.com/apps.

    The App-Level Token (scope connections:write) is made by hand afterwards: a manifest has none.
    """
    application = {
        "display_information": {
            "name": "Gatehouse",
            "description": "An agent for your team, on your own machine",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": "gatehouse", "always_online": True},
            "slash_commands": [
                {
                    "command": COMMAND,
                    "description": "Talk to Gatehouse",
                    "usage_hint": "help | status | approve CODE",
                    "should_escape": True,
                }
            ],
        },
        "oauth_config": {"scopes": {"bot": sorted(SCOPES)}},
        "settings": {
            "event_subscriptions": {"bot_events": sorted(EVENTS)},
            "interactivity": {"is_enabled": False},
            "org_deploy_enabled": False,
            "socket_mode_enabled": mode == "socket",
            "token_rotation_enabled": False,
        },
    }
    return yaml.safe_dump(application, sort_keys=False)
