"""Which files go along with a request themselves: the newest, within bounds (MSG-19, CTX-3). Pure.

A bound that slid with every new picture would change what stands before it, and providers' caches
with it. So the files grow to the bound and then the older half is left out at once; what is left
out stays as a line with its path.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runtime.domain.files import ReceivedFile
from runtime.domain.transcript import NoticeMessage, TranscriptMessage

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of all enclosed files, before base64: the narrowest provider takes 32 MB a request."""


@dataclass(frozen=True, slots=True)
class Bound:
    """At most so many `files`, `tokens` and `bytes` together."""

    files: int
    tokens: int
    size: int = MOST_BYTES

    def holds(self, files: Sequence[ReceivedFile]) -> bool:
        """Whether these may go along together."""
        return (
            len(files) <= self.files
            and sum(one.tokens for one in files) <= self.tokens
            and sum(one.size_bytes for one in files) <= self.size
        )

    @property
    def half(self) -> "Bound":
        """What is kept when the bound is passed."""
        return Bound(-(-self.files // 2), self.tokens // 2, self.size // 2)


def enclosed(messages: Sequence[TranscriptMessage], bound: Bound) -> tuple[ReceivedFile, ...]:
    """The files that go along, in order; each content once, where it came first."""
    found = {
        one.file.digest: one.file
        for one in reversed(messages)
        if isinstance(one, NoticeMessage) and one.file is not None and one.file.shown
    }
    going: list[ReceivedFile] = []
    for file in reversed(found.values()):
        going.append(file)
        if not bound.holds(going):
            while len(going) > 1 and not bound.half.holds(going):
                going.pop(0)
            if not bound.holds(going):
                going.clear()
    return tuple(going)
