"""Recognising a command in a message. Pure."""

import re
from dataclasses import dataclass

from runtime.domain.messages import InboundMessage

_WORD = re.compile(r"(?P<mark>[/!])(?P<name>[a-zA-Z][a-zA-Z_]*)(?:@\S+)?(?:\s+(?P<rest>.*))?", re.S)
_BARE = re.compile(r"(?P<name>[a-zA-Z]+)(?:\s+(?P<rest>.*))?", re.S)


@dataclass(frozen=True, slots=True)
class Words:
    """A command's name in lower case and the text behind it."""

    name: str
    rest: str


def command_of(message: InboundMessage, *, names: frozenset[str]) -> Words | None:
    """The command that a person gives by a message, or None (APR-10).

    What is passed on, edited, quoted or written by a program commands nothing, whatever it says.
    """
    if not message.speaks_for_sender or message.said is not None:
        return None
    return parse(message.text, names=names, mentioned=message.mentions_bot)


def parse(text: str, *, names: frozenset[str], mentioned: bool = False) -> Words | None:
    """The command of a message, or None: unknown slash words go to the model as text.

    ``/word`` everywhere, ``!word`` because Slack's client keeps slashes to itself, and the bare
    word after a mention where it stands alone (``@bot stop``).
    """
    found = _WORD.fullmatch(text.strip())
    if found is None and mentioned:
        found = _BARE.fullmatch(text.strip())
        if found is not None and found["rest"] and not _is_command(found):
            return None
    if found is None or found["name"].lower() not in names:
        return None
    return Words(found["name"].lower(), (found["rest"] or "").strip())


def _is_command(found: re.Match[str]) -> bool:
    """Whether words after a mention are a command and not a sentence that begins like one."""
    words = found["rest"].split()
    name = found["name"].lower()
    if name in ("approve", "deny", "answer"):
        return _CODE.fullmatch(words[0]) is not None
    return name in ("queue", "model") and len(words) == 1


# An open call's id, or its last characters: they hold a digit nearly always, words do not.
_CODE = re.compile(r"(?:(?:apr|que)_)?(?=[0-9a-z]*[0-9])[0-9a-z]{6,26}", re.IGNORECASE)
