"""Formulas of the page: what is read, what stays as it was written, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.rendering import render_slack
from adapters.rendering.mathml import render_math
from tests.rendering.texts import render_html, render_plain
from tests.unit.rendering.test_work import calls
from tests.unit.rendering.validators import check_html


@pytest.mark.requirement("WEB-3")
@pytest.mark.parametrize(
    ("source", "inner"),
    [
        ("$x^2$", "<msup><mi>x</mi><mn>2</mn></msup>"),
        (r"\(a_{ij}\)",
         "<msub><mi>a</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub>"),
        (r"$\frac12$", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"$\frac{1}{2}$", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"$\sqrt[3]{x}$", "<mroot><mi>x</mi><mn>3</mn></mroot>"),
        (r"$$\sum_{k=1}^n k$$", '<munderover><mo lspace="0">\u2211</mo>'),
        (r"$\alpha \leq \text{if } b$", "<mo>\u2264</mo><mtext>if\u00a0</mtext>"),
        (r"$\left( a \right]$", "<mrow><mo>(</mo><mi>a</mi><mo>]</mo></mrow>"),
        (r"$f(x)$", '<mo stretchy="false">(</mo><mi>x</mi><mo stretchy="false">)</mo>'),
        (r"$\{x\}$", '<mo stretchy="false">{</mo>'),
        (r"$\mathbb{R}$", "<mi>\u211d</mi>"),
        (r"$\begin{pmatrix} a & b \\ c & d \end{pmatrix}$",
         "<mtr><mtd><mi>c</mi></mtd><mtd><mi>d</mi></mtd></mtr>"),
        ("$a < b$", "<mo>&lt;</mo>"),
        ("$f''$", "<msup><mi>f</mi><mo>\u2033</mo></msup>"),
        (r"\[\begin{align} a &= 1,000 \\ b &= c \end{align}\]",
         '<mtd><mo>=</mo><mn>1</mn><mo rspace="0">,</mo>'),
        (r"$\color{red} x$", "<mrow><mi>x</mi></mrow>"),
        (r"$\mbox{if} \iff \textbf{a}$", "<mtext>if</mtext>"),
    ],
)  # fmt: skip
def test_formulas_are_set(source: str, inner: str) -> None:
    html = render_math(source)
    assert inner in html
    check_html(html)


@pytest.mark.requirement("WEB-3")
@pytest.mark.parametrize(
    "source", [r"$\unknown{x}$", "$a^b^c$", r"$\frac{a}$", "${a$", r"$\left( a$", "$x%y$",
               r"$\begin{x} a \end{x}$", "$" + r"\hat{" * 201 + "x" + "}" * 201 + "$",
               "$" + "x^2" * 1_000 + "$",
               r"$a \\ b$", r"$a\hspace{9999em}b$",
               r"$\newcommand{\a}{b} c$", r"$\phantom{x}$", r"$\cancel{x}$"]
)  # fmt: skip
def test_what_is_not_read_stays_as_it_was_written(source: str) -> None:
    html = render_math(source)
    assert html.startswith('<code class="math">')
    assert check_html(html)[0] == source


@pytest.mark.requirement("WEB-3", "REN-1")
@pytest.mark.parametrize(
    "source",
    ["It costs $5 and $10.", "US$5 or A$6_x", "$HOME/$USER and $FOO_BAR", "`$a_b$` and `$c_d$`",
     "- \\[x\\] done", "\\(see above\\)", "$ x $", "$5-$10", "**$5** to **$9**",
     "```\n$x^2$ \\(a_b\\)\n```", "[a](https://e.org/$x_y$)"],
)  # fmt: skip
def test_prices_variables_and_brackets_are_no_formulas(source: str) -> None:
    html = render_html(source)
    assert "math" not in html
    check_html(html)


@pytest.mark.requirement("WEB-3", "REN-1")
def test_a_chat_sees_the_source_of_a_formula() -> None:
    assert render_plain(r"so $a_1 * b_1$ and \(c_2\)") == r"so $a_1 * b_1$ and \(c_2\)"
    assert "$a_1 * b_1$" in render_slack("so $a_1 * b_1$ *it*")[0].text


@pytest.mark.requirement("WEB-3", "REN-1")
@given(
    st.lists(
        st.sampled_from(
            ["$", "$$", "\\(", "\\)", "\\[", "\\]", "x", "^", "_", "{", "}", "\\frac", "\\sqrt",
             "&", "\\left", "\\right", "(", ")", "\\begin{matrix}", "\\end{matrix}", "\\\\",
             "\\text{", "<b>", "'", " ", "\n", "`", "\\mathbf", "1", "|", "> ",
             "\\alpha", "\\sum", "[", "]"]
        ),
        max_size=30,
    ).map("".join)
)  # fmt: skip
def test_whatever_looks_like_a_formula_is_safe(text: str) -> None:
    check_html(render_html(text))


@pytest.mark.requirement("REN-1")
@pytest.mark.parametrize("unit", ["\\[", "\\(", "$$", "$a", "$a_", "\\[a_b", "$$a\n"])
def test_twice_as_many_beginnings_are_twice_the_work(unit: str) -> None:
    once, twice = (unit * (size // len(unit)) for size in (10_000, 20_000))
    assert calls(render_html, twice) <= 2.5 * calls(render_html, once) + 15_000
