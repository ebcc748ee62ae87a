"""The base of values that cross a boundary: HTTP, storage payloads, tool arguments."""

from typing import Final

from pydantic import BaseModel, ConfigDict, JsonValue

JsonObject = dict[str, JsonValue]
JsonSchema = dict[str, JsonValue]
HAS_WORDS: Final = r"[^\s\x1c-\x1f]"
"""The pattern of a text of which `str.strip` leaves something. It counts the four separators of
ASCII as white space, and regular expressions do not."""


class Value(BaseModel):
    """A frozen pydantic model that refuses unknown fields, so that a typing error is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def given(name: str, **more: JsonValue) -> JsonSchema:
    """The JSON Schema of an object in which a field is not null, and holds to `more`."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}, **more}}}


def one_of(*names: str, **more: JsonValue) -> ConfigDict:
    """What a model says in its JSON Schema of fields that may all be null by themselves: exactly
    one of them is given; and `more` keywords. A validator holds to it."""
    return ConfigDict(json_schema_extra={"oneOf": [given(name) for name in names], **more})


def any_of(*names: str) -> ConfigDict:
    """What a model says in its JSON Schema of fields that may all be null by themselves: at least
    one is given. A validator holds to it."""
    return ConfigDict(json_schema_extra={"anyOf": [given(name) for name in names]})


def tagged() -> ConfigDict:
    """What a model of a discriminated union says in its JSON Schema: its ``type`` must be given,
    also where code may leave it out."""

    def add(schema: JsonSchema) -> None:
        required = schema.get("required")
        others = required if isinstance(required, list) else []
        schema["required"] = ["type", *(name for name in others if name != "type")]

    return ConfigDict(json_schema_extra=add)
