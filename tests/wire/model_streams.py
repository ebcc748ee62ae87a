"""Rows of servers whose stream is odd, see `model_rows`: ends, bytes, thoughts, reasons, counts."""

import json
from typing import Final

from tests.wire.model_calls import writing
from tests.wire.model_rows import NOON, THOUGHT, Row
from tests.wire.raw_answers import (
    DONE,
    Raw,
    Repeat,
    Wait,
    answer,
    bytewise,
    changed,
    choice,
    completion,
    event,
    gzipped,
    sse,
    stop,
    usage,
    whole,
    words,
)

_NOON: Final = words("It is ", "noon.")
_ANSWER: Final = answer("It is ", "noon.")
_COUNTED: Final = event(choices=[], usage=usage(20, 5))
ENDS: Final = (
    Row(
        key="done-alone",
        server="no finish reason anywhere; a usage without choices, then `[DONE]`",
        plays=(sse(_NOON, _COUNTED, DONE),),
        everywhere=True,
    ),
    Row(
        key="empty-reason",
        server="a finish reason of no characters in each piece, then `[DONE]`",
        plays=(sse(words("It is ", "noon.", finish=""), DONE),),
    ),
    Row(
        key="null-delta",
        server="a last piece with its reason whose delta is null",
        plays=(sse(_NOON, choice(None, "stop"), DONE),),
    ),
    Row(
        key="missing-delta",
        server="a last piece with its reason and without a delta",
        plays=(sse(_NOON, event(choices=[{"index": 0, "finish_reason": "stop"}])),),
    ),
    Row(
        key="null-choices",
        server="a last piece whose choices are null, then `[DONE]`",
        plays=(sse(_NOON, event(choices=None), DONE),),
    ),
    Row(
        key="no-end",
        server="ends in the middle without a reason and without `[DONE]`, then answers",
        plays=(sse(_NOON[: len(_NOON) // 2]), answer("It is ", "noon.")),
        requests=2,
    ),
    Row(
        key="no-done",
        server="a finish reason and no `[DONE]`",
        plays=(sse(_NOON, choice({}, "stop")),),
    ),
    Row(
        key="open-after-done",
        server="leaves the connection open after `[DONE]`",
        plays=(sse(_NOON, stop(), Wait("open")),),
    ),
    Row(
        key="open-after-reason",
        server="leaves the connection open after the reason, without `[DONE]`",
        plays=(sse(_NOON, choice({}, "stop"), Wait("open")),),
    ),
    Row(
        key="whole-completion",
        server="one whole completion as JSON in place of a stream",
        plays=(whole(completion({"content": NOON})),),
        everywhere=True,
    ),
    Row(
        key="whole-completion-event",
        server="one whole completion as the only event of a stream",
        plays=(
            sse(b"data: " + json.dumps(completion({"content": NOON})).encode() + b"\n\n", DONE),
        ),
    ),
    Row(
        key="stream-called-json",
        server="a stream that calls itself JSON",
        plays=(Raw((_NOON, stop()), content_type="application/json"),),
    ),
    Row(
        key="stream-called-text",
        server="a stream that calls itself plain text",
        plays=(Raw((_NOON, stop()), content_type="text/plain"),),
    ),
)

BYTES: Final = (
    Row(
        key="crlf",
        server="lines that end in CR LF",
        plays=(changed(answer("It is ", "noon."), lambda body: body.replace(b"\n", b"\r\n")),),
    ),
    Row(
        key="no-blank",
        server="no blank behind `data:`",
        plays=(changed(answer("It is ", "noon."), lambda body: body.replace(b"data: ", b"data:")),),
    ),
    Row(key="gzip", server="a compressed stream", plays=(gzipped(answer("It is ", "noon.")),)),
    Row(
        key="bytewise",
        server="one byte a write, characters and line ends cut apart",
        plays=(
            bytewise(
                changed(
                    answer("Il est midi, à l’été."),
                    lambda body: (
                        body.replace(rb"\u00e0", "à".encode())
                        .replace(rb"\u00e9", "é".encode())
                        .replace(b"\n", b"\r\n")
                    ),
                )
            ),
        ),
        reads="Il est midi, à l’été.",
    ),
    Row(
        key="keep-alives",
        server="comments and pings as signs of life, before and between",
        plays=(
            sse(
                b": OPENROUTER PROCESSING\n\n",
                words("It is "),
                b": ping\n\n:\n\n",
                words("noon."),
                b": ping\n\n",
                stop(),
            ),
        ),
    ),
    Row(
        key="late",
        server="the first piece long after the head",
        plays=(sse(Wait("late"), _NOON, stop()),),
    ),
    Row(
        key="half-characters",
        server="an emoji as two halves in two pieces",
        plays=(sse(words("Noon \ud83d", "\ude00!"), stop()),),
        reads="Noon \U0001f600!",
        everywhere=True,
    ),
)

_IMITATION: Final = (
    f'{THOUGHT} <tool_call>{{"name": "write_file", "arguments": {writing("thought")}}}</tool_call>'
)
THOUGHTS: Final = (
    Row(
        key="reasoning-content",
        server="thoughts in `reasoning_content`",
        plays=(sse(choice({"reasoning_content": THOUGHT, "content": None}), _NOON, stop()),),
        everywhere=True,
    ),
    Row(
        key="reasoning",
        server="thoughts in `reasoning` and in `reasoning_details`",
        plays=(
            sse(
                choice(
                    {
                        "content": "",
                        "reasoning": THOUGHT,
                        "reasoning_details": [
                            {"type": "reasoning.text", "text": THOUGHT, "format": "unknown"}
                        ],
                    }
                ),
                _NOON,
                stop(),
            ),
        ),
    ),
    Row(
        key="thought-tags",
        server="thoughts between tags at the beginning of the text",
        plays=(sse(words(f"<think>\n{THOUGHT}\n</think>\n\n", "It is ", "noon."), stop()),),
        everywhere=True,
    ),
    Row(
        key="split-thought-tags",
        server="thoughts between tags that are cut apart",
        plays=(sse(words("<th", "ink>", THOUGHT, "</thi", "nk>", "It is ", "noon."), stop()),),
    ),
    Row(
        key="late-closing-tag",
        server="thoughts whose closing tag begins the piece of the answer",
        plays=(sse(words(f"<think>{THOUGHT}", "</think>It is ", "noon."), stop()),),
    ),
    Row(
        key="lone-closing-tag",
        server="thoughts without an opening tag, then a closing one",
        plays=(sse(words(THOUGHT, "</think>", "\n\nIt is ", "noon."), stop()),),
        everywhere=True,
        first=True,
    ),
    Row(
        key="explained-tag",
        server="a tag that is explained, in code",
        plays=(sse(words("Begin with `<think>` and end with `</think>`."), stop()),),
        reads="Begin with `<think>` and end with `</think>`.",
    ),
    Row(
        key="imitated-call",
        server="thoughts that imitate a call, in a field and between tags",
        plays=(
            sse(
                choice({"reasoning_content": _IMITATION}),
                words(f"<think>{_IMITATION}</think>", "It is ", "noon."),
                stop(),
            ),
        ),
    ),
)

REASONS: Final = (
    Row(
        key="filter-in-the-middle",
        server="`content_filter` in the middle of the text",
        plays=(sse(_NOON, stop("content_filter")),),
        reads="It is noon.\n\n(The provider's content filter ended this answer here.)",
    ),
    *(
        Row(
            key=f"ends-with-{reason.replace('_', '-')}",
            server=f"`{reason}` in the middle of the text, then a good answer",
            plays=(sse(words("It is "), stop(reason)), answer("It is ", "noon.")),
            requests=2,
        )
        for reason in ("error", "abort", "insufficient_system_resource")
    ),
    Row(
        key="error-again",
        server="`error` in the middle of the text, each time",
        plays=(sse(_NOON, stop("error")),),
        reads="It is noon.\n\n(The provider ended this answer with an error*",
        requests=2,
    ),
    Row(
        key="model-length",
        server="Mistral's `model_length` in the middle of the text",
        plays=(sse(_NOON, stop("model_length")),),
        reads="It is noon.\n\n(This was cut at the length limit; ask me to go on.)",
    ),
    Row(
        key="unknown-reason",
        server="a finish reason that nobody knows",
        plays=(sse(_NOON, stop("moonrise")),),
        reads="It is noon.\n\n(The provider ended this answer for a reason * (moonrise)*",
    ),
    Row(
        key="long-reason",
        server="a finish reason of 1,000 characters",
        plays=(sse(_NOON, stop("moonrise" * 125)),),
        reads="It is noon.\n\n(The provider ended this answer for a reason that I do not know, *",
    ),
    Row(
        key="refusal",
        server="a refusal beside no content",
        plays=(
            sse(
                choice({"role": "assistant", "content": None, "refusal": ""}),
                choice({"refusal": "I cannot "}),
                choice({"refusal": "help with that."}),
                stop(),
            ),
        ),
        reads="I cannot help with that.",
        everywhere=True,
    ),
    Row(
        key="thoughts-alone",
        server="thoughts up to the limit, and nothing else",
        plays=(sse(choice({"reasoning_content": THOUGHT}), stop("length")),),
        reads="The model used up its limit of 8,192 tokens before it answered.*",
    ),
)

COUNTS: Final = (
    Row(
        key="usage-last",
        server="the usage behind the reason, without choices",
        plays=(sse(_NOON, choice({}, "stop"), _COUNTED, DONE),),
    ),
    Row(
        key="usage-null",
        server="a usage of null in each piece",
        plays=(sse(choice({"content": NOON}, usage=None), choice({}, "stop", usage=None), DONE),),
    ),
    Row(
        key="usage-in-each",
        server="a usage in each of 60 pieces, counted from the beginning each time",
        plays=(
            sse(
                *(choice({"content": "a"}, usage=usage(3_000, at + 1)) for at in range(60)),
                stop(),
            ),
        ),
        reads="a" * 60,
    ),
)

MUCH: Final = (
    Row(
        key="endless-text",
        server="100 MB of text",
        plays=(sse(Repeat(words("a hundred million bytes of it " * 30), 100_000), stop()),),
        reads="a hundred million bytes of it *",
    ),
    Row(
        key="long-line",
        server="a text of 10 MB in one line",
        plays=(
            sse(
                b'data: {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",'
                b' "choices": [{"index": 0, "finish_reason": null, "delta": {"content": "',
                Repeat(b"ten million bytes " * 1_000, 580),
                b'"}}]}\n\n',
                stop(),
            ),
        ),
        reads="ten million bytes *",
    ),
    Row(
        key="endless-line",
        server="100 MB in one line, then answers",
        plays=(sse(b"data: ", Repeat(b"one hundred million bytes " * 4_000, 1_000)), _ANSWER),
        requests=2,
    ),
    Row(
        key="endless-comment",
        server="100 MB of comments and no event, then answers",
        plays=(sse(Repeat(b": one hundred million bytes\n\n" * 3_400, 1_000)), _ANSWER),
        requests=2,
    ),
    Row(
        key="empty-deltas",
        server="100,000 pieces without a word, then an answer",
        plays=(sse(Repeat(choice({"content": ""}) * 1_000, 100), _NOON, stop()),),
    ),
)

STREAMS: Final = (*ENDS, *BYTES, *THOUGHTS, *REASONS, *COUNTS, *MUCH)
