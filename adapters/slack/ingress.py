"""Slack's payloads as messages of ours. Pure: it asks nobody and never raises on a strange shape.

Reading gives what happened: `Heard`, which still has Slack's ids in its text, `Deleted`, `Added`,
`ThreadOpened`, `HomeOpened`, `MessagesOpened`, or `Ignored` with the reason. What only Slack can
tell (names, whether the bot takes part in a thread) is asked for by the adapter and handed to
`inbound`. Shapes: the reference pages of the events and of slash commands. Buttons and forms are
read by `actions`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from adapters.slack.experience import ASSISTANT_ROOT, Viewed, viewed_in
from adapters.slack.message_text import (
    channels_in,
    people_in,
    readable,
    without_leading_mention,
    without_quotes,
)
from adapters.slack.settings import ReplyInThread
from runtime.domain.json_fields import object_of, objects_of, text_of
from runtime.domain.messages import Attachment, ChatKind, Deletion, InboundMessage
from runtime.domain.people import Sender
from runtime.domain.value import JsonObject

CHANNEL = "slack"
COMMAND_PREFIX = "!"
"""Slack's client keeps words that begin with a slash to itself."""
_TS = re.compile(r"\d{1,12}\.\d{1,6}")
_SPOKEN = frozenset({"", "bot_message", "file_share", "me_message", "thread_broadcast"})
_KINDS: Mapping[str, ChatKind] = {
    "im": "direct",
    "mpim": "group",
    "channel": "channel",
    "group": "channel",
}
_SLACKBOT = "USLACKBOT"
FILE_ID = "slack-file:"
"""Before the id of a file whose address has to be asked for."""


@dataclass(frozen=True, slots=True)
class Bot:
    """Who we are in one workspace, as `auth.test` says it."""

    team_id: str
    user_id: str
    bot_id: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """A payload that is nothing for the engine; `reason` is for logs."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ours:
    """A post of the bot itself came back: it takes part in that thread."""

    chat: str
    thread: str | None


@dataclass(frozen=True, slots=True)
class Deleted:
    """Somebody deleted a message; `user` is who wrote it, empty where Slack does not tell."""

    chat: str
    message_id: str
    user: str


@dataclass(frozen=True, slots=True)
class Added:
    """The bot was let into a channel."""

    chat: str


@dataclass(frozen=True, slots=True)
class ThreadOpened:
    """A person opened an assistant thread, or looks at another channel (`context`) beside it."""

    chat: str
    thread: str
    context: str


@dataclass(frozen=True, slots=True)
class HomeOpened:
    """A person looks at their App Home."""

    user: str


@dataclass(frozen=True, slots=True)
class MessagesOpened:
    """A person opened their direct chat with the application."""

    user: str
    chat: str
    viewed: tuple[Viewed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A message in Slack's own words. `thread` is the thread it was said in, if it was in one;
    `answer_thread` the one that its reply goes to, which also names the session, unless it
    `joins_chat`: then the session is the direct chat's. `viewed` is what its writer looks at."""

    chat: str
    kind: ChatKind
    message_id: str
    user: str
    text: str
    is_bot: bool = False
    name: str = ""
    team: str = ""
    thread: str | None = None
    answer_thread: str | None = None
    edited_at: str | None = None
    mentions_bot: bool = False
    parent_is_bot: bool = False
    attachments: tuple[Attachment, ...] = ()
    sent_at_ms: int | None = None
    joins_chat: bool = False
    viewed: tuple[Viewed, ...] = ()
    is_stop: bool = False
    """Slack's own stop was pressed: nobody wrote these words."""

    @property
    def named(self) -> frozenset[str]:
        """Whose names make the text readable; a bot's name comes with its message."""
        writer = frozenset() if self.is_bot else {self.user}
        return people_in(self.text) | channels_in(self.text) | writer

    @property
    def thread_matters(self) -> bool:
        """Only for a reply in a channel, without a mention, it matters who else takes part."""
        in_thread = self.kind != "direct" and self.thread is not None
        return in_thread and not (self.mentions_bot or self.is_bot)


Happened = Heard | Ours | Deleted | Added | ThreadOpened | HomeOpened | MessagesOpened | Ignored


def read_event(payload: JsonObject, bot: Bot, *, reply_in_thread: ReplyInThread) -> Happened:
    """The payload of an ``events_api`` envelope, or the body of an Events API request."""
    event = object_of(payload, "event")
    kind = text_of(event, "type")
    if _elsewhere(payload, bot):
        return Ignored("an event of another workspace: it needs an application of its own")
    if kind in ("message", "app_mention"):
        return _message(event, bot, reply_in_thread)
    if kind == "member_joined_channel":
        chat = text_of(event, "channel")
        ours = chat and text_of(event, "user") == bot.user_id
        return Added(chat) if ours else Ignored("somebody else joined")
    if kind in ("assistant_thread_started", "assistant_thread_context_changed"):
        return _assistant_thread(object_of(event, "assistant_thread"))
    if kind == "app_home_opened":
        return _opened(event)
    if kind == "agent_session_stopped":
        return _stopped(event)
    return Ignored(f"event {kind or 'without a type'}")


def in_agent_view(heard: Heard) -> Heard:
    """The same message where each root message of a direct chat is a thread of its own. A slash
    command is no message, so it begins none."""
    if heard.kind != "direct" or heard.thread is not None or not _TS.fullmatch(heard.message_id):
        return heard
    return replace(heard, answer_thread=heard.message_id)


def in_chat(heard: Heard) -> Heard:
    """The same reply where a thread of a direct chat goes on with the chat's conversation."""
    return replace(heard, joins_chat=heard.answer_thread is not None)


def begins_assistant_thread(message: JsonObject) -> bool:
    """Whether a thread whose first message this is was opened in the assistant view."""
    return text_of(message, "subtype") == ASSISTANT_ROOT


def deletion(deleted: Deleted, bot: Bot, *, received_at_ms: int) -> Deletion:
    """The deletion for the engine."""
    return Deletion(
        channel=CHANNEL,
        account=bot.team_id,
        chat_id=deleted.chat,
        message_id=deleted.message_id,
        sender=Sender(id=deleted.user) if deleted.user else None,
        received_at_ms=received_at_ms,
    )


def read_command(payload: JsonObject, envelope_id: str) -> Heard | Ignored:
    """A slash command: `/gatehouse status` is the command `/status`."""
    chat, user = text_of(payload, "channel_id"), text_of(payload, "user_id")
    if not (chat and user):
        return Ignored("slash command without a channel or a person")
    words = text_of(payload, "text").strip().removeprefix("/").removeprefix(COMMAND_PREFIX)
    return Heard(
        chat=chat,
        kind=_chat_kind("", chat),
        # Slack gives every use of a command a trigger of its own.
        message_id=text_of(payload, "trigger_id") or envelope_id,
        user=user,
        text=f"/{words or 'help'}",
        mentions_bot=True,
    )


def inbound(
    heard: Heard,
    bot: Bot,
    *,
    names: Mapping[str, str],
    takes_part: bool,
    received_at_ms: int,
    timezone: str = "",
    viewing: str = "",
) -> InboundMessage:
    """The message for the engine. `takes_part` says that the bot is in the message's thread,
    `timezone` what its sender's profile says, `viewing` what they look at."""
    text = without_leading_mention(heard.text, bot.user_id)
    said = without_quotes(text)
    return InboundMessage(
        channel=CHANNEL,
        account=bot.team_id,
        chat_id=heard.chat,
        chat_kind=heard.kind,
        thread_id=heard.answer_thread,
        joins_chat=heard.joins_chat,
        viewing=viewing,
        message_id=heard.message_id,
        edited_at=heard.edited_at,
        sender=Sender(
            id=heard.user,
            name=names.get(heard.user) or heard.name,
            is_bot=heard.is_bot,
            timezone=timezone,
        ),
        text=readable(text, names).strip(),
        said=None if said is None else readable(said, names).strip(),
        mentions_bot=heard.mentions_bot,
        reply_to=heard.thread,
        replies_to_bot=takes_part,
        attachments=heard.attachments,
        received_at_ms=received_at_ms,
        sent_at_ms=heard.sent_at_ms,
        command_prefix=COMMAND_PREFIX,
    )


def _message(event: JsonObject, bot: Bot, reply_in_thread: ReplyInThread) -> Happened:
    subtype = text_of(event, "subtype")
    if subtype == "message_deleted":
        return _deleted(event, text_of(event, "deleted_ts"), bot)
    if subtype == "message_changed":
        heard = _edited(event, bot)
    elif subtype in _SPOKEN:
        heard = _spoken(event, event, bot)
    else:
        return Ignored(f"message subtype {subtype}")
    if not isinstance(heard, Heard):
        return heard
    return replace(
        heard,
        mentions_bot=heard.mentions_bot or text_of(event, "type") == "app_mention",
        answer_thread=_answer_thread(heard, reply_in_thread),
    )


def _elsewhere(payload: JsonObject, bot: Bot) -> bool:
    """Whether the event was sent to other installations of the application only."""
    teams = [text_of(one, "team_id") for one in objects_of(payload, "authorizations")]
    # An installation in a whole organisation names no workspace.
    return all(teams) and bool(teams) and bot.team_id not in teams


def _opened(event: JsonObject) -> HomeOpened | MessagesOpened | Ignored:
    user, chat, tab = (text_of(event, key) for key in ("user", "channel", "tab"))
    if tab == "home" and user:
        return HomeOpened(user)
    if tab == "messages" and user and chat:
        return MessagesOpened(user, chat, viewed_in(event))
    return Ignored("the application was opened at a tab without a use")


def _stopped(event: JsonObject) -> Heard | Ignored:
    """Slack's own stop button, as the command of whoever pressed it."""
    user, chat, thread = (text_of(event, key) for key in ("user", "channel", "thread_ts"))
    if not (user and chat and _TS.fullmatch(thread)):
        return Ignored("a stop without a person, a channel or a thread")
    return Heard(
        chat=chat,
        kind=_chat_kind("", chat),
        message_id=f"stop:{thread}:{text_of(event, 'event_ts')}",
        user=user,
        text="/stop",
        is_stop=True,
        thread=thread,
        answer_thread=thread,
        mentions_bot=True,
    )


def _assistant_thread(thread: JsonObject) -> ThreadOpened | Ignored:
    chat, ts = text_of(thread, "channel_id"), text_of(thread, "thread_ts")
    if not (chat and _TS.fullmatch(ts)):
        return Ignored("assistant thread without a channel or a time")
    return ThreadOpened(chat, ts, text_of(object_of(thread, "context"), "channel_id"))


def _deleted(event: JsonObject, ts: str, bot: Bot) -> Deleted | Ignored:
    chat, before = text_of(event, "channel"), object_of(event, "previous_message")
    if not (chat and _TS.fullmatch(ts)):
        return Ignored("deletion without a channel or a time")
    if _is_ours(before, bot):
        return Ignored("a message of ours was deleted")
    return Deleted(chat, ts, text_of(before, "user") or text_of(before, "bot_id"))


def _is_ours(message: JsonObject, bot: Bot) -> bool:
    return bot.user_id == text_of(message, "user") or bot.bot_id == text_of(message, "bot_id")


def _spoken(event: JsonObject, message: JsonObject, bot: Bot) -> Heard | Ours | Ignored:
    """`event` says where, `message` says what: they differ in an edit only."""
    chat, ts = text_of(event, "channel"), text_of(message, "ts")
    user, bot_id = text_of(message, "user"), text_of(message, "bot_id")
    if not (chat and _TS.fullmatch(ts) and (user or bot_id)):
        return Ignored("message without a channel, a time or a sender")
    thread, text = text_of(message, "thread_ts"), text_of(message, "text")
    if _is_ours(message, bot):
        return Ours(chat, thread or None)
    return Heard(
        chat=chat,
        kind=_chat_kind(text_of(event, "channel_type"), chat),
        message_id=ts,
        user=user or bot_id,
        text=text,
        is_bot=bool(bot_id) or user == _SLACKBOT or text_of(message, "subtype") == "bot_message",
        name=text_of(message, "username"),
        team=text_of(message, "user_team") or text_of(message, "team"),
        # The first message of a thread carries its own time as its thread.
        thread=thread if _TS.fullmatch(thread) and thread != ts else None,
        mentions_bot=bot.user_id in people_in(text),
        parent_is_bot=text_of(message, "parent_user_id") == bot.user_id,
        # A mention that was edited in arrives as an `app_mention` of its own, which says so.
        edited_at=text_of(object_of(message, "edited"), "ts") or None,
        attachments=_attachments(message),
        sent_at_ms=_milliseconds(ts),
        viewed=viewed_in(event),
    )


def _edited(event: JsonObject, bot: Bot) -> Happened:
    message, before = object_of(event, "message"), object_of(event, "previous_message")
    if text_of(message, "subtype") == "tombstone":
        # What is deleted at the head of a thread leaves its place there.
        return _deleted(event, text_of(message, "ts"), bot)
    if text_of(message, "subtype") not in _SPOKEN:
        return Ignored(f"edit of a message of subtype {text_of(message, 'subtype')}")
    if before and text_of(message, "text") == text_of(before, "text"):
        return Ignored("edit that leaves the words alone")
    edited_at = text_of(object_of(message, "edited"), "ts")
    if not edited_at:
        return Ignored("change without an edit by a person")
    heard = _spoken(event, message, bot)
    return replace(heard, edited_at=edited_at) if isinstance(heard, Heard) else heard


def _answer_thread(heard: Heard, reply_in_thread: ReplyInThread) -> str | None:
    if heard.thread is not None or reply_in_thread == "never":
        return heard.thread
    if heard.kind == "direct" and reply_in_thread != "always":
        return None
    return heard.message_id


def _chat_kind(channel_type: str, chat: str) -> ChatKind:
    """`app_mention` and slash commands carry no type; the id of a direct chat begins with D."""
    return _KINDS.get(channel_type) or ("direct" if chat.startswith("D") else "channel")


def _attachments(message: JsonObject) -> tuple[Attachment, ...]:
    user = text_of(message, "user")
    found = []
    for file in objects_of(message, "files"):
        if not text_of(file, "id"):
            continue
        size, length = file.get("size"), file.get("duration_ms")
        voice = text_of(file, "subtype") == "slack_audio"
        found.append(
            Attachment(
                name=text_of(file, "name") or text_of(file, "id"),
                media_type=text_of(file, "mimetype") or "application/octet-stream",
                size_bytes=size if isinstance(size, int) else None,
                duration_s=round(length / 1000) if isinstance(length, int) else None,
                kind="voice message" if voice else "",
                reference=_reference(file),
                # Whoever shares a file again did not make it; without a name it is nobody's word.
                own=bool(user) and text_of(file, "user") == user,
            )
        )
    return tuple(found)


def _reference(file: JsonObject) -> str:
    """Where its bytes are; a file of a shared channel comes with its id alone, and one that is
    kept by somebody else has no bytes in Slack."""
    if file.get("is_external") is True or text_of(file, "mode") == "external":
        return ""
    address = text_of(file, "url_private_download") or text_of(file, "url_private")
    return address or f"{FILE_ID}{text_of(file, 'id')}"


def _milliseconds(ts: str) -> int:
    seconds, _, fraction = ts.partition(".")
    return int(seconds) * 1000 + int(fraction.ljust(6, "0")) // 1000
