"""Markdown of a model, rendered and cut for each place where people read it. Pure.

`render_slack` and `render_telegram` give messages that fit the platform, `render_html` a safe
fragment for the page, `render_plain` text without markup, `strip_controls` text for a terminal.
"""

from adapters.rendering.control_characters import clean, strip_controls
from adapters.rendering.document import parse
from adapters.rendering.html import render_blocks, render_growing, render_html
from adapters.rendering.message_parts import utf16_length
from adapters.rendering.nodes import Document
from adapters.rendering.plain import render_plain, split_plain
from adapters.rendering.slack import SLACK_LIMITS, SlackLimits, SlackPart, render_slack
from adapters.rendering.telegram import Entity, TelegramPart, plain_telegram, render_telegram

__all__ = [
    "SLACK_LIMITS",
    "Document",
    "Entity",
    "SlackLimits",
    "SlackPart",
    "TelegramPart",
    "clean",
    "parse",
    "plain_telegram",
    "render_blocks",
    "render_growing",
    "render_html",
    "render_plain",
    "render_slack",
    "render_telegram",
    "split_plain",
    "strip_controls",
    "utf16_length",
]
