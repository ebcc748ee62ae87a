"""What presses mean and what people are told about open cards. Pure."""

from collections.abc import Mapping
from typing import Final

from runtime.domain.messages import ButtonPress
from runtime.intake.settings import MAX_FORM_TEXT
from runtime.sessions import answers
from runtime.sessions.approvals import Choice
from runtime.sessions.open_calls import QUESTION, OpenCall


def choice_of(call: OpenCall, press: ButtonPress) -> tuple[Choice | None, str] | None:
    """What a press means: a choice with a denial's reason, or an answer. None where no card has
    such a button."""
    written = press.text.strip()[:MAX_FORM_TEXT]
    if call.kind == QUESTION:
        answer = _option(call, press) or ("" if press.choice or press.option else written)
        return (None, answer) if answer else None
    choice = _CHOICES.get(press.choice)
    if choice is None:
        return None
    return choice, written if choice == "deny" else ""


def _option(call: OpenCall, press: ButtonPress) -> str:
    listed = call.payload.get("options")
    options = [str(one) for one in listed] if isinstance(listed, list) else []
    if press.option is not None:
        return options[press.option - 1] if 1 <= press.option <= len(options) else ""
    return press.choice if press.choice in options else ""


def said_to(call: OpenCall, text: str) -> tuple[Choice | None, str] | None:
    """What a written reply to an open card means; None where it is a message like any other.

    An approval is only ever denied by it: what allows must name the call, by button or code.
    """
    if not text.strip():
        return None
    if call.kind == QUESTION:
        return None, text
    first, _, rest = text.strip().partition(" ")
    if first.lower().rstrip(".,:;!") not in _REFUSALS:
        return None
    return "deny", rest.strip()[:MAX_FORM_TEXT]


_CHOICES: Final[Mapping[str, Choice]] = {"once": "once", "session": "session", "deny": "deny"}
_REFUSALS: Final = frozenset({"deny", "no"})


def waits_behind(call: OpenCall) -> str:
    code = answers.code(call)
    if call.kind == QUESTION:
        question = str(call.payload.get("question", ""))[:200]
        return (
            f"I will read this next. First I need your answer: {question}\n"
            f"Reply to that message, or send `/answer {code} your answer`."
        )
    tool = call.payload.get("tool")
    return (
        f"I will read this next. First somebody must decide about `{tool}`: "
        f"`/approve {code}` or `/deny {code} reason`."
    )
