"""Collects the inline events of one block as spans.

Neighbours that look alike become one span. A link that may not be followed, or an image, is written
out as the text that it was. Raw HTML is text.
"""

from typing import TYPE_CHECKING

from adapters.rendering.nodes import Link, Span, Style, make
from adapters.rendering.parser import address, unhide

if TYPE_CHECKING:
    # The library's name for it is private.
    from pyromark.event import _LinkData as LinkData

_BREAK = Span("\n")


class Inline:
    """One run of text at a time: events in, `take` gives the spans and begins anew.

    `pieces` is what was collected so far; anything that is added makes it longer.
    """

    def __init__(self) -> None:
        self.pieces: list[Span] = []
        self._styles: list[int] = []
        self._style: int = Style.PLAIN
        self._link: Link | None = None
        self._link_start = 0
        self._closings: list[str | None] = []
        self._images: list[tuple[list[Span], str | None]] = []
        # The looks of the last piece, and whether two neighbours had the same: see `take`.
        self._last: int = -1
        self._last_link: Link | None = None
        self._alike = False

    def add(self, text: str, style: int = 0) -> None:
        """Text in the style of the place, and in `style` besides."""
        if "\n" in text:
            text = text.replace("\n", " ")
        if text:
            style |= self._style
            link = self._link
            if style == self._last and link is self._last_link:
                self._alike = True
            self._last, self._last_link = style, link
            self.pieces.append(make(Span, (text, style, link)))

    def line_break(self) -> None:
        """A new line; a space inside a link or the text of an image."""
        if self._link is not None or self._images:
            self.add(" ")
        else:
            self._last = -1
            self.pieces.append(_BREAK)

    def add_lines(self, text: str) -> None:
        """Text whose line feeds are line breaks."""
        for index, line in enumerate(text.split("\n")):
            if index:
                self.line_break()
            self.add(line)

    def open_style(self, flag: int) -> None:
        self._styles.append(self._style)
        self._style |= flag

    def close_style(self) -> None:
        self._style = self._styles.pop()

    def open_link(self, data: "LinkData") -> None:
        kind, url = data["link_type"], unhide(data["dest_url"])
        target = address(f"mailto:{url}" if kind == "Email" else url)
        if target is None:
            autolink = kind in ("Autolink", "Email")
            self.add("<" if autolink else "[")
            self._closings.append(">" if autolink else _closing(data))
        elif self._images or self._link:
            # A link inside a link or the text of an image is its label alone.
            self._closings.append("")
        else:
            self._link, self._link_start = Link(target), len(self.pieces)
            self._closings.append(None)

    def close_link(self) -> None:
        closing = self._closings.pop()
        if closing is not None:
            self.add(closing)
        elif self._link is not None:
            if not any(span.text.strip() for span in self.pieces[self._link_start :]):
                self.add(self._link.url)
            self._link = None

    def open_image(self, data: "LinkData") -> None:
        self._images.append((self.pieces, address(unhide(data["dest_url"]))))
        self.pieces = []
        self._alike = True
        self._closings.append(_closing(data))

    def close_image(self) -> None:
        text = "".join(span.text for span in self.pieces).strip()
        self.pieces, target = self._images.pop()
        closing = self._closings.pop()
        if target is None:
            self.add(f"![{text}{closing}")
        elif self._images:
            self.add(text)
        else:
            self.pieces.append(Span(text or target, self._style, self._link or Link(target)))

    def take(self, *, one_line: bool = False) -> tuple[Span, ...]:
        """What was collected, without white space and line breaks at either end."""
        spans = self.pieces
        if not spans:
            return ()
        alike, self._alike, self._last = self._alike, False, -1
        self.pieces = []
        if one_line and _BREAK in spans:
            spans = [Span(" ") if span is _BREAK else span for span in spans]
            alike = True
        if alike:
            spans = _joined(spans)
        if not (spans[0][0][0].isspace() or spans[-1][0][-1].isspace()):
            return tuple(spans)
        first, last = 0, len(spans)
        while first < last and not spans[first].text.strip():
            first += 1
        while last > first and not spans[last - 1].text.strip():
            last -= 1
        return _without_outer_space(spans[first:last])


def _joined(spans: list[Span]) -> list[Span]:
    """Neighbours that look alike as one span. Joined here and not as they come: that is linear."""
    out: list[Span] = []
    run: list[str] = []
    style = Style.PLAIN
    link: Link | None = None
    for span in spans:
        if run and span.style == style and span.link is link and "\n" not in (span.text, run[-1]):
            run.append(span.text)
            continue
        if run:
            out.append(make(Span, ("".join(run), style, link)))
        text, style, link = span
        run = [text]
    out.append(Span("".join(run), style, link))
    return out


def _without_outer_space(spans: list[Span]) -> tuple[Span, ...]:
    if not spans:
        return ()
    text, style, link = spans[0]
    if text[0].isspace() and not style & Style.CODE:
        spans[0] = Span(text.lstrip(), style, link)
    text, style, link = spans[-1]
    if text[-1].isspace() and not style & Style.CODE:
        spans[-1] = Span(text.rstrip(), style, link)
    return tuple(spans)


def _closing(data: "LinkData") -> str:
    """The source behind the label of a link or image, near enough to read."""
    if data["link_type"] == "Inline":
        title = f' "{data["title"]}"' if data["title"] else ""
        return unhide(f"]({data['dest_url']}{title})")
    if data["link_type"] == "Reference":
        return unhide(f"][{data['id']}]")
    return "][]" if data["link_type"] == "Collapsed" else "]"
