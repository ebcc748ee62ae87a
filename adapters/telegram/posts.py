"""A post: one message in Telegram, and what our receipts say of those that are there. Pure.

Formatting goes as entities, never as markup that has to be parsed. A post whose formatting is
refused goes out as plain pieces (REN-3).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import regex

from adapters.rendering import Entity, TelegramPart, plain_telegram, render_telegram, utf16_length
from runtime.domain.messages import FilePart
from runtime.domain.value import JsonObject

# Half of what Telegram takes: pieces are also the way out for a text that it finds too long.
PIECE_UNITS = 2048
_GRAPHEME = regex.compile(r"\X")
_POSTED = re.compile(r"(?:(?P<chat>-?\d+):)?(?P<number>\d+)(?P<more>\+?)")


@dataclass(frozen=True, slots=True)
class Post:
    """One message; `keyboard` is an `InlineKeyboardMarkup` below it.

    With a `file` the text is its caption, which may be empty.
    """

    text: str
    entities: tuple[Entity, ...] = ()
    keyboard: JsonObject | None = None
    file: FilePart | None = None


@dataclass(frozen=True, slots=True)
class Posted:
    """A post that is there, as our receipts write it: `[chat:]number[+]`.

    `chat` is set where the post went to another chat than the message names, because a group became
    a supergroup. `more` says that the post went out in plain pieces and this is not the last.
    """

    number: int
    chat: str | None = None
    more: bool = False

    def __str__(self) -> str:
        chat = "" if self.chat is None else f"{self.chat}:"
        return f"{chat}{self.number}{'+' if self.more else ''}"


def read_posted(identifier: str) -> Posted:
    """Raises ValueError for what `str(Posted(...))` never writes."""
    found = _POSTED.fullmatch(identifier)
    if found is None:
        raise ValueError(f"{identifier!r} is no id of a Telegram message")
    return Posted(int(found["number"]), found["chat"], bool(found["more"]))


def progress(posted: Sequence[str]) -> tuple[int, int]:
    """How many posts are whole, and how many pieces of the next one are there."""
    marks = [read_posted(identifier).more for identifier in posted]
    pieces = 0
    while pieces < len(marks) and marks[-1 - pieces]:
        pieces += 1
    return marks.count(False), pieces


def rendered(markdown: str) -> list[Post]:
    """Markdown as posts; none where it holds nothing that could be seen."""
    return [Post(part.text, part.entities) for part in render_telegram(markdown)]


def plain_posts(post: Post) -> tuple[Post, ...]:
    """The same words without formatting, addresses written out; the keyboard stays at the end."""
    texts = plain_telegram(TelegramPart(post.text, post.entities))
    pieces = [Post(piece) for text in texts for piece in _pieces(text)]
    return (*pieces[:-1], *(replace(last, keyboard=post.keyboard) for last in pieces[-1:]))


def as_plain(post: Post) -> Post:
    """The same words in one post, for what cannot be made more of: an edit, a caption."""
    pieces = () if post.file else plain_posts(post)
    return pieces[0] if len(pieces) == 1 else replace(post, entities=())


def _pieces(text: str) -> Iterable[str]:
    """`text` cut between lines, else words, else graphemes, into at most `PIECE_UNITS` each."""
    while utf16_length(text) > PIECE_UNITS:
        head = text.encode("utf-16-le")[: PIECE_UNITS * 2].decode("utf-16-le", "ignore")
        cut = next((at for at in (head.rfind("\n"), head.rfind(" ")) if at > 0), 0)
        if not head[:cut].strip():
            # The last grapheme may go on behind the limit, so it is left for the next piece.
            *_, last = _GRAPHEME.finditer(head)
            cut = last.start() or len(head)
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text
