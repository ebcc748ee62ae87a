"""Texts of 100 KB for the renderer: what a model writes, and what nobody should."""

from collections.abc import Callable

SIZE = 100_000

_MIXED = """\
## Section {0}

Some **bold** prose with *emphasis*, `code`, a [link](https://example.org/a?b={0}) and more words.

- first item with **bold** text
- second item with `inline code`
  - nested item, see <https://example.org/n>
  - another [nested](https://example.org/x)
- third item

| name | value | note |
|------|------:|------|
| alpha | 1 | `x` |
| beta | 22 | **y** |
| gamma | 333 | [z](https://example.org) |

```python
def f(x: int) -> int:
    return x + {0}
```

> A quote with *words* in it.

"""


def _repeated(text: str, size: int) -> str:
    count = size // len(text.format(1)) + 1
    return "".join(text.format(number) for number in range(count))[:size]


ORDINARY: dict[str, str] = {
    "dense mix": _repeated(_MIXED, SIZE),
    "prose": _repeated("One two three four five six seven, eight nine ten {0}.\n\n", SIZE),
    "prose with emoji": _repeated(
        "Words 👍🏽 with emoji 👩‍👩‍👧‍👦 and flags 🇩🇪, naïve café 漢字 {0}.\n\n", SIZE
    ),
    "Japanese": _repeated("これは日本語の文章です。漢字とかなが混ざっています。{0}\n\n", SIZE),
    "code": _repeated("```py\n" + "x = compute(value, other) + {0}\n" * 20 + "```\n\n", SIZE),
    "links": _repeated(
        "[a link {0}](https://example.org/page/{0}), <https://example.org>\n\n", SIZE
    ),
    "short list items": _repeated("- item {0} with **bold** and `code`\n  - nested text\n", SIZE),
    "table rows": _repeated(
        "| name | value | note |\n|---|--:|---|\n"
        + "| a cell of text {0} | 12 | *some* words and `code` |\n" * 20
        + "\n",
        SIZE,
    ),
}

HOSTILE: dict[str, Callable[[int], str]] = {
    "quotes, ever deeper": lambda size: ">" * size,
    "lists, ever deeper": lambda size: "1. " * (size // 3),
    "brackets": lambda size: "[" * size,
    "stars": lambda size: "*" * size,
    "underscores": lambda size: "_" * size,
    "backticks": lambda size: "`" * size,
    "angles": lambda size: "<" * size,
    "bars": lambda size: "|" * size,
    "a fence that never ends": lambda size: "```py\n" + "line\n" * (size // 5),
    "no space": lambda size: "x" * size,
    "joined emoji": lambda size: "👩‍" * (size // 2),
    "links that are not followed": lambda size: "[a](x) " * (size // 7),
    "definitions": lambda size: "[a]: b\n" * (size // 7),
    "cells beyond the table": lambda size: "|a|\n|-|\n" + "|a|b|\n" * (size // 6),
    "tags": lambda size: "<div>\n" * (size // 6),
    "nested images": lambda size: "![" * (size // 8) + "](b)" * (size // 8),
    "references": lambda size: "&#27;" * (size // 5),
}
