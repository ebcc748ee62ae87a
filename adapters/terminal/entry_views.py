"""Entries of a conversation as rich renderables (REN-1). Pure.

Text of models and people is stripped of everything that steers a terminal before it is rendered.
"""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.styled import Styled
from rich.text import Text

from adapters.rendering import strip_controls
from adapters.rendering.terminal import TerminalMarkdown
from adapters.terminal.conversation import Call, Card, Entry

ARGUMENTS = 160
"""Characters of a call's arguments that are shown on its line."""
_KEYS = {
    "once": "Ctrl+Y allow",
    "session": "Ctrl+T allow for this session",
    "deny": "Ctrl+N deny",
}
_MARKS = {"ok": "✓", "error": "✗", "denied": "✗", "unknown": "?"}


def entry(one: Entry) -> RenderableType:
    """One thing that was said; struck through where its turn was taken back."""
    shown = _entry(one)
    if not one.undone:
        return shown
    return Group(Styled(shown, "strike"), Text("(taken back)", style="dim"))


def _entry(one: Entry) -> RenderableType:
    if one.kind == "card" and one.card is not None:
        return card(one.card)
    parts: list[RenderableType] = []
    if one.kind == "user":
        return _said(one)
    if one.text.strip():
        body = TerminalMarkdown(one.text)
        parts.append(body if one.kind == "assistant" else Padding(body, (0, 0, 0, 2)))
    parts += [_step(call) for call in one.calls]
    return Group(*parts)


def card(one: Card) -> RenderableType:
    """An approval or a question, with how to answer while it is open."""
    approval = one.kind == "approval"
    head = Text(f"Approval {one.code}" if approval else f"Question {one.code}", style="bold yellow")
    lines: list[RenderableType] = [head]
    if approval:
        lines.append(Text(f"  {_line(one.tool)} {strip_controls(one.arguments)}"))
        if one.risk:
            lines.append(Text(f"  {strip_controls(one.risk)}", style="bold"))
        if one.reason:
            lines.append(Text(f"  {strip_controls(one.reason)}", style="dim"))
    else:
        lines.append(Text(f"  {strip_controls(one.question)}"))
        lines += [
            Text(f"  {number}. {_line(option)}") for number, option in enumerate(one.options, 1)
        ]
    lines.append(Text(f"  {_ending(one)}", style="dim" if one.outcome else "yellow"))
    return Group(*lines)


def plain_card(one: Card) -> str:
    """A card for a pipe or a standard error: what waits, and how to answer it."""
    if one.kind == "approval":
        risk = f"{_line(one.risk)}\n" if one.risk else ""
        reason = f"{strip_controls(one.reason)}\n" if one.reason else ""
        return (
            f"waiting for approval {one.code}: {_line(one.tool)} {strip_controls(one.arguments)}\n"
            f"{risk}{reason}answer with `gatehouse approvals approve {one.code}` or "
            f"`gatehouse approvals deny {one.code}`"
        )
    asked = strip_controls(one.question)
    return f"waiting for an answer: {asked}\nanswer with `/answer {one.code} TEXT` in the chat"


def _said(one: Entry) -> RenderableType:
    name = _line(one.name) or "You"
    text = Text(f"{name}: ", style="bold cyan")
    text.append(Text(strip_controls(one.text), style="none"))
    if one.waiting:
        text.append(Text("  (waits)", style="dim"))
    return text


def _step(call: Call) -> RenderableType:
    mark = _MARKS.get(call.state, "·")
    shown = _line(call.arguments)
    if len(shown) > ARGUMENTS:
        shown = f"{shown[: ARGUMENTS - 3]}..."
    line = Text(f"  {mark} {_line(call.name)} ", style="green" if mark == "✓" else "yellow")
    line.append(Text(shown, style="dim"))
    if call.state not in ("ok",):
        line.append(Text(f"  {_line(call.state)}", style="dim"))
    return line


def _ending(one: Card) -> str:
    if one.outcome:
        return strip_controls(one.outcome)
    if not one.open:
        return "This is settled."
    if one.kind == "question":
        return "Type your answer" + (", or a number." if one.options else ".")
    return ", ".join(_KEYS[choice] for choice in _KEYS if choice in one.choices) + "."


def _line(text: str) -> str:
    return " ".join(strip_controls(text).split())
