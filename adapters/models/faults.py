"""What a provider's failure means for the caller: try again, or do not, and why (MSG-18, MDL-6).

The provider's own words go into ``reason``, for logs, shortened and with keys masked; a person is
shown a sentence of ours.
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelTimeoutError,
    UserError,
)

from runtime.domain.errors import ModelCause, ModelRejected, ModelRetry

RETRYABLE: Final = frozenset({408, 409, 425, 429})
_TOO_LONG_STATUSES: Final = frozenset({400, 422, 500})
_CONTENT_STATUSES: Final = frozenset({400, 403, 413, 415, 422, 451})
_CONTENT: Final[frozenset[ModelCause]] = frozenset({"filter", "too_long", "request"})
"""What is answered to a request whose content is not taken."""
_AGAIN: Final[frozenset[ModelCause]] = frozenset({"unreached", "timeout", "error", "busy", "cut"})
_TOO_LONG: Final = re.compile(
    r"exceed_context|context_length|context[ _-]?(?:window|length|size)|n_ctx|prompt is too long"
    r"|input is too long|too many (?:input )?tokens|token limit|tokens? (?:count )?.{0,30}exceed"
    r"|reduce the length|maximum number of tokens|too large for model|prompt too long"
)
_LIMITS: Final = (
    re.compile(r"maximum context length (?:is|of) (\d+)"),
    re.compile(r"[\"']?n_ctx[\"']?\W{1,4}(\d+)"),
    re.compile(r"context (?:length|window|size)[^\d]{0,40}(\d+)"),
    re.compile(r"> ?(\d+) (?:token )?maximum"),
    re.compile(r"maximum number of tokens allowed \(?(\d+)"),
    re.compile(r"token limit:? ?(\d+)"),
    re.compile(r"(\d+) maximum context length"),
    re.compile(r"maximum (?:of )?(\d+) tokens"),
)
_ASKED: Final = (
    re.compile(r"[\"']?n_prompt_tokens[\"']?\W{1,4}(\d+)"),
    re.compile(r"\((\d+) (?:tokens )?in (?:the )?(?:messages|prompt)"),
    re.compile(r"(?:prompt|input)(?: contains| is too long:| token count(?: is)?)[^\d]{0,12}(\d+)"),
    re.compile(r"requested:? (?:about )?(\d+)"),
    re.compile(r"resulted in (\d+) tokens"),
    re.compile(r"request (?:has|of|is) \(?(\d+) tokens"),
)
_FILTERED: Final = re.compile(
    r"content[_ -]?(?:filter|policy|management)|responsible ?ai|moderation|data_inspection"
    r"|content_policy|safety|sensitive|inappropriate|high risk"
)
_ADDRESS: Final = re.compile(
    r"unexpected endpoint|no such (?:route|endpoint)|endpoint not found|page not found|<html"
    r"|<!doctype|invalid url|cannot post"
    r"|^[{'\": ]*(?:(?:detail|message|error)['\": ]+)?not found\W*$"
)
"""What servers answer to a path that they do not have, in place of a model."""
_REASON_LENGTH: Final = 300
_SHORTEST_KEY: Final = 6  # a shorter one is no key, and would take the words apart
_KEY_SHAPED: Final = re.compile(
    r"(?:sk|pk|rk|key|xai|gsk)-[\w*.-]{6,}|AIza[\w*-]{10,}|(?<=Bearer )\S+|(?<=[?&]key=)[^&\s]+"
)


def classify(
    error: Exception,
    *,
    model: str,
    host: str = "",
    secrets: tuple[str, ...] = (),
    timeout_s: float = 0.0,
) -> ModelRetry | ModelRejected:
    """The domain error for what a request to `model` raised, which is asked at `host` and waited
    for `timeout_s` for each piece."""
    reason = _reason(error, model=model, secrets=secrets)
    cause = cause_of(error)
    if cause in _AGAIN:
        status = error.status_code if isinstance(error, ModelHTTPError) else 0
        return ModelRetry(
            reason,
            retry_after_s(error),
            model=model,
            host=host,
            status=status,
            cause=cause,
            waited_s=timeout_s,
        )
    said = _text_of(error)
    return ModelRejected(
        reason,
        _public(cause, model=model),
        content=cause in _CONTENT,
        cause=cause,
        limit=_number_of(_LIMITS, said) if cause == "too_long" else 0,
        asked=_number_of(_ASKED, said) if cause == "too_long" else 0,
    )


class NotAModelServer(ValueError):
    """What answered was no model server: a page, or an error about the address."""


_KINDS: Final[tuple[tuple[tuple[type[Exception], ...], ModelCause], ...]] = (
    ((NotAModelServer,), "not_a_model"),
    ((ContentFilterError,), "filter"),
    ((UserError,), "request"),
    ((ModelQuotaExceededError,), "credit"),
    ((ModelOverloadedError, ModelRateLimitError), "busy"),
    ((ModelContextWindowExceededError,), "too_long"),
)
"""Kinds of errors that say more than a status does."""
_OTHER_KINDS: Final[tuple[tuple[tuple[type[Exception], ...], ModelCause], ...]] = (
    ((ModelAuthenticationError,), "key"),
    ((ModelTimeoutError, TimeoutError), "timeout"),
    ((ModelRequestRejectedError,), "request"),
    ((ModelConnectionError, OSError), "unreached"),
)


def cause_of(error: Exception) -> ModelCause:
    """Why a request failed, by the kind of the error, its status and what the provider said."""
    for kinds, cause in _KINDS:
        if isinstance(error, kinds):
            return cause
    if isinstance(error, ModelHTTPError):
        return _cause_of_status(error.status_code, error)
    found = (cause for kinds, cause in _OTHER_KINDS if isinstance(error, kinds))
    # What was neither refused nor away was a stream that broke.
    return next(found, "cut")


def _cause_of_status(status: int, error: ModelHTTPError) -> ModelCause:
    said = _text_of(error)
    if status == 413 or (status in _TOO_LONG_STATUSES and _TOO_LONG.search(said)):
        return "too_long"
    if status == 402:
        return "credit"
    if status == 429:
        return "busy"
    if status in RETRYABLE or status >= 500:
        return "error"
    if status in _CONTENT_STATUSES and _FILTERED.search(said):
        return "filter"
    if status in (401, 403):
        return "key"
    if status in (404, 405):
        elsewhere = status == 405 or _ADDRESS.search(str(error.body or "").lower().strip())
        return "not_a_model" if elsewhere else "unknown_model"
    return "request"


def _text_of(error: Exception) -> str:
    """What a provider said, in small letters and without the commas of its numbers."""
    body = error.body if isinstance(error, ModelHTTPError) else ""
    text = f"{error} {body or ''}"[:4000].lower()
    return re.sub(r"(?<=\d),(?=\d{3})", "", text)


def _number_of(patterns: tuple[re.Pattern[str], ...], said: str) -> int:
    """The first number that one of the patterns finds, 0 for none."""
    found = (match for pattern in patterns if (match := pattern.search(said)))
    return next((int(match[1][:12]) for match in found), 0)


def host_of(url: str | None) -> str:
    """The host of an address with its port, if it names one; nothing else of it, because a path
    and credentials may be secret."""
    parts = urlsplit(url or "")
    return parts.netloc.rpartition("@")[2]


def retry_after_s(error: Exception) -> float | None:
    """How long the provider asked to wait, in seconds; a date counts from its own clock."""
    if not isinstance(error, ModelAPIError):
        return None
    headers: Mapping[str, str] = error.headers or {} if isinstance(error, ModelHTTPError) else {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(headers.get(name))
        if seconds is not None:
            return seconds * unit
    waited = _between(headers.get("date"), headers.get("retry-after"))
    return error.retry_after if waited is None else waited


def mask(text: str, secrets: tuple[str, ...]) -> str:
    """The text without the given keys and without what looks like one."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_KEY:
            text = text.replace(secret, "***")
    return _KEY_SHAPED.sub("***", text)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _between(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    try:
        seconds = (parsedate_to_datetime(end) - parsedate_to_datetime(start)).total_seconds()
    except (TypeError, ValueError):
        return None
    return max(0.0, seconds)


def _reason(error: Exception, *, model: str, secrets: tuple[str, ...]) -> str:
    kind = type(error).__name__.removeprefix("_HTTP")
    if isinstance(error, ModelHTTPError):
        kind = f"HTTP {error.status_code} {error.provider_error_code or ''}".rstrip()
    text = " ".join(str(error).split())
    return mask(f"{model}: {kind}: {text}", secrets)[:_REASON_LENGTH]


_PUBLIC: Final[dict[ModelCause, str]] = {
    "key": "The provider of {model} did not accept the gateway's key. "
    "The operator can look into it with `gatehouse doctor`; `/model` lists other models.",
    "credit": "The account that pays for {model} has no credit left. Whoever runs me can add some; "
    "`/model` lists other models.",
    "unknown_model": "The provider does not know the model {model}. `/model` lists those that "
    "can be chosen.",
    "not_a_model": "What answers at the address of {model} is no model server, but perhaps a web "
    "page or another program. Whoever runs me can check the address (does it end in /v1?) with "
    "`gatehouse doctor`.",
    "filter": "The provider of {model} refused the content of your message, so I leave the message "
    "out from now on. Put it differently, or choose another model with `/model`.",
    "too_long": "Your message is too long for {model}. Send less at once, or choose a model with "
    "more room with `/model`.",
    "request": "The provider of {model} refused the request, so I leave your message out from now "
    "on. Please put it differently; `/new` begins a fresh conversation, and `/model` lists other "
    "models.",
}


def _public(cause: ModelCause, *, model: str) -> str:
    """For people: where the model is, is for its owner alone (MSG-14)."""
    return _PUBLIC[cause].format(model=model)
