"""What people do to the chats themselves: join, leave, block, open topics, post, migrate."""

from tests.wire.telegram.arguments import JsonObject
from tests.wire.telegram.chats import ADMINISTRATOR_RIGHTS, Chat, Message, User
from tests.wire.telegram.entities import finish
from tests.wire.telegram.state import State


class Membership:
    """Changes of who is where, each with the service message and update of the real server."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.world = state.world

    def user_joins(self, chat: Chat, user: User, *, by: User | None = None) -> Message:
        """`user`, who may be the bot, comes into the group; `by` is who added them."""
        before, chat.members[user.id] = chat.members.get(user.id, "left"), "member"
        if user == self.state.bot:
            chat.refusal = ""
            self._bot_moved(chat, by or user, before)
        message = self.state.new_message(chat, by or user)
        message.service = {"new_chat_members": [user.as_json()]}
        return self.state.publish(message)

    def user_leaves(self, chat: Chat, user: User, *, by: User | None = None) -> Message:
        """`user`, who may be the bot, leaves the group or is removed `by` another."""
        message = self.state.new_message(chat, by or user)
        message.service = {"left_chat_member": user.as_json()}
        self.state.publish(message)
        before, chat.members[user.id] = chat.members.get(user.id, "member"), "left"
        if user == self.state.bot:
            chat.members[user.id] = "kicked"
            kind = "group" if chat.type == "group" else f"{chat.type} chat"
            kind = "group chat" if kind == "group" else kind
            chat.refusal = f"bot was kicked from the {kind}"
            self._bot_moved(chat, by or user, before)
        return message

    def user_blocks(self, user: User) -> None:
        """`user` blocks the bot; every send to them is refused from now on."""
        chat = self.world.private(user)
        chat.refusal = "bot was blocked by the user"
        chat.members[self.state.bot.id] = "kicked"
        self._bot_moved(chat, user, "member")

    def user_opens_topic(self, chat: Chat, user: User, name: str) -> int:
        """A new forum topic; its thread id."""
        assert chat.is_forum, "only a forum has topics"
        message = self.state.new_message(chat, user)
        message.service = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
        message.thread_id = message.message_id
        chat.topics[message.message_id] = name
        self.state.publish(message)
        return message.message_id

    def channel_posts(self, channel: Chat, text: str) -> Message:
        """A post of the channel; the copy in its discussion group is answered, else the post."""
        post = Message(self.world.next_number(channel), channel, self.state.date())
        post.sender_chat, post.content = channel, finish(text, ())
        self.state.publish(self.world.add(post))
        if channel.discussion is None:
            return post
        service = User(777000, "Telegram")
        copy = self.state.new_message(channel.discussion, service)
        copy.sender_chat, copy.content, copy.automatic_forward_of = channel, post.content, post
        return self.state.publish(copy)

    def user_promotes(self, chat: Chat, user: User, *, by: User) -> None:
        """`by` makes `user`, who may be the bot, an administrator."""
        before, chat.members[user.id] = chat.members.get(user.id, "left"), "administrator"
        if user == self.state.bot:
            self._bot_moved(chat, by, before)

    def migrate(self, group: Chat, *, told: bool = True) -> Chat:
        """The basic group becomes a supergroup, which is answered; the old id is dead.

        With `told=False` the service messages about it are still on their way.
        """
        new = self.world.supergroup(group.title)
        new.members = dict(group.members)
        group.migrated_to = new.id
        if not told:
            return new
        owner = next((self.world.users[i] for i, s in group.members.items() if s == "creator"))
        old_end = self.state.new_message(group, owner)
        old_end.service = {"migrate_to_chat_id": new.id}
        self.state.publish(old_end)
        new_start = self.state.new_message(new, owner)
        new_start.service = {"migrate_from_chat_id": group.id}
        self.state.publish(new_start)
        return new

    def _bot_moved(self, chat: Chat, by: User, before: str) -> None:
        def member(status: str) -> JsonObject:
            more: JsonObject = {"until_date": 0} if status == "kicked" else {}
            if status == "administrator":
                more = dict.fromkeys(ADMINISTRATOR_RIGHTS, True)
            return {"user": self.state.bot.as_json(), "status": status, **more}

        change: JsonObject = {
            "chat": chat.as_json(),
            "from": by.as_json(),
            "date": self.state.date(),
            "old_chat_member": member(before),
            "new_chat_member": member(chat.members.get(self.state.bot.id, "left")),
        }
        self.state.queue.add("my_chat_member", change)
