"""Recognising a command in a message. Pure."""

import re
from dataclasses import dataclass
from difflib import get_close_matches

from runtime.domain.messages import InboundMessage

_WORD = re.compile(r"(?P<mark>[/!])(?P<name>[a-zA-Z][a-zA-Z_]*)(?:@\S+)?(?:\s+(?P<rest>.*))?", re.S)
_LONGEST = 32
_NEARLY, _SURELY = 0.6, 0.75
"""How alike a command must be to be proposed, and to be what a sentence begins with."""
_OF_CLIENTS = frozenset({"start"})
"""What a client sends for a person, as Telegram's button does; ``@bot start`` is a sentence."""
_BARE = re.compile(r"(?P<name>[a-zA-Z]+)(?:\s+(?P<rest>.*))?", re.S)


@dataclass(frozen=True, slots=True)
class Words:
    """A command's name in lower case and the text behind it."""

    name: str
    rest: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """What was typed as a command and is none, and the commands that are most like it."""

    typed: str
    near: tuple[str, ...]


def command_of(message: InboundMessage, *, names: frozenset[str]) -> Words | None:
    """The command that a person gives by a message, or None (APR-10).

    What is passed on, edited, quoted or written by a program commands nothing, whatever it says.
    """
    if not message.speaks_for_sender or message.said is not None:
        return None
    return parse(message.text, names=names, mentioned=message.mentions_bot)


def parse(text: str, *, names: frozenset[str], mentioned: bool = False) -> Words | None:
    """The command of a message, or None.

    ``/word`` everywhere, ``!word`` because Slack's client keeps slashes to itself, and the bare
    word after a mention where it stands alone (``@bot stop``).
    """
    found = _WORD.fullmatch(text.strip())
    if found is None and mentioned:
        found = _BARE.fullmatch(text.strip())
        if found is not None and (found["name"].lower() in _OF_CLIENTS or not _is_command(found)):
            return None
    if found is None or found["name"].lower() not in names:
        return None
    return Words(found["name"].lower(), (found["rest"] or "").strip())


def _is_command(found: re.Match[str]) -> bool:
    """Whether words after a mention are a command and not a sentence that begins like one."""
    words = (found["rest"] or "").split()
    if not words:
        return True
    name = found["name"].lower()
    if name in ("approve", "deny", "answer"):
        return _CODE.fullmatch(words[0]) is not None
    return name in ("queue", "model") and len(words) == 1


def unknown_of(message: InboundMessage, *, names: frozenset[str]) -> Unknown | None:
    """A command that there is not, given to us by a person; None where the text may be meant so.

    In a group only what is said to the bot is, and what comes with files is for the agent.
    """
    to_us = message.chat_kind == "direct" or message.mentions_bot or message.replies_to_bot
    if not to_us or not message.speaks_for_sender or message.said is not None:
        return None
    return None if message.attachments else unknown(message.text, message.command_prefix, names)


def unknown(text: str, prefix: str, names: frozenset[str]) -> Unknown | None:
    """A text that begins as a command does, which is none of `names`.

    That is a slash and letters, alone or before a space: ``/etc/hosts`` is none. Another `prefix`
    may begin a sentence (``!important do this``), so it counts before a word that stands alone or
    that is nearly a command.
    """
    found = _WORD.fullmatch(text.strip())
    if found is None or found["name"].lower() in names or found["mark"] not in ("/", prefix):
        return None
    typed, listed = found["name"].lower()[:_LONGEST], sorted(names - _OF_CLIENTS)
    if found["mark"] != "/" and found["rest"] and not get_close_matches(typed, listed, 1, _SURELY):
        return None
    near = get_close_matches(typed, listed, cutoff=_NEARLY)
    return Unknown(f"{found['mark']}{found['name'][:_LONGEST]}", tuple(near))


# An open call's id, or its last characters: they hold a digit nearly always, words do not.
_CODE = re.compile(r"(?:(?:apr|que)_)?(?=[0-9a-z]*[0-9])[0-9a-z]{6,26}", re.IGNORECASE)
