"""What the platforms demand of a message, written down a second time and strictly.

These checks share no code with the renderer. They raise AssertionError.
"""

import re
from html.parser import HTMLParser

import regex

from adapters.rendering import SlackLimits, SlackPart, TelegramPart

TELEGRAM_TYPES = {
    "bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote",
}  # fmt: skip
NOTIFIES = re.compile(r"<[!@#]|@(?:channel|here|everyone)(?![^\W_])", re.IGNORECASE)
OUR_LINK = re.compile(r"<(?:https?://|mailto:)[^<>|\s]+\|[^<>|\n]*>", re.IGNORECASE)
GRAPHEMES = regex.compile(r"\X")


def letters(text: str) -> str:
    """The letters and digits of `text` alone, by which loss and order are judged."""
    return "".join(char for char in text if char.isalnum())


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def check_telegram(part: TelegramPart) -> None:
    raw = part.text.encode("utf-16-le")
    total = len(raw) // 2
    assert 0 < total <= 4096
    assert len(part.entities) <= 100
    assert part.text == part.text.rstrip()
    if not any(entity.offset == 0 for entity in part.entities):
        assert part.text == part.text.lstrip()
    open_entities: list[tuple[str, int]] = []
    last = -1
    for entity in part.entities:
        end = entity.offset + entity.length
        assert entity.type in TELEGRAM_TYPES
        assert entity.length > 0
        assert last <= entity.offset
        assert end <= total
        last = entity.offset
        # Decoding fails where a boundary cuts a surrogate pair.
        covered = raw[entity.offset * 2 : end * 2].decode("utf-16-le")
        assert covered.strip()
        assert covered == covered.rstrip()
        if entity.type != "pre":
            assert covered == covered.lstrip() or entity.type == "blockquote"
        assert (entity.url is not None) == (entity.type == "text_link")
        if entity.url is not None:
            assert re.match(r"(?:https?://|mailto:)\S+\Z", entity.url, re.IGNORECASE)
        while open_entities and open_entities[-1][1] <= entity.offset:
            open_entities.pop()
        outer = [kind for kind, _ in open_entities]
        assert all(end <= outer_end for _, outer_end in open_entities), "entities overlap"
        assert not {"pre", "code"} & set(outer), "pre and code hold no entities"
        assert entity.type not in outer
        if entity.type in ("pre", "code", "text_link", "blockquote"):
            assert set(outer) <= {"blockquote"}, f"{entity.type} inside {outer}"
        open_entities.append((entity.type, end))


def check_mrkdwn(text: str) -> None:
    """Nothing notifies, and every `& < >` is escaped but those of our links and quotes."""
    assert not NOTIFIES.search(text)
    rest = OUR_LINK.sub("", text)
    assert "<" not in rest
    unquoted = "\n".join(
        re.sub(r"^[^\w&`]*(?:\d+\. +)?(?:> ?)+", "", line) for line in rest.split("\n")
    )
    bare = re.sub(
        r"(?:(?<=\n)|\A)[ >\u2022\u25e6\u25aa]*(?:\d+\. [ >\u2022\u25e6\u25aa]*)*", "", unquoted
    )
    assert ">" not in bare
    assert not re.search(r"&(?!(?:amp|lt|gt);)", rest)


def check_slack(part: SlackPart, limits: SlackLimits) -> None:
    assert part.text.strip()
    assert units(part.text) <= limits.text
    check_mrkdwn(part.text)
    assert 1 <= len(part.blocks) <= limits.blocks
    markdown = 0
    for block in part.blocks:
        text = block["text"]
        if isinstance(text, str):
            assert block == {"type": "markdown", "text": text}
            assert text.strip()
            assert not NOTIFIES.search(text)
            markdown += units(text)
        else:
            assert block["type"] == "section"
            assert set(text) == {"type", "text"}
            assert text["type"] == "mrkdwn"
            assert 0 < units(text["text"]) <= limits.section
            check_mrkdwn(text["text"])
    assert markdown <= limits.markdown


def markdown_of(parts: list[SlackPart]) -> list[str]:
    return [
        text for part in parts for block in part.blocks if isinstance(text := block["text"], str)
    ]


VOID = ("br", "hr", "input")
BARE = (
    *("p", "h3", "h4", "h5", "h6", "ul", "blockquote", "strong", "em", "del"),
    *("table", "thead", "tbody", "tr", "br", "hr"),
    *("mn", "mtext", "msub", "msup", "msubsup"),
    *("munderover", "msqrt", "mroot", "mtr", "mtd", "b", "i"),
)
ATTRIBUTES: dict[str, tuple[str, ...]] = dict.fromkeys(BARE, ()) | {
    "ol": ("start",),
    "li": ("class",),
    "input": ("type", "disabled", "checked", "aria-label"),
    "pre": ("tabindex", "data-language"),
    "code": ("class",),
    "span": ("class", "tabindex"),
    "div": ("class", "tabindex", "role", "aria-label"),
    "th": ("class",),
    "td": ("class",),
    "a": ("href", "rel"),
    "math": ("display",),
    "mi": ("mathvariant",),
    "mo": (
        *("stretchy", "form", "lspace", "rspace", "minsize", "maxsize", "symmetric"),
        "movablelimits",
    ),
    "mover": ("accent",),
    "munder": ("accentunder",),
    "mrow": ("displaystyle", "scriptlevel"),
    "mtable": ("displaystyle", "scriptlevel"),
    "mspace": ("width",),
    "mfrac": ("linethickness", "displaystyle", "scriptlevel"),
}


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ATTRIBUTES
        assert {name for name, _ in attrs} <= set(ATTRIBUTES[tag])
        values = dict(attrs)
        if tag == "a":
            assert values["rel"] == "noopener noreferrer nofollow"
            href = values["href"] or ""
            assert re.match(r"(?:https?://|mailto:)\S+\Z", href, re.IGNORECASE)
            assert "a" not in self.open
            self.links.append(href)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("a declaration")

    def handle_pi(self, data: str) -> None:
        raise AssertionError("a processing instruction")


def check_html(fragment: str) -> tuple[str, list[str]]:
    """The visible text and the addresses of a fragment that is balanced and within the list."""
    parser = _Html()
    parser.feed(fragment)
    parser.close()
    assert parser.open == []
    return "".join(parser.text), parser.links


def graphemes(text: str) -> list[str]:
    return GRAPHEMES.findall(text)
