"""What presses mean and what people are told about open cards. Pure."""

from runtime.commands import answers
from runtime.inbox.parking import Choice
from runtime.store.open_calls import QUESTION, OpenCall


def choice_of(call: OpenCall, pressed: str) -> tuple[Choice | None, str] | None:
    """What a pressed button means; None where no card has such a button."""
    if call.kind == QUESTION:
        options = call.payload.get("options")
        offered = isinstance(options, list) and pressed in options
        return (None, pressed) if offered else None
    choices: dict[str, Choice] = {"once": "once", "session": "session", "deny": "deny"}
    choice = choices.get(pressed)
    return None if choice is None else (choice, "")


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
