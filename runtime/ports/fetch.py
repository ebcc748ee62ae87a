"""Fetching a page for the model: the only way out to the web from a tool."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Page:
    """What came back. `url` is the last one after redirects; `encoding` is what the header says of
    the characters, or empty; `truncated` says `body` was cut."""

    url: str
    status: int
    media_type: str
    body: bytes
    encoding: str
    truncated: bool


MayReach = Callable[[str], bool]
"""Whether a host, in small letters, may be asked at all."""


class Fetch(Protocol):
    """A guarded HTTP GET (TOOL-8)."""

    async def get(
        self, url: str, *, max_bytes: int, timeout_s: float, may: MayReach | None = None
    ) -> Page:
        """Raises `ToolError` for refused addresses, too many redirects, time-outs, bad URLs, and
        before it asks a host that it `may` not reach, also where a redirect leads there."""
        ...
