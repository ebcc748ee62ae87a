"""Telling text from what is not, and saying what it is instead of dumping it (TOOL-4)."""

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\x7fELF", "application/x-elf"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"\xff\xfe", "text in UTF-16 or UTF-32"),
    (b"\xfe\xff", "text in UTF-16"),
    (b"OggS", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
)
_UNKNOWN = "application/octet-stream"
_TERMINAL = "\t\n\r\b\f\x07\x1b"
"""Control characters of programs that print for a terminal."""
_SAMPLE = 64 * 1024
"""Bytes that are looked at; a NUL further on makes text unusual, not unreadable."""


def is_binary(head: bytes) -> bool:
    """Whether these first bytes of a file are no UTF-8 text. A cut last character is text."""
    sample = head[:_SAMPLE]
    if b"\0" in sample:
        return True
    try:
        sample.decode()
    except UnicodeDecodeError as error:
        cut = error.end == len(sample) and error.reason == "unexpected end of data"
        return not cut
    return False


def is_nearly_text(content: bytes) -> bool:
    """Whether a person could read these bytes with some characters replaced: lines in Latin-1, or
    UTF-8 with a broken byte. What begins like a known kind of file is none, nor is what holds NULs,
    many control characters, or more than a third of bytes that are no UTF-8."""
    sample = content[:_SAMPLE]
    if b"\0" in sample or media_type(sample) != _UNKNOWN:
        return False
    text = sample.decode(errors="replace")
    controls = sum(1 for char in text if char < " " and char not in _TERMINAL)
    broken = text.count("\ufffd")
    return controls * 100 <= len(text) and broken * 3 <= len(text)


def media_type(head: bytes) -> str:
    """By the first bytes; never by the name."""
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[:4] == b"RIFF" and head[8:12] in {b"WEBP", b"WAVE", b"AVI "}:
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], "video/x-msvideo")
    if head[4:8] == b"ftyp":
        return "video/mp4"
    return _UNKNOWN


def describe(head: bytes, size: int | None = None) -> str:
    """``image/png, 1,234 bytes``; `size` where `head` is not all of it."""
    return f"{media_type(head)}, {len(head) if size is None else size:,} bytes"
