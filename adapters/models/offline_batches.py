"""Several agents for one sentence: work that is shared out, and one who waits for all of it.

Pure. "ask two explorers to read a.md and b.md, then compare" is three agents: one for each file,
and a third that starts behind both and is told what they found.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from adapters.models.offline_grammar import Wanted
from runtime.domain.counts import counted
from runtime.domain.json_fields import object_in, objects_of
from runtime.domain.tools import ToolCall
from runtime.domain.value import JsonObject

SPAWN: Final = "sessions_spawn"
MOST: Final = 10
OTHERS: Final = "what the others found"
# A character that nobody writes; the call's own letters take its place.
_TOKEN: Final = "\ue000"
_SHOWN: Final = 600
_WORDS: Final = 8
_BACKGROUND: Final = r"(?:\s+in the background)"
_AFTER: Final = "compare|contrast|combine|summari[sz]e|review"

SENTENCE: Final = re.compile(
    r"(?:ask|start|spawn|have|let) (?P<count>\w+) (?P<kind>[a-z]+)(?: agents?| subagents?)?"
    rf"(?P<first>{_BACKGROUND})?(?: to)? (?P<task>.+?)(?P<second>{_BACKGROUND})?"
    rf"(?:\s*[,;.]?\s*\b(?:and then|then|and)\s+(?P<after>{_AFTER})"
    rf"(?: (?:them|both|it all|the two|the files|the results|{OTHERS}|what they (?:find|found)))?"
    rf"(?P<third>{_BACKGROUND})?)?",
    re.IGNORECASE | re.DOTALL,
)
_LAST: Final = re.compile(rf"\s*(?P<after>{_AFTER}) {OTHERS}[\s.]*", re.IGNORECASE)
_FOUND: Final = re.compile(
    r'<untrusted id="(?P<id>[0-9a-f]+)" source="(?:subagent )?(?P<name>[^"]*)">\n'
    r'(?P<text>.*?)\n?</untrusted id="(?P=id)">',
    re.DOTALL,
)
_ENDED: Final = re.compile(
    r"^The subagent ([\w.-]+) \([\w-]+\) (completed|failed|cancelled|timed out|forced) after ",
    re.MULTILINE,
)
_LONG_WORD: Final = re.compile(r"[^\W\d_]{5,}")
_PREFACE: Final = re.compile(r"^Here is the content:\s*", re.MULTILINE)
_FAILED: Final = re.compile(r"`\w+` (?:did not work|was not allowed|was stopped)[^\n]*")
_MORE: Final = re.compile(r"\n\[(?P<count>\d+) more characters\]\s*\Z")
_FENCE: Final = re.compile(r"^`{3,}\w*\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Found:
    """What one agent said at its end."""

    name: str
    text: str


def batch(
    kind: str, count: int, tasks: Sequence[str], *, after: str | None, background: bool
) -> Wanted:
    """`tasks` shared out among `count` agents, in turn; with `after` a last one behind them all."""
    shares = [list(tasks[place::count]) for place in range(count)]
    names = [f"{kind}-{_TOKEN}-{place}" for place in range(1, count + 1)]
    agents: list[JsonValue] = [
        {"id": name, "task": " and ".join(share), "type": kind}
        for name, share in zip(names, shares, strict=True)
    ]
    if after is not None:
        needs: list[JsonValue] = [*names]
        last = {"id": f"{after}-{_TOKEN}", "task": f"{after} {OTHERS}", "type": kind}
        agents.append({**last, "depends_on": needs})
    return Wanted(SPAWN, {"agents": agents, "mode": "background" if background else "await"})


def named(arguments: JsonObject, token: str) -> str:
    """The arguments as JSON, with names that nobody in the tree has: `token` is the call's own."""
    return json.dumps(arguments, ensure_ascii=False).replace(_TOKEN, token)


def findings(text: str) -> tuple[Found, ...]:
    """What agents said, in a result or a word of the gateway."""
    return tuple(Found(one["name"], one["text"].strip()) for one in _FOUND.finditer(text))


def silent(text: str) -> tuple[tuple[str, str], ...]:
    """Who ended without a word, and how, in a result: nothing of theirs stands in a fence."""
    said = {one.name for one in findings(text)}
    ended = _ENDED.findall(_FOUND.sub("", text))
    return tuple((name, how) for name, how in ended if name not in said)


def needed(calls: Sequence[ToolCall]) -> frozenset[str]:
    """The names of those whose results others wait for."""
    found: set[str] = set()
    for call in calls:
        arguments = object_in(call.arguments) if call.name == SPAWN else None
        for agent in objects_of(arguments or {}, "agents"):
            others = agent.get("depends_on")
            if isinstance(others, list):
                found |= {one for one in others if isinstance(one, str)}
    return frozenset(found)


def is_last(asked: str) -> bool:
    """Whether this is the task of the one who waited for the others."""
    return _LAST.fullmatch(asked) is not None


def together(notices: Sequence[str]) -> str:
    """What the others found, side by side, and the long words that all of them have."""
    found = findings("\n".join(notices))
    if not found:
        return "Nobody found anything that I could put together."
    failed = [one for one in found if _FAILED.match(one.text) and not _PREFACE.search(one.text)]
    good = [one for one in found if one not in failed]
    texts = [_FENCE.sub("", _PREFACE.sub("", one.text)).strip() for one in good]
    parts = [_summary(one.name, text) for one, text in zip(good, texts, strict=True)]
    parts += [f"`{one.name}` found nothing: {_plainly(one.text)}" for one in failed]
    if len(good) < 2:
        told = ["So there is nothing to put together."] if failed else []
        return "\n\n".join([*parts, *told])
    words = [{word.lower() for word in _LONG_WORD.findall(text)} for text in texts]
    shared = sorted(set.intersection(*words), key=lambda word: (-len(word), word))[:_WORDS]
    common = ", ".join(shared) if shared else "no word of five letters or more"
    parts.append(f"All of them have in common: {common}.")
    return "\n\n".join(parts)


def _summary(name: str, text: str) -> str:
    more = _MORE.search(text)
    shown = text if more is None else text[: more.start()]
    size = f"{counted(len(shown.splitlines()), 'line')}, {counted(len(shown.split()), 'word')}"
    if more is not None:
        size += f" and {int(more['count']):,} more characters"
    return f"`{name}` found {size}. This is how it begins:\n\n{fenced(shown[:_SHOWN].rstrip())}"


def _plainly(text: str) -> str:
    """Why somebody found nothing, in one line."""
    return " ".join(_FENCE.sub("", text).split())[:_SHOWN]


def fenced(shown: str) -> str:
    """A text in a fence that it cannot close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", shown)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{shown}\n{fence}"
