"""Items of a message as requests name them: words, small files and uploads (RUN-1, RUN-5). Pure."""

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from runtime.domain.errors import InvalidInput
from runtime.domain.value import HAS_WORDS, JsonSchema, Value
from runtime.intake.assets import AssetUse
from runtime.intake.settings import MAX_TEXT
from runtime.intake.submissions import Item
from runtime.intake.uploads import MAX_BYTES, Upload

MOST_ITEMS: Final = 50
_ENDS: Final = ("", "[A-Za-z0-9+/]{2}==", "[A-Za-z0-9+/]{3}=")
_BASE64: Final = "|".join(f"^(?:[A-Za-z0-9+/]{{4}})*{end}$" for end in _ENDS)
_MEDIA_TYPE: Final = r"^[A-Za-z0-9.+_-]{1,60}/[A-Za-z0-9.+_-]{1,60}$"
AssetId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")]


class TextItem(Value):
    """Words."""

    type: Literal["text"]
    text: str = Field(max_length=MAX_TEXT)


class InlineAsset(Value):
    """A small file, in base64."""

    type: Literal["inline_asset"]
    name: str = Field(default="file", min_length=1, max_length=255)
    media_type: str = Field(default="application/octet-stream", pattern=_MEDIA_TYPE)
    data: str = Field(
        max_length=MAX_BYTES * 4 // 3 + 8,
        json_schema_extra={"contentEncoding": "base64", "pattern": _BASE64},
    )


class AssetReference(Value):
    """A file that was uploaded before; ``name`` is another one for it in this message."""

    type: Literal["asset_reference"]
    asset_id: AssetId
    name: str | None = Field(default=None, min_length=1, max_length=255)


InputItem = Annotated[TextItem | InlineAsset | AssetReference, Field(discriminator="type")]
SAYS_SOMETHING: Final[JsonSchema] = {
    "contains": {
        "anyOf": [
            {"properties": {"type": {"enum": ["inline_asset", "asset_reference"]}}},
            {"properties": {"text": {"pattern": HAS_WORDS}}, "required": ["text"]},
        ]
    }
}
"""The JSON Schema of items of which one is a file or has words."""


def items_of(asked: Sequence[InputItem], field: str = "input_items") -> tuple[Item, ...]:
    """The items as the engine takes them; `field` is what a request calls them. Raises
    `InvalidInput`."""
    return tuple(_item(one, f"{field}.{place}") for place, one in enumerate(asked))


def _item(one: InputItem, field: str) -> Item:
    if isinstance(one, TextItem):
        return one.text
    if isinstance(one, AssetReference):
        return AssetUse(one.asset_id, one.name, f"{field}.asset_id")
    try:
        content = base64.b64decode(one.data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"{field}.data", "must be base64") from None
    return Upload(one.name, one.media_type, content, f"{field}.data")
