"""Buttons and forms of ours: what they carry, and what people do with them. Pure.

A button carries the id of the open call and the choice, never what the call is about: what is
decided is what the engine has under that id. Nothing read here is trusted to be ours; the engine
asks again whether the call is open, whether it offers the choice and who may answer.
"""

import json
import re
from dataclasses import dataclass

from adapters.slack.ingress import Ignored
from runtime.domain.json_fields import object_in, object_of, text_of
from runtime.domain.printable import quoted
from runtime.domain.value import JsonObject

PRESS = "gatehouse_press"
"""Before the number of a button that answers at once."""
WRITE = "gatehouse_write"
"""A button that opens a form, in which the person writes a reason or an answer."""
FORM = "gatehouse_form"
"""The form's callback."""
FIELD = "gatehouse_text"
"""The one field of the form."""
HOME = "home"
"""What stands for the chat of a press on the App Home, which is in none."""
LONGEST_VALUE = 2000
_CALL = re.compile(r"[a-z]{3,4}_[0-9A-Za-z-]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """A person pressed a button; with `form` it asks for a form. `thread` is the card's."""

    call: str
    choice: str
    user: str
    user_name: str
    chat: str
    thread: str | None
    press_id: str
    trigger: str
    form: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A person sent a form."""

    call: str
    choice: str
    text: str
    user: str
    user_name: str
    chat: str
    press_id: str


def value_of(call: str, choice: str) -> str:
    """What a button carries."""
    return f"{call} {choice}"


def form_state(call: str, choice: str, chat: str) -> str:
    """What a form carries until it is sent."""
    return json.dumps({"call": call, "choice": choice, "chat": chat})


def read_interaction(payload: JsonObject) -> Press | Submission | Ignored:
    """The payload of an interactive envelope or request."""
    match payload.get("type"):
        case "block_actions":
            return _press(payload)
        case "view_submission":
            return _submission(payload)
        case kind:
            return Ignored(f"interaction {kind}")


def _press(payload: JsonObject) -> Press | Ignored:
    actions = payload.get("actions")
    action = actions[0] if isinstance(actions, list) and actions else None
    if not isinstance(action, dict):
        return Ignored("press without an action")
    name = text_of(action, "action_id").partition(":")[0]
    if name not in (PRESS, WRITE):
        return Ignored(f"press of a button that is not ours: {quoted(name)}")
    call, _, choice = text_of(action, "value").partition(" ")
    person, container = object_of(payload, "user"), object_of(payload, "container")
    chat = text_of(container, "channel_id") or text_of(object_of(payload, "channel"), "id")
    if text_of(container, "type") == "view":
        chat = HOME
    user, moment = text_of(person, "id"), text_of(action, "action_ts")
    if not (_CALL.fullmatch(call) and user and chat):
        return Ignored("press of a button whose value is not ours")
    return Press(
        call=call,
        choice=choice,
        user=user,
        user_name=text_of(person, "name"),
        chat=chat,
        thread=text_of(container, "thread_ts") or None,
        press_id=f"{user}:{moment}",
        trigger=text_of(payload, "trigger_id"),
        form=name == WRITE,
    )


def _submission(payload: JsonObject) -> Submission | Ignored:
    view, person = object_of(payload, "view"), object_of(payload, "user")
    if text_of(view, "callback_id") != FORM:
        return Ignored("form that is not ours")
    state = object_in(text_of(view, "private_metadata"))
    if state is None:
        return Ignored("form that carries nothing")
    call, user = text_of(state, "call"), text_of(person, "id")
    if not (_CALL.fullmatch(call) and user):
        return Ignored("form whose call is not ours")
    fields = object_of(object_of(object_of(view, "state"), "values"), FIELD)
    return Submission(
        call=call,
        choice=text_of(state, "choice"),
        text=text_of(object_of(fields, FIELD), "value").strip(),
        user=user,
        user_name=text_of(person, "name"),
        chat=text_of(state, "chat") or HOME,
        press_id=text_of(view, "id"),
    )
