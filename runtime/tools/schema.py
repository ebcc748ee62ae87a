"""JSON schemas of arguments, without the words that only cost tokens (CTX-12)."""

import json
from collections.abc import Mapping

from pydantic import JsonValue

from runtime.domain.value import JsonObject

_NOISE = frozenset({"title", "additionalProperties", "description", "$schema"})
_BOUNDS = frozenset(
    {
        *("minLength", "maxLength", "minItems", "maxItems", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum"),
    }
)
"""Kept by validation and told when one is broken, so the model need not carry them every turn."""


_DEFS = "#/$defs/"


def of_arguments(schema: Mapping[str, JsonValue]) -> JsonObject:
    """What a model is told of a tool's arguments. A type that is named in one place stands there
    instead of among the definitions."""
    short = terse(schema)
    defs = short.pop("$defs", {})
    if not isinstance(defs, dict):
        return short
    told = json.dumps([short, defs])
    once = {name: kind for name, kind in defs.items() if told.count(f'"{_DEFS}{name}"') == 1}
    left = {name: _inlined(kind, once) for name, kind in defs.items() if name not in once}
    rest = {key: _inlined(value, once) for key, value in short.items()}
    return {"$defs": left, **rest} if left else rest


def _inlined(value: JsonValue, once: Mapping[str, JsonValue]) -> JsonValue:
    if isinstance(value, list):
        return [_inlined(item, once) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _inlined(item, once) for key, item in value.items()}
    name = str(found.get("$ref", "")).removeprefix(_DEFS)
    kind = once.get(name)
    if not isinstance(kind, dict):
        return found
    del found["$ref"]
    return {key: _inlined(item, once) for key, item in kind.items()} | found


def terse(schema: Mapping[str, JsonValue]) -> JsonObject:
    """The schema without titles, bounds and the docstring of the model; fields keep theirs."""
    return {key: _value(key, value) for key, value in schema.items() if key not in _NOISE | _BOUNDS}


def _value(key: str, value: JsonValue) -> JsonValue:
    if key == "properties" and isinstance(value, dict):
        return {name: _field(item) for name, item in value.items()}
    if key == "$defs" and isinstance(value, dict):
        return {name: terse(item) for name, item in value.items() if isinstance(item, dict)}
    if isinstance(value, dict):
        return terse(value)
    if isinstance(value, list):
        return [terse(item) if isinstance(item, dict) else item for item in value]
    return value


def _field(schema: JsonValue) -> JsonValue:
    if not isinstance(schema, dict):
        return schema
    kept = _optional(terse(schema))
    if "default" in kept and not kept["default"] and not isinstance(kept["default"], int):
        # What may be left out and is then empty says so by not being required.
        del kept["default"]
    if "description" in schema:
        kept["description"] = schema["description"]
    return kept


def _optional(schema: JsonObject) -> JsonObject:
    """A field that may be left out is told as its type; that null means the same is not told."""
    match schema:
        case {"anyOf": [dict(kind), {"type": "null"}], "default": None}:
            rest = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
            return kind | rest
        case _:
            return schema
