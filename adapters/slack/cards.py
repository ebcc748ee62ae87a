"""Cards, forms and the App Home as Slack's blocks. Pure, and the same at every attempt.

What people or models wrote stands in `plain_text`, or has been through the renderer, so that no
name and no argument can format itself, ring somebody or look like a button.
"""

from collections.abc import Iterable, Sequence

from adapters.platforms.cards import LABELS
from adapters.rendering import SlackLimits, render_slack, utf16_length
from adapters.slack.actions import FIELD, FORM, LONGEST_VALUE, PRESS, WRITE, form_state, value_of
from runtime.domain.messages import ApprovalPart, ChatAddress, QuestionPart, rows_of
from runtime.domain.messages import Button as PartButton
from runtime.domain.value import JsonObject
from runtime.ports.gatehouse import Home, HomeSession

LONGEST_LABEL = 75
LONGEST_SECTION = 3000
LONGEST_INPUT = 3000
MOST_IN_ROW = 25
"""What Slack takes in one `actions` block."""
MOST_ITEMS = 15
MOST_NOTES = 3
"""Sections of an answer, so that a page stays below Slack's 100 blocks."""
_NOTE = SlackLimits(markdown=0, blocks=1)
_STATES = {"idle": "", "queued": " · waiting", "running": " · working", "parked": " · asks you"}
Button = tuple[str, str, str, str]
"""Action, label, value, style."""


def approval_buttons(part: ApprovalPart) -> JsonObject | None:
    """The row below an approval's card; None where it offers nothing that is known."""
    offered = [choice for choice in part.choices if choice in LABELS]
    buttons: list[Button] = [
        (
            f"{PRESS}:{choice}",
            label,
            value_of(part.open_call_id, choice),
            "primary" if choice == part.bright else "",
        )
        for choice, label in LABELS.items()
        if choice in offered
    ]
    if "deny" in offered and "approve" not in offered:
        buttons.append((WRITE, "Deny with a reason...", value_of(part.open_call_id, "deny"), ""))
    return _row(buttons)


def question_buttons(part: QuestionPart) -> JsonObject | None:
    """An answer for each option, and one for the person's own words."""
    buttons: list[Button] = []
    for number, option in enumerate(part.options):
        value = value_of(part.open_call_id, option)
        if option.strip() and len(value) <= LONGEST_VALUE:
            buttons.append((f"{PRESS}:{number}", option, value, ""))
    own = "Something else..." if buttons else "Answer..."
    buttons.append((WRITE, own, value_of(part.open_call_id, ""), ""))
    return _row(buttons[-20:])


def button_rows(buttons: Sequence[PartButton], message_id: str = "") -> Sequence[JsonObject]:
    """The rows below a text of the gateway's own, or below a thing on the home page."""
    rows = (
        _row(
            [
                (f"{PRESS}:{choice}", one.label, value_of(about, choice), "")
                for number, one in row[:MOST_IN_ROW]
                for about, choice in [one.pressed_as(message_id, number)]
            ]
        )
        for row in rows_of(buttons)
    )
    return [row for row in rows if row is not None]


def form(call: str, choice: str, chat: str) -> JsonObject:
    """The form behind a button: one field, for a denial's reason or an answer."""
    title, label, send = ("Your answer", "Answer", "Send")
    if choice == "deny":
        title, label, send = ("Deny with a reason", "Reason", "Deny")
    return {
        "type": "modal",
        "callback_id": FORM,
        "private_metadata": form_state(call, choice, chat),
        "title": _plain(title),
        "submit": _plain(send),
        "close": _plain("Cancel"),
        "blocks": [
            {
                "type": "input",
                "block_id": FIELD,
                "label": _plain(label),
                "element": {
                    "type": "plain_text_input",
                    "action_id": FIELD,
                    "multiline": True,
                    "max_length": LONGEST_INPUT,
                },
            }
        ],
    }


def home_view(home: Home, note: str = "") -> JsonObject:
    """The App Home of one person. `note` answers what they did there last."""
    blocks: list[JsonObject] = [_header("Gatehouse")]
    if note:
        blocks.extend(_note(note))
    if not home.known:
        words = "I do not know you yet. Write me a direct message, and you will be told what to do."
        blocks.append(_section(words))
        return _home(blocks)
    if home.cards:
        blocks.append(_header("Waiting for you"))
        for card in home.cards:
            blocks.extend(_home_card(card))
    heading = ""
    for item in home.items[:MOST_ITEMS]:
        if item.heading != heading:
            blocks.append(_header(item.heading))
            heading = item.heading
        blocks += [_section(item.text), *button_rows(item.buttons)]
    blocks.append(_header("Conversations"))
    if not home.sessions:
        blocks.append(_section("None yet. Mention me in a channel, or write me a message."))
    blocks.extend(_home_session(session) for session in home.sessions)
    return _home(blocks)


def _note(markdown: str) -> Sequence[JsonObject]:
    rendered = render_slack(markdown, limits=_NOTE)
    return [
        {"type": "section", "text": {"type": "mrkdwn", "text": part.text}}
        for part in rendered[:MOST_NOTES]
    ]


def _home_card(card: ApprovalPart | QuestionPart) -> list[JsonObject]:
    if isinstance(card, QuestionPart):
        text, row = card.question, question_buttons(card)
    else:
        reason = f"\n\n{card.reason}" if card.reason else ""
        risk = f"\n\n{card.risk.words}" if card.risk else ""
        text = f"Approval needed for {card.tool}{risk}{reason}\n\n{card.arguments}"
        row = approval_buttons(card)
    if utf16_length(text) > LONGEST_SECTION:
        # Nobody should allow what they have not seen whole.
        far = f"\n\nThis is too long to be shown here: decide on its card, {card.code}."
        return [_section(_cut(text, LONGEST_SECTION - len(far)) + far)]
    return [_section(text), *([row] if row is not None else [])]


def _home_session(session: HomeSession) -> JsonObject:
    title = session.title.strip() or "(no words)"
    state = _STATES.get(session.state, f" · {session.state}")
    place = _place(session.address)
    return {
        **_section(f"{title[:200]}{state}"),
        "fields": [{"type": "mrkdwn", "text": place}],
    }


def _place(address: ChatAddress) -> str:
    if address.chat_kind == "direct":
        return "direct messages"
    known = address.chat_id.isalnum() and address.chat_id.isascii()
    return f"<#{address.chat_id}>" if known else "a channel"


def _row(buttons: Sequence[Button]) -> JsonObject | None:
    if not buttons:
        return None
    return {"type": "actions", "elements": list(_elements(buttons))}


def _elements(buttons: Sequence[Button]) -> Iterable[JsonObject]:
    for action, label, value, style in buttons:
        yield {
            "type": "button",
            "action_id": action,
            "text": _plain(_cut(" ".join(label.split()), LONGEST_LABEL)),
            "value": value,
            **({"style": style} if style else {}),
        }


def _home(blocks: Sequence[JsonObject]) -> JsonObject:
    return {"type": "home", "blocks": list(blocks)}


def _header(text: str) -> JsonObject:
    return {"type": "header", "text": _plain(text)}


def _section(text: str) -> JsonObject:
    return {"type": "section", "text": _plain(_cut(text, LONGEST_SECTION))}


def _cut(text: str, limit: int) -> str:
    """At most `limit` UTF-16 units, the larger of the two ways to count characters."""
    if utf16_length(text) <= limit:
        return text
    kept = text[: limit - 3]
    while utf16_length(kept) > limit - 3:
        kept = kept[:-1]
    return f"{kept}..."


def _plain(text: str) -> JsonObject:
    return {"type": "plain_text", "text": text, "emoji": False}
