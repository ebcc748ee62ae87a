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

from adapters.models.faults import NotAModelServer, classify, host_of, retry_after_s
from runtime.domain.errors import ModelCause, ModelRejected, ModelRetry

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
        (ModelAuthenticationError("some-model", "no"), "did not accept the gateway's key"),
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


REFUSALS: list[tuple[int, object, ModelCause]] = [
    (400, "This model's maximum context length is 16384 tokens.", "too_long"),
    (400, {"error": {"code": "context_length_exceeded", "message": "no"}}, "too_long"),
    (400, {"error": {"type": "exceed_context_size_error", "n_ctx": 4096}}, "too_long"),
    (400, "prompt is too long: 213462 tokens > 200000 maximum", "too_long"),
    (413, "Payload Too Large", "too_long"),
    (400, {"error": {"code": "content_filter", "message": "no"}}, "filter"),
    (400, "Input data may contain inappropriate content. data_inspection_failed", "filter"),
    (403, {"error": {"message": "flagged by moderation"}}, "filter"),
    (401, "no", "key"),
    (403, "no", "key"),
    (402, "no", "credit"),
    (404, {"error": {"message": "The model `x` does not exist"}}, "unknown_model"),
    (404, 'model "x" not found, try pulling it first', "unknown_model"),
    (404, {"detail": "Not Found"}, "not_a_model"),
    (404, "404 page not found", "not_a_model"),
    (404, "<html><title>404</title></html>", "not_a_model"),
    (405, "Method Not Allowed", "not_a_model"),
    (429, "slow down", "busy"),
    (503, "loading", "error"),
    (500, "oops", "error"),
    (422, "a field is wrong", "request"),
]


@pytest.mark.requirement("MDL-6")
@pytest.mark.parametrize(("status", "body", "cause"), REFUSALS)
def test_each_way_to_fail_has_its_cause(status: int, body: object, cause: ModelCause) -> None:
    assert classify(ModelHTTPError(status, "some-model", body), model=NAME).cause == cause


@pytest.mark.requirement("MDL-6")
@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ModelConnectionError("some-model", "refused"), "unreached"),
        (ConnectionResetError("reset"), "unreached"),
        (ModelTimeoutError("some-model", "too slow"), "timeout"),
        (TimeoutError(), "timeout"),
        (ModelOverloadedError("some-model", "overloaded"), "busy"),
        (ModelRateLimitError("some-model", "slow"), "busy"),
        (UnexpectedModelBehavior("the stream ended"), "cut"),
        (ValueError("no JSON"), "cut"),
        (NotAModelServer("a page"), "not_a_model"),
        (ModelQuotaExceededError("some-model", "no"), "credit"),
        (ContentFilterError("no"), "filter"),
    ],
)
def test_what_is_no_status_has_its_cause_too(error: Exception, cause: ModelCause) -> None:
    assert classify(error, model=NAME).cause == cause


@pytest.mark.requirement("MDL-6")
def test_each_cause_that_is_final_has_a_sentence_of_its_own_with_a_way_out() -> None:
    said = {}
    for status, body, _ in REFUSALS:
        error = classify(ModelHTTPError(status, "some-model", body), model=NAME, host="h:1")
        if isinstance(error, ModelRejected):
            said.setdefault(error.cause, error.public)
    assert len(set(said.values())) == len(said) == 7
    for cause, public in said.items():
        assert any(way in public for way in ("/model", "/new", "doctor")), cause


@pytest.mark.requirement("MDL-5")
@pytest.mark.parametrize(
    ("body", "limit", "asked"),
    [
        (
            "This model's maximum context length is 16384 tokens. However, you requested 20000 "
            "tokens (12000 in the messages, 8000 in the completion).",
            16384,
            12000,
        ),
        (
            "This model's maximum context length is 8,192 tokens. However, your messages resulted "
            "in 9,001 tokens.",
            8192,
            9001,
        ),
        (
            {
                "error": {
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 5000,
                    "n_ctx": 4096,
                }
            },
            4096,
            5000,
        ),
        ("prompt is too long: 213462 tokens > 200000 maximum", 200000, 213462),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed "
            "(1048576).",
            1048576,
            1200000,
        ),
        (
            "The number of tokens to keep is greater than the context length of only 4096 tokens",
            4096,
            0,
        ),
        ("Your request exceeded model token limit: 8192 (requested: 12000)", 8192, 12000),
        ("Please reduce the length of the messages or completion.", 0, 0),
    ],
)
def test_the_sizes_are_read_from_what_a_provider_says(body: object, limit: int, asked: int) -> None:
    error = classify(ModelHTTPError(400, "some-model", body), model=NAME)
    assert isinstance(error, ModelRejected)
    assert (error.cause, error.limit, error.asked) == ("too_long", limit, asked)


def test_a_reason_is_short() -> None:
    assert len(classify(ModelAPIError("m", "x" * 10_000), model=NAME).reason) <= 300
