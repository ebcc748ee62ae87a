"""A wanted call in the shape of the tool that is really offered.

Pure. The sentences name arguments as the contract does; a tool's schema has the last word, so a
name that the schema does not have is tried under its other names, and left out when the schema
takes no more than it lists.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from adapters.models.offline_grammar import Wanted
from runtime.domain.tools import ToolSpec
from runtime.domain.value import JsonObject

_OTHER_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "action": ("op", "command"),
    "agent": ("selector", "agent_id", "target", "id"),
    "channel": ("channel_id", "room", "room_id"),
    "content": ("text", "body"),
    "cron": ("expression",),
    "every_seconds": ("every_s", "interval_seconds", "interval_s"),
    "filename": ("name", "path"),
    "id": ("task_id", "schedule_id", "agent_id", "selector"),
    "in_seconds": ("in_s", "delay_seconds", "delay_s", "after_seconds", "after_s"),
    "message": ("message_id", "text", "content"),
    "name": ("title", "skill"),
    "patch": ("diff", "input", "text"),
    "pattern": ("query", "glob", "regex"),
    "question": ("text", "prompt"),
    "reaction": ("emoji",),
    "text": ("content", "prompt", "message", "request", "input", "markdown", "data"),
    "thread": ("thread_id", "message_id"),
    "title": ("name", "description"),
    "to": ("target", "recipient", "address"),
}
_CADENCE: Final = {"in_seconds": "once", "every_seconds": "interval", "cron": "cron"}


def arguments_for(wanted: Wanted, spec: ToolSpec) -> str:
    """The call's arguments as JSON text."""
    properties = spec.parameters.get("properties")
    known = set(properties) if isinstance(properties, dict) else set()
    closed = spec.parameters.get("additionalProperties") is False
    shaped: JsonObject = {}
    for name, value in wanted.arguments.items():
        if name in _CADENCE and "cadence" in known:
            shaped["cadence"] = _cadence(name, value)
            continue
        options = (name, *_OTHER_NAMES.get(name, ()))
        found = next((one for one in options if one in known and one not in shaped), None)
        if found is not None or not (closed and known):
            shaped[found or name] = value
    return json.dumps(shaped, ensure_ascii=False)


def _cadence(name: str, value: JsonValue) -> JsonObject:
    if name == "cron":
        return {"type": "cron", "expression": value}
    return {"type": _CADENCE[name], name: value}
