"""Results of subagents: what is short enough to be handed over, and where a longer one lies. Pure.

The path is made of ids and a digest alone: nothing that an agent says chooses where it is written.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

SPOOLED: Final = 4_000
"""Bytes of UTF-8; a longer result is handed over as its beginning and a path (SUB-10)."""
_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Shortened:
    """A result as it is handed over: its beginning, the bytes of the whole, and the SHA-256 of the
    whole where that is longer."""

    preview: str
    size: int
    digest: str | None = None


def plain(text: str) -> str:
    """What can be kept by every database and written to every file: no NUL, no half characters."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\u2400").strip()


def shortened(text: str) -> Shortened:
    """A plain text as it is handed over."""
    raw = text.encode()
    if len(raw) <= SPOOLED:
        return Shortened(text, len(raw))
    return Shortened(cut(text, SPOOLED), len(raw), hashlib.sha256(raw).hexdigest())


def cut(text: str, most: int) -> str:
    """The beginning of a text, at most `most` bytes of UTF-8."""
    return text.encode()[:most].decode(errors="ignore")


def path_of(reader_id: str, agent_id: str, digest: str) -> str:
    """Where the whole result of the session `agent_id` is for the session `reader_id`, relative to
    the workspace: in the reader's own folder, because nobody else's exists for it (I10)."""
    return f".gatehouse/outputs/{reader_id}/agents/{agent_id}-{digest[:_DIGITS]}.txt"
