"""What presses mean and what people are told about open cards. Pure."""

from runtime.commands import answers
from runtime.inbox.parking import Choice
from runtime.store.open_calls import QUESTION, OpenCall


def choice_of(call: OpenCall, pressed: str) -> tuple[Choice | None, str]:
    if call.kind == QUESTION:
        return None, pressed
    if pressed == "once":
        return "once", ""
    if pressed == "session":
        return "session", ""
    return "deny", ""


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
