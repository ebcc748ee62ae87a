"""Texts as a model might write them, and texts that nobody would.

Every word that a person should see is `qz<number>zq`; addresses and languages hold no such word. So
the words of the source, in order, are what a rendering must show, whatever the constructs do.
"""

import re

from hypothesis import strategies as st

WORD = re.compile(r"qz\d+zq")

word = st.integers(0, 9999).map(lambda number: f"qz{number}zq")
mention = st.sampled_from(
    [
        "<!channel>",
        "<!here|x>",
        "<@U123>",
        "<!subteam^S1>",
        "@channel",
        "@Here",
        "<#C1>",
        "&lt;!here>",
    ]
)
noise = st.sampled_from(
    [
        "*",
        "_",
        "**",
        "~~",
        "`",
        "``",
        "[",
        "]",
        "(",
        "<",
        ">",
        "&",
        "&amp;",
        "\\",
        "|",
        "#",
        "- ",
        "!",
        "1. ",
        "```",
        "  \n",
        "\n",
        " ",
        "\u00a0",
        "é",
        "漢字",
        "e\u0301",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "\t",
        "](",
        "$",
        "$$",
        "\\(",
        "\\)",
        "x_1",
    ]
)
plain_words = st.lists(word, min_size=1, max_size=12).map(" ".join)


def _wrap(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        inner.map(lambda text: f"**{text}**"),
        inner.map(lambda text: f"*{text}*"),
        inner.map(lambda text: f"so ~~{text}~~"),
        inner.map(lambda text: f"[{text}](https://example.org/a?b=1&c=2)"),
        inner.map(lambda text: f"[{text}](javascript:alert)"),
        st.tuples(inner, inner).map(" ".join),
    )


inline = st.recursive(
    st.one_of(plain_words, word, word.map(lambda text: f"`{text}`"), mention, noise), _wrap,
    max_leaves=8,
)  # fmt: skip
tame = st.recursive(st.one_of(plain_words, word, word.map("`{}`".format)), _wrap, max_leaves=6)


def _fence(parts: tuple[str, str, int]) -> str:
    language, body, repeat = parts
    return f"```{language}\n" + f"    {body}\n" * repeat + "```"


def _prefixed(text: str, first: str, rest: str) -> str:
    return first + text.replace("\n", f"\n{rest}")


def _table(cells: list[str]) -> str:
    flat = [re.sub(r"[\n|]", " ", cell) for cell in cells]
    row = f"| {' | '.join(flat)} |"
    return f"{row}\n|{'---|' * len(flat)}\n{row}\n{row} "


def blocks_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    leaf = st.one_of(
        text,
        text.map(lambda value: "## " + value.replace("\n", " ")),
        st.tuples(st.sampled_from(["", "py", "c++"]), word, st.integers(1, 90)).map(_fence),
        st.lists(text, min_size=1, max_size=4).map(_table),
        st.just("---"),
        st.tuples(plain_words, st.integers(1, 80)).map(
            lambda pair: " ".join([pair[0] + "."] * pair[1])
        ),
    )

    def nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            inner.map(lambda value: _prefixed(value, "> ", "> ")),
            st.lists(inner, min_size=1, max_size=4).map(
                lambda items: "\n".join(_prefixed(item, "- ", "  ") for item in items)
            ),
            st.lists(inner, min_size=1, max_size=3).map(
                lambda items: "\n".join(_prefixed(item, "7. ", "   ") for item in items)
            ),
            st.lists(inner, min_size=1, max_size=4).map("\n\n".join),
        )

    return st.recursive(leaf, nest, max_leaves=8)


wild_markdown = st.tuples(
    st.lists(blocks_of(inline), min_size=1, max_size=4), st.integers(1, 4)
).map(lambda pair: "\n\n".join(pair[0] * pair[1]))
tame_markdown = st.tuples(st.lists(blocks_of(tame), min_size=1, max_size=4), st.integers(1, 6)).map(
    lambda pair: "\n\n".join(pair[0] * pair[1])
)
any_text = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("*_`~[]()<>!#-+&|\\\n \t@:=1.\ud800\x1b\u200d\u0301"),
    ),
    max_size=400,
)
