"""Writes docs/rendering.md: each construct, and what Slack, Telegram, a terminal and the page get.

``python -m tests.rendering.gallery`` writes the page; a test compares it with what the code says.
"""

import json
import sys
from html import escape
from pathlib import Path

from adapters.rendering import TelegramPart, plain_telegram, render_slack, render_telegram
from adapters.rendering.terminal import render_terminal
from tests.rendering.texts import render_html

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rendering.md"
COLUMNS = 72

INTRODUCTION = """\
# Rendering

What becomes of the Markdown that an agent writes. This page is written by `make gallery` from the
code itself, and a test fails while it says anything else. Marks that nobody sees are written out:
`[WJ]` is a word joiner (U+2060), `[RLM]` a right-to-left mark, `[ZWSP]` a space of no width.

- **Slack** gets a `markdown` block, written anew from what was read, and beside it a text in
  Slack's own `mrkdwn`, for notifications and for the case that the block is refused.
- **Telegram** gets a text and entities, whose offsets count UTF-16 units. They are shown as the
  HTML that would mean the same.
- **The terminal** gets styled lines, shown without their colours, {columns} columns wide.
- **The page** gets HTML of a short list of tags; raw HTML of the source is text.

Where formatting is refused, the same text goes out plain: in Slack the text beside the blocks,
in Telegram the text with addresses written out. Long texts are cut into parts between blocks, else
after a sentence, between words, between graphemes; never in a link or in code, which is closed and
opened again with its language.
"""

SAMPLES: dict[str, str] = {
    "Emphasis and code": "**bold** *italic* ~~struck~~ `code` ***both***, ~/a:~/b",
    "Heading": "## What I found\n\nTwo things.",
    "Links": "[a page (old)](https://example.org/a_(b)?x=1&y=2), <https://example.org>,\n<a@example.org>",
    "Links that are not followed": "[x](javascript:alert) [docs](/docs/x) [home](http://localhost:8080/)",
    "Image": "![a chart](https://example.org/chart.png)",
    "Lists": "- one\n- two\n  1. first\n  2. second\n     - deeper\n- three",
    "Loose list that begins with 3": "3. one\n\n   more of it\n\n4. two",
    "Quote": "> said by **one**\n>\n> > and by two\n\nand done",
    "Code": "```python\ndef f(x: int) -> int:\n\treturn x < 1 & 2\n```",
    "Code in a list": "1. Run this:\n\n   ```sh\n   make run\n   ```\n2. Done",
    "Table": "\n".join(
        (
            "| name | value | 漢字 |",
            "|:-----|------:|:---:|",
            "| a | 1 | 👍🏽 |",
            "| `b` | 22 | [x](https://example.org) | extra |",
        )
    ),
    "Rule and line breaks": "one\ntwo  \nthree\n\n---\n\nfour",
    "Mentions": "@here, <!channel>, <@U123ABC> and `<!here>`: nobody is called",
    "Raw HTML": "<b>not bold</b>, 1 < 2 & 3 > 2\n\n<script>\n**x**\n</script>",
    "Definitions and footnotes": "\n".join(
        (
            "See [one][1] and this[^2].",
            "",
            "[1]: https://example.org",
            "[unused]: https://example.org/u",
            "[^2]: A note at the end.",
        )
    ),
    "Right to left": "\u200fשלום **עולם**\u200f and مرحبا",
    "Nothing to see": " \u200b \n",
}


def page() -> str:
    """The whole page."""
    sections = [_section(title, source) for title, source in SAMPLES.items()]
    return "\n".join([INTRODUCTION.format(columns=COLUMNS), *sections])


def telegram_html(part: TelegramPart) -> str:
    """The text of a part with its entities as tags, for people to read."""
    raw = part.text.encode("utf-16-le")
    opened: dict[int, list[str]] = {}
    closed: dict[int, list[str]] = {}
    for entity in part.entities:
        start, end = _tags(entity.type, entity.url, entity.language)
        opened.setdefault(entity.offset, []).append(start)
        closed.setdefault(entity.offset + entity.length, []).insert(0, end)
    places = sorted({0, len(raw) // 2, *opened, *closed})
    pieces: list[str] = []
    for place, following in zip(places, [*places[1:], len(raw) // 2], strict=True):
        pieces += [*closed.get(place, []), *opened.get(place, [])]
        pieces.append(escape(raw[place * 2 : following * 2].decode("utf-16-le"), quote=False))
    return "".join(pieces)


def _tags(kind: str, url: str | None, language: str | None) -> tuple[str, str]:
    names = {"bold": "b", "italic": "i", "strikethrough": "s", "text_link": "a"}
    name = names.get(kind, kind)
    attribute = f' href="{escape(url)}"' if url else f' class="{language}"' if language else ""
    return f"<{name}{attribute}>", f"</{name}>"


def _section(title: str, source: str) -> str:
    slack = render_slack(source)
    telegram = render_telegram(source)
    lines = ["".join(one.text for one in line) for line in render_terminal(source, COLUMNS)]
    entities = [
        {key: value for key, value in entity._asdict().items() if value is not None}
        for part in telegram
        for entity in part.entities
    ]
    shown = [
        ("Markdown", "markdown", source),
        ("Slack, blocks", "json", _rows([block for part in slack for block in part.blocks])),
        ("Slack, text", "text", "\n".join(part.text for part in slack)),
        ("Telegram, text", "text", "\n".join(part.text for part in telegram)),
        ("Telegram, entities", "json", _rows(entities)),
        ("Telegram, as HTML", "html", "\n".join(map(telegram_html, telegram))),
        ("Telegram, plain", "text", "\n".join(t for p in telegram for t in plain_telegram(p))),
        ("Terminal", "text", "\n".join(line.rstrip() for line in lines)),
        ("Page", "html", render_html(source)),
    ]
    pieces = [f"## {title}\n"]
    for label, language, text in shown:
        body = _fenced(language, text) if text.strip() else "nothing\n"
        pieces.append(f"{label}:\n\n{body}")
    return "\n".join(pieces)


def _rows(items: list[dict[str, object]] | list[dict[str, str | dict[str, str]]]) -> str:
    return "\n".join(json.dumps(item, ensure_ascii=False) for item in items)


def _fenced(language: str, text: str) -> str:
    visible = text.replace("\u2060", "[WJ]").replace("\u200b", "[ZWSP]").replace("\u200f", "[RLM]")
    lines = "\n".join(line.rstrip() for line in visible.rstrip().split("\n"))
    return f"````{language}\n{lines}\n````\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")


if __name__ == "__main__":
    main()
