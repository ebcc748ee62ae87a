"""Rows of servers that refuse, break off or say nothing, see `model_rows`."""

import json
from collections.abc import Iterator
from typing import Final

from tests.wire.model_calls import A, told, writing
from tests.wire.model_rows import THOUGHT, Row, messages_of, text_of
from tests.wire.openai import Prompt
from tests.wire.raw_answers import (
    DONE,
    End,
    Raw,
    Wait,
    answer,
    choice,
    event,
    fragment,
    page,
    refusal,
    sse,
    stop,
    whole,
    words,
)

_GOOD: Final = answer("It is ", "noon.")
_MOST_CHARACTERS: Final = 20_000
"""Of a conversation, where the window is small."""


def has_lists(prompt: Prompt) -> bool:
    """Whether a message without a picture has a list for its content."""
    return any(
        isinstance(content, list) and not any("image_url" in str(part) for part in content)
        for content in (message.get("content") for message in messages_of(prompt))
    )


def has_picture(prompt: Prompt) -> bool:
    """Whether there is a picture anywhere."""
    return '"image_url"' in prompt.text


def is_long(prompt: Prompt) -> bool:
    """Whether what was said is too much for a small window."""
    spoken = (text_of(one) for one in messages_of(prompt) if one.get("role") != "system")
    return sum(map(len, spoken)) > _MOST_CHARACTERS


def _called(prompt: Prompt) -> Iterator[dict[str, object]]:
    return (one for one in messages_of(prompt) if one.get("tool_calls"))


def lacks_thoughts(prompt: Prompt) -> bool:
    """Whether a call came back without the thoughts that it was made with."""
    return any(message.get("reasoning_content") != THOUGHT for message in _called(prompt))


def lacks_signature(prompt: Prompt) -> bool:
    """Whether a call came back without its signature."""
    return any('"made-up-signature"' not in json.dumps(message) for message in _called(prompt))


_SIGNED: Final = choice(
    {
        "role": "assistant",
        "tool_calls": [
            {
                "index": 0,
                "id": "function-call-1",
                "type": "function",
                "function": {"name": "read_file", "arguments": A},
                "extra_content": {"google": {"thought_signature": "made-up-signature"}},
            }
        ],
    }
)
_FULL: Final = {
    "openai": refusal(
        "This model's maximum context length is 16385 tokens. However, your messages resulted in "
        "19872 tokens. Please reduce the length of the messages.",
        param="messages",
        code="context_length_exceeded",
    ),
    "vllm": whole(
        {
            "object": "error",
            "message": "This model's maximum context length is 16384 tokens. However, you "
            "requested 19872 tokens (11680 in the messages, 8192 in the completion). Please "
            "reduce the length of the messages or completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        400,
    ),
    "llama-cpp": whole(
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 19872,
                "n_ctx": 16384,
            }
        },
        400,
    ),
}
_FILTERED: Final = refusal(
    "The response was filtered due to the prompt triggering the content management policy. Please "
    "modify your prompt and retry.",
    type=None,
    param="prompt",
    code="content_filter",
    status=400,
    innererror={
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
    },
)

FORMS: Final = (
    Row(
        key="thoughts-wanted",
        server="400 unless a call comes back with the thoughts that it was made with",
        plays=(
            sse(
                choice({"role": "assistant", "reasoning_content": THOUGHT, "content": None}),
                fragment(A, name="read_file", identifier="read_file:0"),
                stop("tool_calls"),
            ),
            told,
        ),
        refuses=(
            (
                lacks_thoughts,
                refusal(
                    "thinking is enabled but reasoning_content is missing in assistant tool call "
                    "message at index 2"
                ),
            ),
        ),
        reads="I called read_file a and got 1.",
        requests=2,
    ),
    Row(
        key="signature-wanted",
        server="400 unless a call comes back with its signature",
        plays=(sse(_SIGNED, stop("tool_calls")), told),
        refuses=(
            (
                lacks_signature,
                refusal(
                    "Function call is missing a thought_signature in functionCall parts.",
                    code=400,
                    status="INVALID_ARGUMENT",
                ),
            ),
        ),
        reads="I called read_file a and got 1.",
        requests=2,
    ),
    Row(
        key="text-only-content",
        server="400 if a message without a picture has a list of parts",
        refuses=((has_lists, refusal("messages[1].content must be a string")),),
    ),
    Row(
        key="no-stream-options",
        server="422 if `stream_options` is there",
        refuses=(
            (
                lambda prompt: "stream_options" in prompt.body,
                whole(
                    {
                        "detail": [
                            {
                                "type": "extra_forbidden",
                                "loc": ["body", "stream_options"],
                                "msg": "Extra inputs are not permitted",
                            }
                        ]
                    },
                    422,
                ),
            ),
        ),
        requests=None,
    ),
    Row(
        key="no-tools",
        server="400 if there are tools",
        refuses=(
            (
                lambda prompt: "tools" in prompt.body,
                refusal("registry.example/tiny:latest does not support tools"),
            ),
        ),
        reads="*It is noon.*",
        requests=None,
    ),
    Row(
        key="no-pictures",
        server="500 if there is a picture anywhere",
        refuses=(
            (
                has_picture,
                refusal(
                    "image input is not supported - hint: if this is unexpected, you may need to "
                    "provide the mmproj",
                    500,
                    type="server_error",
                ),
            ),
        ),
        reads="*It is noon.*",
        requests=None,
        picture=True,
    ),
    *(
        Row(
            key=f"full-{name}",
            server=f"400 in the words of {words_of} when three long messages fill the window",
            refuses=((is_long, _FULL[name]),),
            reads="*It is noon.*",
            requests=None,
            long=True,
            before=2,
        )
        for name, words_of in (
            ("openai", "OpenAI"),
            ("vllm", "vLLM"),
            ("llama-cpp", "llama.cpp"),
        )
    ),
    Row(
        key="filtered-message",
        server="400 `content_filter` for one message, as long as it is in the prompt",
        refuses=((lambda prompt: "Please play filtered-message" in prompt.text, _FILTERED),),
        reads="*refused the content*",
    ),
)

_SHAPES: Final[dict[str, tuple[str, bytes]]] = {
    "object": (
        "an object",
        b'data: {"error": {"message": "out of memory", "type": "server_error", "code": 500}}\n\n',
    ),
    "text": ("a text", b'data: {"error": "out of memory"}\n\n'),
    "event": (
        "an event of that name",
        b'event: error\ndata: {"error": {"message": "out of memory"}}\n\n',
    ),
    "vllm": (
        "vLLM's object without a frame",
        b'data: {"object": "error", "message": "out of memory", "type": "InternalServerError", '
        b'"param": null, "code": 500}\n\n',
    ),
    "openrouter": (
        "an object beside a choice that ends with `error`",
        event(
            error={"code": 502, "message": "Provider disconnected"},
            choices=[{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
        ),
    ),
    "line": ("a line that is no event", b'error: {"code": 500, "message": "out of memory"}\n\n'),
    "detail": ("a detail", b'data: {"detail": "out of memory"}\n\n'),
}
ERRORS: Final = tuple(
    Row(
        key=f"error-{key}",
        server=f"an error in the middle of the stream, as {shape}; then answers",
        plays=(sse(words("It is "), data), _GOOD),
        requests=2,
    )
    for key, (shape, data) in _SHAPES.items()
)

_HALF: Final = fragment(writing("half")[:-8], name="write_file", identifier="c1")
CONNECTIONS: Final = (
    Row(
        key="reset-in-text",
        server="resets the connection in the middle of the text, then answers",
        plays=(sse(words("It is "), End("reset")), _GOOD),
        requests=2,
    ),
    Row(
        key="closed-in-text",
        server="closes the connection in the middle of the text, then answers",
        plays=(sse(words("It is "), End("close")), _GOOD),
        requests=2,
    ),
    Row(
        key="reset-in-arguments",
        server="resets the connection in the arguments of a call, then answers",
        plays=(sse(_HALF, End("reset")), _GOOD),
        requests=2,
    ),
    Row(
        key="closed-in-arguments",
        server="closes the connection in the arguments of a call, then answers",
        plays=(sse(_HALF, End("close")), _GOOD),
        requests=2,
    ),
    Row(
        key="closed-behind-a-call",
        server="closes the connection behind a call that looks whole, then answers",
        plays=(
            sse(fragment(writing("closed"), name="write_file", identifier="c1"), End("close")),
            _GOOD,
        ),
        requests=2,
    ),
    Row(
        key="two-faults",
        server="503 and a cut stream by turns",
        plays=(
            *(refusal("overloaded", 503), sse(words("It is "), End("close"))) * 2,
            refusal("overloaded", 503),
        ),
        reads="The model *",
        requests=5,
    ),
    Row(
        key="silence",
        server="no byte within `timeout_s`",
        plays=(Raw((Wait("open"),)),),
        reads="*timeout_s*",
        requests=None,
        silent=True,
    ),
    Row(
        key="silence-in-text",
        server="no byte within `timeout_s` in the middle of the text",
        plays=(sse(words("It is "), Wait("open")),),
        reads="*timeout_s*",
        requests=None,
        silent=True,
    ),
    Row(
        key="silence-after-done",
        server="no byte and no end behind `[DONE]` within `timeout_s`",
        plays=(sse(words("It is ", "noon."), DONE, Wait("open")),),
        silent=True,
    ),
)

_BUSY: Final = refusal("Rate limit reached", 429, type="requests", code="rate_limit_exceeded")
STATUSES: Final = (
    Row(
        key="retry-after-date",
        server="429 with `Retry-After` as a date, then answers",
        plays=(
            Raw(
                _BUSY.steps,
                429,
                "application/json",
                {
                    "Date": "Sat, 28 Nov 2026 10:00:00 GMT",
                    "Retry-After": "Sat, 28 Nov 2026 10:00:01 GMT",
                },
            ),
            _GOOD,
        ),
        requests=2,
    ),
    Row(
        key="html-502",
        server="502 with a page of its proxy, then answers",
        plays=(page("<html><h1>502 Bad Gateway</h1><hr>nginx</html>", 502), _GOOD),
        requests=2,
    ),
    Row(
        key="loading",
        server="503 while it loads its model, then answers",
        plays=(
            whole(
                {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
                503,
            ),
            _GOOD,
        ),
        requests=2,
    ),
    Row(
        key="no-credit",
        server="402 because the account is empty",
        plays=(refusal("Insufficient credits", 402, code=402),),
        reads="The account that pays for compatible:m has no credit left.*",
    ),
    Row(
        key="wrong-key",
        server="401 because of the key",
        plays=(refusal("Incorrect API key provided: sk-test-key.", 401, code="invalid_api_key"),),
        reads="The provider of compatible:m did not accept the gateway's key.*",
    ),
    Row(
        key="unknown-model",
        server="404 because it does not have the model",
        plays=(refusal('model "m" not found, try pulling it first', 404, type="not_found_error"),),
        reads="The provider does not know the model compatible:m.*",
    ),
    Row(
        key="unexpected-endpoint",
        server="200 with an error as JSON, because the address lacks `/v1`",
        plays=(whole({"error": "Unexpected endpoint or method. (POST /chat/completions)"}),),
        reads="*/v1*",
    ),
    Row(
        key="login-page",
        server="200 with a page to log in",
        plays=(page("<html><title>Log in</title><form></form></html>"),),
        reads="*page*",
        requests=None,
    ),
    Row(
        key="nothing",
        server="200 and no byte in the body, then answers",
        plays=(sse(), _GOOD),
        requests=2,
    ),
    Row(
        key="empty-answer",
        server="a good end and no word, then answers",
        plays=(sse(stop()), _GOOD),
        requests=2,
    ),
    Row(
        key="no-json",
        server="an event that is no JSON, then answers",
        plays=(sse(words("It is "), b"data: {broken\n\n"), _GOOD),
        requests=2,
    ),
)

REFUSALS: Final = (*FORMS, *ERRORS, *CONNECTIONS, *STATUSES)
