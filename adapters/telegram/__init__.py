"""Telegram: private chats, groups and forum topics, by long polling or by webhook."""
