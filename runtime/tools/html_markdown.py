"""HTML to Markdown for a model to read: headings, paragraphs, links, lists, code, flat tables.

It keeps what is said and drops how it looks. It is no sanitiser: its result is fenced, not shown.
"""

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from urllib.parse import urljoin

_DROPPED = frozenset(
    {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas"}
)
_BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt"),
        *("fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend"),
        *("main", "nav", "p", "section", "summary", "table", "tbody", "tfoot", "thead"),
    }
)
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_EMPHASIS = {"strong": "**", "b": "**", "em": "*", "i": "*"}
_PIECE = 64 * 1024
_DEPTH = 16


def to_markdown(html: str, base: str = "") -> str:
    """The readable text of a page; links become absolute with `base`. Never raises on bad HTML."""
    parser = _Converter(base)
    # A marked section is a comment in HTML; the parser fails on one that it does not know.
    html = html.replace("<![", "<!x[")
    for start in range(0, len(html), _PIECE):
        parser.feed(html[start : start + _PIECE])
    # Text is held back until a tag follows. `close` would rescan what never ends, which is
    # quadratic in a page that was made for it.
    parser.feed("<p>")
    return parser.result()


class _Converter(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._title = ""
        self._out: list[str] = []
        self._dropped: list[str] = []
        self._lists: list[int | None] = []
        self._links: list[tuple[str, int]] = []
        self._in_title = False
        self._pre = 0
        self._cells = 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = not self._title and not self._dropped
        elif tag == "body":
            # Whatever the head left open has ended.
            self._dropped.clear()
        elif tag in _DROPPED:
            if len(self._dropped) < _DEPTH:
                self._dropped.append(tag)
        elif not self._dropped:
            self._start(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self._dropped:
            del self._dropped[self._dropped.index(tag) :]
        elif not self._dropped:
            self._end(tag)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title += " ".join(data.split())
        elif not self._dropped:
            self._out.append(data if self._pre else re.sub(r"\s+", " ", data))

    def _start(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag in _HEADINGS:
            self._out.append(f"\n\n{_HEADINGS[tag]} ")
        elif tag in _BLOCKS:
            self._out.append("\n\n")
        elif tag in {"ul", "ol"}:
            self._lists.append(1 if tag == "ol" else None)
            self._out.append("\n\n" if len(self._lists) == 1 else "")
        elif tag == "a":
            # One inside another ends it, as the HTML standard has it.
            self._end(tag)
            self._links.append((attributes.get("href") or "", len(self._out)))
        elif tag == "img" and attributes.get("alt"):
            self._out.append(f"[image: {attributes['alt']}]")
        else:
            self._start_inline(tag)

    def _start_inline(self, tag: str) -> None:
        if tag == "li":
            self._item()
        elif tag == "pre":
            self._pre += 1
            self._out.append("\n\n```\n")
        elif tag in {"code", "kbd", "samp"} and not self._pre:
            self._out.append("`")
        elif tag in _EMPHASIS:
            self._out.append(_EMPHASIS[tag])
        elif tag == "br":
            self._out.append("\n")
        elif tag == "tr":
            self._cells = 0
            self._out.append("\n")
        elif tag in {"td", "th"}:
            self._out.append(" | " if self._cells else "")
            self._cells += 1

    def _item(self) -> None:
        indent = "  " * min(max(len(self._lists) - 1, 0), _DEPTH)
        number = self._lists[-1] if self._lists else None
        if number is None:
            self._out.append(f"\n{indent}- ")
        else:
            self._lists[-1] = number + 1
            self._out.append(f"\n{indent}{number}. ")

    def _end(self, tag: str) -> None:
        if tag in _HEADINGS or tag in _BLOCKS:
            self._out.append("\n\n")
        elif tag in {"ul", "ol"}:
            if self._lists:
                self._lists.pop()
            self._out.append("\n" if self._lists else "\n\n")
        elif tag == "a" and self._links:
            self._link(*self._links.pop())
        elif tag == "pre" and self._pre:
            self._pre -= 1
            self._out.append("\n```\n\n")
        elif tag in {"code", "kbd", "samp"} and not self._pre:
            self._out.append("`")
        elif tag in _EMPHASIS:
            self._out.append(_EMPHASIS[tag])

    def _link(self, href: str, start: int) -> None:
        text = " ".join("".join(self._out[start:]).split())
        target = _target(href, self._base)
        if text and target:
            self._out[start:] = [f"[{text}]({target})"]

    def result(self) -> str:
        body = _tidy("".join(self._out))
        if self._title and not body.startswith("# "):
            return f"# {self._title}\n\n{body}".rstrip()
        return body


def _target(href: str, base: str) -> str:
    """Where a link leads; nothing for what is no page."""
    try:
        target = urljoin(base, href.strip())
    except ValueError:
        return ""
    if not target.startswith(("http://", "https://")):
        return ""
    return target.replace(" ", "%20").replace(")", "%29")


def _tidy(text: str) -> str:
    """One blank line between blocks, none inside of code taken away, no blanks at line ends."""
    parts = text.split("```")
    for index in range(0, len(parts), 2):
        plain = re.sub(r"(?<![ \t])[ \t]+\n", "\n", parts[index])
        plain = re.sub(r"\n{3,}", "\n\n", plain)
        parts[index] = re.sub(r"(?m)^ (?=\S)", "", plain)
    return "```".join(parts).strip()
