"""Everything that one server holds, shared by what people do and what the bot calls."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.wire.telegram.arguments import JsonObject
from tests.wire.telegram.chats import GENERAL_TOPIC, Chat, Message, User, World
from tests.wire.telegram.files import FileStore
from tests.wire.telegram.signal import Signal
from tests.wire.telegram.updates import UpdateQueue


@dataclass(slots=True)
class Press:
    """One press of a button; `answer` is what the bot answered, `expired` makes it too old."""

    query_id: str
    message: Message
    answer: JsonObject | None = None
    expired: bool = False


@dataclass(slots=True)
class ChatAction:
    """One `sendChatAction`, such as typing."""

    chat: Chat
    action: str
    thread_id: int


@dataclass(slots=True)
class State:
    """The world, the queue of updates and what the bot has set.

    `hears_bots` is the bot's Bot-to-Bot Communication Mode (Bot API 10.0). `drafts` holds what each
    draft of a chat showed, `showing` the one that stands there now.
    """

    bot: User
    now: Callable[[], float]
    privacy: bool
    signal: Signal
    world: World
    queue: UpdateQueue
    files: FileStore
    presses: dict[str, Press] = field(default_factory=dict)
    actions: list[ChatAction] = field(default_factory=list)
    drafts: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    showing: dict[int, str] = field(default_factory=dict)
    commands: dict[str, list[JsonObject]] = field(default_factory=dict)
    hears_bots: bool = False

    def date(self) -> int:
        return int(self.now())

    def publish(self, message: Message, kind: str = "message") -> Message:
        """Tell everybody who waits of `message`, and the bot when it is allowed to see it."""
        if message.chat.type == "channel":
            kind = {"message": "channel_post", "edited_message": "edited_channel_post"}[kind]
        if self.seen_by_bot(message):
            message.update_id = self.queue.add(kind, message.as_json())
        self.signal.pulse()
        return message

    def seen_by_bot(self, message: Message) -> bool:
        """The rules of membership, of privacy mode and of bots among themselves."""
        chat, sender = message.chat, message.sender
        is_of_bot = sender is not None and sender.is_bot and message.sender_chat is None
        # A test may have the bot hear itself, which the real server never does.
        if is_of_bot and sender != self.bot and not self._is_open_to_bot(message):
            return False
        if chat.type == "private":
            return True
        status = chat.members.get(self.bot.id, "left")
        if status in {"left", "kicked"}:
            return False
        if not self.privacy or status in {"administrator", "creator"} or chat.type == "channel":
            return True
        return bool(message.service) or self._meant_for_bot(message)

    def _is_open_to_bot(self, message: Message) -> bool:
        """Whether another bot's message may come at all: one of the two has to have the mode on. A
        bot that has not is heard only where it replies or names the bot in a command."""
        if self.hears_bots:
            return True
        assert message.sender is not None
        named = f"@{self.bot.username}".lower()
        commands = [e for e in message.content.entities if e.type == "bot_command"]
        raw = message.text.encode("utf-16-le")
        is_named = any(
            raw[2 * e.offset : 2 * e.end].decode("utf-16-le").lower().endswith(named)
            for e in commands
        )
        talks = message.sender.id in self.world.talking_bots
        return talks and (is_named or self._replies_to_bot(message))

    def _replies_to_bot(self, message: Message) -> bool:
        replied = message.reply_to
        return replied is not None and replied.sender == self.bot and not replied.service

    def _meant_for_bot(self, message: Message) -> bool:
        if self._replies_to_bot(message):
            return True
        name = f"@{self.bot.username}".lower()
        for entity in message.content.entities:
            raw = message.text.encode("utf-16-le")[2 * entity.offset : 2 * entity.end]
            value = raw.decode("utf-16-le").lower()
            if entity.type == "mention" and value == name:
                return True
            if entity.type == "text_mention" and entity.user_id == self.bot.id:
                return True
            if entity.type == "bot_command" and ("@" not in value or value.endswith(name)):
                return True
        return False

    def new_message(
        self, chat: Chat, user: User, *, reply_to: Message | None = None, topic: int | None = None
    ) -> Message:
        """An empty message of `user` with its number, its time and its place in `chat`."""
        number = self.world.next_number(chat)
        message = Message(number, chat, self.date(), user, reply_to=reply_to)
        self._place(message, topic)
        return self.world.add(message)

    def _place(self, message: Message, topic: int | None) -> None:
        """Put `message` into its topic or thread, as the server numbers them.

        In a topic a message that replies to nothing is a reply to the message that opened the
        topic. In another supergroup a reply belongs to the thread of the message that it replies
        to. The general topic has no number.
        """
        chat, reply_to = message.chat, message.reply_to
        if chat.is_forum:
            assert topic in chat.topics or topic in {None, GENERAL_TOPIC}, f"no topic {topic}"
            message.thread_id = 0 if topic in {None, GENERAL_TOPIC} else topic or 0
            if reply_to is not None and topic is None:
                message.thread_id = reply_to.thread_id
            if reply_to is None and message.thread_id:
                message.reply_to = self.world.find(chat, message.thread_id)
        elif chat.type == "supergroup" and reply_to is not None:
            message.thread_id = reply_to.thread_id or reply_to.message_id


def scope_key(scope: JsonObject | None, language: str) -> str:
    """One key for a scope and a language of bot commands."""
    return json.dumps([scope or {"type": "default"}, language], sort_keys=True)
