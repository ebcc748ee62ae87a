"""Which characters of model text may reach a screen or a platform.

Model text is not trusted to be well-formed Unicode, nor to be free of characters that steer a
terminal or hide what is written. This module removes them; it knows nothing of Markdown.
"""

import re

import regex

_SUSPECT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_UNFIT = re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_LINE_ENDS = re.compile("\r\n?|[\u0085\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
# ECMA-48: control strings (OSC, DCS, SOS, PM, APC) run to ST or BEL, or to the end of the line when
# nobody closes them, so that an unclosed one cannot swallow the rest of the text.
_CONTROL_STRING = re.compile(
    "(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x9c|\x1b\\\\)?"
)
_SEQUENCE = re.compile("(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-Z\\\\^-~]?")

_VISIBLE = regex.compile(r"[^\p{Z}\p{Cc}\p{Cf}\u115f\u1160\u2800\u3164\uffa0]")


def visible(text: str) -> bool:
    """Whether anything in `text` could be seen; platforms refuse a message where nothing can."""
    return _VISIBLE.search(text) is not None


def clean(text: str) -> str:
    """Text that every back end can carry.

    Lone surrogates and noncharacters become U+FFFD. Every line end (CR, CRLF, NEL, U+2028, U+2029)
    becomes a line feed. Other control characters and the direction overrides U+202A to U+202E,
    which Telegram drops and which can make a text read differently from what it says, are removed.
    """
    if _SUSPECT.search(text) is None:
        return text
    text = _UNFIT.sub("\ufffd", text)
    text = _LINE_ENDS.sub("\n", text)
    return _CONTROLS.sub("", text)


def strip_controls(text: str) -> str:
    """`text` without terminal escape sequences and without control characters.

    Tabs and line feeds stay. A sequence (CSI, OSC and its kin) goes as a whole, so that no
    harmless-looking remainder such as `[31m` is left behind.
    """
    if "\x1b" in text or not text.isascii():
        text = _CONTROL_STRING.sub("", text)
        text = _SEQUENCE.sub("", text)
    return clean(text)
