"""What a provider's failure means for the caller: try again, or do not (MSG-18).

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
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UserError,
)

from runtime.domain.errors import ModelRejected, ModelRetry

RETRYABLE: Final = frozenset({408, 409, 425, 429})
_CONTENT: Final = frozenset({400, 404, 413, 415, 422})
"""What is answered to a request whose content is not taken; 404 is OpenRouter's for pictures."""
_REASON_LENGTH: Final = 300
_SHORTEST_KEY: Final = 6  # a shorter one is no key, and would take the words apart
_KEY_SHAPED: Final = re.compile(
    r"(?:sk|pk|rk|key|xai|gsk)-[\w*.-]{6,}|AIza[\w*-]{10,}|(?<=Bearer )\S+|(?<=[?&]key=)[^&\s]+"
)


def classify(
    error: Exception, *, model: str, host: str = "", secrets: tuple[str, ...] = ()
) -> ModelRetry | ModelRejected:
    """The domain error for what a request to `model` raised, which is asked at `host`."""
    reason = _reason(error, model=model, secrets=secrets)
    if _worth_repeating(error):
        status = error.status_code if isinstance(error, ModelHTTPError) else 0
        return ModelRetry(reason, retry_after_s(error), model=model, host=host, status=status)
    refused = isinstance(error, ModelHTTPError) and error.status_code in _CONTENT
    return ModelRejected(
        reason, _public(error, model=model), content=refused or isinstance(error, UserError)
    )


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


def _worth_repeating(error: Exception) -> bool:
    if isinstance(error, ModelOverloadedError):
        return True
    if isinstance(error, ModelHTTPError):
        return error.status_code in RETRYABLE or error.status_code >= 500
    refused = (ModelRequestRejectedError, ModelQuotaExceededError, ContentFilterError, UserError)
    return not isinstance(error, refused)


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


def _public(error: Exception, *, model: str) -> str:
    status = error.status_code if isinstance(error, ModelHTTPError) else 0
    if isinstance(error, ModelContextWindowExceededError):
        return f"The conversation has become too long for {model}."
    if isinstance(error, ModelQuotaExceededError) or status == 402:
        return f"The account that pays for {model} has no credit left."
    if status in (401, 403):
        return (
            f"The provider of {model} did not accept the gateway's key. "
            "The operator can look into it with `gatehouse doctor`."
        )
    if status == 404:
        return f"The provider does not know the model {model}."
    if isinstance(error, ContentFilterError):
        return f"The provider of {model} refused the content of this conversation."
    return f"The provider of {model} refused the request."
