"""Markdown of a model, rendered and cut for each place where people read it. Pure.

`render_slack` and `render_telegram` give messages that fit the platform, `render_blocks` safe
fragments for the page, `strip_controls` text for a terminal.
"""

from adapters.rendering.control_characters import clean, strip_controls
from adapters.rendering.html import render_blocks, render_growing
from adapters.rendering.message_parts import utf16_length
from adapters.rendering.slack import SlackLimits, SlackPart, render_slack
from adapters.rendering.telegram import Entity, TelegramPart, plain_telegram, render_telegram

__all__ = [
    "Entity",
    "SlackLimits",
    "SlackPart",
    "TelegramPart",
    "clean",
    "plain_telegram",
    "render_blocks",
    "render_growing",
    "render_slack",
    "render_telegram",
    "strip_controls",
    "utf16_length",
]
