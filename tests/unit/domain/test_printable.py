"""What a person cannot see is written out, and nothing else is changed (APR-9)."""

import re
import sys
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.printable import (
    MOST_MARKS,
    MOST_SPACES,
    code_name,
    is_hidden,
    one_line,
    person_name,
    printable,
    printable_name,
    printable_path,
    quoted,
    without_hidden,
)

pytestmark = pytest.mark.requirement("APR-9")

UNSEEN = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{C}\p{Z}\u2800\uFFFC\U0001D159]")
TRICKY = st.text(
    st.sampled_from(
        "\\u{}5c20e a\n\t\u202e\u0301\u0307\u0338\u200d\ufe0f\u3164\u00e9\u0928\ud800i="
    )
)


def undone(written: str) -> str:
    return re.sub(r"\\u\{([0-9a-f]{1,6})\}", lambda found: chr(int(found[1], 16)), written)


CODES = [*range(0x33500), *range(0x33500, 0xE0000, 997), *range(0xE0000, 0xE1100)]
CODES += [*range(0xE1100, sys.maxunicode, 997), sys.maxunicode]
EVERY = "".join(map(chr, CODES))
"""All of Unicode; where nothing is assigned in whole planes, each 997th."""


def test_whatever_unicode_calls_invisible_is_hidden_and_nothing_that_this_python_can_show() -> None:
    hidden = {char for char in EVERY if is_hidden.__wrapped__(char)}
    unseen = set(UNSEEN.findall(EVERY)) - {" "}
    assert unseen - hidden == set()
    # Fillers and selectors that Unicode does not list among the default-ignorable; what the
    # Unicode of this Python does not know yet is written out as well.
    more = {char for char in hidden - unseen if unicodedata.category(char) != "Cn"}
    assert {hex(ord(char)) for char in more} <= {"0x16fe4", "0x1bc9d", "0x1bc9e"}


def test_no_hidden_character_is_left_in_what_is_written() -> None:
    written = printable(EVERY)
    assert set(UNSEEN.findall(written)) == {" ", "\n"}
    assert undone(written) == EVERY


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("rm \u202efdp.txt", r"rm \u{202e}fdp.txt"),
        ("a\u3164b\u2800c\u115fd\u1160e\uffa0f", r"a\u{3164}b\u{2800}c\u{115f}d\u{1160}e\u{ffa0}f"),
        ("co\u00adde\u034f\u061c\u180e", r"co\u{ad}de\u{34f}\u{61c}\u{180e}"),
        ("x\ufe0f\U000e0101\U000e0041", r"x\u{fe0f}\u{e0101}\u{e0041}"),
        ("a\u00a0b\u2003c\u3000d\u202fe", r"a\u{a0}b\u{2003}c\u{3000}d\u{202f}e"),
        ("a\u2028b\u2029c\u0085d", r"a\u{2028}b\u{2029}c\u{85}d"),
        ("\x1b[2J\x07\r\t\x7f\0", r"\u{1b}[2J\u{7}\u{d}\u{9}\u{7f}\u{0}"),
        ("\ud800 \udcff \ue000 \uffff \U0010ffff", None),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\\u{200d}\U0001f4bb"),
        ("one\ntwo", "one\ntwo"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, written: str | None) -> None:
    assert printable(text) == (written or r"\u{d800} \u{dcff} \u{e000} \u{ffff} \u{10ffff}")


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u0631\u062d\u0628\u0627",
        "\u0928\u092e\u0938\u094d\u0924\u0947",
        "\u05e2\u05b4\u05d1\u05b0\u05e8\u05b4\u05d9\u05ea",
        "ti\u1ebfng Vi\u1ec7t, e\u0323\u0302 and e\u0301",
        "\u0e17\u0e35\u0e48 \ud55c\uad6d\uc5b4 \u65e5\u672c\u8a9e \u304b\u3099",
        "na\u00efve \u20ac5 \u2026 \U0001f600",
        r"C:\users\new \d+ \u00e9 \\",
        '{"command": "echo \\"hi\\" && ls -la | grep x"}',
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text
    assert printable_name(text) == text
    assert without_hidden(text) == text


def test_a_written_escape_is_told_from_a_real_character() -> None:
    assert printable("\\u{202e}") == r"\u{5c}u{202e}"
    assert printable("\\\u202e") == r"\u{5c}\u{202e}"


@given(TRICKY | st.text(st.characters(exclude_categories=())))
def test_nothing_is_lost(text: str) -> None:
    for newlines in (True, False):
        written = printable(text, newlines=newlines)
        assert undone(written) == text
        assert newlines or "\n" not in written


def test_marks_that_hide_or_flood_are_written_out() -> None:
    assert printable("a" + "\u0327" * 50).count(r"\u{327}") == 50
    assert printable("\u0434" + "\u0301" * 50).count(r"\u{301}") == 50 - MOST_MARKS
    # A dot on a letter that has one, a stroke, a ring around, a mark on nothing.
    assert printable("i\u0307") == r"i\u{307}"
    assert printable("=\u0338 a\u0336 \u0434\u20dd \u0301") == (
        "=\\u{338} a\\u{336} \u0434\\u{20dd} \\u{301}"
    )


def test_spaces_push_nothing_out_of_sight() -> None:
    written = printable(f"ls{' ' * (MOST_SPACES + 2)}; rm x")
    assert written == f"ls{' ' * MOST_SPACES}\\u{{20}}\\u{{20}}; rm x"


@given(TRICKY, st.integers(min_value=3, max_value=40))
def test_a_name_is_one_line_within_its_limit_and_never_half_an_escape(
    text: str, limit: int
) -> None:
    name = printable_name(text, limit)
    whole = printable(text, newlines=False)
    assert len(name) <= limit
    assert "\n" not in name
    if name != whole:
        assert name.endswith("...")
        assert text.startswith(undone(name[:-3]))


def test_a_long_name_costs_no_more_than_its_limit() -> None:
    assert printable_name("\u202e" * 10_000_000, 20) == r"\u{202e}\u{202e}..."


def test_a_persons_name_loses_what_cannot_be_seen() -> None:
    assert without_hidden("Zo\u00eb\u202e\u3164\nowner\u200b") == "Zo\u00eb owner"
    assert without_hidden("a\u00a0b\ud800") == "a b"
    assert len(without_hidden("\u0434" + "\u0301" * 500)) == 1 + MOST_MARKS


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", "'plain'"),
        ("Ann's", '"Ann\'s"'),
        ('a\'b" and "c', '"a\'b\\u{22} and \\u{22}c"'),
        ("a\u3164b\u2800\ufe0f\nc", r"'a\u{3164}b\u{2800}\u{fe0f}\u{a}c'"),
        ("x" * 81, f"'{'x' * 77}...'"),
    ],
)
def test_a_quoted_name_shows_everything_and_cannot_close_its_quotes(
    text: str, written: str
) -> None:
    assert quoted(text) == written


def test_a_name_in_code_cannot_end_the_code() -> None:
    assert code_name("a`b\u202e") == r"`a\u{60}b\u{202e}`"


def test_a_path_is_written_whatever_bytes_it_is_made_of() -> None:
    name = b"/tmp/\xff\n\xe2\x80\xaeb".decode(errors="surrogateescape")
    assert printable_path(name) == r"/tmp/\xff\u{a}\u{202e}b"
    assert len(printable_path("/" + "a" * 4000)) == 500


def test_a_label_is_one_line_and_says_where_it_was_cut() -> None:
    assert one_line("  one\n\ttwo\u202e\u3164  three ") == "one two three"
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abcdefg", 6) == "abc..."


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ann", "Ann"),
        ("<!channel> **Ann** `x`", "!channel Ann x"),
        ("Ann\nOwner: do it", "AnnOwner: do it"),
        ("Ann\u2028Owner: do it", "AnnOwner: do it"),
        ("Ann\u0085x\u2029y", "Annxy"),
        ("\u202egnisaeler", "gnisaeler"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("~~gone~~ \\*", "gone"),
        ("[click](http://x)", "clickhttp://x"),
        ("***", "someone"),
        ("", "someone"),
        ("x" * 100, "x" * 60),
        ("Zoë 🧑‍🤝‍🧑 李", "Zoë 🧑‍🤝‍🧑 李"),
    ],
)
def test_a_display_name_carries_no_markup_and_no_breaks(name: str, shown: str) -> None:
    assert person_name(name) == shown
