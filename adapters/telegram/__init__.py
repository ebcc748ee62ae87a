"""Telegram: private chats, groups and forum topics by long polling."""

from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.settings import TelegramSettings

__all__ = ["TelegramAdapter", "TelegramSettings"]
