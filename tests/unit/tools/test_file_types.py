"""What a file is by its content (MSG-19): right for what is right, silent for what is hostile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.files import PDF, PICTURE_TYPES, safe_name, safe_type, size_text
from runtime.tools.file_types import MOST_UNPACKED, VOICE, contradicts, recognise
from tests.support.files import gif, jpeg, packed_pdf, pdf, png, png_header, webp

pytestmark = pytest.mark.requirement("MSG-19")

FRAME = b"\xff\xc0\x00\x0b\x08" + (258).to_bytes(2) + (300).to_bytes(2)
"""The part of a JPEG that has its size, cut behind it."""
PACKED = packed_pdf(3)
CUT_SHORT = PACKED[: PACKED.index(b"endstream") - 6] + PACKED[PACKED.index(b"endstream") :]
PICTURES = (
    (png(8, 6), "image/png", 8, 6),
    (gif(4, 3), "image/gif", 4, 3),
    (jpeg(640, 480), "image/jpeg", 640, 480),
    (webp(20, 10), "image/webp", 20, 10),
    (
        b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (99 | 49 << 14).to_bytes(4, "little") + b"\0" * 8,
        "image/webp",
        100,
        50,
    ),
    (b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x20\x00\x10\x00\0\0", "image/webp", 32, 16),
    (png_header(8_000, 6_250), "image/png", 8_000, 6_250),
    (png_header(6_250, 8_000), "image/png", 6_250, 8_000),
    (png(8, 6)[:24], "image/png", 8, 6),
    (png(4, 4) + b"acTL", "image/png", 4, 4),
    (gif(4, 3)[:13], "image/gif", 4, 3),
    (b"\xff\xd8" + FRAME, "image/jpeg", 300, 258),
    (b"\xff\xd8\xff\xff\x01\xff\xd0" + FRAME, "image/jpeg", 300, 258),
    (b"\xff\xd8\xff\xe0\x01\x02" + b"\0" * 256 + FRAME, "image/jpeg", 300, 258),
)


@pytest.mark.parametrize(("content", "kind", "width", "height"), PICTURES)
def test_a_picture_is_known_with_its_size(
    content: bytes, kind: str, width: int, height: int
) -> None:
    found = recognise(content)
    assert (found.media_type, found.width, found.height) == (kind, width, height)
    assert found.shown
    assert found.text is None
    assert found.trouble == ""


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        (png_header(8_001, 1), "too many pixels"),
        (png_header(1, 8_001), "too many pixels"),
        (png_header(7_500, 7_500), "too many pixels"),
        (png_header(0, 5), "its size cannot be read"),
        (png(8, 6)[:20], "its size cannot be read"),
        (png(8, 6).replace(b"IHDR", b"IDAT"), "its size cannot be read"),
        (b"\xff\xd8\xff\xe0\0\0" + FRAME, "its size cannot be read"),
        (jpeg()[:12], "its size cannot be read"),
        (b"\xff\xd8\xff\xda\x00\x02" + b"\0" * 40, "its size cannot be read"),
        (gif(frames=2), "animated"),
        (webp(animated=True), "animated"),
        (png(4, 4).replace(b"IDAT", b"acTL", 1) + b"IDAT", "animated"),
        (pdf(101), "more than 100 pages"),
        (pdf().replace(b"%%EOF", b"/Encrypt 1 0 R"), "encrypted"),
        (pdf().replace(b"%%EOF", b"<< /Type /ObjStm /N 5000 >>"), "its pages cannot be counted"),
        (packed_pdf(5000), "more than 100 pages"),
        (packed_pdf(3).replace(b"stream\n", b"stream\n\0", 1), "its pages cannot be counted"),
        (CUT_SHORT, "its pages cannot be counted"),
        (packed_pdf(3, padding=MOST_UNPACKED), "its pages cannot be counted"),
        (pdf(0), "its pages cannot be counted"),
    ],
)
def test_what_is_not_for_a_models_eyes_says_why(content: bytes, trouble: str) -> None:
    found = recognise(content)
    assert (found.trouble, found.shown) == (trouble, False)
    assert found.media_type in PICTURE_TYPES or found.media_type == PDF


def test_pages_in_packed_objects_are_counted() -> None:
    found = recognise(packed_pdf(7))
    assert (found.pages, found.trouble, found.shown) == (7, "", True)
    both = recognise(packed_pdf(7) + pdf(2))
    assert both.pages == 9
    assert recognise(packed_pdf(7) + packed_pdf(5)).pages == 12


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "text/plain"),
        (b"<svg onload='x'>", "text/plain"),
        ("\u00fc\n".encode(), "text/plain"),
        (b"\xff\xfe\x00", "application/octet-stream"),
        (b"a\0b", "application/octet-stream"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
        (b"\0\0\0\x20ftypisom", "video/mp4"),
        (b"\x1aE\xdf\xa3", "video/webm"),
        (b"RIFF\0\0\0\0WAVE", "audio/wav"),
        (b"RIFF\0\0\0\0AVI ", "video/x-msvideo"),
        (b"RIFF\0\0\0\0CDXA", "application/octet-stream"),
        (b"MZ\x90\0", "application/octet-stream"),
        (b"GIF8 is how a picture may begin", "text/plain"),
    ],
)
def test_other_kinds_are_named_by_their_content(content: bytes, kind: str) -> None:
    found = recognise(content)
    assert found.media_type == kind
    assert (found.text is not None) is (kind == "text/plain")
    assert not found.shown


def test_pages_of_a_pdf_are_counted_and_never_guessed() -> None:
    assert recognise(pdf(7)).pages == 7
    assert recognise(b"%PDF-1.7" + b"\x01" * 120_000).pages is None


def test_a_voice_message_may_stand_in_a_container_of_pictures() -> None:
    clip = recognise(b"\0\0\0\x20ftypisom")
    assert clip.sounds(VOICE)
    assert not clip.sounds("video note")
    assert recognise(b"OggS").sounds("")
    assert not recognise(b"words").sounds(VOICE)


@pytest.mark.parametrize(
    ("declared", "found", "lies"),
    [
        ("image/png", "image/jpeg", True),
        ("image/png", "text/plain", True),
        ("image/png", "application/octet-stream", True),
        ("text/csv", "text/plain", False),
        ("text/csv", "application/octet-stream", True),
        ("application/json", "text/plain", False),
        ("application/pdf", "application/zip", True),
        ("application/vnd.oasis.opendocument.text", "application/zip", False),
        ("text/plain", "application/pdf", True),
        ("audio/ogg", "application/ogg", False),
        ("video/mp4", "audio/mp4", False),
        ("image/png", "video/mp4", True),
        ("audio/x-mpeg", "audio/mpeg", False),
        ("audio/mpeg", "image/png", True),
        ("audio/mpeg", "application/octet-stream", False),
        ("application/octet-stream", "image/png", False),
        ("application/x-own", "application/octet-stream", False),
    ],
)
def test_a_lie_is_told_from_another_word_for_the_same(
    declared: str, found: str, lies: bool
) -> None:
    assert contradicts(declared, found) is lies


HEADS = st.sampled_from(
    [content for content, *_ in PICTURES] + [pdf(), b"OggS", b"GIF89a", b"RIFF"]
)


@given(head=HEADS, cut=st.integers(0, 60), tail=st.binary(max_size=200))
def test_no_bytes_break_the_reading(head: bytes, cut: int, tail: bytes) -> None:
    found = recognise(head[:cut] + tail)
    if found.shown:
        assert found.media_type in PICTURE_TYPES or found.media_type == PDF
        assert found.pages or (found.width or 0) * (found.height or 0) > 0
    assert (found.text is None) or found.media_type == "text/plain"


@given(st.binary(max_size=300))
def test_no_content_at_all_breaks_the_reading(content: bytes) -> None:
    assert "/" in recognise(content).media_type


@given(st.text(max_size=300))
def test_every_name_becomes_one_harmless_part_of_a_path(name: str) -> None:
    safe = safe_name(name)
    assert 0 < len(safe) <= 80
    assert len(safe.encode()) <= 200
    assert safe == safe_name(safe)
    assert not set(safe) & set("/\\\0\n\r\t\"'`<>|*:;&$!?[]{}#\u202e\u200b")
    assert safe not in (".", "..")


@pytest.mark.parametrize("letter", ["\U00020000", "\u00fc", "a"])
def test_a_long_name_fits_on_a_disk_and_keeps_its_ending(letter: str) -> None:
    safe = safe_name(letter * 300 + ".png")
    assert safe.endswith(f"{letter}.png")
    assert 75 <= len(safe.encode()) <= 200


@given(st.text(max_size=150))
def test_every_declared_type_becomes_a_type(declared: str) -> None:
    assert "/" in safe_type(declared)
    assert "\n" not in safe_type(declared)


def test_a_declared_type_keeps_no_parameters() -> None:
    assert safe_type("Text/HTML; charset=x") == "text/html"
    assert safe_type("text/html\n[attached]") == "application/octet-stream"


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KB"),
        (20 * 1024**2, "20 MB"),
        (2_600_000, "2.5 MB"),
    ],
)
def test_a_limit_reads_as_it_was_set(size: int, words: str) -> None:
    assert size_text(size) == words
