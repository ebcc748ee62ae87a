"""A `Fetch` that knows its pages beforehand; every other address is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urldefrag, urlsplit

from runtime.domain.errors import ToolError
from runtime.ports.fetch import MayReach, Page


@dataclass
class FakeFetch:
    """`pages` by URL, `silent` URLs never answer in time, `moved` ones redirect; `asked` keeps what
    was asked for."""

    pages: Mapping[str, Page] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def get(
        self, url: str, *, max_bytes: int, timeout_s: float, may: MayReach | None = None
    ) -> Page:
        self.asked.append(url)
        parts = urlsplit(url)
        if may is not None and not may((parts.hostname or "").lower().rstrip(".")):
            raise ToolError(f"{parts.hostname} is outside of what may be reached from here")
        if parts.scheme not in {"http", "https"}:
            raise ToolError("only http:// and https:// pages are fetched")
        if "@" in parts.netloc:
            raise ToolError("a URL with a user or a password is not fetched")
        url = urldefrag(url).url
        if url in self.moved:
            return await self.get(
                self.moved[url], max_bytes=max_bytes, timeout_s=timeout_s, may=may
            )
        if url in self.silent:
            raise ToolError(f"{url} did not answer within {timeout_s:g} s")
        page = self.pages.get(url)
        if page is None:
            raise ToolError(f"{parts.hostname} is not on the public internet")
        cut = len(page.body) > max_bytes
        return replace(page, body=page.body[:max_bytes], truncated=page.truncated or cut)
