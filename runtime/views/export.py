"""A conversation as one Markdown text, for people who take it along. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from runtime.domain.printable import printable
from runtime.views.models import CallView, MessageView, SessionView


def as_markdown(session: SessionView, items: Sequence[MessageView]) -> str:
    """Who said what and when, with the calls that were made and what came of them."""
    parts = [f"# {session.title or 'Conversation'}", f"Session `{session.id}`."]
    for item in items:
        parts.extend(_parts(item))
    return "\n\n".join(part for part in parts if part) + "\n"


def _parts(item: MessageView) -> Iterable[str]:
    name = item.name or "Somebody"
    who = {"user": name, "assistant": "Gatehouse", "file": "Gatehouse"}.get(item.kind, "Gateway")
    yield f"## {who}, {_when(item.at_ms)}{' (taken back)' if item.undone else ''}"
    yield item.text.strip()
    for attachment in item.attachments:
        yield f"File: `{printable(attachment.name)}`"
    for file in item.files:
        yield f"File: `{printable(file.name)}`"
    for call in item.calls:
        yield _call(call)
    if item.card is not None:
        asked = item.card.question or f"May I run `{item.card.tool}`?"
        yield f"{asked} {item.card.outcome or item.card.state}".strip()


def _call(call: CallView) -> str:
    shown = f"{call.name} {printable(call.arguments)}\n\n{call.result}".rstrip()
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}\n{shown}\n{fence}"


def _when(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
