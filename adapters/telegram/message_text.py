"""The words of a message and to whom they are said. Pure.

The mention of the bot at the start says to whom, not what, and is taken away; `/word@bot` becomes
`/word`. Offsets of entities count UTF-16 units; an entity that does not fit the text is passed by.
"""

import re
from dataclasses import dataclass

from runtime.domain.json_fields import fields_of, number_of, object_of, text_of
from runtime.domain.messages import Authorship
from runtime.domain.value import JsonObject

# A forwarded message names where it came from, by old servers of the Bot API in its other words;
# posts of a channel are forwarded to its discussion group by Telegram itself.
_FORWARDED = frozenset(
    {"forward_origin", "forward_date", "forward_from", "forward_from_chat", "forward_sender_name"}
    | {"forward_from_message_id", "forward_signature", "is_automatic_forward"}
)
_INLINE = frozenset({"via_bot"})
_QUOTES = frozenset({"blockquote", "expandable_blockquote"})
_SPACE = re.compile(r"\s*")
_AFTER_MENTION = re.compile(r"[\s,:]*")


@dataclass(frozen=True, slots=True)
class Wording:
    """`text` without what only names the bot; `said` is false where there were no words at all.

    `own` is the text without what is quoted in it, None where nothing is.

    `bare_command` is the word of a text that begins with `/word`, in lower case; `for_another` says
    that it begins with `/word@another_bot`.
    """

    text: str
    said: bool
    mentions_bot: bool = False
    bare_command: str = ""
    for_another: bool = False
    own: str | None = None


@dataclass(frozen=True, slots=True)
class _Mark:
    """An entity over the characters `start` to `end` of the text (not UTF-16 units)."""

    type: str
    start: int
    end: int
    words: str
    user_id: int | None


def authorship_of(message: JsonObject) -> Authorship:
    """Whose the words and files of a message are."""
    fields = fields_of(message)
    if not _FORWARDED.isdisjoint(fields):
        return "forwarded"
    return "own" if _INLINE.isdisjoint(fields) else "inline_bot"


def read_wording(text: str, entities: list[JsonObject], *, bot_id: int, username: str) -> Wording:
    """`text` with its `entities`, as the bot with this id and name understands it."""
    name = f"@{username}".lower()
    marks = _marks(text, entities)
    mentions = [mark for mark in marks if _names(mark, bot_id, name)]
    commands = [mark for mark in marks if mark.type == "bot_command"]
    ours = [mark for mark in commands if mark.words.lower().endswith(name)]
    begin = _after_mentions(text, mentions)
    first = next((mark for mark in commands if mark.start == begin), None)
    return Wording(
        text=_without_names(text, begin, ours, len(name)).strip(),
        said=bool(text.strip()),
        mentions_bot=bool(mentions or ours),
        bare_command=first.words[1:].lower() if first and "@" not in first.words else "",
        for_another=first is not None and "@" in first.words and first not in ours,
        own=_without_quotes(text, begin, [mark for mark in marks if mark.type in _QUOTES]),
    )


def _marks(text: str, entities: list[JsonObject]) -> list[_Mark]:
    places = _places(text)
    marks = []
    for entity in entities:
        offset, length = number_of(entity, "offset"), number_of(entity, "length")
        if offset is None or length is None or length <= 0:
            continue
        start, end = places.get(offset), places.get(offset + length)
        if start is None or end is None:
            continue
        user_id = number_of(object_of(entity, "user"), "id")
        marks.append(_Mark(text_of(entity, "type"), start, end, text[start:end], user_id))
    return sorted(marks, key=lambda mark: mark.start)


def _places(text: str) -> dict[int, int]:
    """The index of the character at each UTF-16 offset, the end included."""
    places, offset = {}, 0
    for index, character in enumerate(text):
        places[offset] = index
        offset += 2 if ord(character) > 0xFFFF else 1
    places[offset] = len(text)
    return places


def _names(mark: _Mark, bot_id: int, name: str) -> bool:
    if mark.type == "text_mention":
        return mark.user_id == bot_id
    return mark.type == "mention" and mark.words.lower() == name


def _after_mentions(text: str, mentions: list[_Mark]) -> int:
    """Where the text begins when the mentions at its start are passed by."""
    at = _after(_SPACE, text, 0)
    for mention in mentions:
        if mention.start == at:
            at = _after(_AFTER_MENTION, text, mention.end)
    return at


def _without_names(text: str, begin: int, commands: list[_Mark], length: int) -> str:
    pieces, at = [], begin
    for command in commands:
        if command.start >= at:
            pieces.append(text[at : command.end - length])
            at = command.end
    return "".join((*pieces, text[at:]))


def _without_quotes(text: str, begin: int, quotes: list[_Mark]) -> str | None:
    if not quotes:
        return None
    pieces, at = [], begin
    for quote in quotes:
        pieces.append(text[at : max(at, quote.start)])
        at = max(at, quote.end)
    return "\n".join(piece.strip() for piece in (*pieces, text[at:]) if piece.strip())


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found is not None else at
