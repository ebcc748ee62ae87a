"""The page's fragment, the plain text, and what is taken out of model text before either."""

import pytest

from adapters.rendering import strip_controls
from tests.rendering.texts import render_html, render_plain, split_plain
from tests.unit.rendering.validators import check_html, units

REL = 'rel="noopener noreferrer nofollow"'


@pytest.mark.requirement("REN-1")
@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("a **b** *c* ~~d~~ `e`",
         "<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e</code></p>"),
        ("# T", "<h3>T</h3>"),
        ("###### T", "<h6>T</h6>"),
        ("[a *b*](https://e.org/?x=1&y=2)",
         f'<p><a href="https://e.org/?x=1&amp;y=2" {REL}>a <em>b</em></a></p>'),
        ("![a](https://e.org/i.png)", f'<p><a href="https://e.org/i.png" {REL}>a</a></p>'),
        ("[a](javascript:alert)", "<p>[a](javascript:alert)</p>"),
        ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>"),
        ("a\nb", "<p>a<br>\nb</p>"),
        ("```xyz\n<x>\n```",
         '<pre tabindex="0" data-language="xyz"><code class="language-xyz">'
         "&lt;x&gt;\n</code></pre>"),
        ("3. a\n4. b", '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>'),
        ("- a\n\n- b", "<ul>\n<li><p>a</p></li>\n<li><p>b</p></li>\n</ul>"),
        ("> a", "<blockquote>\n<p>a</p>\n</blockquote>"),
        ("---", "<hr>"),
        ("|a|\n|-:|\n|b|",
         '<div class="table-scroll" tabindex="0" role="region" aria-label="Table"><table>\n<thead>'
         '\n<tr><th class="align-right">a</th></tr>\n</thead>'
         '\n<tbody>\n<tr><td class="align-right">b</td></tr>\n</tbody>\n</table></div>'),
    ],
)  # fmt: skip
def test_each_construct_as_html(source: str, html: str) -> None:
    assert render_html(source) == html
    check_html(html)


@pytest.mark.requirement("REN-1")
@pytest.mark.parametrize(
    "source",
    ['[a](https://e.org/"onclick="x)', "[a](<https://e.org/ onclick=x>)", "<img src=x onerror=y>",
     "[a](data:text/html,x)", "[a](vbscript:x)", "[a](JaVaScRiPt:x)", "[a](&#106;avascript:x)",
     "```\"><script>\nx\n```", "![a](javascript:x)", "<javascript:x>", "[a]\n\n[a]: javascript:x",
     "[a](//e.org)", "<!-- x -->", "<![CDATA[x]]>", "[a](java\tscript:x)"],
)  # fmt: skip
def test_hostile_html_stays_text(source: str) -> None:
    _, links = check_html(render_html(source))
    assert all(link.startswith("https://e.org/") for link in links)


@pytest.mark.requirement("REN-3")
@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("# T\n\na **b** `c`", "T\n\na b c"),
        ("[a](https://e.org) <https://e.org> <a@e.org>",
         "a (https://e.org) https://e.org a@e.org"),
        ("- a\n  1. b\n\n> c", "- a\n  1. b\n\n> c"),
        ("```py\nx\n\ny\n```", "x\n\ny"),
        ("```py title=x\nx\n```", "title=x\n\nx"),
        ("``` some words", "some words"),
        ("a | b\n--|--\n1 | 2 | 3 | 4", "a | b\n--+----------\n1 | 2 | 3 | 4"),
        ("[a]: https://e.org\n[b]: https://e.com\n[b]", "[a]: https://e.org\n\nb (https://e.com)"),
        ("- \n- a", "-\n- a"),
        ("<b>a</b> &copy; \\*", "<b>a</b> © *"),
    ],
)  # fmt: skip
def test_plain_text_keeps_everything(source: str, plain: str) -> None:
    assert [line.rstrip() for line in render_plain(source).split("\n")] == plain.split("\n")


@pytest.mark.requirement("REN-3")
def test_plain_parts_fit_and_join_to_the_whole() -> None:
    source = "- One two three. [a](https://e.org/x)\n" * 400
    parts = split_plain(source, 1000)
    assert len(parts) > 10
    assert all(units(part) <= 1000 for part in parts)
    assert "\n".join(parts) == render_plain(source)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07a", "a"),
        ("\x1b]8;;https://e.org\x1b\\a\x1b]8;;\x1b\\", "a"),
        ("\x9b2Ja\x9d0;t\x9cb", "ab"),
        ("\x1bPq\x1b\\a\x1bcb\x1b(Bc", "abc"),
        ("\x1b]0;never closed\nnext", "\nnext"),
        ("a\x00b\x07c\x08d\x7fe\u202ef", "abcdef"),
        ("tab\tline\r\nnext\rlast", "tab\tline\nnext\nlast"),
        ("\ud800 and é 漢 \U0001f600", "\ufffd and é 漢 \U0001f600"),
        ("[31m stays", "[31m stays"),
        ("\x1b", ""),
    ],
)
def test_terminal_sequences_are_taken_out(text: str, left: str) -> None:
    assert strip_controls(text) == left


@pytest.mark.requirement("REN-1")
def test_control_characters_reach_no_platform() -> None:
    assert render_plain("a\x1b[31mb &#27;[31mc &#x202e;d\u2028e") == "a[31mb [31mc d\ne"
