"""What requests may say: the models that their bodies are held to, and the reading of them."""

import json
import re
from typing import Annotated, Final, Literal, TypeVar

from aiohttp import web
from pydantic import Field, JsonValue, ValidationError, model_validator

from gateway.http.problems import BrokenBody, HttpProblem
from runtime.domain.decisions import PermissionMode, SessionMode
from runtime.domain.errors import InvalidInput
from runtime.domain.people import Trust
from runtime.domain.routes import RoutePolicy
from runtime.domain.strict_json import NotStrict, read_json
from runtime.domain.value import HAS_WORDS, Value, any_of, one_of
from runtime.features.schedules.cadence import Zone
from runtime.intake.input_items import MOST_ITEMS, SAYS_SOMETHING, InputItem, items_of
from runtime.intake.settings import MAX_TEXT
from runtime.intake.submissions import Item
from runtime.workspace.personas import PERSONA_NAME

V = TypeVar("V", bound=Value)
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_EXACT: Final = 2.0**53
"""Up to here each whole number is a double."""


class Nothing(Value):
    """A request that says nothing: no body, or an empty object."""


class SessionRequest(Value):
    """A new session; the same ``key`` of the same channel names the same session."""

    channel: Literal["web", "terminal", "api"] = "api"
    key: str | None = Field(default=None, min_length=1, max_length=128)
    title: str = Field(default="", max_length=200)
    mode: SessionMode | None = None
    permission_mode: PermissionMode | None = None


class RunRequest(Value):
    """Something to say: ``content``, or items in the order in which they are meant. ``timezone`` is
    the IANA zone of whoever says it."""

    model_config = one_of("content", "input_items")

    content: (
        Annotated[
            str,
            Field(min_length=1, max_length=MAX_TEXT, json_schema_extra={"pattern": HAS_WORDS}),
        ]
        | None
    ) = None
    input_items: (
        Annotated[
            tuple[InputItem, ...],
            Field(min_length=1, max_length=MOST_ITEMS, json_schema_extra=SAYS_SOMETHING),
        ]
        | None
    ) = None
    timezone: Zone | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "RunRequest":
        if (self.content is None) == (self.input_items is None):
            raise ValueError("give either content or input_items")
        return self

    def items(self) -> tuple[Item, ...]:
        """The items as the engine takes them. Raises `InvalidInput`."""
        if self.content is not None:
            return (self.content,)
        return items_of(self.input_items or ())


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


class RoutePolicyRequest(RoutePolicy):
    """The model of a session, one of ``/v1/models``, and how it writes. The model is named as
    ``provider:name`` in ``model``, or in two parts."""

    model_config = any_of("model", "generation")

    @model_validator(mode="after")
    def _says_something(self) -> "RoutePolicyRequest":
        if self.model is None and self.generation is None and self.provider is None:
            raise ValueError("give a model, a generation or both")
        return self


class ModeRequest(Value):
    """The mode of a session."""

    mode: SessionMode


class PermissionModeRequest(Value):
    """The permission mode of a session; never wider than the operator's."""

    permission_mode: PermissionMode


class PersonaRequest(Value):
    """The persona of a session: the name of a folder in the workspace's ``personas/``."""

    persona: str = Field(max_length=200, json_schema_extra={"pattern": PERSONA_NAME})


class QueueModeRequest(Value):
    """What happens to messages while a run works."""

    queue_mode: Literal["followup", "collect", "steer", "interrupt"]


class PairingRequest(Value):
    """How a stranger is let in."""

    trust: Literal[Trust.OWNER, Trust.MEMBER, Trust.GUEST] = Trust.MEMBER


async def read_body(request: web.Request, model: type[V]) -> V:
    """The request's JSON as `model`; no body at all is an empty object.

    Raises `HttpProblem` (400, 415), `InvalidInput` and `BrokenBody`.
    """
    raw = await request.read()
    if raw and request.content_type != "application/json":
        raise HttpProblem(415, "unsupported_media_type", "The body must be application/json.")
    try:
        found = _with_whole_numbers(read_json(raw)) if raw else {}
        text = json.dumps(found, ensure_ascii=False).encode()
    except NotStrict as error:
        raise HttpProblem(400, "bad_request", f"body: {error}") from None
    except UnicodeEncodeError:
        raise HttpProblem(400, "bad_request", "body: must be one JSON object in UTF-8") from None
    if not isinstance(found, dict):
        raise HttpProblem(400, "bad_request", "body: must be one JSON object in UTF-8")
    if any("\x00" in text for text in _texts(found)):
        raise InvalidInput("body", "must not hold the character NUL")
    try:
        # Strict: 0 is no false, and "5" is no 5.
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise BrokenBody(error, model, found) from None


def _with_whole_numbers(value: JsonValue) -> JsonValue:
    """The same value with 5.0 as 5, which JSON does not tell apart."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: _with_whole_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(one) for one in value]
    return value


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
