"""Reading: who am I, conversations, their history and threads, people; and reactions.

History is what a client asks after an ambiguous send: with `include_all_metadata` each message
carries the metadata that it was posted with, without it none does.
"""

import re
from collections.abc import Sequence

from tests.wire.slack import events
from tests.wire.slack.answers import SlackError
from tests.wire.slack.api import Api
from tests.wire.slack.arguments import Arguments
from tests.wire.slack.present import channel_json, user_json
from tests.wire.slack.state import Channel, JsonObject, Message

MAX_PAGE = 999
_EMOJI = re.compile(r"[a-z0-9_+'\-]+")


def auth_test(api: Api, _args: Arguments) -> JsonObject:
    install = api.workspace.install
    return {
        "url": f"{api.base_url}/",
        "team": install.team_name,
        "user": install.bot_name,
        "team_id": install.team_id,
        "user_id": install.bot_user,
        "bot_id": install.bot_id,
        "is_enterprise_install": False,
    }


def connections_open(api: Api, _args: Arguments) -> JsonObject:
    return {"url": api.ticket()}


def api_test(_api: Api, args: Arguments) -> JsonObject:
    if "error" in args:
        raise SlackError(args.text("error"), args=args.values)
    return {"args": args.values}


def team_info(api: Api, _args: Arguments) -> JsonObject:
    install = api.workspace.install
    team = {"id": install.team_id, "name": install.team_name, "domain": "test-team"}
    return {"team": team}


def bots_info(api: Api, args: Arguments) -> JsonObject:
    install = api.workspace.install
    if args.maybe("bot") not in {None, install.bot_id}:
        raise SlackError("bot_not_found")
    bot = {
        "id": install.bot_id,
        "app_id": install.app_id,
        "user_id": install.bot_user,
        "name": install.bot_name,
        "deleted": False,
    }
    return {"bot": bot}


def info(api: Api, args: Arguments) -> JsonObject:
    channel = api.channel(args.text("channel"), "read")
    return {"channel": channel_json(api.workspace, channel)}


def members(api: Api, args: Arguments) -> JsonObject:
    channel = api.channel(args.text("channel"), "read")
    return {"members": sorted(channel.members), "response_metadata": {"next_cursor": ""}}


def list_channels(api: Api, args: Arguments) -> JsonObject:
    """`conversations.list` and `users.conversations` of the application."""
    kinds = {"public_channel": "channel", "private_channel": "group"}
    asked = (args.maybe("types") or "public_channel").replace(" ", "").split(",")
    wanted = {kinds.get(name, name) for name in asked}
    found = [
        channel_json(api.workspace, c)
        for c in api.workspace.channels.values()
        if c.kind in wanted
        and (c.kind == "channel" or api.bot in c.members)
        and not (args.flag("exclude_archived") and c.archived)
    ]
    return {"channels": found, "response_metadata": {"next_cursor": ""}}


def open_conversation(api: Api, args: Arguments) -> JsonObject:
    if "channel" in args:
        channel = api.channel(args.text("channel"))
    else:
        people = (args.maybe("users") or "").split(",")
        if people == [""]:
            raise SlackError("users_list_not_supplied")
        if len(people) > 1:
            raise SlackError("method_not_supported_for_channel_type")
        if people[0] not in api.workspace.users:
            raise SlackError("user_not_found")
        channel = api.workspace.channels[api.workspace.im(people[0])]
    if args.flag("return_im"):
        return {"channel": channel_json(api.workspace, channel)}
    return {"channel": {"id": channel.id}}


def history(api: Api, args: Arguments) -> JsonObject:
    """Newest first, without replies that were not broadcast."""
    channel = _readable(api, args)
    found = [m for m in channel.live() if m.thread_ts is None or m.subtype == "thread_broadcast"]
    return _page(api, args, [m for m in reversed(found) if _within(args, m.ts)])


def replies(api: Api, args: Arguments) -> JsonObject:
    """The thread's first message, then its replies, oldest first."""
    channel = _readable(api, args)
    asked = channel.messages.get(args.text("ts"))
    if asked is None or asked.deleted:
        raise SlackError("thread_not_found")
    root = channel.messages.get(asked.thread_ts or asked.ts)
    answers = [m for m in channel.replies(asked.thread_ts or asked.ts) if _within(args, m.ts)]
    return _page(api, args, [*([root] if root and not root.deleted else []), *answers])


def _readable(api: Api, args: Arguments) -> Channel:
    channel = api.channel(args.text("channel"), "history")
    if api.bot not in channel.members:
        raise SlackError("not_in_channel")
    return channel


def _within(args: Arguments, ts: str) -> bool:
    oldest, latest = args.maybe("oldest"), args.maybe("latest")
    at, inclusive = float(ts), args.flag("inclusive")
    low, high = float(oldest or 0), float(latest or "inf")
    return low <= at <= high if inclusive else low < at < high


def _page(api: Api, args: Arguments, found: Sequence[Message]) -> JsonObject:
    limit = args.number("limit", 100)
    if not 1 <= limit <= MAX_PAGE:
        raise SlackError("invalid_limit")
    cursor = args.maybe("cursor") or "next:0"
    if not re.fullmatch(r"next:\d+", cursor):
        raise SlackError("invalid_cursor")
    start = int(cursor.removeprefix("next:"))
    whole = args.flag("include_all_metadata")
    more = len(found) > start + limit
    page = [api.json_of(m, with_metadata=whole) for m in found[start : start + limit]]
    answer: JsonObject = {"messages": page, "has_more": more}
    if more:
        answer["response_metadata"] = {"next_cursor": f"next:{start + limit}"}
    return answer


def user_info(api: Api, args: Arguments) -> JsonObject:
    user = api.workspace.users.get(args.text("user"))
    if user is None:
        raise SlackError("user_not_found")
    return {"user": user_json(api.workspace, user)}


def list_users(api: Api, _args: Arguments) -> JsonObject:
    people = [user_json(api.workspace, u) for u in api.workspace.users.values()]
    return {"members": people, "response_metadata": {"next_cursor": ""}}


def add_reaction(api: Api, args: Arguments) -> JsonObject:
    message, name = _reacted(api, args)
    people = message.reactions.setdefault(name, [])
    if api.bot in people:
        raise SlackError("already_reacted")
    people.append(api.bot)
    _announce_reaction(api, message, name, added=True)
    return {}


def remove_reaction(api: Api, args: Arguments) -> JsonObject:
    if "channel" not in args or "timestamp" not in args:
        raise SlackError("no_item_specified")
    message, name = _reacted(api, args)
    people = message.reactions.get(name, [])
    if api.bot not in people:
        raise SlackError("no_reaction")
    people.remove(api.bot)
    if not people:
        del message.reactions[name]
    _announce_reaction(api, message, name, added=False)
    return {}


def _reacted(api: Api, args: Arguments) -> tuple[Message, str]:
    name = args.text("name")
    if not _EMOJI.fullmatch(name):
        raise SlackError("invalid_name")
    channel = api.open_channel(args.text("channel"))
    return api.message(channel, args.text("timestamp")), name


def _announce_reaction(api: Api, message: Message, name: str, *, added: bool) -> None:
    event = events.reaction(api.workspace, message, user=api.bot, name=name, added=added)
    api.events.append(event)
