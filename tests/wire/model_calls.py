"""Rows of servers whose tool calls are odd, see `model_rows`."""

import json
from typing import Final

from tests.wire.model_rows import FORBIDDEN, Play, Row, calls_of
from tests.wire.openai import Prompt
from tests.wire.raw_answers import (
    DONE,
    Raw,
    answer,
    choice,
    completion,
    fragment,
    sse,
    stop,
    whole,
    words,
)

A, B, C = (f'{{"path": "{name}"}}' for name in "abc")


def told(prompt: Prompt) -> Raw:
    """Says which calls came back, each with its path."""
    paths = [f"{one['function']['name']} {_path(one)}" for one in calls_of(prompt)]
    return answer(f"I called {', '.join(paths)} and got {len(prompt.results)}.")


def _path(call: dict[str, dict[str, str]]) -> str:
    arguments = json.loads(call["function"]["arguments"])
    return str(arguments.get("path", "without a path"))


def whether_told(prompt: Prompt) -> Raw:
    """Says whether the model was told that its call was cut."""
    return answer(
        "I was told." if "Your last response was cut" in prompt.text else "Nobody told me."
    )


def calling(*fragments: bytes) -> tuple[Play, ...]:
    """Calls, and then what came of them."""
    return sse(*fragments, stop("tool_calls")), told


def writing(key: str) -> str:
    """Arguments that would write a file which nobody may see."""
    return json.dumps({"path": f"{FORBIDDEN}{key}.txt", "content": "written by mistake"})


ONE: Final = "I called read_file a and got 1."

CALLS: Final = (
    Row(
        key="calls-of-one-index",
        server="three whole calls, all with the index 0, each with a new id",
        plays=calling(
            *(
                fragment(arguments, name="read_file", identifier=f"c{arguments[10]}")
                for arguments in (A, B, C)
            )
        ),
        reads="I called read_file a, read_file b, read_file c and got 3.",
        requests=2,
        everywhere=True,
    ),
    Row(
        key="name-in-each",
        server="one call in four fragments, the name in each",
        plays=calling(
            fragment(name="read_file", identifier="c1"),
            *(fragment(part, name="read_file") for part in ('{"path"', ': "a', '"}')),
        ),
        reads=ONE,
        requests=2,
    ),
    Row(
        key="id-in-each",
        server="one call in fragments, the same id and no index in each",
        plays=calling(
            fragment(name="read_file", index=None, identifier="c1"),
            *(fragment(part, index=None, identifier="c1") for part in ('{"path"', ': "a"}')),
        ),
        reads=ONE,
        requests=2,
    ),
    Row(
        key="no-ids",
        server="one call in fragments without any id",
        plays=calling(fragment(name="read_file"), fragment('{"path"'), fragment(': "a"}')),
        reads=ONE,
        requests=2,
    ),
    Row(
        key="null-id",
        server="a call whose id is null",
        plays=calling(fragment(A, name="read_file", identifier=None)),
        reads=ONE,
        requests=2,
    ),
    Row(
        key="doubled-ids",
        server="two calls with the same id",
        plays=calling(
            fragment(A, name="read_file", identifier="c1"),
            fragment(B, name="read_file", index=1, identifier="c1"),
        ),
        reads="I called read_file a, read_file b and got 2.",
        requests=2,
    ),
    Row(
        key="long-id",
        server="a call whose id has 3,000 characters",
        plays=calling(fragment(A, name="read_file", identifier="c" * 3_000)),
        reads=ONE,
        requests=2,
    ),
    Row(
        key="object-arguments",
        server="arguments that are an object, not a text",
        plays=calling(fragment({"path": "a"}, name="read_file", identifier="c1")),
        reads=ONE,
        requests=2,
    ),
    Row(
        key="null-arguments",
        server="arguments that are null",
        plays=calling(fragment(None, name="list_dir", identifier="c1")),
        reads="I called list_dir without a path and got 1.",
        requests=2,
    ),
    Row(
        key="older-call",
        server="a call by OpenAI's older form, `function_call`",
        plays=(
            sse(
                choice({"function_call": {"name": "read_file", "arguments": '{"path"'}}),
                choice({"function_call": {"arguments": ': "a"}'}}),
                stop("function_call"),
            ),
            told,
        ),
        reads=ONE,
        requests=2,
    ),
    Row(
        key="call-that-stops",
        server="a call whose finish reason is `stop`",
        plays=(sse(fragment(A, name="read_file", identifier="c1"), stop()), told),
        reads=ONE,
        requests=2,
    ),
    Row(
        key="odd-deltas",
        server="role alone, nulls for content, refusal and calls, an empty list of calls",
        plays=(
            sse(
                choice({"role": "assistant"}),
                choice({"role": None, "content": None, "refusal": None, "tool_calls": None}),
                words("It is "),
                choice({"content": None, "tool_calls": []}),
                words("noon."),
                stop(),
            ),
        ),
    ),
    Row(
        key="whole-completion-with-calls",
        server="one whole completion as JSON, with two calls",
        plays=(
            whole(
                completion(
                    {
                        "content": None,
                        "tool_calls": [
                            {
                                "id": f"c{at}",
                                "type": "function",
                                "function": {"name": "read_file", "arguments": arguments},
                            }
                            for at, arguments in enumerate((A, B))
                        ],
                    },
                    "tool_calls",
                )
            ),
            told,
        ),
        reads="I called read_file a, read_file b and got 2.",
        requests=2,
    ),
    Row(
        key="call-without-reason",
        server="a whole call and `[DONE]`, without a finish reason",
        plays=(sse(fragment(A, name="read_file", identifier="c1"), DONE), told),
        reads=ONE,
        requests=2,
    ),
    Row(
        key="half-characters-in-a-call",
        server="an emoji as two halves in the arguments of a call",
        plays=calling(
            fragment('{"path": "\ud83d', name="read_file", identifier="c1"),
            fragment('\ude00"}'),
        ),
        reads="I called read_file \U0001f600 and got 1.",
        requests=2,
    ),
    Row(
        key="cut-arguments",
        server="`length` in the arguments of a call",
        plays=(
            sse(
                fragment('{"path": "never-cut.txt", "con', name="write_file", identifier="c1"),
                stop("length"),
            ),
            whether_told,
        ),
        reads="I was told.",
        requests=2,
        everywhere=True,
    ),
    Row(
        key="cut-after-the-name",
        server="`length` right after the name of a call",
        plays=(sse(fragment(name="list_dir", identifier="c1"), stop("length")), whether_told),
        reads="I was told.",
        requests=2,
    ),
    Row(
        key="cut-whole-call",
        server="`length` behind a call that looks whole",
        plays=(
            sse(
                fragment(writing("length"), name="write_file", identifier="c1"),
                stop("length"),
            ),
            whether_told,
        ),
        reads="I was told.",
        requests=2,
    ),
    Row(
        key="filtered-call",
        server="`content_filter` behind a call",
        plays=(
            sse(
                fragment(writing("filter"), name="write_file", identifier="c1"),
                stop("content_filter"),
            ),
            whether_told,
        ),
        reads="I was told.",
        requests=2,
    ),
)
