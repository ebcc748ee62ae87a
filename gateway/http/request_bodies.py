"""What requests may say: the models that their bodies are held to, and the reading of them."""

import base64
import binascii
import json
import re
from typing import Annotated, Literal, TypeVar

from aiohttp import web
from pydantic import Field, ValidationError, model_validator

from gateway.http.problems import BrokenBody, HttpProblem
from runtime.domain.decisions import PermissionMode, SessionMode
from runtime.domain.errors import InvalidInput
from runtime.domain.people import Trust
from runtime.domain.strict_json import NotStrict, read_json
from runtime.domain.value import Value
from runtime.intake.gatehouse import MAX_TEXT
from runtime.intake.submissions import Item
from runtime.intake.uploads import MAX_BYTES, Upload

V = TypeVar("V", bound=Value)
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_MEDIA_TYPE = r"^[A-Za-z0-9.+_-]{1,60}/[A-Za-z0-9.+_-]{1,60}$"


class SessionRequest(Value):
    """A new session; the same ``key`` of the same channel names the same session."""

    channel: Literal["web", "terminal", "api"] = "api"
    key: str | None = Field(default=None, min_length=1, max_length=128)
    title: str = Field(default="", max_length=200)
    mode: SessionMode | None = None
    permission_mode: PermissionMode | None = None


class TextItem(Value):
    """Words."""

    type: Literal["text"]
    text: str = Field(max_length=MAX_TEXT)


class InlineAsset(Value):
    """A small file, in base64."""

    type: Literal["inline_asset"]
    name: str = Field(default="file", min_length=1, max_length=255)
    media_type: str = Field(default="application/octet-stream", pattern=_MEDIA_TYPE)
    data: str = Field(max_length=MAX_BYTES * 4 // 3 + 8)


class AssetReference(Value):
    """A file that was uploaded before."""

    type: Literal["asset_reference"]
    asset_id: str = Field(max_length=100)


InputItem = Annotated[TextItem | InlineAsset | AssetReference, Field(discriminator="type")]


class RunRequest(Value):
    """Something to say: ``content``, or items in the order in which they are meant."""

    content: str | None = Field(default=None, max_length=MAX_TEXT)
    input_items: tuple[InputItem, ...] | None = Field(default=None, min_length=1, max_length=50)

    @model_validator(mode="after")
    def _one_of_both(self) -> "RunRequest":
        if (self.content is None) == (self.input_items is None):
            raise ValueError("give either content or input_items")
        return self

    def items(self) -> tuple[Item, ...]:
        """The items as the engine takes them. Raises `InvalidInput` or `HttpProblem`."""
        if self.content is not None:
            return (self.content,)
        return tuple(_item(one, place) for place, one in enumerate(self.input_items or ()))


def _item(one: InputItem, place: int) -> Item:
    field = f"input_items.{place}"
    if isinstance(one, TextItem):
        return one.text
    if isinstance(one, AssetReference):
        rule = "asset_reference needs the uploads of /v1/assets, which do not exist yet"
        raise HttpProblem(400, "bad_request", f"{field}.type: {rule}")
    try:
        content = base64.b64decode(one.data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"{field}.data", "must be base64") from None
    return Upload(one.name, one.media_type, content, f"{field}.data")


class ResolutionBody(Value):
    """One decision about one approval."""

    request_id: str = Field(max_length=64)
    behavior: Literal["allow", "deny"]
    scope: Literal["once", "session"] = "once"
    reason: str = Field(default="", max_length=2_000)


class ApprovalsRequest(Value):
    """Decisions that hold together or not at all."""

    resolutions: tuple[ResolutionBody, ...] = Field(min_length=1, max_length=50)


class ReplyBody(Value):
    """One answer to one question."""

    request_id: str = Field(max_length=64)
    text: str = Field(min_length=1, max_length=20_000)


class QuestionsRequest(Value):
    """Answers that hold together or not at all."""

    answers: tuple[ReplyBody, ...] = Field(min_length=1, max_length=50)


class RevisionRequest(Value):
    """What is to be another one in a session; what is left out stays."""

    title: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"\S")
    archived: bool | None = None


class RoutePolicyRequest(Value):
    """The model of a session, as ``provider:name``; one of ``/v1/models``."""

    model: str = Field(min_length=1, max_length=200)


class ModeRequest(Value):
    """The mode of a session."""

    mode: SessionMode


class PermissionModeRequest(Value):
    """The permission mode of a session; never wider than the operator's."""

    permission_mode: PermissionMode


class PersonaRequest(Value):
    """The persona of a session: the name of a folder in the workspace's ``personas/``."""

    persona: str = Field(max_length=200)


class QueueModeRequest(Value):
    """What happens to messages while a run works."""

    queue_mode: str = Field(max_length=20)


class PairingRequest(Value):
    """How a stranger is let in."""

    trust: Trust = Trust.MEMBER


async def body(request: web.Request, model: type[V]) -> V:
    """The request's JSON as `model`; no body at all is an empty object.

    Raises `HttpProblem` (400, 415), `InvalidInput` and `BrokenBody`.
    """
    raw = await request.read()
    if raw and request.content_type != "application/json":
        raise HttpProblem(415, "unsupported_media_type", "The body must be application/json.")
    try:
        found = read_json(raw) if raw else {}
        json.dumps(found, ensure_ascii=False).encode()
    except NotStrict as error:
        raise HttpProblem(400, "bad_request", f"body: {error}") from None
    except UnicodeEncodeError:
        raise HttpProblem(400, "bad_request", "body: must be one JSON object in UTF-8") from None
    if not isinstance(found, dict):
        raise HttpProblem(400, "bad_request", "body: must be one JSON object in UTF-8")
    if any("\x00" in text for text in _texts(found)):
        raise InvalidInput("body", "must not hold the character NUL")
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise BrokenBody(error, tuple(model.model_fields)) from None


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, one in value.items() for text in (*_texts(key), *_texts(one))]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    return []


def idempotency_key(request: web.Request) -> str | None:
    """The header ``Idempotency-Key``. Raises `InvalidInput`."""
    found = request.headers.get("Idempotency-Key")
    if found is not None and not _KEY.fullmatch(found):
        raise InvalidInput("Idempotency-Key", "must be 1 to 200 visible ASCII characters")
    return found
