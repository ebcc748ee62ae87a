"""Markdown of every construct, nested in each other, and a second reading of it.

The words that a person should see are those of `strategies.WORD`. `reading` reads with another
parser (markdown-it-py) and shares no code with the renderer.
"""

import re

from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.unit.rendering.strategies import blocks_of, plain_words, word

_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).enable(
    ["table", "strikethrough"]
)

_mixed = st.sampled_from(
    [
        "漢字",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "e\u0301",
        "\u200fשלום\u200e",
        "مرحبا",
        "\u2067א\u2069",
        "ﷺ",
        "naïve",
        "½",
    ]
)
_address = st.sampled_from(
    ["https://example.org/a?b=1&c=2", "http://localhost:8080/x", "mailto:a@example.org",
     "https://example.org/(a(b))", "<https://example.org/a b>", "https://例え.jp/道"]
)  # fmt: skip


def _inline(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    label = st.one_of(inner, word.map(lambda text: f"{text} [{text}]"))
    return st.one_of(
        inner.map("**{}**".format),
        inner.map("*{}*".format),
        inner.map("so ~~{}~~".format),
        st.tuples(label, _address).map(lambda pair: f"[{pair[0]}]({pair[1]})"),
        st.tuples(word, _address).map(lambda pair: f"![{pair[0]}]({pair[1]})"),
        inner.map("[{}](javascript:x)".format),
        inner.map("see <b>{}</b> there".format),
        st.tuples(inner, inner).map("  \n".join),
        st.tuples(inner, _mixed, inner).map(" ".join),
    )


inline = st.recursive(
    st.one_of(
        plain_words,
        word,
        word.map("`{}`".format),
        word.map("`` `{} ``".format),
        word.map("{} <https://example.org/x>".format),
        word.map("{} <a@example.org>".format),
        word.map("{}[^1]".format),
        word.map("{} &amp; \\* &#27; &copy;".format),
    ),
    _inline,
    max_leaves=6,
)

_alone = st.one_of(
    st.tuples(word, plain_words).map(lambda pair: f"[^{pair[0]}]: {pair[1]}"),
    word.map('[{}]: https://example.org/unused "title"'.format),
    st.tuples(word, plain_words).map(
        lambda pair: f"<div class=x>\n{pair[0]}\n**{pair[1]}**\n</div>"
    ),
    st.tuples(word, word).map(lambda pair: f"<!-- {pair[0]}\n\n{pair[1]}"),
    st.tuples(word, word, word).map(
        lambda three: f"| {three[0]} | 漢 |\n|:-:|--:|\n| {three[1]} | 👍🏽 | {three[2]} | `a|`"
    ),
    st.tuples(word, word).map(lambda pair: f"{pair[0]}\n===\n\n    {pair[1]}"),
    st.tuples(word, word).map(lambda pair: f"~~~~py {pair[0]}\n```\n{pair[1]}\n~~~~"),
    st.sampled_from(["-\n-", "1.\n2.", ">", "***", "```\n```", "|\n|-|"]),
)

every_construct = st.lists(st.one_of(blocks_of(inline), _alone), min_size=1, max_size=5).map(
    "\n\n".join
)


def reading(text: str) -> str:
    """The visible text of `text` by the other parser, with one space between its pieces."""
    return " ".join(_texts(_PARSER.parse(text)))


def _texts(tokens: list[Token]) -> list[str]:
    found: list[str] = []
    for token in tokens:
        if token.type == "inline" or token.type == "image":
            found += _texts(token.children or [])
        elif token.type == "fence":
            found += [re.sub(r"^\S*", "", token.info), token.content]
        elif token.content:
            found.append(token.content)
    return found
