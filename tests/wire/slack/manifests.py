"""What Slack accepts as an application manifest, and the installation that it makes.

The shape has the facts of Slack's published schema (slackapi/manifest-schema, the fields that an
application of ours could use). The rules beside it are those that Slack's site applies when a
manifest is saved. Nothing here knows the application under test.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from tests.wire.slack.state import Experience, Install, JsonObject


class ManifestRefused(Exception):
    """Slack would not save this manifest; the message has every reason."""


def _text(shortest: int = 0, longest: int | None = None, pattern: str = "") -> JsonObject:
    limits: JsonObject = {"type": "string", "minLength": shortest}
    if longest is not None:
        limits["maxLength"] = longest
    if pattern:
        limits["pattern"] = pattern
    return limits


def _table(required: str = "", /, **fields: JsonObject) -> JsonObject:
    closed: JsonObject = {"type": "object", "additionalProperties": False}
    return {**closed, "required": required.split(), "properties": fields}


def _list(of: JsonObject, **limits: object) -> JsonObject:
    return {"type": "array", "items": of, **limits}


_FLAG: JsonObject = {"type": "boolean"}
_NUMBER: JsonObject = {"type": "integer"}
_ADDRESS = _text(longest=3500, pattern="^https?://")
_NAMES = _list(_text(longest=50), maxItems=255)
_EVENTS = _list(_text(longest=50), maxItems=100, uniqueItems=True)
_PROMPT = _table("title message", title=_text(), message=_text())
SHAPE = _table(
    "display_information",
    _metadata=_table("", major_version=_NUMBER, minor_version=_NUMBER),
    display_information=_table(
        "name",
        name=_text(1, 35),
        description=_text(1, 140),
        background_color=_text(4, 7),
        long_description=_text(175, 4000),
    ),
    features=_table(
        "",
        app_home=_table(
            "",
            home_tab_enabled=_FLAG,
            messages_tab_enabled=_FLAG,
            messages_tab_read_only_enabled=_FLAG,
        ),
        agent_view=_table(
            "",
            agent_description=_text(longest=300),
            suggested_prompts=_list(_PROMPT, maxItems=4),
            actions=_list(_table("name description", name=_text(), description=_text())),
        ),
        assistant_view=_table(
            "assistant_description",
            assistant_description=_text(),
            suggested_prompts=_list(_PROMPT),
        ),
        bot_user=_table("display_name", display_name=_text(1, 80), always_online=_FLAG),
        slash_commands=_list(
            _table(
                "command description",
                command=_text(2, 32, "^/"),
                url=_text(longest=3000, pattern="^https?://"),
                description=_text(1, 2000),
                usage_hint=_text(1, 1000),
                should_escape=_FLAG,
            ),
            minItems=1,
            maxItems=50,
        ),
    ),
    oauth_config=_table(
        "",
        scopes=_table("", bot=_NAMES, user=_NAMES, bot_optional=_NAMES, user_optional=_NAMES),
        token_management_enabled=_FLAG,
        pkce_enabled=_FLAG,
    ),
    settings=_table(
        "",
        event_subscriptions=_table(
            "", request_url=_ADDRESS, bot_events=_EVENTS, user_events=_EVENTS
        ),
        interactivity=_table(
            "is_enabled",
            is_enabled=_FLAG,
            request_url=_ADDRESS,
            message_menu_options_url=_ADDRESS,
        ),
        org_deploy_enabled=_FLAG,
        socket_mode_enabled=_FLAG,
        token_rotation_enabled=_FLAG,
    ),
)

#: Each event that Slack knows here, with the scopes of which it wants one and the view it needs.
_KNOWN: Mapping[str, tuple[frozenset[str], Experience | None]] = {
    "agent_session_stopped": (frozenset({"chat:write"}), None),
    "app_context_changed": (frozenset(), "agent"),
    "app_home_opened": (frozenset(), None),
    "app_mention": (frozenset({"app_mentions:read"}), None),
    "assistant_thread_context_changed": (frozenset({"assistant:write"}), "assistant"),
    "assistant_thread_started": (frozenset({"assistant:write"}), "assistant"),
    "member_joined_channel": (frozenset({"channels:read", "groups:read"}), None),
    "message.channels": (frozenset({"channels:history"}), None),
    "message.groups": (frozenset({"groups:history"}), None),
    "message.im": (frozenset({"im:history"}), None),
    "message.mpim": (frozenset({"mpim:history"}), None),
    "reaction_added": (frozenset({"reactions:read"}), None),
    "reaction_removed": (frozenset({"reactions:read"}), None),
}


def faults_of(manifest: object, *, is_new: bool = True) -> list[str]:
    """Why Slack would refuse it, each with its place; empty where it takes it.

    `is_new` is for "Create New App": an application that exists may keep the assistant view.
    """
    checked = jsonschema_rs.Draft7Validator(SHAPE).iter_errors(manifest)
    shape = [f"{'.'.join(map(str, error.instance_path))}: {error.message}" for error in checked]
    return shape or [*_rules(_Fields(manifest), is_new)]


def install_of(manifest: object, *, is_new: bool = True) -> Install:
    """The application as Slack installs it from this manifest. Raises `ManifestRefused`."""
    faults = faults_of(manifest, is_new=is_new)
    if faults:
        raise ManifestRefused("; ".join(faults))
    fields = _Fields(manifest)
    return Install(
        scopes=frozenset(fields.at("oauth_config", "scopes", "bot") or ()),
        events=frozenset(fields.at("settings", "event_subscriptions", "bot_events") or ()),
        experience=fields.experience,
    )


class _Fields:
    """A manifest of the right shape, by the paths of its fields."""

    def __init__(self, manifest: Any) -> None:
        self._manifest = manifest

    def at(self, *path: str) -> Any:
        value = self._manifest
        for name in path:
            value = (value or {}).get(name)
        return value

    @property
    def experience(self) -> Experience | None:
        if self.at("features", "agent_view") is not None:
            return "agent"
        return "assistant" if self.at("features", "assistant_view") is not None else None


def _rules(fields: _Fields, is_new: bool) -> Iterator[str]:
    old = fields.at("features", "assistant_view") is not None
    if old and fields.at("features", "agent_view") is not None:
        yield "features: agent_view and assistant_view exclude each other"
    elif old and is_new:
        yield "features.assistant_view: not for new apps; use agent_view"
    scopes = set(fields.at("oauth_config", "scopes", "bot") or ())
    if fields.experience is not None and "assistant:write" not in scopes:
        yield f"features.{fields.experience}_view: needs the scope assistant:write"
    if scopes and fields.at("features", "bot_user") is None:
        yield "features.bot_user: bot scopes need a bot user"
    if fields.at("features", "slash_commands") and "commands" not in scopes:
        yield "features.slash_commands: need the scope commands"
    events = fields.at("settings", "event_subscriptions", "bot_events") or ()
    for event in events:
        yield from _event_faults(event, scopes, fields.experience)
    if not fields.at("settings", "socket_mode_enabled"):
        yield from _missing_addresses(fields, bool(events))


def _event_faults(event: str, scopes: set[str], view: Experience | None) -> Iterator[str]:
    if event not in _KNOWN:
        yield f"settings.event_subscriptions.bot_events: no event {event}"
        return
    wanted, needed = _KNOWN[event]
    if wanted and not wanted & scopes:
        yield f"{event}: needs the scope {' or '.join(sorted(wanted))}"
    if needed is not None and needed != view:
        yield f"{event}: needs features.{needed}_view"


def _missing_addresses(fields: _Fields, hears: bool) -> Iterator[str]:
    """Without Socket Mode, Slack has to know where to call."""
    if hears and not fields.at("settings", "event_subscriptions", "request_url"):
        yield "settings.event_subscriptions.request_url: required without Socket Mode"
    interactivity = fields.at("settings", "interactivity") or {}
    if interactivity.get("is_enabled") and not interactivity.get("request_url"):
        yield "settings.interactivity.request_url: required without Socket Mode"
    for command in fields.at("features", "slash_commands") or ():
        if not command.get("url"):
            yield f"{command['command']}: an url is required without Socket Mode"
