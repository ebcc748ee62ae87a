"""Messages between agents as programs send and see them (MBX-1, MBX-2). Pure."""

import json
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, field_validator, model_validator

from runtime.domain.value import HAS_WORDS, JsonObject, JsonSchema, Value, given
from runtime.intake.assets import AssetUse
from runtime.intake.input_items import (
    MOST_ITEMS,
    SAYS_SOMETHING,
    AssetId,
    AssetReference,
    InlineAsset,
    InputItem,
    TextItem,
    items_of,
)
from runtime.intake.submissions import Item

MOST_TEXT: Final = 20_000
MOST_DATA_BYTES: Final = 16 * 1024
MOST_TTL_MS: Final = 30 * 86_400_000
PayloadType = Literal["message", "task", "result", "signal"]


def _shown(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold a NUL character")
    return text


AgentId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")]
MessageId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$")]
Words = Annotated[str, Field(max_length=MOST_TEXT), AfterValidator(_shown)]
Line = Annotated[str, Field(max_length=200), AfterValidator(_shown)]


def _with(name: str, **more: JsonValue) -> JsonValue:
    """The JSON Schema of a payload without items, in which this field says something."""
    found = given(name, **more)
    return {**found, "properties": {**_fields(found), "input_items": {"type": "null"}}}


def _with_items(*names: str, **more: JsonValue) -> JsonValue:
    """That of a payload with items, beside which there is neither a text nor an upload."""
    found = given("input_items", **more)
    alone: JsonObject = {"text": {"type": "null"}, "asset_ids": {"maxItems": 0}}
    others: JsonObject = {name: {"not": {"type": "null"}} for name in names}
    return {
        "required": ["input_items", *names],
        "properties": {**_fields(found), **alone, **others},
    }


def _fields(schema: JsonSchema) -> JsonObject:
    found = schema["properties"]
    return found if isinstance(found, dict) else {}


_SAYS: Final[list[JsonValue]] = [
    _with("text", pattern=HAS_WORDS),
    _with("asset_ids", minItems=1),
    _with("data"),
    _with_items(**SAYS_SOMETHING),
    _with_items("data"),
]


class MailPayload(Value):
    """What a message says: ``text`` and the uploads of ``asset_ids``, or items in the order in
    which they are meant, or ``data`` for programs. ``type`` tells its reader what it is meant
    as."""

    model_config = ConfigDict(json_schema_extra={"anyOf": _SAYS})

    type: PayloadType
    text: Words | None = None
    asset_ids: tuple[AssetId, ...] = Field(default=(), max_length=MOST_ITEMS)
    input_items: tuple[InputItem, ...] | None = Field(
        default=None, min_length=1, max_length=MOST_ITEMS
    )
    data: JsonObject | None = None

    @field_validator("input_items")
    @classmethod
    def _short(cls, asked: tuple[InputItem, ...] | None) -> tuple[InputItem, ...] | None:
        texts = [one.text for one in asked or () if isinstance(one, TextItem)]
        if sum(map(len, texts)) > MOST_TEXT:
            raise ValueError(f"must have at most {MOST_TEXT:,} characters of text together")
        for text in texts:
            _shown(text)
        return asked

    @field_validator("data")
    @classmethod
    def _small(cls, data: JsonObject | None) -> JsonObject | None:
        if data is not None and len(json.dumps(data)) > MOST_DATA_BYTES:
            raise ValueError(f"must be at most {MOST_DATA_BYTES:,} bytes as JSON")
        return data

    @model_validator(mode="after")
    def _says_something(self) -> "MailPayload":
        items = self.input_items
        if items is not None and (self.text is not None or self.asset_ids):
            raise ValueError("give either text and asset_ids, or input_items")
        words = [self.text] if items is None else [getattr(one, "text", "a file") for one in items]
        said = self.asset_ids or any(one and one.strip() for one in words)
        if not said and self.data is None:
            raise ValueError("give text, asset_ids, input_items or data")
        return self

    def items(self) -> tuple[Item, ...]:
        """What it says, in order. Raises `InvalidInput`."""
        if self.input_items is not None:
            return items_of(self.input_items, "payload.input_items")
        uploads = (
            AssetUse(asset_id, field=f"payload.asset_ids.{place}")
            for place, asset_id in enumerate(self.asset_ids)
        )
        return (*(() if self.text is None else (self.text,)), *uploads)

    def kept(self) -> "KeptPayload":
        """The same without the contents of its files."""
        found = self.model_dump(exclude={"input_items"})
        if self.input_items is None:
            return KeptPayload.model_validate(found)
        items = tuple(map(_kept_item, self.input_items))
        return KeptPayload.model_validate({**found, "input_items": items})


class KeptFile(Value):
    """A file that came with a message. Its content is among the files of the agent that it is
    for."""

    type: Literal["inline_asset"]
    name: str
    media_type: str


KeptItem = Annotated[TextItem | KeptFile | AssetReference, Field(discriminator="type")]


class KeptPayload(Value):
    """What a message says, as it is kept and shown: as it was sent, without the contents of its
    files."""

    type: PayloadType
    text: str | None = None
    asset_ids: tuple[str, ...] = ()
    input_items: tuple[KeptItem, ...] | None = None
    data: JsonObject | None = None


def _kept_item(one: InputItem) -> KeptItem:
    if isinstance(one, InlineAsset):
        return KeptFile(type="inline_asset", name=one.name, media_type=one.media_type)
    return one


class Mail(Value):
    """One message to an agent's mailbox. Agents are named by the ids of their sessions. Without a
    ``message_id`` it gets one; of two messages that an agent sends with the same id, the first
    counts. After ``ttl_ms`` milliseconds nobody reads it any more."""

    model_config = ConfigDict(serialize_by_alias=True)

    message_id: MessageId | None = None
    sender: AgentId = Field(alias="from")
    to: AgentId
    subject: Line = ""
    ttl_ms: Annotated[int, Field(strict=True, ge=1, le=MOST_TTL_MS)] | None = None
    payload: MailPayload


class MailReceipt(Value):
    """``accepted``: the message is in the mailbox, or was there. ``duplicate``: it was there."""

    accepted: bool = True
    message_id: str
    duplicate: bool


class MailView(Value):
    """A message that waits. ``run_id`` is the run that is to read it."""

    model_config = ConfigDict(serialize_by_alias=True)

    message_id: str
    sender: str = Field(serialization_alias="from")
    to: str
    subject: str
    payload: KeptPayload
    sent_at_ms: int
    expires_at_ms: int | None
    run_id: str | None


class DeadLetterView(MailView):
    """A message that nobody read, and why."""

    reason: str
    dead_at_ms: int
