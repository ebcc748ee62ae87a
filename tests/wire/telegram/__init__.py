"""A strict Telegram Bot API server for tests, spoken to by the real client library."""

from tests.wire.telegram.chats import Chat, Message, User
from tests.wire.telegram.files import Attachment
from tests.wire.telegram.server import TelegramServer

__all__ = ["Attachment", "Chat", "Message", "TelegramServer", "User"]
