"""The plain sentences that the offline model understands, as wanted tool calls.

Pure. It knows words, not tools: whether the tool is there is the model's matter.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adapters.models.offline_batches import MOST, SENTENCE, batch
from adapters.models.offline_grammar import (
    AGENTS,
    FREE_TEXT,
    JOINED,
    RULES,
    Quotes,
    Wanted,
    hide_quotes,
    number,
)

MAX_CHARACTERS: Final = 10_000
"""A longer message is no plain sentence; the bound keeps the patterns from working for long."""

READS: Final = frozenset(
    {
        "read_file",
        "list_dir",
        "glob",
        "grep",
        "resolve_path",
        "web_fetch",
        "recall",
        "agents_list",
        "task_list",
        "task_get",
        "schedule_list",
        "schedule_get",
        "read_channel_thread",
    }
)

_POLITE: Final = re.compile(
    r"^(?:reminder:\s*)?(?:(?:hey|hi|hello|ok|okay|please|now|first|also|"
    r"(?:can|could|would|will) you|"
    r"i(?:'d| would) like you to|i want you to|let's)\b[\s,]*)*",
    re.IGNORECASE,
)
# A full stop ends a sentence only behind a word: "list files in ." names a folder.
_ENDING: Final = re.compile(
    r"(?:[\s,]*\bplease\b)?(?:(?<=[\w)\]}\"'\x00])[.!?]+)?\s*$", re.IGNORECASE
)
_THEN: Final = re.compile(r"\s*[,;.]?\s*\b(?:and\s+)?then\b[\s,]*", re.IGNORECASE)
_AND: Final = re.compile(r"\s*,?\s*\band\b\s+|\s*,\s+", re.IGNORECASE)
_LINES: Final = re.compile(r"\s*\n\s*(?:[-*]\s+|\d+[.)]\s+)?")
_VERB: Final = re.compile(r"^\S+\s+")


@dataclass(frozen=True, slots=True)
class Step:
    """Calls that are made in one response."""

    calls: tuple[Wanted, ...]


def understand(text: str) -> tuple[Step, ...]:
    """The steps that a message asks for, in order; none when no sentence was understood.

    "then" and a new line part steps; "and" parts calls, which share a step when all of them read.
    A message is understood whole or not at all, but for lines: those that are understood count.
    """
    if len(text) > MAX_CHARACTERS:
        return ()
    masked, quotes = hide_quotes(text)
    masked = JOINED.sub(" ", masked)
    steps = _steps(masked, quotes)
    if steps:
        return steps
    lines = [line for line in _LINES.split(masked.strip()) if line]
    if len(lines) < 2:
        return ()
    return tuple(step for line in lines for step in _steps(line, quotes))


def _steps(masked: str, quotes: Quotes) -> tuple[Step, ...]:
    """Steps of one piece of text that must be understood as a whole."""
    shared = _shared_out(masked, quotes)
    if shared is not None:
        return (Step((shared,)),)
    pieces = [piece for piece in _THEN.split(masked) if piece.strip()]
    parted = [_piece(piece, quotes) for piece in pieces]
    if parted and all(parted):
        return tuple(step for steps in parted for step in steps)
    return _piece(masked, quotes) if len(pieces) > 1 else ()


def _piece(piece: str, quotes: Quotes) -> tuple[Step, ...]:
    whole = _sentence(piece, quotes)
    if whole is not None and (whole.tool in FREE_TEXT or not _AND.search(piece)):
        return (Step((whole,)),)
    several = _several([part for part in _AND.split(piece) if part.strip()], quotes)
    if not several:
        return (Step((whole,)),) if whole is not None else ()
    if all(call.tool in READS for call in several):
        return (Step(tuple(several)),)
    return tuple(Step((call,)) for call in several)


def _shared_out(masked: str, quotes: Quotes) -> Wanted | None:
    """Agents among whom readings are shared out, or behind whom another waits."""
    match = SENTENCE.fullmatch(_bare(masked))
    if match is None:
        return None
    count, kind = number(match["count"]), AGENTS.get(match["kind"].lower().removesuffix("s"))
    if not 1 <= count <= MOST or kind is None:
        return None
    after = match["after"].lower().replace("ise", "ize") if match["after"] else None
    tasks = _readings(match["task"], quotes)
    if len(tasks) < max(count, 2):
        if after is None:
            return None
        # It cannot be shared out: each of them does all of it.
        tasks = [quotes.show(match["task"])] * count
    background = any(match[place] for place in ("first", "second", "third"))
    return batch(kind, count, tasks, after=after, background=background)


def _readings(task: str, quotes: Quotes) -> list[str]:
    """The readings that a task joins with "and", each as a sentence; none where it is no such."""
    parts = [part for part in _AND.split(task) if part.strip()]
    calls = _several(parts, quotes)
    if not calls or any(call.tool not in READS for call in calls):
        return []
    found, verb = [], ""
    for part in parts:
        if _sentence(part, quotes) is not None:
            match = _VERB.match(_bare(part))
            verb = match.group() if match else ""
            found.append(quotes.show_within(_bare(part)))
        else:
            found.append(quotes.show_within(verb + part))
    return found


def _several(parts: Sequence[str], quotes: Quotes) -> list[Wanted]:
    """A call for each part; a part without a verb takes the one before it: "read a and b"."""
    calls: list[Wanted] = []
    verb = ""
    for part in parts:
        call = _sentence(part, quotes) or (_sentence(verb + part, quotes) if verb else None)
        if call is None:
            return []
        if found := _VERB.match(_bare(part)):
            verb = found.group() if _sentence(part, quotes) else verb
        calls.append(call)
    return calls


def _sentence(text: str, quotes: Quotes) -> Wanted | None:
    bare = _bare(text)
    if not bare:
        return None
    for rule in RULES:
        match = rule.pattern.fullmatch(bare)
        if match is None:
            continue
        wanted = rule.build({k: quotes.show(v) for k, v in match.groupdict().items() if v})
        if wanted is not None:
            return wanted
    return None


def _bare(text: str) -> str:
    return _ENDING.sub("", _POLITE.sub("", text.strip()))
