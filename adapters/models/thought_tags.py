"""Thoughts that a model writes into its text, taken out while the text streams (MDL-3). Pure.

Some servers leave `<think>...</think>` at the beginning of the text instead of giving it apart;
where the opening tag is part of their template, the text begins with thoughts and only the closing
tag tells. An opening tag further on is part of the answer, and so is a closing one in code or in
the middle of a line: it may be explained there.
"""

import re
from dataclasses import dataclass
from typing import Final

TAGS: Final = ("think", "thinking", "thought", "reasoning")
_OPENING: Final = tuple(f"<{tag}>" for tag in TAGS)
_CLOSING: Final = tuple(f"</{tag}>" for tag in TAGS)
_LONGEST_TAG: Final = max(map(len, _CLOSING))
_ALONE: Final = re.compile(rf"</(?:{'|'.join(TAGS)})>[ \t]*(?=\n|$)")
_NAMED: Final = re.compile(r"(?:^|[-_/:.])(?:r1|qwq|thinking|reasoner|reasoning)(?![a-z\d])")


def thinks_first(model: str) -> bool:
    """Whether a model's name says that its text may begin with thoughts."""
    return _NAMED.search(model.lower()) is not None


@dataclass(frozen=True, slots=True)
class Shown:
    """Text that may be shown. `anew`: everything before it were thoughts."""

    text: str
    anew: bool = False


class ThoughtFilter:
    """Lets a text through but for its thoughts.

    With `hold` nothing is let through before the closing tag or the end, because the model thinks
    first, or nobody knows whether it does. `closed_alone` says that a closing tag came without an
    opening one.
    """

    def __init__(self, *, hold: bool = False) -> None:
        self._waiting = ""
        self._closing = ""
        self._hold = hold
        self._thought = self._begun = self._let = self._leading = False
        self._line = ""
        self._code = False
        self._searched = 0
        self.closed_alone = False

    @property
    def waiting(self) -> int:
        """Characters that are held back."""
        return len(self._waiting)

    def release(self) -> None:
        """Hold nothing back any more: thoughts came apart from the text."""
        self._hold = False

    def take(self, text: str) -> Shown:
        """What may be shown now; what may be a tag waits for more."""
        self._waiting += text
        if not self._begun:
            opened = self._opened()
            if opened is None:
                return Shown("")
        return self._rest(last=False)

    def finish(self, *, cut: bool = False) -> Shown:
        """What waited and was no thought. Thoughts that never ended are none of the answer, nor is
        the text of a model that thinks first where it was `cut` before a closing tag."""
        if self._closing or (cut and self._hold and not self._let):
            self._waiting = ""
            return Shown("")
        if not self._begun:
            waiting, self._waiting = self._waiting, ""
            return Shown(waiting.lstrip() if self._thought else waiting)
        return self._rest(last=True)

    def _opened(self) -> bool | None:
        """Read the beginning: None while it may still be thoughts between tags."""
        while True:
            if self._closing:
                _, found, rest = self._waiting.partition(self._closing)
                if not found:
                    # Only what may be the beginning of the closing tag is needed any more.
                    self._waiting = self._waiting[-len(self._closing) :]
                    return None
                self._waiting, self._closing, self._thought = rest, "", True
            start = self._waiting.lstrip()
            tag = next((tag for tag in _OPENING if start.startswith(tag)), None)
            if tag is not None:
                self._waiting, self._closing = start[len(tag) :], f"</{tag[1:]}"
                continue
            if not start or any(tag.startswith(start) for tag in _OPENING):
                return None
            self._begun = True
            if self._thought:
                # They were between tags, so no other closing tag stands alone.
                self._waiting, self._let = start, True
            return True

    def _rest(self, *, last: bool) -> Shown:
        if self._let:
            text, self._waiting = self._waiting, ""
            if self._leading:
                text = text.lstrip()
                self._leading = not text
            return Shown(text)
        found = self._lone(last=last)
        if found is not None:
            self._let = self.closed_alone = True
            self._leading = not found
            self._waiting = ""
            return Shown(found, anew=True)
        if self._hold and not last:
            return Shown("")
        end = len(self._waiting) if last else _end_before_tag(self._waiting)
        text, self._waiting, self._searched = self._waiting[:end], self._waiting[end:], 0
        self._pass(text)
        return Shown(text)

    def _lone(self, *, last: bool) -> str | None:
        """What stands behind a closing tag that ends a line outside of code, without the blank
        lines between; None where there is none, or where more of its line may come."""
        for match in _ALONE.finditer(self._waiting, self._searched):
            self._searched = match.start()
            if match.end() == len(self._waiting) and not last:
                return None
            if not self._is_code(self._waiting[: match.start()]):
                return self._waiting[match.end() :].lstrip()
            self._searched = match.end()
        # Held text is searched once; a tag may be cut apart, and blanks may follow it.
        end = len(self._waiting.rstrip(" \t")) - _LONGEST_TAG
        self._searched = max(self._searched, end)
        return None

    def _is_code(self, before: str) -> bool:
        """Whether the text up to here ends within a code block or a code span."""
        code, line = self._code, self._line
        *lines, rest = f"{line}{before}".split("\n")
        for one in lines:
            code ^= one.lstrip().startswith(("```", "~~~"))
        return code or rest.count("`") % 2 == 1 or rest.startswith(("    ", "\t"))

    def _pass(self, text: str) -> None:
        """Note where a text that was let through ends."""
        *lines, self._line = f"{self._line}{text}".split("\n")
        for one in lines:
            self._code ^= one.lstrip().startswith(("```", "~~~"))


def _end_before_tag(text: str) -> int:
    """Where a text ends that is followed by nothing but what may become a closing tag."""
    start = text.rfind("<")
    tag = text[start:] if start >= 0 else ""
    may_be = tag and any(one.startswith(tag) or tag.rstrip(" \t") == one for one in _CLOSING)
    return start if may_be else len(text)
