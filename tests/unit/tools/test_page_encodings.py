"""Pages in the encodings that the web is written in."""

import pytest

from runtime.tools.page_encodings import decode_page

RUSSIAN = "Привет, мир"
JAPANESE = "日本語のページ ①"


@pytest.mark.requirement("TOOL-8")
@pytest.mark.parametrize(
    ("body", "named", "text"),
    [
        ("Привет".encode("cp1251"), "windows-1251", "Привет"),
        (JAPANESE.encode("cp932"), "Shift_JIS", JAPANESE),
        (JAPANESE.encode("euc_jp", "ignore"), "EUC-JP", "日本語のページ "),
        ("한국어 똠".encode("cp949"), "euc-kr", "한국어 똠"),
        ("中文 €".encode("gb18030"), "gb2312", "中文 €"),
        (b"\x93caf\xe9\x94", "iso-8859-1", "“café”"),
        (b"caf\xe9", " Latin1 ", "café"),
    ],
)
def test_the_encoding_of_the_header_is_read_as_browsers_read_it(
    body: bytes, named: str, text: str
) -> None:
    assert decode_page(body, named) == text


@pytest.mark.requirement("TOOL-8")
@pytest.mark.parametrize(
    "declaration",
    [
        '<meta charset="windows-1251">',
        "<META CHARSET=windows-1251 />",
        "<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>",
        "<!-- <meta charset=utf-8> --><meta charset='windows-1251'>",
        '<?xml version="1.0" encoding="windows-1251"?>',
        "\n<?xml version='1.0' encoding='Windows-1251' standalone='yes'?>",
    ],
)
@pytest.mark.parametrize("named", ["", "no-such", "punycode", "unicode_escape", "base64"])
def test_a_page_without_a_usable_header_says_it_itself(declaration: str, named: str) -> None:
    page = f"{declaration}<p>{RUSSIAN}"
    assert decode_page(page.encode("cp1251"), named) == page


@pytest.mark.requirement("TOOL-8")
@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"), ("utf-8", b"\xef\xbb\xbf")],
)
def test_a_mark_counts_more_than_the_header(encoding: str, mark: bytes) -> None:
    assert decode_page(mark + RUSSIAN.encode(encoding), "windows-1252") == RUSSIAN


@pytest.mark.requirement("TOOL-8")
@pytest.mark.parametrize(
    "body",
    [
        f"<meta charset=utf-16><p>{RUSSIAN}".encode(),
        f"<meta charset=punycode><p>{RUSSIAN}".encode(),
        f"{' ' * 1024}<meta charset=windows-1251><p>{RUSSIAN}".encode(),
        f"<p>charset=windows-1251 {RUSSIAN}".encode(),
    ],
)
def test_a_declaration_that_cannot_be_true_leaves_utf_8(body: bytes) -> None:
    assert decode_page(body, "") == body.decode()


@pytest.mark.requirement("TOOL-8")
def test_what_cannot_be_read_is_replaced() -> None:
    assert decode_page(b"a\xffb", "") == "a\ufffdb"
    assert decode_page(b"\xff\xfea", "") == "\ufffd"
