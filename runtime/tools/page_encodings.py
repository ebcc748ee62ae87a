"""In which encoding a page of the web is written: its mark, its header, or what it says itself.

The order and the names are those of the Encoding and HTML standards of WHATWG
(https://encoding.spec.whatwg.org, https://html.spec.whatwg.org/#determining-the-character-encoding).
"""

import codecs
import re
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE: Final = 1024
"""Bytes of the beginning in which a page names its encoding."""
_COMMENTS: Final = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_PROLOG: Final = re.compile(rb"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']\s*([\w.:-]+)")
_META: Final = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_MEANT: Final = {
    **dict.fromkeys(("ascii", "us-ascii", "latin1", "latin-1"), "cp1252"),
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "x-cp1252"), "cp1252"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("gb2312", "gb_2312-80", "x-gbk", "gbk"), "gb18030"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "windows-949"), "cp949"),
    **dict.fromkeys(("windows-874", "iso-8859-11", "tis-620"), "cp874"),
    **dict.fromkeys(("iso-8859-9", "latin5"), "cp1254"),
    "x-cp1250": "cp1250",
    "x-cp1251": "cp1251",
    "x-mac-cyrillic": "mac-cyrillic",
    "macintosh": "mac-roman",
}
"""What browsers read where a page says the name on the left: the wider set of characters."""

_READ: Final = frozenset(
    codecs.lookup(name).name
    for name in (
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5", "big5-hkscs"),
        *("euc-jp", "iso2022-jp", "cp932", "cp949", "cp866", "cp874", "koi8-r", "koi8-u"),
        *("mac-roman", "mac-cyrillic", *(f"cp{number}" for number in range(1250, 1259))),
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
    )
)
"""Codecs that browsers have. Python has more: some read escapes, some take quadratic time."""


def decode_page(body: bytes, named: str) -> str:
    """The text of a page. `named` is the encoding that came with it, or empty. What cannot be read
    becomes U+FFFD; never raises."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, errors="replace")
    encoding = _known(named) or _declared(body) or "utf-8"
    return body.decode(encoding, errors="replace")


def _declared(body: bytes) -> str | None:
    """What the beginning of a page says of itself, in letters of ASCII."""
    sample = _COMMENTS.sub(b"", body[:_SAMPLE])
    found = _PROLOG.match(sample) or _META.search(sample)
    encoding = _known(found[1].decode("ascii", "replace")) if found else None
    # It was read as ASCII, so it is nothing of two bytes a character.
    return "utf-8" if encoding is not None and encoding.startswith("utf-16") else encoding


def _known(name: str) -> str | None:
    """The codec of a name; None where browsers know no such name."""
    name = name.strip().lower()
    try:
        codec = codecs.lookup(_MEANT.get(name, name)).name
    except (LookupError, ValueError):
        return None
    return codec if codec in _READ else None
