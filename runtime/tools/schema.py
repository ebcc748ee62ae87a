"""JSON schemas of arguments, without the words that only cost tokens (CTX-12)."""

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
