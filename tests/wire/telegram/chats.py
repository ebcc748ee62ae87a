"""People, chats and messages as the server keeps them, and their JSON."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from tests.wire.telegram.arguments import JsonObject
from tests.wire.telegram.entities import Formatted, as_json

GENERAL_TOPIC = 1
ADMINISTRATOR_RIGHTS = (
    "can_be_edited",
    "is_anonymous",
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
)
_SUPERGROUP_BASE = -1_001_000_000_000


@dataclass(frozen=True, slots=True)
class User:
    """A person or a bot."""

    id: int
    first_name: str
    username: str = ""
    is_bot: bool = False
    language_code: str = ""

    def as_json(self) -> JsonObject:
        result: JsonObject = {
            "id": self.id,
            "is_bot": self.is_bot,
            "first_name": self.first_name,
        }
        if self.username:
            result["username"] = self.username
        if self.language_code:
            result["language_code"] = self.language_code
        return result


@dataclass(slots=True)
class Chat:
    """A chat; `members` maps a user id to a status (creator, administrator, member, left, kicked).

    `refusal` is the text of the 403 that every send to it gets, `migrated_to` the supergroup that a
    group became, `topics` maps the thread id of a forum topic to its name.
    """

    id: int
    type: str
    title: str = ""
    user: User | None = None
    members: dict[int, str] = field(default_factory=dict)
    is_forum: bool = False
    topics: dict[int, str] = field(default_factory=dict)
    closed_topics: set[int] = field(default_factory=set)
    discussion: "Chat | None" = None
    refusal: str = ""
    muted: bool = False
    migrated_to: int = 0

    @property
    def is_group(self) -> bool:
        return self.type in {"group", "supergroup"}

    def as_json(self) -> JsonObject:
        result: JsonObject = {"id": self.id, "type": self.type}
        if self.user is not None:
            result["first_name"] = self.user.first_name
            if self.user.username:
                result["username"] = self.user.username
        else:
            result["title"] = self.title
        if self.is_forum:
            result["is_forum"] = True
        return result


@dataclass(slots=True)
class Message:
    """A message that is or was in a chat.

    `media` holds the field that carries a file, `service` the field of a service message, and
    `provenance` ``forward_origin``, ``via_bot``, ``quote`` or ``external_reply``.
    `update_id` is that of the update that brought it (or its last edit) to the bot; None when the
    bot never saw it. `silent`, ``raw_markup`` and `preview` are what the sender asked for.
    """

    message_id: int
    chat: Chat
    date: int
    sender: User | None = None
    sender_chat: Chat | None = None
    content: Formatted = field(default_factory=Formatted)
    media: JsonObject = field(default_factory=dict)
    service: JsonObject = field(default_factory=dict)
    reply_to: "Message | None" = None
    thread_id: int = 0
    markup: JsonObject | None = None
    media_group_id: str = ""
    edit_date: int = 0
    automatic_forward_of: "Message | None" = None
    provenance: JsonObject = field(default_factory=dict)
    reactions: list[JsonObject] = field(default_factory=list)
    deleted: bool = False
    silent: bool = False
    preview: JsonObject | None = None
    update_id: int | None = None

    @property
    def text(self) -> str:
        """The text, or the caption of a file."""
        return self.content.text

    @property
    def buttons(self) -> list[JsonObject]:
        """Every button of the inline keyboard, row after row."""
        rows = self.markup.get("inline_keyboard") if self.markup else None
        return [button for row in rows for button in row] if isinstance(rows, list) else []

    @property
    def in_topic(self) -> bool:
        return self.chat.is_forum and self.thread_id in self.chat.topics

    def as_json(self, *, nested: bool = False) -> JsonObject:
        result: JsonObject = {
            "message_id": self.message_id,
            "date": self.date,
            "chat": self.chat.as_json(),
            **self.service,
            **self.media,
            **self._origin(),
            **self.provenance,
            **self._text_fields(),
        }
        if self.thread_id:
            result["message_thread_id"] = self.thread_id
        if self.in_topic:
            result["is_topic_message"] = True
        if self.reply_to is not None and not nested:
            result["reply_to_message"] = self.reply_to.as_json(nested=True)
        if self.media_group_id:
            result["media_group_id"] = self.media_group_id
        if self.edit_date:
            result["edit_date"] = self.edit_date
        if self.markup:
            result["reply_markup"] = self.markup
        return result

    def _origin(self) -> JsonObject:
        result: JsonObject = {}
        if self.sender is not None:
            result["from"] = self.sender.as_json()
        if self.sender_chat is not None:
            result["sender_chat"] = self.sender_chat.as_json()
        if self.automatic_forward_of is not None:
            post = self.automatic_forward_of
            result["is_automatic_forward"] = True
            result["forward_origin"] = {
                "type": "channel",
                "date": post.date,
                "chat": post.chat.as_json(),
                "message_id": post.message_id,
            }
        return result

    def _text_fields(self) -> JsonObject:
        if not self.content.text:
            return {}
        text, entities = ("caption", "caption_entities") if self.media else ("text", "entities")
        result: JsonObject = {text: self.content.text}
        if self.content.entities:
            result[entities] = [as_json(entity) for entity in self.content.entities]
        return result


class World:
    """Every user, chat and message; hands out their identifiers as the real server does.

    Supergroups and channels number their own messages; private chats and basic groups share one
    row of numbers.
    """

    def __init__(self, bot: User) -> None:
        self.bot = bot
        self.users: dict[int, User] = {bot.id: bot}
        self.chats: dict[int, Chat] = {}
        self.messages: dict[tuple[int, int], Message] = {}
        self.talking_bots: set[int] = set()
        self._user_ids = count(5001)
        self._group_ids = count(701)
        self._shared_numbers: Iterator[int] = count(11)
        self._own_numbers: dict[int, Iterator[int]] = {}

    def user(self, first_name: str, *, username: str = "", language_code: str = "en") -> User:
        """A new person."""
        user = User(next(self._user_ids), first_name, username, language_code=language_code)
        self.users[user.id] = user
        return user

    def other_bot(self, first_name: str, *, talks: bool = True) -> User:
        """Another bot. `talks`: its Bot-to-Bot Communication Mode is on (Bot API 10.0)."""
        number = next(self._user_ids)
        bot = User(number, first_name, f"{first_name.lower()}_bot", is_bot=True)
        self.users[bot.id] = bot
        if talks:
            self.talking_bots.add(bot.id)
        return bot

    def private(self, user: User, *, started: bool = True) -> Chat:
        """The private chat of a person with the bot; `started=False`: the bot may not write yet."""
        chat = self.chats.setdefault(user.id, Chat(user.id, "private", user=user))
        chat.refusal = "" if started else "bot can't initiate conversation with a user"
        return chat

    def group(self, title: str, *members: User, bot_status: str = "member") -> Chat:
        """A basic group with `members` and the bot."""
        return self._chat(Chat(-next(self._group_ids), "group", title), members, bot_status)

    def supergroup(
        self, title: str, *members: User, forum: bool = False, bot_status: str = "member"
    ) -> Chat:
        """A supergroup with `members` and the bot; a forum has topics."""
        number = _SUPERGROUP_BASE - next(self._group_ids)
        chat = Chat(number, "supergroup", title, is_forum=forum)
        return self._chat(chat, members, bot_status)

    def channel(self, title: str, *, discussion: Chat | None, bot_status: str = "left") -> Chat:
        """A channel whose posts are forwarded to the supergroup `discussion`."""
        number = _SUPERGROUP_BASE - next(self._group_ids)
        return self._chat(Chat(number, "channel", title, discussion=discussion), (), bot_status)

    def _chat(self, chat: Chat, members: tuple[User, ...], bot_status: str) -> Chat:
        chat.members = {user.id: "member" for user in members}
        if members:
            chat.members[members[0].id] = "creator"
        chat.members[self.bot.id] = bot_status
        self.chats[chat.id] = chat
        return chat

    def next_number(self, chat: Chat) -> int:
        """The id of the next message of `chat`."""
        if chat.type in {"supergroup", "channel"}:
            return next(self._own_numbers.setdefault(chat.id, count(2)))
        return next(self._shared_numbers)

    def add(self, message: Message) -> Message:
        self.messages[message.chat.id, message.message_id] = message
        return message

    def find(self, chat: Chat, message_id: int | None) -> Message | None:
        """The message of that id, unless it was deleted."""
        message = self.messages.get((chat.id, message_id or 0))
        return None if message is None or message.deleted else message

    def history(self, chat: Chat) -> list[Message]:
        """The messages of `chat` that are still there, oldest first."""
        return [m for m in self.messages.values() if m.chat is chat and not m.deleted]
