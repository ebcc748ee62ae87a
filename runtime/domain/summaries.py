"""What a run is about, in one line for people, without what looks like a secret (RUN-2)."""

import re
import unicodedata
from typing import Final

from runtime.domain.messages import InboundMessage
from runtime.domain.printable import one_line

MOST_BYTES: Final = 200
"""In UTF-8."""
MASK: Final = "[secret]"
TOKENS: Final = re.compile(
    r"xox[a-z]-[\w-]{6,}|xapp-[\w-]{6,}|xoxe\.[\w.-]{6,}|\bsk-[\w-]{16,}|\bAIza[\w-]{20,}"
    r"|\bgh[pousr]_\w{20,}|\b\d{6,12}:[A-Za-z0-9_-]{30,}|(?i:bearer\s+)[\w.~+/=-]{8,}"
    r"|(?<=://)[^\s/@:]+:[^\s/@]+(?=@)|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END|$)"
)
"""What tokens of the known services look like, whoever wrote them; passwords inside URLs."""
_CUT: Final = "\N{HORIZONTAL ELLIPSIS}"
_LOOKED_AT: Final = 4_000
"""Characters of a text that a summary is made from."""


def summary(text: str) -> str:
    """The beginning of `text` as one line of at most `MOST_BYTES` bytes, which no cut leaves with
    half a character."""
    # Before anything is cut: of half a secret nobody could tell what it is.
    line = one_line(TOKENS.sub(MASK, text[:_LOOKED_AT]))
    if len(line.encode()) <= MOST_BYTES:
        return line
    room = MOST_BYTES - len(_CUT.encode())
    kept = line.encode()[:room].decode(errors="ignore")
    # A letter goes with its marks, or not at all.
    end = len(kept)
    while end and unicodedata.combining(line[end]):
        end -= 1
    return f"{kept[:end].rstrip()}{_CUT}"


def said_in(message: InboundMessage) -> str:
    """What a message says; where it has no words, the names of its files."""
    return message.text.strip() or ", ".join(one.name for one in message.attachments)
