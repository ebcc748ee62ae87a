"""The wire server parses HTML, MarkdownV2 and plain text as strictly as the real Bot API."""

from __future__ import annotations

import pytest

from tests.wire.telegram.detect import detect
from tests.wire.telegram.entities import Entity, Formatted, finish
from tests.wire.telegram.errors import ApiError
from tests.wire.telegram.markup_html import MarkupError, parse_html
from tests.wire.telegram.markup_v2 import parse_v2


def spans(entities) -> list[tuple[object, ...]]:
    found = [
        (e.type, e.offset, e.length, *filter(None, (e.url, e.language, e.user_id)))
        for e in entities
    ]
    return sorted(found, key=lambda span: (span[1], -span[2], span[0]))


@pytest.mark.parametrize(
    ("source", "plain", "expected"),
    [
        ("*b* `c\\_` a\\.", "b c_ a.", [("bold", 0, 1), ("code", 2, 2)]),
        ("🏟_é *both*_", "🏟é both", [("italic", 2, 6), ("bold", 4, 4)]),
        ("_i __u___", "i u", [("italic", 0, 3), ("underline", 2, 1)]),
        ("__u _i_ __", "u i ", [("underline", 0, 4), ("italic", 2, 1)]),
        ("~s~ ||p||", "s p", [("strikethrough", 0, 1), ("spoiler", 2, 1)]),
        ("**``", "", []),
        ("```py\nx*y\n```", "x*y\n", [("pre", 0, 4, "py")]),
        ("```\n\nx```", "\nx", [("pre", 0, 2)]),
        ("[a](b.de/\\)x)", "a", [("text_link", 0, 1, "http://b.de/)x")]),
        ("[a](no)", "a", []),
        ("[me](tg://user?id=77)", "me", [("text_mention", 0, 2, 77)]),
        (">q\n>r\nout", "q\nr\nout", [("blockquote", 0, 4)]),
        ("a\n>q\n**>r||", "a\nq\nr", [("blockquote", 2, 2), ("expandable_blockquote", 4, 1)]),
        ("*>quote\n*", "quote\n", [("blockquote", 0, 6), ("bold", 0, 6)]),
        (">`x\n>y`", "x\n>y", [("blockquote", 0, 4), ("code", 0, 4)]),
    ],
)
def test_markdown_v2_becomes_text_and_entities(source, plain, expected) -> None:
    text, entities = parse_v2(source)
    assert text == plain
    assert spans(entities) == expected


@pytest.mark.parametrize("character", "]()>#+-=|{}.!")
def test_each_reserved_character_must_be_escaped(character: str) -> None:
    with pytest.raises(MarkupError) as caught:
        parse_v2(f"x{character}")
    assert str(caught.value).startswith(f"Character '{character}' is reserved and must be escaped")
    assert parse_v2(f"x\\{character}") == (f"x{character}", [])


@pytest.mark.parametrize(
    ("parse", "source", "error"),
    [
        (parse_v2, "🏟 🏟_a", "Can't find end of Italic entity at byte offset 9"),
        (parse_v2, "_a __b_", "Can't find end of Italic entity at byte offset 6"),
        (parse_v2, "x```py ", "Can't find end of PreCode entity at byte offset 1"),
        (parse_v2, "é`", "Can't find end of Code entity at byte offset 2"),
        (parse_v2, ">*b\nld*", "Can't find end of Bold entity at byte offset 1"),
        (parse_v2, "[a](b\\)", "Can't find end of a URL at byte offset 4"),
        (parse_v2, "![a]", "Custom emoji entity must contain a tg://emoji URL"),
        (parse_html, "a < b", 'Unsupported start tag "" at byte offset 2'),
        (parse_html, "é<p>x", 'Unsupported start tag "p" at byte offset 2'),
        (parse_html, "<b>a", "Can't find end tag corresponding to start tag b"),
        (
            parse_html,
            "<b>a</i>",
            'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"',
        ),
        (parse_html, "a</b>", "Unexpected end tag at byte offset 1"),
        (parse_html, "a <b", "Unclosed start tag at byte offset 2"),
        (parse_html, '<a href="x.de>y</a>', "Unclosed start tag at byte offset 0"),
        (parse_html, "<b>x</b", "Unclosed end tag at byte offset 4"),
        (parse_html, "<span>x</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        (parse_html, "<a href=x_y>", "Unexpected end of name token at byte offset 8"),
    ],
)
def test_markup_that_does_not_parse_is_named(parse, source, error) -> None:
    with pytest.raises(MarkupError) as caught:
        parse(source)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("source", "plain", "expected"),
    [
        ("<b>é</b> 🏟 <i>x</i>", "é 🏟 x", [("bold", 0, 1), ("italic", 5, 1)]),
        ("1 &lt; 2 &amp;&#x21; &nbsp;", "1 < 2 &! &nbsp;", []),
        ("<pre><code class='language-py'>x</code></pre>", "x", [("pre", 0, 1, "py")]),
        ("<code class='language-py'>x</code>", "x", [("code", 0, 1)]),
        ("<pre><code>x</code></pre>", "x", [("code", 0, 1), ("pre", 0, 1)]),
        ('<a href="b.de/?a=1&amp;b=2">y</a>', "y", [("text_link", 0, 1, "http://b.de/?a=1&b=2")]),
        ("<blockquote expandable>q</blockquote>", "q", [("expandable_blockquote", 0, 1)]),
        ("<blockquote>q</blockquote><u></u>", "q", [("blockquote", 0, 1)]),
        ("<tg-spoiler>a</tg-spoiler>", "a", [("spoiler", 0, 1)]),
    ],
)
def test_html_becomes_text_and_entities(source, plain, expected) -> None:
    text, entities = parse_html(source)
    assert text == plain
    assert spans(entities) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("🏟 /go@gate_bot, @ada_l", [("bot_command", 3, 12), ("mention", 17, 6)]),
        ("a/b 1/2 </x> //y", []),
        ("see https://a.example/b?c=1. now", [("url", 4, 23)]),
        ("gatehouse.dev/x and me@a.org", [("url", 0, 15), ("email", 20, 8)]),
        ("#tag #12 $USD", [("hashtag", 0, 4), ("cashtag", 9, 4)]),
    ],
)
def test_the_server_finds_what_nobody_marked(text, expected) -> None:
    assert detect(text) == expected


@pytest.mark.parametrize(
    ("text", "entities", "expected"),
    [
        ("  a b \n", [Entity("bold", 4, 3)], Formatted("a b", (Entity("bold", 2, 1),))),
        ("a\tb\r\nc", [Entity("bold", 5, 1)], Formatted("a b\nc", (Entity("bold", 4, 1),))),
        ("a  b", [Entity("bold", 1, 2)], Formatted("a  b")),
        (
            "x",
            [Entity("code", 0, 1), Entity("bold", 0, 1)],
            Formatted("x", (Entity("code", 0, 1),)),
        ),
        ("/go", [Entity("code", 0, 3)], Formatted("/go", (Entity("code", 0, 3),))),
    ],
)
def test_text_is_cleaned_and_its_entities_move_along(text, entities, expected) -> None:
    assert finish(text, entities) == expected


@pytest.mark.parametrize(
    ("entity", "error"),
    [
        (Entity("bold", 0, 9), "ends after the end of the text at UTF-16 offset 9"),
        (Entity("bold", 1, 1), "begins in a middle of a UTF-16 symbol"),
        (Entity("bold", 0, 1), "ends in a middle of a UTF-16 symbol"),
        (Entity("bold", -1, 1), "incorrect offset -1"),
    ],
)
def test_an_entity_must_fit_its_text(entity, error) -> None:
    with pytest.raises(ApiError, match=error):
        finish("🏟 it", [entity])


def test_no_more_than_a_hundred_entities_are_kept() -> None:
    entities = [Entity("bold", 2 * number, 1) for number in range(120)]
    assert finish("x " * 119 + "x", entities).entities == tuple(entities[:100])
