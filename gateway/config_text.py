"""The rules of keys, tokens and addresses, whichever setting and source they come from (MDL-8).

Pure. White space at the ends is taken off: a line feed comes with every secret that was written to
a file by a shell, and a mark of the byte order with every file of some editors. What is left is
refused where no header or address can hold it. No rule repeats the text, which is a secret.
"""

from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

_INVISIBLE: Final = "\ufeff\u200b\u200c\u200d\u2060"
"""Characters without a width, which Python counts as no white space: the mark of the byte order,
and what editors and chats put between letters."""
_QUOTES: Final = "\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb"


def trim(text: str) -> str:
    """The text without white space and invisible characters at its ends."""
    before = None
    while text != before:
        before, text = text, text.strip().strip(_INVISIBLE)
    return text


def header_problem(text: str) -> str:
    """Why no header can hold the text, as a rule in words; empty where one can."""
    if not text:
        return "must not be empty; take it out, or fill it in"
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        return "must not stand in quotation marks; take them off"
    for place, char in enumerate(text, 1):
        if not (char.isascii() and char.isprintable()):
            rule = "must hold letters, digits and signs of ASCII alone"
            return f"{rule}, but has {_described(char)} at character {place}; copy it again"
    return ""


def encoding_problem(text: str) -> str:
    """Why the text of a variable cannot be read, as a rule in words; empty where it can."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"is not UTF-8 text, at character {error.start + 1}"
    return ""


def address_problem(text: str, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """Why the text is no address with one of the schemes, as a rule in words; empty where it is."""
    wanted = " or ".join(f"{scheme}://" for scheme in schemes)
    for place, char in enumerate(text, 1):
        if not char.isprintable() or char.isspace() or char in _QUOTES or char in _INVISIBLE:
            return f"must be an address, but has {_described(char)} at character {place}"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if usable:
        return ""
    return f"must be an address that begins with {wanted}, as in {schemes[0]}://api.example.org/v1"


def _described(char: str) -> str:
    """The character in words: many of them cannot be seen."""
    if char in "\r\n":
        return "a line break"
    if char in _QUOTES:
        return "a quotation mark"
    if char.isspace():
        return "white space"
    return f"U+{ord(char):04X}"


def _trim_given(given: object) -> object:
    return trim(given) if isinstance(given, str) else given


def _check_credential(given: SecretStr) -> SecretStr:
    if problem := header_problem(given.get_secret_value()):
        raise ValueError(problem)
    return given


def _check_address(text: str) -> str:
    if problem := address_problem(text):
        raise ValueError(problem)
    return text


TRIMMED: Final = BeforeValidator(_trim_given)
"""In an `Annotated` type: white space at the ends of the text is taken off."""
Credential = Annotated[SecretStr, TRIMMED, AfterValidator(_check_credential)]
"""A key or token that goes into a header."""
Address = Annotated[str, TRIMMED, AfterValidator(_check_address)]
"""An address that begins with ``http://`` or ``https://``."""
