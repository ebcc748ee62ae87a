"""Cards that ask a person: an approval, a question; each with its buttons while it is open. Pure.

Every button has words that do the same, for those whose client shows no buttons. A decided card
has neither.
"""

from collections.abc import Iterable
from dataclasses import replace

import regex
from pydantic import JsonValue

from adapters.platforms.cards import LABELS, SCOPES, approval_text, question_text
from adapters.rendering import clean, utf16_length
from adapters.telegram.callbacks import Chosen, Seal
from adapters.telegram.posts import Post, rendered
from runtime.domain.messages import ApprovalPart, Button, QuestionPart, TextPart, rows_of
from runtime.domain.value import JsonObject

# What a phone shows of a button in a row of its own.
_LABEL_GRAPHEMES = 40
# The Bot API takes 100 buttons; a list of so many is better read and answered by its number.
_MOST_OPTIONS = 20
_MOST_BUTTONS = 40
_BUTTONS_A_ROW = 2
MOST_UNITS = 4096


def card(markdown: str, hint: str, *, keyboard: JsonObject | None = None) -> tuple[Post, ...]:
    """A card: its text, then a line that says what to do, then the keyboard, if there is one.

    All of the text is shown; a long card takes several posts and ends in the last.
    """
    posts = rendered(f"{markdown}\n\n{hint}")
    return (*posts[:-1], replace(posts[-1], keyboard=keyboard))


def decided(markdown: str, outcome: str) -> tuple[Post, ...]:
    """A card that asks nothing any more. Names and reasons in `outcome` are not Markdown: people
    chose them."""
    posts = rendered(markdown)
    outcome = clean(outcome)
    last = posts.pop() if posts else Post("")
    room = MOST_UNITS - utf16_length(last.text) - 2
    if utf16_length(outcome) <= room:
        return (*posts, replace(last, text=f"{last.text}\n\n{outcome}".lstrip()))
    return (*posts, last, Post(outcome[: MOST_UNITS // 2]))


def text(part: TextPart, seal: Seal, message_id: str) -> tuple[Post, ...]:
    """A text; its buttons stand below the last post."""
    posts = rendered(part.markdown)
    rows: list[JsonValue] = []
    for row in rows_of(part.buttons[:_MOST_BUTTONS]):
        cells = [
            _button(_short(one.label), seal.write(_chosen(one, message_id, number)))
            for number, one in row
        ]
        rows += _rows(cells, _BUTTONS_A_ROW)
    if not posts or not rows:
        return tuple(posts)
    return (*posts[:-1], replace(posts[-1], keyboard={"inline_keyboard": rows}))


def _chosen(one: Button, message_id: str, number: int) -> Chosen:
    if one.about:
        return Chosen(one.about, one.choice)
    return Chosen(message_id, option=number)


def approval(part: ApprovalPart, seal: Seal) -> tuple[Post, ...]:
    """Which call, with what exactly, and why it is asked."""
    markdown = approval_text(part)
    if part.outcome:
        return decided(markdown, part.outcome)
    buttons = [
        _button(LABELS[choice], seal.write(Chosen(part.open_call_id, choice)))
        for choice in part.choices
        if choice in LABELS
    ]
    hint = f"Press a button, or send {', or '.join(_ways(part))}."
    return card(markdown, hint, keyboard=_keyboard(buttons))


def question(part: QuestionPart, seal: Seal) -> tuple[Post, ...]:
    """What is asked, and the options; an answer may always be another."""
    markdown = question_text(part)
    if part.outcome:
        return decided(markdown, part.outcome)
    buttons = [
        _button(_label(number, text), seal.write(Chosen(part.open_call_id, option=number)))
        for number, text in enumerate(part.options[:_MOST_OPTIONS], start=1)
    ]
    hint = "Reply to this message with your answer"
    hint += " or the number of an option." if part.options else "."
    return card(markdown, hint, keyboard=_keyboard(buttons))


def _ways(part: ApprovalPart) -> Iterable[str]:
    if "approve" in part.choices:
        yield f"`/approve {part.code}`"
        yield f"`/deny {part.code}`"
        return
    for choice in part.choices:
        if choice in SCOPES:
            scope = "" if choice == "once" else f" {choice}"
            yield f"`/approve {part.code}{scope}` ({SCOPES[choice]})"
    if "deny" in part.choices:
        yield f"`/deny {part.code} reason`"
        yield "reply `deny` and why"


def _label(number: int, text: str) -> str:
    return f"{number}. {_short(text)}"


def _short(text: str) -> str:
    graphemes = regex.findall(r"\X", " ".join(text.split()))
    short = "".join(graphemes[: _LABEL_GRAPHEMES - 1])
    mark = "\N{HORIZONTAL ELLIPSIS}" if len(graphemes) >= _LABEL_GRAPHEMES else ""
    return f"{short}{mark}"


def _button(label: str, data: str | None) -> JsonValue | None:
    return None if data is None else {"text": label, "callback_data": data}


def _keyboard(buttons: list[JsonValue | None]) -> JsonObject | None:
    """A button of a card has a row of its own: labels are long, and a finger is wide."""
    rows = _rows(buttons, 1)
    return {"inline_keyboard": rows} if rows else None


def _rows(buttons: list[JsonValue | None], width: int) -> list[JsonValue]:
    found: list[JsonValue] = [button for button in buttons if button is not None]
    return [found[at : at + width] for at in range(0, len(found), width)]
