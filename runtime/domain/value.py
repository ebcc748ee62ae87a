"""The base of values that cross a boundary: HTTP, storage payloads, tool arguments."""

from pydantic import BaseModel, ConfigDict, JsonValue

JsonObject = dict[str, JsonValue]


class Value(BaseModel):
    """A frozen pydantic model that refuses unknown fields, so that a typing error is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
