"""Keeps model text from calling people on Slack.

Slack notifies for control sequences (`<!channel>`, `<@U123>`, `<!subteam^S1>`) and, where names
are linked, for `@channel`, `@here` and `@everyone`. A word joiner (U+2060, invisible, of no width)
after the first character breaks both, also in code, where nothing can be escaped.
"""

import re

WORD_JOINER = "\N{WORD JOINER}"

_CALL = re.compile(r"@(?=(?:channel|here|everyone|group)(?![^\W_]))|<(?=[!@#])", re.IGNORECASE)
_CALL_IN_URL = re.compile(r"@(?=(?:channel|here|everyone|group)(?![^\W_]))", re.IGNORECASE)
_FENCE = re.compile(r"``(?=`)")


def defuse(text: str) -> str:
    """`text` that reads the same and notifies nobody; one character longer a mention."""
    return _CALL.sub(lambda found: found[0] + WORD_JOINER, text)


def defuse_url(url: str) -> str:
    """The same address without a mention and without what ends or splits a link in either dialect.

    Percent-encoding keeps the meaning (RFC 3986); an address is at most three times as long after.
    """
    if "@" in url:
        url = _CALL_IN_URL.sub("%40", url)
    return url.translate(_ENCODED) if _SPLITS.search(url) else url


_SPLITS = re.compile(r"[<>|()\\ *_~`\[\]]")
_ENCODED = {ord(char): f"%{ord(char):02X}" for char in "<>|()\\ *_~`[]"}


def break_fences(text: str) -> str:
    """`text` without three backticks in a row, which would open or close a code block."""
    return _FENCE.sub(f"`{WORD_JOINER}`{WORD_JOINER}", text) if "```" in text else text
