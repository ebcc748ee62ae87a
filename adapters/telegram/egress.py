"""Messages of ours as Telegram's payloads. Pure, and the same at every attempt.

A message is a list of posts, each within Telegram's limits; the n-th post is always the same, so
that an attempt can go on where the last one ended. Formatting goes as entities, never as markup
that has to be parsed. A post whose formatting is refused goes out as plain pieces (REN-3).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import regex
from pydantic import JsonValue

from adapters.rendering import Entity, TelegramPart, plain_telegram, render_telegram, utf16_length
from runtime.domain.messages import (
    ApprovalPart,
    ChatAddress,
    FilePart,
    OutboundMessage,
    OutboundPart,
    QuestionPart,
    TextPart,
)
from runtime.domain.value import JsonObject

# Half of what Telegram takes: pieces are also the way out for a text that it finds too long.
PIECE_UNITS = 2048
_GRAPHEME = regex.compile(r"\X")
_CHOICES = {"once": "once", "session": "for this session"}
_POSTED = re.compile(r"(?:(?P<chat>-?\d+):)?(?P<number>\d+)(?P<more>\+?)")


@dataclass(frozen=True, slots=True)
class Post:
    """One message in Telegram; `keyboard` is an `InlineKeyboardMarkup` below it."""

    text: str
    entities: tuple[Entity, ...] = ()
    keyboard: JsonObject | None = None


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


def posts_of(message: OutboundMessage) -> tuple[Post, ...]:
    """Everything that the message needs, in order; empty where it holds no text at all."""
    return tuple(post for part in message.parts for post in _posts(part))


def plain_posts(post: Post) -> tuple[Post, ...]:
    """The same words without formatting, addresses written out; the keyboard stays at the end."""
    texts = plain_telegram(TelegramPart(post.text, post.entities))
    pieces = [Post(piece) for text in texts for piece in _pieces(text)]
    return (*pieces[:-1], *(replace(last, keyboard=post.keyboard) for last in pieces[-1:]))


def as_plain(post: Post) -> Post:
    """The same words in one post, for an edit, which cannot make more of them."""
    pieces = plain_posts(post)
    return pieces[0] if len(pieces) == 1 else replace(post, entities=())


def message_payload(target: ChatAddress, post: Post, reply_to: str | None) -> JsonObject:
    """Arguments of `sendMessage`. In a direct chat it is plain what the answer belongs to."""
    payload: JsonObject = {**place(target), **_content(post)}
    if reply_to is not None and reply_to.isdecimal() and target.chat_kind != "direct":
        payload["reply_parameters"] = {
            "message_id": int(reply_to),
            "allow_sending_without_reply": True,
        }
    return payload


def edit_payload(chat: str, number: int, post: Post) -> JsonObject:
    """Arguments of `editMessageText`; buttons that the post does not have are taken away."""
    return {"chat_id": int(chat), "message_id": number, **_content(post)}


def place(target: ChatAddress) -> JsonObject:
    """Arguments that say where: the chat, and the topic in it."""
    found: JsonObject = {"chat_id": int(target.chat_id)}
    if target.thread_id is not None:
        found["message_thread_id"] = int(target.thread_id)
    return found


def card(markdown: str, hint: str, *, keyboard: JsonObject | None = None) -> tuple[Post, ...]:
    """A card: its text, then a line that says what to do, then the keyboard, if there is one.

    All of the text is shown; a long card takes several posts and ends in the last.
    """
    posts = _rendered(f"{markdown}\n\n{hint}")
    return (*posts[:-1], replace(posts[-1], keyboard=keyboard))


def _posts(part: OutboundPart) -> Iterable[Post]:
    match part:
        case TextPart():
            return _rendered(part.markdown)
        case ApprovalPart():
            return _approval(part)
        case QuestionPart():
            return _question(part)
        case FilePart():
            # `capabilities.files` is False, so the engine sends none; a name is never lost.
            return _rendered(f"File: {_code(part.name)}")


def _rendered(markdown: str) -> list[Post]:
    return [Post(part.text, part.entities) for part in render_telegram(markdown)]


def _approval(part: ApprovalPart) -> tuple[Post, ...]:
    fence = _fence(part.arguments)
    reason = f"{part.reason}\n\n" if part.reason else ""
    markdown = (
        f"**Approval needed for** {_code(part.tool)}\n\n{reason}{fence}\n{part.arguments}\n{fence}"
    )
    ways = [
        f"`/approve {part.code}{'' if choice == 'once' else f' {choice}'}` ({_CHOICES[choice]})"
        for choice in part.choices
        if choice in _CHOICES
    ]
    if "deny" in part.choices:
        ways.append(f"`/deny {part.code} reason`")
    return card(markdown, part.outcome or f"Send {', or '.join(ways)}.")


def _question(part: QuestionPart) -> tuple[Post, ...]:
    options = "".join(f"\n{number}. {text}" for number, text in enumerate(part.options, start=1))
    hint = "Reply to this message with your answer"
    hint += " or the number of an option." if part.options else "."
    return card(f"{part.question}\n{options}", part.outcome or hint)


def _content(post: Post) -> JsonObject:
    content: JsonObject = {
        "text": post.text,
        # A preview of a link in an answer would be taken for a part of the answer.
        "link_preview_options": {"is_disabled": True},
    }
    if post.entities:
        content["entities"] = [_entity(entity) for entity in post.entities]
    if post.keyboard is not None:
        content["reply_markup"] = post.keyboard
    return content


def _entity(entity: Entity) -> JsonValue:
    found: JsonObject = {
        "type": entity.type,
        "offset": entity.offset,
        "length": entity.length,
    }
    if entity.url is not None:
        found["url"] = entity.url
    if entity.language is not None:
        found["language"] = entity.language
    return found


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


def _code(text: str) -> str:
    ticks = _fence(text, shortest=1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"`{text}`"


def _fence(text: str, *, shortest: int = 3) -> str:
    """Backticks that `text` cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(shortest, longest + 1)
