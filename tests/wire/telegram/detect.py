"""Finds in plain text what the server marks by itself: mentions, commands, addresses, tags.

Mentions and commands follow the real rules; addresses without a scheme are found for a short list
of top-level domains only, where the real server knows all of them.
"""

import re
from collections.abc import Iterator

_DOMAINS = "com|org|net|io|dev|app|me|info|eu|de|fr|nl|uk|us|ru|ai|xyz|co|edu|gov"
_PATTERNS = (
    ("bot_command", r"(?<![\w/<>])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/<>])"),
    ("email", r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[A-Za-z]{2,24}(?![\w-])"),
    ("url", r"(?<![\w@])https?://[^\s<>\"]+"),
    ("url", rf"(?<![\w@./-])(?:[a-z0-9-]+\.)+(?:{_DOMAINS})(?![\w-])(?:[/?#:][^\s<>\"]*)?"),
    ("mention", r"(?<![\w@/])@[A-Za-z0-9_]{3,32}(?!\w)"),
    ("hashtag", r"(?<![\w#])#(?=\w*[^\W\d])\w{1,256}(?![\w#])"),
    ("cashtag", r"(?<![\w$])\$[A-Z]{1,8}(?![\w$])"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


def detect(text: str) -> list[tuple[str, int, int]]:
    """(type, offset, length) in UTF-16 units, in order, none over another."""
    taken: list[tuple[int, int]] = []
    found: list[tuple[str, int, int]] = []
    for kind, start, end in _matches(text):
        if any(start < other_end and other < end for other, other_end in taken):
            continue
        taken.append((start, end))
        offset = len(text[:start].encode("utf-16-le", "surrogatepass")) // 2
        length = len(text[start:end].encode("utf-16-le", "surrogatepass")) // 2
        found.append((kind, offset, length))
    return sorted(found, key=lambda item: item[1])


def _matches(text: str) -> Iterator[tuple[str, int, int]]:
    for kind, pattern in _COMPILED:
        for match in pattern.finditer(text):
            value = match[0]
            if kind == "url":
                value = value.rstrip(".,:;!?'\")")
            yield kind, match.start(), match.start() + len(value)
