"""Whether a child goes round in circles (SUB-20), judged from what it did, never from a clock.

A step's signatures say what was asked and what came of it: a poll whose output changes is a new
signature each time, the same read of an unchanged file is the old one again. The judgement is a
fold over the steps of a run, so that a run which was taken up after a crash is judged the same.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import PurePath
from typing import Final, Self

from runtime.domain.tools import ToolCall, ToolResult

WINDOW: Final = 8
"""Steps that are remembered."""
THRESHOLD: Final = 3
"""Steps of the window, the newest among them, that share a signature: a repeat."""
DIVERSE_STEPS: Final = 2
"""New ground in so many steps one after the other takes everything back."""

Signatures = frozenset[str]

# What the gateway itself writes into a result and never writes twice: how long a command took, and
# the label of a fence, which is derived from all that stands in it.
_TOOK: Final = re.compile(
    r"^(\[(?:exit code|timed out|killed by)[^\]\n]*), \d+\.\d s\]$", re.MULTILINE
)
_LABEL: Final = re.compile(r"(</?untrusted) id=\"[0-9a-f]{16}\"")


class Stage(IntEnum):
    """How far it has gone. Each further repeat is the next stage, and `FORCED` is the last."""

    CLEAR = 0
    NUDGED = 1
    FINAL_NOTICE = 2
    FORCED = 3


WORDS: Final = {
    Stage.NUDGED: (
        "You have done the same thing with the same outcome several times. Doing it once more will "
        "not change it: try another way, or report what you have."
    ),
    Stage.FINAL_NOTICE: (
        "You are still repeating yourself. Write your final answer now with what you know: the "
        "next repeat ends this run with the work as it stands."
    ),
}
"""What the child is told at a stage, before its next step."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What is remembered of a run. `steps` are its last ones, oldest first."""

    steps: tuple[Signatures, ...] = ()
    stage: Stage = Stage.CLEAR
    diverse: int = 0

    @classmethod
    def over(cls, steps: Iterable[Signatures]) -> Self:
        """The watch of a run from all of its steps."""
        watch = cls()
        for step in steps:
            watch = watch.after(step)
        return watch

    def after(self, step: Signatures) -> Self:
        """The watch once `step` is done. A step without signatures says nothing either way."""
        if not step:
            return self
        known = frozenset[str]().union(*self.steps)
        diverse = 0 if step & known else self.diverse + 1
        stage = Stage.CLEAR if diverse >= DIVERSE_STEPS else self.stage
        if self._repeats(step):
            stage = Stage(min(stage + 1, Stage.FORCED))
        return type(self)((*self.steps, step)[-WINDOW:], stage, diverse)

    def _repeats(self, step: Signatures) -> bool:
        earlier = self.steps[-(WINDOW - 1) :]
        return any(sum(one in past for past in earlier) >= THRESHOLD - 1 for one in step)


def signatures(
    calls: Sequence[ToolCall],
    results: Sequence[ToolResult],
    text: str = "",
    answers: Sequence[str] = (),
) -> Signatures:
    """Of a step: one for each call with its result, or of its text where it called nothing, with
    the results of children that it `answers`: the same words upon other results are new.

    `results` belong to `calls` by position. Calls of one step are a set: asking for one thing
    three times at once is waste, going back to it is what is watched.
    """
    if not calls:
        said = text.strip()
        return frozenset({_digest("text", said, *answers)}) if said else frozenset()
    return frozenset(
        _digest(call.name, _canonical(call.arguments), result.status, _outcome(result))
        for call, result in zip(calls, results, strict=True)
    )


def _outcome(result: ToolResult) -> str:
    """What the model was told, without what differs each time although nothing else does."""
    content = result.content
    if result.whole_output_path is not None:
        # The file's name has the call's id in it.
        content = re.sub(rf"\S*{re.escape(PurePath(result.whole_output_path).name)}", "", content)
    return _LABEL.sub(r"\1", _TOOK.sub(r"\1]", content))


def _canonical(arguments: str) -> str:
    """Arguments whose order and spacing do not count; what is no JSON stands for itself."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return arguments


def _digest(*parts: str) -> str:
    told = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        told.update(len(encoded).to_bytes(8, "big") + encoded)
    return told.hexdigest()
