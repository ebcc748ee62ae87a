"""Block Kit as Slack checks it: types, required fields, unknown fields and length limits.

Pure. Each check yields one line for each thing that is wrong, with a JSON pointer, in the manner
of Slack's `response_metadata.messages`. Limits: the Block Kit reference pages.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tests.wire.slack.state import JsonObject

MAX_MESSAGE_BLOCKS = 50
MAX_VIEW_BLOCKS = 100
MAX_MARKDOWN = 12_000

Check: TypeAlias = Callable[[object, str], Iterator[str]]


def _string(limit: int, low: int = 1) -> Check:
    def check(value: object, at: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield f"must be a string [json-pointer:{at}]"
        elif len(value) > limit:
            yield f"must be less than {limit + 1} characters [json-pointer:{at}]"
        elif len(value) < low:
            yield f"must be more than {low - 1} characters [json-pointer:{at}]"

    return check


def _boolean(value: object, at: str) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"must be a boolean [json-pointer:{at}]"


def _number(value: object, at: str) -> Iterator[str]:
    if not isinstance(value, int) or isinstance(value, bool):
        yield f"must be an integer [json-pointer:{at}]"


def _anything(value: object, at: str) -> Iterator[str]:
    if value is None:
        yield f"must not be null [json-pointer:{at}]"


def _one_of(*allowed: str) -> Check:
    def check(value: object, at: str) -> Iterator[str]:
        if value not in allowed:
            yield f"must be one of {', '.join(allowed)} [json-pointer:{at}]"

    return check


def _list(item: Check, low: int, high: int) -> Check:
    def check(value: object, at: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"must be an array [json-pointer:{at}]"
            return
        if not low <= len(value) <= high:
            yield f"must hold {low} to {high} items [json-pointer:{at}]"
        for number, inner in enumerate(value):
            yield from item(inner, f"{at}/{number}")

    return check


def _shape(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    known = {"type": _anything, **required, **(optional or {})}

    def check(value: object, at: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"must be an object [json-pointer:{at}]"
            return
        for key in required:
            if key not in value:
                yield f"missing required field: {key} [json-pointer:{at}]"
        for key, inner in value.items():
            if key not in known:
                yield f"invalid additional property: {key} [json-pointer:{at}]"
            else:
                yield from known[key](inner, f"{at}/{key}")

    return check


def _typed(table: Mapping[str, Check]) -> Check:
    def check(value: object, at: str) -> Iterator[str]:
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in table:
            yield f"unsupported type: {kind} [json-pointer:{at}/type]"
        else:
            yield from table[kind](value, at)

    return check


def _text(limit: int, *, plain: bool = False) -> Check:
    shape = _shape(
        {"text": _string(limit), "type": _one_of("plain_text") if plain else _anything},
        {"emoji": _boolean} if plain else {"emoji": _boolean, "verbatim": _boolean},
    )
    if plain:
        return shape
    return _typed({"plain_text": shape, "mrkdwn": shape})


_ACTION = {"action_id": _string(255)}
_OPTION = _shape({"text": _text(75), "value": _string(150)}, {"description": _text(75)})
_CONFIRM = _shape(
    {"title": _text(100, plain=True), "text": _text(300), "confirm": _text(30, plain=True),
     "deny": _text(30, plain=True)},
    {"style": _one_of("primary", "danger")},
)  # fmt: skip
_HINTS = {"placeholder": _text(150, plain=True), "focus_on_load": _boolean, "confirm": _CONFIRM}
_CHOICES = {"options": _list(_OPTION, 1, 100)}

_ELEMENTS: Mapping[str, Check] = {
    "button": _shape(
        {"text": _text(75, plain=True)},
        {**_ACTION, "value": _string(2000), "url": _string(3000), "confirm": _CONFIRM,
         "style": _one_of("primary", "danger"), "accessibility_label": _string(75)},
    ),
    "static_select": _shape(_CHOICES, {**_ACTION, **_HINTS, "initial_option": _OPTION}),
    "overflow": _shape({"options": _list(_OPTION, 1, 5)}, {**_ACTION, "confirm": _CONFIRM}),
    "radio_buttons": _shape(
        {"options": _list(_OPTION, 1, 10)}, {**_ACTION, **_HINTS, "initial_option": _OPTION}
    ),
    "checkboxes": _shape(
        {"options": _list(_OPTION, 1, 10)},
        {**_ACTION, **_HINTS, "initial_options": _list(_OPTION, 1, 10)},
    ),
    "users_select": _shape({}, {**_ACTION, **_HINTS, "initial_user": _string(20)}),
    "datepicker": _shape({}, {**_ACTION, **_HINTS, "initial_date": _string(10)}),
    "plain_text_input": _shape(
        {},
        {**_ACTION, **_HINTS, "initial_value": _string(3000, 0), "multiline": _boolean,
         "min_length": _number, "max_length": _number, "dispatch_action_config": _anything},
    ),
}  # fmt: skip
_IMAGE = _shape(
    {"alt_text": _string(2000)},
    {"image_url": _string(3000), "slack_file": _anything, "title": _text(2000, plain=True),
     "block_id": _string(255)},
)  # fmt: skip
_CONTEXT = _typed({"plain_text": _text(3000), "mrkdwn": _text(3000), "image": _IMAGE})
_INPUTS = {key: value for key, value in _ELEMENTS.items() if key not in {"button", "overflow"}}
_CLICKS = {key: value for key, value in _ELEMENTS.items() if key != "plain_text_input"}
_ID = {"block_id": _string(255)}


def _section(value: object, at: str) -> Iterator[str]:
    yield from _SECTION(value, at)
    if isinstance(value, dict) and "text" not in value and "fields" not in value:
        yield f"must hold text or fields [json-pointer:{at}]"


_SECTION = _shape(
    {},
    {**_ID, "text": _text(3000), "fields": _list(_text(2000), 1, 10), "expand": _boolean,
     "accessory": _typed({**_CLICKS, "image": _IMAGE})},
)  # fmt: skip
_BLOCKS: Mapping[str, Check] = {
    "section": _section,
    "divider": _shape({}, _ID),
    "header": _shape({"text": _text(150, plain=True)}, _ID),
    "context": _shape({"elements": _list(_CONTEXT, 1, 10)}, _ID),
    "actions": _shape({"elements": _list(_typed(_CLICKS), 1, 25)}, _ID),
    "image": _IMAGE,
    "input": _shape(
        {"label": _text(2000, plain=True), "element": _typed(_INPUTS)},
        {**_ID, "hint": _text(2000, plain=True), "optional": _boolean, "dispatch_action": _boolean},
    ),
    "markdown": _shape({"text": _string(MAX_MARKDOWN)}, _ID),
    "rich_text": _shape({"elements": _list(_anything, 0, 100)}, _ID),
    "table": _shape(
        {"rows": _list(_list(_anything, 1, 20), 1, 100)},
        {**_ID, "column_settings": _list(_anything, 0, 20)},
    ),
}
_block = _typed(_BLOCKS)
_view_block = _typed({k: v for k, v in _BLOCKS.items() if k not in {"markdown", "table"}})


def block_problems(blocks: Sequence[JsonObject], *, in_view: bool = False) -> list[str]:
    """What Slack would say about these blocks; empty when they are valid."""
    most = MAX_VIEW_BLOCKS if in_view else MAX_MESSAGE_BLOCKS
    problems = list(_list(_view_block if in_view else _block, 0, most)(list(blocks), "/blocks"))
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    if len(ids) != len(set(map(str, ids))):
        problems.append("block_id must be unique [json-pointer:/blocks]")
    return problems + list(_repeated_actions(blocks))


def _repeated_actions(blocks: Sequence[JsonObject]) -> Iterator[str]:
    for number, block in enumerate(blocks):
        elements = block.get("elements")
        if block.get("type") != "actions" or not isinstance(elements, list):
            continue
        named = [e["action_id"] for e in elements if isinstance(e, dict) and "action_id" in e]
        if len(named) != len(set(map(str, named))):
            yield f"action_id must be unique [json-pointer:/blocks/{number}/elements]"


def markdown_length(blocks: Sequence[JsonObject]) -> int:
    """Characters in all markdown blocks together: Slack limits their sum, 12,000 a message."""
    texts = [b.get("text") for b in blocks if b.get("type") == "markdown"]
    return sum(len(t) for t in texts if isinstance(t, str))
