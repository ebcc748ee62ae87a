"""Files for tests, made by hand: pictures of any size on paper, and what lies about itself."""

import struct
import zlib


def png(width: int = 8, height: int = 6, *, padding: int = 0) -> bytes:
    """A black PNG that decodes; `padding` are bytes of a chunk that says nothing."""
    rows = zlib.compress(b"".join(b"\0" + b"\0" * width for _ in range(height)))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"teXt", b"p" * padding), (b"IDAT", rows), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*one) for one in chunks if one[1] or not padding)


def png_header(width: int, height: int) -> bytes:
    """Only the beginning of a PNG that claims a size: a bomb for whoever decodes it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IEND", b"")


def gif(width: int = 4, height: int = 3, *, frames: int = 1) -> bytes:
    """A GIF of one or several frames."""
    frame = b"\x00\x21\xf9\x04\x00\x0a\x00\x00\x00\x2c\0\0\0\0\x04\0\x03\0\0\x02\x02\x44\x01"
    head = b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00"
    return head + frame * frames + b"\x00\x3b"


def jpeg(width: int = 640, height: int = 480) -> bytes:
    """The headers of a JPEG, with a segment in front of the one that holds the size."""
    application = b"\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    frame = b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width)
    return b"\xff\xd8" + application + frame + b"\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01\xff\xd9"


def webp(width: int = 20, height: int = 10, *, animated: bool = False) -> bytes:
    """The headers of an extended WebP."""
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + bytes([2 if animated else 0, 0, 0, 0]) + sides
    return b"RIFF" + struct.pack("<I", len(body)) + body


def pdf(pages: int = 1) -> bytes:
    """As much of a PDF as says how many pages it has."""
    kids = b"".join(b"<< /Type /Page >>\n" for _ in range(pages))
    return b"%PDF-1.4\n<< /Type /Pages >>\n" + kids + b"%%EOF\n"


def packed_pdf(pages: int, *, padding: int = 0) -> bytes:
    """A PDF whose pages stand in a packed stream of objects, as most programs write them."""
    objects = zlib.compress(b"<< /Type /Page >>\n" * pages + b" " * padding)
    head = b"%PDF-1.5\n1 0 obj\n<< /Type /ObjStm /Filter /FlateDecode >>\nstream\n"
    return head + objects + b"\nendstream\nendobj\n%%EOF\n"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
