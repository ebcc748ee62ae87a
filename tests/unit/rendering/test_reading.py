"""What the reading of Markdown keeps that its parser would drop."""

import pytest

from adapters.rendering.parser import LONGEST_URL, address
from tests.rendering.texts import render_html, render_plain
from tests.unit.rendering.validators import check_html


@pytest.mark.requirement("REN-1", "REN-2")
@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("[a]: https://e.org/1\n[A]: https://e.org/2\n\nsee [a]",
         "[A]: https://e.org/2\n\nsee a (https://e.org/1)"),
        ('> [n]: https://e.org "t"\n\nb', '> [n]: https://e.org "t"\n\nb'),
        ("- [x\n  y]: https://e.org\n- b", "- [x y]: https://e.org\n- b"),
        ("[^1]: a note\n\nb[^1]", "[^1]: a note\n\nb[^1]"),
        ("[bad]: javascript:x\n\n[bad]", "[bad]: javascript:x\n\n[bad]"),
        ("```\n[a]: https://e.org\n```", "[a]: https://e.org"),
        ("[t][r]\n\n[r]: <https://e.org/a b>", "t (https://e.org/a%20b)"),
        ("|a|b|\n|-|-|\n|1|2|**3**|`4\\|`|\n|5|", "a | b\n--+-----------\n1 | 2 | 3 | 4|\n5"),
        ("> a|b\n> -|-\n> 1|2|3", "> a | b\n> --+------\n> 1 | 2 | 3"),
        ("<div>\n**a**\n</div>", "<div>\na\n</div>"),
        ("<!-- open\n\n**a**", "<!-- open\n\na"),
        ("x <b>**y**</b> <https://e.org>", "x <b>y</b> https://e.org"),
        ("~/a:~/b ~~c~~ ~d~", "~/a:~/b c ~d~"),
        ("[<@U1>](https://e.org)", "<@U1> (https://e.org)"),
        ("[<x@e.org>](https://e.org)", "x@e.org (https://e.org)"),
        ("![a ![b](c) d](https://e.org)", "a ![b](c) d (https://e.org)"),
        ("[![a](https://e.org/i)](https://e.org)", "a (https://e.org)"),
        ("[](https://e.org) ![](https://e.org/i)", "https://e.org https://e.org/i"),
        ("[a](x 'y') ![b](z)", '[a](x "y") ![b](z)'),
        ("[a(b)](https://e.org/(c))", "a(b) (https://e.org/(c))"),
        ("\ufdd0 <div>", "\ufffd <div>"),
    ],
)  # fmt: skip
def test_nothing_of_the_source_is_dropped(source: str, plain: str) -> None:
    assert [line.rstrip() for line in render_plain(source).split("\n")] == plain.split("\n")


@pytest.mark.requirement("REN-2")
def test_nested_lists_keep_their_numbers_and_their_depth() -> None:
    lines: list[str] = []
    indent = ""
    for level in range(12):
        lines.append(f"{indent}{level + 3}. item {level}")
        indent += " " * len(f"{level + 3}. ")
    # A list that does not begin with 1 interrupts no paragraph, so blank lines stand between.
    shown = render_plain("\n\n".join(lines)).split("\n")
    assert [line for line in shown if line.strip()] == lines


@pytest.mark.requirement("REN-2")
def test_beyond_the_deepest_level_markers_are_text() -> None:
    assert render_plain("> " * 30 + "a") == "> " * 30 + "a"
    assert render_plain("1. " * 20 + "a").endswith("1. 1. a")
    html, _ = check_html(render_html("- " * 500 + "a"))
    assert html.split()[-2:] == ["-", "a"]


@pytest.mark.requirement("REN-1")
@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("https://e.org/a?b=1#c", "https://e.org/a?b=1#c"),
        ("HTTPS://e.org", "HTTPS://e.org"),
        ("https://e.org/a b\"<>'", "https://e.org/a%20b%22%3C%3E'"),
        ("https://例え.jp/道", "https://xn--r8jz45g.jp/%E9%81%93"),
        ("mailto:a@e.org", "mailto:a@e.org"),
        ("javascript:alert", None),
        ("java\tscript:x", None),
        ("data:image/png;base64,x", None),
        ("//e.org", None),
        ("/docs", None),
        ("https://", None),
        ("http://[::1", None),
        ("https://e.org/" + "p" * LONGEST_URL, None),
        ("https://e.org/" + "道" * 400, None),
        ("", None),
    ],
)
def test_which_addresses_are_links(url: str, linked: str | None) -> None:
    assert address(url) == linked
