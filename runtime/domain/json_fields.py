"""Careful looks into JSON from outside: a field of another type reads as absent. Pure."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The command line's help loads no pydantic.
    from runtime.domain.value import JsonObject


def object_in(text: str | bytes) -> "JsonObject | None":
    """The object that a text is as JSON, or None where it is nothing of the kind."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def fields_of(source: "JsonObject") -> frozenset[str]:
    """The names of the fields that are there; one that is null is not."""
    return frozenset(name for name, value in source.items() if value is not None)


def text_of(source: "JsonObject", key: str) -> str:
    """The string of a field, or an empty one. Lone surrogates become question marks."""
    value = source.get(key)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def number_of(source: "JsonObject", key: str) -> int | None:
    """The integer of a field, which a boolean is not."""
    value = source.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def object_of(source: "JsonObject", key: str) -> "JsonObject":
    """The object of a field, or an empty one."""
    value = source.get(key)
    return value if isinstance(value, dict) else {}


def objects_of(source: "JsonObject", key: str) -> "list[JsonObject]":
    """The objects of a list; what else it holds is left out."""
    value = source.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
