"""Reading a page of the web, as Markdown and always as untrusted (TOOL-8)."""

import asyncio
import re

from pydantic import Field, field_validator
from typing_extensions import override

from runtime.domain.tools import Effect, Touches
from runtime.ports.fetch import Fetch, Page
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.binary_files import describe, is_binary, media_type
from runtime.tools.html_markdown import to_markdown
from runtime.tools.page_encodings import decode_page

_BYTES = 2 * 1024 * 1024
_TIMEOUT_S = 30.0
_CHARS = 20_000
# So strict that every parser finds the same host in it: policy decides by the one that is here.
_URL = re.compile(
    r"https?://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?#][^\s\\]*)?",
    re.IGNORECASE,
)
_TEXT = ("text/", "application/json", "application/xml", "application/javascript")
_HTML = frozenset({"text/html", "application/xhtml+xml"})


class FetchArguments(Arguments):
    url: str = Field(max_length=4096)
    max_chars: int = Field(default=_CHARS, ge=1, le=200_000)

    @field_validator("url")
    @classmethod
    def _plain(cls, url: str) -> str:
        if _URL.fullmatch(url) is None:
            raise ValueError(
                "must be http:// or https://, a host in ASCII (xn-- for others) and a path, "
                "without a user, spaces or backslashes"
            )
        return url


class WebFetch(Tool[FetchArguments]):
    """A page by GET, without cookies or credentials."""

    name = "web_fetch"
    description = "Fetch a public web page as Markdown."
    arguments = FetchArguments
    effect = Effect.READ
    example = '{"url": "https://example.org/page", "max_chars": 20000}'

    def __init__(self, fetch: Fetch, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._fetch = fetch
        self._timeout_s = timeout_s

    @override
    def touches(self, arguments: FetchArguments, context: ToolContext) -> Touches:
        host = _host(arguments.url)
        return Touches(network=(host,), address=arguments.url, subject=host)

    @override
    def fetches(self, arguments: FetchArguments) -> str:
        return arguments.url

    @override
    async def run(self, arguments: FetchArguments, context: ToolContext) -> ToolOutput:
        page = await self._fetch.get(
            arguments.url, max_bytes=_BYTES, timeout_s=self._timeout_s, may=context.reaches
        )
        # Parsing a page of megabytes takes longer than the event loop should be held.
        text = await asyncio.to_thread(_text, page)
        lead = f"{page.url}\nstatus {page.status}, {page.media_type}\n\n"
        notes = "\n[the page was longer; its end was not fetched]" if page.truncated else ""
        if len(text) > arguments.max_chars:
            notes = f"\n[cut at {arguments.max_chars:,} of {len(text):,} characters; see max_chars]"
            text = text[: arguments.max_chars]
        return ToolOutput(f"{lead}{text}{notes}", untrusted=True, source=page.url)


def _host(url: str) -> str:
    match = _URL.fullmatch(url)
    return match["host"].lower().rstrip(".") if match else ""


def _text(page: Page) -> str:
    if not page.media_type.startswith(_TEXT) and not page.media_type.endswith(("+json", "+xml")):
        kind = page.media_type or media_type(page.body)
        return f"[no text: {kind}, {len(page.body):,} bytes]"
    text = decode_page(page.body, page.encoding)
    if page.media_type in _HTML:
        return to_markdown(text, page.url)
    return f"[{describe(page.body)}]" if is_binary(text.encode()) else text
