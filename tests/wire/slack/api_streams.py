"""`chat.startStream`, `appendStream`, `stopStream`, and the assistant's threads.

A stream starts in a thread, carries no metadata until it is stopped, and refuses `chat.update`
while it runs. Outside a direct conversation Slack wants to know for whom it streams.
"""

from tests.wire.slack.answers import SlackError
from tests.wire.slack.api import Api
from tests.wire.slack.api_chat import checked_blocks, checked_metadata
from tests.wire.slack.arguments import Arguments
from tests.wire.slack.blocks import MAX_MARKDOWN
from tests.wire.slack.state import Channel, JsonObject, Message

_CHUNKS = {
    "markdown_text": {"text"},
    "task_update": {"id", "title", "status", "details", "output", "sources"},
    "plan_update": {"title"},
    "blocks": {"blocks"},
}
MAX_PROMPTS = 4
MAX_LOADING_MESSAGES = 10


def start_stream(api: Api, args: Arguments) -> JsonObject:
    channel = api.open_channel(args.text("channel"))
    api.thread_root(channel, args.text("thread_ts"))
    if channel.kind != "im":
        for name in ("recipient_team_id", "recipient_user_id"):
            if name not in args:
                raise SlackError(f"missing_{name}")
    if args.maybe("task_display_mode") not in {None, "timeline", "plan"}:
        raise SlackError("invalid_arguments", "task_display_mode must be timeline or plan")
    text = _streamed(args)
    install = api.workspace.install
    message = Message(
        channel=channel.id,
        ts=api.workspace.next_ts(),
        text=text,
        user=install.bot_user,
        bot_id=install.bot_id,
        thread_ts=args.text("thread_ts"),
        streaming="in_progress",
    )
    api.workspace.store(message)
    api.announce(message)
    return {"channel": channel.id, "ts": message.ts}


def append_stream(api: Api, args: Arguments) -> JsonObject:
    message = _running(api, args)
    if "markdown_text" not in args and "chunks" not in args:
        raise SlackError("invalid_arguments", "missing required field: markdown_text")
    added = _streamed(args)
    message.revisions.append(message.text)
    message.text += added
    return {"channel": message.channel, "ts": message.ts}


def stop_stream(api: Api, args: Arguments) -> JsonObject:
    message = _running(api, args)
    text, blocks = _streamed(args), checked_blocks(args)
    metadata = checked_metadata(args)
    before = api.json_of(message)
    message.revisions.append(message.text)
    message.text += text
    message.blocks = [{"type": "markdown", "text": message.text}, *blocks] if blocks else []
    message.streaming = "completed"
    message.metadata = metadata
    api.workspace.store(message)
    api.announce_change(message, before)
    body = api.json_of(message, with_metadata=True)
    return {"channel": message.channel, "ts": message.ts, "message": body}


def _running(api: Api, args: Arguments) -> Message:
    channel = api.channel(args.text("channel"))
    message = api.own_message(channel, args.text("ts"), "message_not_owned_by_app")
    if message.streaming == "stopped_by_user":
        raise SlackError("stopped_by_user")
    if message.streaming != "in_progress":
        raise SlackError("message_not_in_streaming_state")
    return message


def _streamed(args: Arguments) -> str:
    """The text that a call adds, from `markdown_text` and from its chunks."""
    text = args.maybe("markdown_text") or ""
    for chunk in args.items("chunks"):
        kind = chunk.get("type")
        known = _CHUNKS.get(kind) if isinstance(kind, str) else None
        if known is None or not set(chunk) - {"type"} <= known:
            raise SlackError("invalid_chunks", f"unsupported chunk: {chunk}")
        if kind == "markdown_text":
            text += str(chunk.get("text", ""))
    if len(text) > MAX_MARKDOWN:
        raise SlackError("msg_too_long")
    return text


def set_status(api: Api, args: Arguments) -> JsonObject:
    """The line under the thread while the application works; an empty status clears it.

    It works in channels too since March 2026 (`chat:write` is its scope).
    """
    channel = api.open_channel(args.text("channel_id"))
    api.thread_root(channel, args.text("thread_ts"), "invalid_thread_ts")
    loading = args.values.get("loading_messages", [])
    if isinstance(loading, list) and len(loading) > MAX_LOADING_MESSAGES:
        raise SlackError("invalid_arguments", "loading_messages: at most 10")
    return {}


def set_session_status(api: Api, args: Arguments) -> JsonObject:
    """The life of an agent's session, which is one thread."""
    channel = api.open_channel(args.text("channel_id"))
    if "thread_ts" in args:
        api.thread_root(channel, args.text("thread_ts"), "invalid_thread_ts")
    if args.text("status") not in {"active", "processing", "suspended", "closed"}:
        raise SlackError("invalid_arguments", "status: active, processing, suspended or closed")
    return {}


def set_title(api: Api, args: Arguments) -> JsonObject:
    root = api.thread_root(
        _assistant_channel(api, args), args.text("thread_ts"), "invalid_thread_ts"
    )
    before = api.json_of(root)
    root.assistant_title = args.text("title")
    api.announce_change(root, before)
    return {}


def set_suggested_prompts(api: Api, args: Arguments) -> JsonObject:
    channel = _assistant_channel(api, args)
    if "thread_ts" in args:
        api.thread_root(channel, args.text("thread_ts"), "invalid_thread_ts")
    elif api.workspace.install.experience != "agent":
        raise SlackError("not_agent_app")
    prompts = args.items("prompts")
    if not 1 <= len(prompts) <= MAX_PROMPTS:
        raise SlackError("invalid_arguments", "prompts: one to four")
    for prompt in prompts:
        if set(prompt) != {"title", "message"}:
            raise SlackError("invalid_arguments", "a prompt is a title and a message")
    thread = args.maybe("thread_ts") or ""
    # Slack says ok and shows nothing where an agent names a thread.
    if not (thread and api.workspace.install.experience == "agent"):
        api.workspace.prompts[channel.id, thread] = prompts
    return {}


def _assistant_channel(api: Api, args: Arguments) -> Channel:
    channel = api.open_channel(args.text("channel_id"))
    if channel.kind != "im":
        raise SlackError("channel_type_not_supported")
    return channel
