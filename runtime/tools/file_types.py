"""What a file is, by its content: never by its name or by what its sender calls it (MSG-19).

Pure, and for hostile bytes: only headers are read, and a header that lies about its own lengths
ends the reading. Nothing is decoded, and unpacked are only the objects of a PDF, to count its
pages, within a bound.
"""

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from runtime.domain.files import PDF, PICTURE_TYPES, UNKNOWN_TYPE
from runtime.tools.binary_files import is_binary, media_type

TEXT: Final = "text/plain"
MOST_PIXELS: Final = 50_000_000
MOST_SIDE: Final = 8_000
"""Pixels; the least of the providers' limits. More may be a bomb for whoever decodes it."""
MOST_PAGES: Final = 100
MOST_UNPACKED: Final = 8 * 1024 * 1024
MOST_HEADER: Final = 1024
"""Bytes between the mark of a PDF's stream of objects and the stream."""
_STREAM: Final = re.compile(rb"stream\r?\n")
_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_JPEG_SIZES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
_MP3: Final = (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
VOICE: Final = "voice message"
"""`Attachment.kind` of what somebody spoke instead of writing it."""
_OGG: Final = "application/ogg"
_MATROSKA: Final = b"\x1aE\xdf\xa3"
_CONTAINERS: Final = frozenset({_OGG, "audio/mp4", "video/mp4", "video/webm"})
"""Formats that hold sound, pictures or both; which, their first bytes do not say."""
_TEXTUAL: Final = frozenset(
    {
        *("application/ecmascript", "application/javascript", "application/json"),
        *("application/rtf", "application/sql", "application/toml", "application/x-sh"),
        *("application/x-yaml", "application/xml", "application/yaml", "image/svg+xml"),
    }
)
Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Contents:
    """What the bytes show. ``width`` and ``height`` are pixels, ``pages`` are a PDF's, by estimate.

    ``text`` is the whole content where it is UTF-8. ``trouble`` says why a picture or a document is
    not for a model's eyes.
    """

    media_type: str
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    text: str | None = None
    trouble: str = ""

    @property
    def shown(self) -> bool:
        """Whether a model may be given the file itself."""
        return (self.media_type in PICTURE_TYPES or self.media_type == PDF) and not self.trouble

    def sounds(self, kind: str) -> bool:
        """Whether it is a recording that can be transcribed; `kind` is its platform's word."""
        spoken = kind == VOICE and self.media_type in _CONTAINERS
        return spoken or self.media_type.startswith("audio/") or self.media_type == _OGG


def recognise(content: bytes) -> Contents:
    """What the content is; never raises, whatever it holds."""
    found = _kind(content)
    if found in PICTURE_TYPES:
        return _picture(content, found)
    if found == PDF:
        return _document(content)
    if found == UNKNOWN_TYPE and not is_binary(content):
        try:
            return Contents(TEXT, text=content.decode())
        except UnicodeDecodeError:
            return Contents(found)
    return Contents(found)


def recognise_head(head: bytes) -> str:
    """The type of a file by its first bytes; no text is told from another."""
    found = _kind(head)
    return TEXT if found == UNKNOWN_TYPE and head and not is_binary(head) else found


def _document(content: bytes) -> Contents:
    """A PDF, with its pages counted where they stand and in the packed objects that hold them."""
    if b"/Encrypt" in content:
        return Contents(PDF, trouble="encrypted")
    packed = _packed(content)
    pages = 0 if packed is None else packed + len(_PAGE.findall(content))
    if not pages:
        return Contents(PDF, trouble="its pages cannot be counted")
    trouble = "" if pages <= MOST_PAGES else f"more than {MOST_PAGES} pages"
    return Contents(PDF, pages=pages, trouble=trouble)


def _packed(content: bytes) -> int | None:
    """The pages in a PDF's streams of objects; None where these do not unpack within
    `MOST_UNPACKED` bytes together: a few bytes must not cost much memory here, or many pages of a
    model's attention."""
    left, pages, end = MOST_UNPACKED, 0, 0
    while (at := content.find(b"/ObjStm", end)) >= 0:
        begin = _STREAM.search(content, at, at + MOST_HEADER)
        end = content.find(b"endstream", at)
        if begin is None or end < begin.end():
            return None
        unpacking = zlib.decompressobj()
        try:
            objects = unpacking.decompress(content[begin.end() : end], left)
        except zlib.error:
            return None
        left -= len(objects)
        if not unpacking.eof or left <= 0:
            return None
        pages += len(_PAGE.findall(objects))
    return pages


def contradicts(declared: str, found: str) -> bool:
    """Whether a file is not what its sender's side says, as far as the content can tell."""
    if declared in (UNKNOWN_TYPE, found):
        return False
    if found == TEXT:
        return not (declared.startswith("text/") or declared in _TEXTUAL)
    if found == UNKNOWN_TYPE:
        return declared in PICTURE_TYPES or declared == PDF or declared.startswith("text/")
    same = {declared.partition("/")[0], found.partition("/")[0]}
    if found in _CONTAINERS:
        return not same <= {"audio", "video", "application"}
    if found == "application/zip":
        return not declared.startswith("application/") or declared == PDF
    return len(same) > 1 or found in PICTURE_TYPES or found == PDF


def _kind(content: bytes) -> str:
    found = media_type(content[:64])
    if "/" not in found:
        # UTF-16 with a mark: text to people, bytes to everything here.
        return UNKNOWN_TYPE
    if content.startswith(_MP3):
        return "audio/mpeg"
    if content.startswith(_MATROSKA):
        return "video/webm"
    return "audio/mp4" if content[4:11] == b"ftypM4A" else found


def _picture(content: bytes, kind: str) -> Contents:
    size, moving = _READERS[kind](content)
    if size is None or 0 in size:
        return Contents(kind, trouble="its size cannot be read")
    width, height = size
    trouble = ""
    if moving:
        trouble = "animated"
    elif width > MOST_SIDE or height > MOST_SIDE or width * height > MOST_PIXELS:
        trouble = "too many pixels"
    return Contents(kind, width, height, trouble=trouble)


def _png(content: bytes) -> tuple[Size | None, bool]:
    if content[12:16] != b"IHDR" or len(content) < 24:
        return None, False
    size = int.from_bytes(content[16:20]), int.from_bytes(content[20:24])
    # An animation says so in front of its first frame (the acTL chunk of APNG).
    return size, b"acTL" in content[:4096].partition(b"IDAT")[0]


def _gif(content: bytes) -> tuple[Size | None, bool]:
    if len(content) < 13:
        return None, False
    size = int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little")
    return size, content.count(b"\x00\x21\xf9\x04") > 1


def _jpeg(content: bytes) -> tuple[Size | None, bool]:
    at = 2
    while at + 9 <= len(content):
        if content[at] != 0xFF:
            return None, False
        marker = content[at + 1]
        if marker == 0xFF or marker in _JPEG_BARE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _JPEG_SIZES:
            height = int.from_bytes(content[at + 5 : at + 7])
            return (int.from_bytes(content[at + 7 : at + 9]), height), False
        length = int.from_bytes(content[at + 2 : at + 4])
        if length < 2 or marker == 0xDA:
            return None, False
        at += 2 + length
    return None, False


def _webp(content: bytes) -> tuple[Size | None, bool]:
    if len(content) < 30:
        return None, False
    match content[12:16]:
        case b"VP8X":
            size = (
                1 + int.from_bytes(content[24:27], "little"),
                1 + int.from_bytes(content[27:30], "little"),
            )
            return size, bool(content[20] & 0x02)
        case b"VP8L":
            bits = int.from_bytes(content[21:25], "little")
            return (1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)), False
        case b"VP8 ":
            sides = content[26:28], content[28:30]
            width, height = (int.from_bytes(side, "little") & 0x3FFF for side in sides)
            return (width, height), False
    return None, False


_READERS: Final[dict[str, Callable[[bytes], tuple[Size | None, bool]]]] = {
    "image/png": _png,
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
}
