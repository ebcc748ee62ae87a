"""A reply as a person sees it in Telegram, construct by construct."""

import pytest

from adapters.rendering import Entity, TelegramPart, plain_telegram, render_telegram
from tests.unit.rendering.validators import check_telegram, graphemes, units

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"


def one(text: str) -> TelegramPart:
    (part,) = render_telegram(text)
    check_telegram(part)
    return part


def marked(text: str) -> list[tuple[str, str]]:
    """Each entity of the single part with the text that it covers."""
    part = one(text)
    raw = part.text.encode("utf-16-le")
    return [
        (
            entity.type,
            raw[entity.offset * 2 : (entity.offset + entity.length) * 2].decode("utf-16-le"),
        )
        for entity in part.entities
    ]


@pytest.mark.requirement("REN-1")
@pytest.mark.parametrize(
    ("source", "text", "entities"),
    [
        ("**a** *b* ~~c~~ `d`", "a b c d",
         [("bold", "a"), ("italic", "b"), ("strikethrough", "c"), ("code", "d")]),
        ("**a *b* c**", "a b c", [("bold", "a "), ("bold", "b"), ("italic", "b"), ("bold", "c")]),
        ("# Title", "Title", [("bold", "Title")]),
        ("[**a** b](https://e.org)", "a b", [("text_link", "a b"), ("bold", "a")]),
        ("![a chart](https://e.org/x.png)", "a chart", [("text_link", "a chart")]),
        ("**a `b` c**", "a b c", [("bold", "a"), ("code", "b"), ("bold", "c")]),
        ("- a\n- b\n  1. c\n- d", "• a\n• b\n  1. c\n• d", []),
        ("> a\n> > b", "a\n\n> b", [("blockquote", "a\n\n> b")]),
        ("> a\n\nb", "a\n\nb", [("blockquote", "a")]),
        ("> ```\n> x\n> ```", "x", [("blockquote", "x"), ("pre", "x")]),
        ("a <b>c</b>", "a <b>c</b>", []),
        ("[a](javascript:b)", "[a](javascript:b)", []),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
        ("👍 **a**", "👍 a", [("bold", "a")]),
        ("3. a\n\n   b\n4. c", "3. a\n\n   b\n\n4. c", []),
    ],
)  # fmt: skip
def test_each_construct(source: str, text: str, entities: list[tuple[str, str]]) -> None:
    assert one(source).text == text
    assert [(kind, covered.strip()) for kind, covered in marked(source)] == [
        (kind, covered.strip()) for kind, covered in entities
    ]


@pytest.mark.requirement("REN-1", "REN-2")
def test_offsets_count_utf16_units() -> None:
    assert one("👍👍 **a👍**").entities == (Entity("bold", 5, 3),)


@pytest.mark.requirement("REN-1")
def test_code_keeps_its_language_and_indentation() -> None:
    part = one("```python\n    x = 1\n```")
    assert part == TelegramPart("    x = 1", (Entity("pre", 0, 9, language="python"),))


@pytest.mark.requirement("REN-2")
def test_a_table_becomes_aligned_code() -> None:
    part = one(
        "| a | 漢字 | n |\n|---|:-:|--:|\n| long cell | b | 1 | more |\n|[x](http://u.v)||20|"
    )
    assert part.text.split("\n") == [
        "a              | 漢字 |        n",
        "---------------+------+---------",
        "long cell      |  b   | 1 | more",
        "x (http://u.v) |      |       20",
    ]
    assert [entity.type for entity in part.entities] == ["pre"]


@pytest.mark.requirement("REN-2")
def test_long_code_is_closed_and_reopened_with_its_language() -> None:
    lines = [f"    line {number}" for number in range(900)]
    parts = render_telegram("Before\n\n```py\n" + "\n".join(lines) + "\n```\n\nAfter")
    assert len(parts) > 2
    shown: list[str] = []
    for part in parts:
        check_telegram(part)
        (pre,) = part.entities
        assert (pre.type, pre.language) == ("pre", "py")
        raw = part.text.encode("utf-16-le")
        shown += raw[pre.offset * 2 : (pre.offset + pre.length) * 2].decode("utf-16-le").split("\n")
    assert shown == lines


@pytest.mark.requirement("REN-2")
def test_prose_is_cut_after_a_sentence() -> None:
    parts = render_telegram("One two three four. " * 600)
    assert len(parts) == 3
    assert all(part.text.endswith("four.") for part in parts)


@pytest.mark.requirement("REN-2")
def test_without_sentences_prose_is_cut_between_words() -> None:
    parts = render_telegram("word " * 2000)
    assert {word for part in parts for word in part.text.split(" ")} == {"word"}


@pytest.mark.requirement("REN-2")
@pytest.mark.parametrize(
    "cluster", [FAMILY, "🇩🇪", "e\u0301", "\u1100\u1161\u11a8", "👍🏽", "\U0001f600"]
)
def test_a_cut_never_parts_a_grapheme(cluster: str) -> None:
    text = "a" + cluster * 5000
    parts = render_telegram(text)
    assert len(parts) > 1
    assert [piece for part in parts for piece in graphemes(part.text)] == graphemes(text)


@pytest.mark.requirement("REN-2")
def test_a_grapheme_longer_than_a_message_is_cut_between_code_points() -> None:
    parts = render_telegram("a" + "\u0301" * 10_000)
    assert "".join(part.text for part in parts) == "a" + "\u0301" * 10_000


@pytest.mark.requirement("REN-2")
def test_a_link_is_never_cut() -> None:
    label = "a label of several words"
    parts = render_telegram(f"[{label}](https://e.org/x) and " * 300)
    links = [entity for part in parts for entity in part.entities]
    assert len(links) == 300
    assert {entity.length for entity in links} == {len(label)}


@pytest.mark.requirement("REN-2")
def test_no_message_has_more_than_a_hundred_entities() -> None:
    parts = render_telegram("**a** b " * 250)
    assert [len(part.entities) for part in parts] == [100, 100, 50]


@pytest.mark.requirement("REN-2")
def test_a_heading_goes_with_what_it_introduces() -> None:
    first, second = render_telegram("a" * 4000 + "\n\n## Next\n\n" + "b" * 200)
    assert first.text == "a" * 4000
    assert second.text == "Next\n\n" + "b" * 200


def test_nothing_to_see_is_no_message() -> None:
    assert render_telegram("") == []
    assert render_telegram(" \n\u200b\n&nbsp;") == []


@pytest.mark.requirement("REN-3")
def test_refused_formatting_leaves_the_same_text_with_its_addresses() -> None:
    part = one("See [the *page*](https://e.org/p), <https://e.org> or `this`.")
    assert plain_telegram(part) == ["See the page (https://e.org/p), https://e.org or this."]


@pytest.mark.requirement("REN-3")
def test_a_plain_fallback_grown_too_long_becomes_two_messages() -> None:
    part = one("x" * 3900 + " [a](https://e.org/" + "p" * 400 + ")")
    plain = plain_telegram(part)
    assert len(plain) == 2
    assert all(units(text) <= 4096 for text in plain)
    assert plain[1].endswith("p)")


@pytest.mark.requirement("REN-1")
@pytest.mark.parametrize(
    "url",
    ["mailto:a@example.org", "http://localhost:8080/x", "https://user@example.org/",
     "http://[::1]/", "http://example.org:99999/", "https://%C3%A9.org/"],
)  # fmt: skip
def test_an_address_that_telegram_refuses_is_written_out(url: str) -> None:
    part = one(f"**See** [the page]({url})")
    assert part.text == f"See the page ({url})"
    assert [entity.type for entity in part.entities] == ["bold"]


@pytest.mark.requirement("REN-1")
def test_a_tab_becomes_spaces_since_the_server_makes_it_one() -> None:
    part = one("```\nif x:\n\ty\n```\n\na\tb&Tab;c")
    assert part.text == "if x:\n    y\n\na    b    c"
