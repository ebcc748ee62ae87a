"""What a provider's failure means: again, or never (MSG-18)."""

import pytest
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
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)

from adapters.models.faults import classify, host_of, retry_after_s
from runtime.domain.errors import ModelRejected, ModelRetry

NAME = "openai:some-model"


def http(status: int, headers: dict[str, str] | None = None) -> ModelHTTPError:
    return ModelHTTPError(status, "some-model", {"message": "words"}, headers=headers)


@pytest.mark.requirement("MSG-18")
@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529, 599])
def test_these_statuses_are_worth_another_try(status: int) -> None:
    assert isinstance(classify(http(status), model=NAME), ModelRetry)


@pytest.mark.requirement("MSG-18")
def test_what_is_worth_another_try_says_who_was_asked_where_and_what_came() -> None:
    found = classify(http(503), model=NAME, host="h:1")
    assert isinstance(found, ModelRetry)
    assert (found.model, found.host, found.status) == (NAME, "h:1", 503)
    away = classify(ModelAPIError("m", "away"), model=NAME)
    assert isinstance(away, ModelRetry)
    assert away.status == 0


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user:made-up@models.example:8443/secret/v1?key=x", "models.example:8443"),
        ("http://[::1]:11434/v1/", "[::1]:11434"),
        ("https://api.example", "api.example"),
        (None, ""),
    ],
)
def test_of_an_address_only_its_host_is_told(url: str | None, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.requirement("MSG-18")
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 410, 413, 422, 451])
def test_authentication_and_other_statuses_are_not(status: int) -> None:
    error = classify(http(status), model=NAME)
    assert isinstance(error, ModelRejected)
    assert "words" not in error.public
    assert NAME in error.public


@pytest.mark.requirement("MSG-18")
@pytest.mark.parametrize(
    "error",
    [
        ModelConnectionError("some-model", "refused"),
        ModelTimeoutError("some-model", "too slow"),
        ModelOverloadedError("some-model", "overloaded"),
        ModelHTTPError.for_category(
            ModelOverloadedError, status_code=400, model_name="some-model", in_stream=True
        ),
        ModelRateLimitError("some-model", "in the stream", in_stream=True),
        ModelAPIError("some-model", "a broken event"),
        UnexpectedModelBehavior("the stream ended"),
        ConnectionResetError("reset"),
        TimeoutError(),
        ValueError("no JSON"),
    ],
)
def test_network_timeout_overload_and_broken_streams_are_worth_another_try(
    error: Exception,
) -> None:
    assert isinstance(classify(error, model=NAME), ModelRetry)


@pytest.mark.requirement("MSG-18")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModelAuthenticationError("some-model", "no"), "refused the request"),
        (ModelContextWindowExceededError("some-model", "no"), "too long"),
        (ModelQuotaExceededError("some-model", "no"), "no credit left"),
        (ContentFilterError("no"), "refused the content"),
        (UserError("no"), "refused the request"),
        (http(401), "did not accept the gateway's key"),
        (http(404), "does not know the model"),
    ],
)
def test_a_person_is_told_what_is_wrong_in_our_words(error: Exception, words: str) -> None:
    rejected = classify(error, model=NAME)
    assert isinstance(rejected, ModelRejected)
    assert words in rejected.public


@pytest.mark.requirement("MSG-18")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After-Ms": "250", "Retry-After": "7"}, 0.25),
        (
            {
                "Date": "Fri, 20 Nov 2026 10:00:00 GMT",
                "Retry-After": "Fri, 20 Nov 2026 10:00:42 GMT",
            },
            42.0,
        ),
        (
            {
                "Date": "Fri, 20 Nov 2026 10:00:00 GMT",
                "Retry-After": "Fri, 20 Nov 2026 09:59:00 GMT",
            },
            0.0,
        ),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "soon", "Date": "yesterday"}, None),
        ({}, None),
    ],
)
def test_the_time_to_wait_is_read_from_the_headers(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_s(http(429, headers)) == seconds


def test_a_wait_that_stands_in_the_body_is_taken_where_no_header_says_one() -> None:
    assert retry_after_s(ModelRateLimitError("some-model", "slow", retry_after=3.0)) == 3.0


def test_no_key_reaches_the_log() -> None:
    body = "key my-own-secret, sk-proj-abcdef123456, AIzaSyA1234567890, Bearer abc.def, ?key=zzz"
    error = ModelHTTPError(401, "some-model", body)
    reason = classify(error, model=NAME, secrets=("my-own-secret",)).reason
    for secret in ("my-own-secret", "abcdef", "AIza", "abc.def", "zzz"):
        assert secret not in reason
    assert reason.startswith("openai:some-model: HTTP 401")


def test_a_reason_is_short() -> None:
    assert len(classify(ModelAPIError("m", "x" * 10_000), model=NAME).reason) <= 300
