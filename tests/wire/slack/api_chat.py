"""`chat.*` without streams: post, update, delete, post to one person, and their limits.

Limits, from the method pages: text 40,000 characters, 50 blocks, 12,000 characters over all
markdown blocks or in `markdown_text`. Slack calls blocks that are too long together
`msg_blocks_too_long`.
"""

from tests.wire.slack.answers import SlackError
from tests.wire.slack.api import Api
from tests.wire.slack.arguments import Arguments
from tests.wire.slack.blocks import MAX_MARKDOWN, block_problems, markdown_length
from tests.wire.slack.state import Channel, JsonObject, Message

MAX_TEXT = 40_000
_LOOK = ("username", "icon_emoji", "icon_url")


def post_message(api: Api, args: Arguments) -> JsonObject:
    channel = api.open_channel(args.text("channel"))
    message = _composed(api, args, channel)
    message.metadata = checked_metadata(args)
    if args.flag("reply_broadcast") and message.thread_ts is not None:
        message.subtype = "thread_broadcast"
    api.workspace.store(message)
    api.announce(message)
    body = api.json_of(message, with_metadata=True)
    return {"channel": channel.id, "ts": message.ts, "message": body}


def post_ephemeral(api: Api, args: Arguments) -> JsonObject:
    channel = api.open_channel(args.text("channel"))
    reader = args.text("user")
    if reader not in channel.members:
        raise SlackError("user_not_in_channel")
    message = _composed(api, args, channel)
    message.ephemeral_to = reader
    api.workspace.store(message)
    return {"message_ts": message.ts}


def update(api: Api, args: Arguments) -> JsonObject:
    channel = api.channel(args.text("channel"))
    message = api.own_message(channel, args.text("ts"), "cant_update_message")
    if message.streaming == "in_progress":
        raise SlackError("streaming_state_conflict")
    blocks = _checked_body(args)
    before = api.json_of(message)
    message.revisions.append(message.visible_text)
    if "text" in args:
        message.text = args.text("text")
    if "markdown_text" in args:
        blocks = [{"type": "markdown", "text": args.text("markdown_text")}]
    # Blocks that an update does not send again are gone when it sends text alone.
    message.blocks = blocks
    message.attachments = args.items("attachments")
    if "metadata" in args:
        message.metadata = checked_metadata(args)
    api.workspace.store(message)
    api.announce_change(message, before)
    body = api.json_of(message, with_metadata=True)
    return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": body}


def delete(api: Api, args: Arguments) -> JsonObject:
    channel = api.channel(args.text("channel"))
    message = api.own_message(channel, args.text("ts"), "cant_delete_message")
    before = api.json_of(message)
    message.deleted = True
    api.announce_deletion(message, before)
    return {"channel": channel.id, "ts": message.ts}


def permalink(api: Api, args: Arguments) -> JsonObject:
    channel = api.channel(args.text("channel"))
    message = api.message(channel, args.text("message_ts"))
    link = f"{api.base_url}/archives/{channel.id}/p{message.ts.replace('.', '')}"
    return {"channel": channel.id, "permalink": link}


def checked_metadata(args: Arguments) -> JsonObject | None:
    """Raises `SlackError` `invalid_metadata_format` unless it is a typed payload."""
    metadata = args.object("metadata")
    if metadata is None:
        return None
    kind, payload = metadata.get("event_type"), metadata.get("event_payload")
    if not isinstance(kind, str) or not isinstance(payload, dict) or len(metadata) != 2:
        raise SlackError("invalid_metadata_format")
    if any(value is None for value in payload.values()):
        raise SlackError("invalid_metadata_schema")
    return metadata


def checked_blocks(args: Arguments) -> list[JsonObject]:
    """Raises `SlackError` `invalid_blocks` or `msg_blocks_too_long`."""
    blocks = args.items("blocks")
    problems = block_problems(blocks)
    if problems:
        raise SlackError("invalid_blocks", *problems, errors=problems)
    if markdown_length(blocks) > MAX_MARKDOWN:
        raise SlackError("msg_blocks_too_long")
    return blocks


def _checked_body(args: Arguments) -> list[JsonObject]:
    text, markdown = args.maybe("text") or "", args.maybe("markdown_text")
    if markdown is not None and ("text" in args or "blocks" in args):
        raise SlackError("markdown_text_conflict")
    if len(text) > MAX_TEXT or len(markdown or "") > MAX_MARKDOWN:
        raise SlackError("msg_too_long")
    blocks = checked_blocks(args)
    if not (text.strip() or blocks or args.items("attachments") or markdown):
        raise SlackError("no_text")
    return blocks


def _composed(api: Api, args: Arguments, channel: Channel) -> Message:
    blocks = _checked_body(args)
    markdown = args.maybe("markdown_text")
    if markdown is not None:
        blocks = [{"type": "markdown", "text": markdown}]
    thread = args.maybe("thread_ts")
    if thread is not None:
        api.thread_root(channel, thread)
    dressed = any(name in args for name in _LOOK)
    if dressed:
        api.need("chat:write.customize")
    install = api.workspace.install
    return Message(
        channel=channel.id,
        ts=api.workspace.next_ts(),
        text=args.maybe("text") or markdown or "",
        user=None if dressed else install.bot_user,
        bot_id=install.bot_id,
        subtype="bot_message" if dressed else None,
        username=args.maybe("username"),
        thread_ts=thread,
        blocks=blocks,
        attachments=args.items("attachments"),
    )
