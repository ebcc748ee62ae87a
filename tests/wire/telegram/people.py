"""What people do in the chats: they write, edit, press, send files, join and leave.

A test calls these in the name of a person. Every one builds the update as the real server would and
queues it when the bot may see it; `Message.update_id` is None when it may not.
"""

from collections.abc import Sequence

from tests.wire.telegram.arguments import JsonObject
from tests.wire.telegram.chats import Chat, Message, User
from tests.wire.telegram.entities import Entity, finish
from tests.wire.telegram.files import Attachment
from tests.wire.telegram.membership import Membership
from tests.wire.telegram.state import Press

# The account that the real server names where an administrator stays anonymous.
ANONYMOUS = User(1087968824, "Group", "GroupAnonymousBot", is_bot=True)


class People(Membership):
    """The person's side of the server."""

    def user_says(
        self,
        chat: Chat,
        user: User,
        text: str,
        *,
        reply_to: Message | None = None,
        topic: int | None = None,
        entities: Sequence[Entity] = (),
    ) -> Message:
        """`user` writes `text`; mentions, commands and addresses get their entities."""
        message = self.state.new_message(chat, user, reply_to=reply_to, topic=topic)
        message.content = finish(text, entities)
        return self.state.publish(message)

    def user_says_in_blocks(self, chat: Chat, user: User, *blocks: JsonObject) -> Message:
        """`user` pastes lists or tables: the message has its words in blocks alone (10.1)."""
        message = self.state.new_message(chat, user)
        message.provenance = {"rich_message": {"blocks": [*blocks]}}
        return self.state.publish(message)

    def admin_says_anonymously(self, chat: Chat, text: str) -> Message:
        """An administrator who is shown as the group itself writes `text`."""
        message = self.state.new_message(chat, ANONYMOUS)
        message.sender_chat, message.content = chat, finish(text, ())
        return self.state.publish(message)

    def user_forwards(
        self, chat: Chat, user: User, text: str, *, written_by: User | Chat | str
    ) -> Message:
        """`user` forwards what somebody else wrote: a person, one who hides behind a name, a
        channel, or the anonymous administrators of a group (`MessageOrigin`)."""
        origin: JsonObject = {"date": self.state.date()}
        match written_by:
            case User():
                origin |= {"type": "user", "sender_user": written_by.as_json()}
            case str():
                origin |= {"type": "hidden_user", "sender_user_name": written_by}
            case Chat(type="channel"):
                number = self.world.next_number(written_by)
                origin |= {"type": "channel", "chat": written_by.as_json(), "message_id": number}
            case Chat():
                origin |= {"type": "chat", "sender_chat": written_by.as_json()}
        message = self.state.new_message(chat, user)
        message.content, message.provenance = finish(text, ()), {"forward_origin": origin}
        return self.state.publish(message)

    def user_chooses_inline(self, chat: Chat, user: User, text: str, *, of: User) -> Message:
        """`user` sends a result that the inline bot `of` offered them."""
        message = self.state.new_message(chat, user)
        message.content, message.provenance = finish(text, ()), {"via_bot": of.as_json()}
        return self.state.publish(message)

    def user_quotes(
        self, chat: Chat, user: User, text: str, *, quoted: str, of: Message
    ) -> Message:
        """`user` replies to `of` and quotes a part of it (`TextQuote`)."""
        message = self.state.new_message(chat, user, reply_to=of)
        message.content = finish(text, ())
        message.provenance = {"quote": {"text": quoted, "position": 0, "is_manual": True}}
        return self.state.publish(message)

    def user_edits(self, message: Message, text: str) -> Message:
        """The author changes the text, or the caption, of `message`."""
        message.content = finish(text, ())
        message.edit_date = self.state.date()
        return self.state.publish(message, "edited_message")

    def user_sends_document(
        self,
        chat: Chat,
        user: User,
        content: bytes,
        *,
        filename: str = "notes.txt",
        caption: str = "",
        topic: int | None = None,
    ) -> Message:
        """`user` sends a file as it is."""
        attachment = Attachment(content, filename)
        return self.user_sends(chat, user, [attachment], caption=caption, topic=topic)[0]

    def user_sends_photo(
        self, chat: Chat, user: User, content: bytes, *, caption: str = ""
    ) -> Message:
        """`user` sends a picture, which arrives in two sizes."""
        attachment = Attachment(content, "photo.jpg", "photo")
        return self.user_sends(chat, user, [attachment], caption=caption)[0]

    def user_sends_voice(
        self, chat: Chat, user: User, content: bytes, *, duration: int = 3
    ) -> Message:
        """`user` records a voice message of `duration` seconds."""
        attachment = Attachment(content, "voice.oga", "voice", duration)
        return self.user_sends(chat, user, [attachment])[0]

    def user_sends(
        self,
        chat: Chat,
        user: User,
        attachments: Sequence[Attachment],
        *,
        caption: str = "",
        reply_to: Message | None = None,
        topic: int | None = None,
        album: str = "",
    ) -> list[Message]:
        """`user` sends files at once; several form one media group, the first has the caption.

        `album` names the group: a second call with it brings parts that were slow to upload.
        """
        group = album or (f"1300{self.state.date()}" if len(attachments) > 1 else "")
        sent = []
        for position, attachment in enumerate(attachments):
            message = self.state.new_message(chat, user, reply_to=reply_to, topic=topic)
            message.media = self.state.files.add(attachment).as_media()
            message.media_group_id = group
            if caption and position == 0:
                message.content = finish(caption, ())
            sent.append(self.state.publish(message))
        return sent

    def user_presses(self, message: Message, button: str, user: User | None = None) -> Press:
        """`user` (in a private chat: its person) presses the button of that text or data.

        A client shows the buttons of a message for a while after it was deleted or changed: hand
        in what it looked like (`copy.copy`) to press one of those.
        """
        found = [b for b in message.buttons if button in {b.get("text"), b.get("callback_data")}]
        assert found, f"message {message.message_id} has no button {button!r}: {message.buttons}"
        assert "callback_data" in found[0], f"{button!r} opens an address"
        return self.user_forges(message, str(found[0]["callback_data"]), user)

    def user_forges(self, message: Message, data: str, user: User | None = None) -> Press:
        """A changed client sends `data` of its own, as if a button of `message` were pressed."""
        presser = user or message.chat.user
        assert presser is not None, "in a group the one who presses is named"
        press = Press(f"4382{len(self.state.presses) + 1:06d}", message)
        self.state.presses[press.query_id] = press
        query: JsonObject = {
            "id": press.query_id,
            "from": presser.as_json(),
            "message": self._as_pressed(message),
            "chat_instance": str(-message.chat.id * 7919),
            "data": data,
        }
        self.state.queue.add("callback_query", query)
        return press

    def _as_pressed(self, message: Message) -> JsonObject:
        """A message that is gone is only named (`InaccessibleMessage`)."""
        there = self.world.find(message.chat, message.message_id)
        if there is not None:
            return there.as_json()
        return {"chat": message.chat.as_json(), "message_id": message.message_id, "date": 0}

    def redeliver(self, message: Message) -> None:
        """The update of `message` comes once more under its old number."""
        assert message.update_id is not None, "the bot never got this message"
        self.state.queue.redeliver(message.update_id)
