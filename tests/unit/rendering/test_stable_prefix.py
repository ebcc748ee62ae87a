"""What is shown of a text that still comes: nothing that looks different a moment later."""

import pytest
from hypothesis import given

from adapters.rendering.html import render_blocks, render_growing
from adapters.rendering.stable_prefix import steady
from tests.rendering.texts import render_html
from tests.unit.rendering.strategies import wild_markdown
from tests.unit.rendering.validators import check_html

ANSWER = """Here is **what I *found* so far** in `the code`:

- [ ] first [a link](https://example.com/a_b)
- [x] second

1. one
2. two

## Results

| name | count |
|------|------:|
| a    | 1     |

```python
def f(x):
    return x ** 2
```

So $x_1 = 2$ and

$$
\\frac{a}{b}
$$

That is ~~not~~ all.
"""


@pytest.mark.requirement("WEB-3")
@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a **bold", "<p>a <strong>bold</strong></p>"),
        ("a **b *c", "<p>a <strong>b </strong><strong><em>c</em></strong></p>"),
        ("a **", "<p>a</p>"),
        ("a **b*", "<p>a <strong>b</strong></p>"),
        ("a * b", "<p>a * b</p>"),
        ("see `co", "<p>see <code>co</code></p>"),
        ("see [the page](https://exa", "<p>see the page</p>"),
        ("see [the pa", "<p>see the pa</p>"),
        ("Title\n-", "<p>Title</p>"),
        ("a\n\n- ", "<p>a</p>"),
        ("a\n\n- [x", "<p>a</p>"),
        ("a\n\n| b | c |\n|--", "<p>a</p>"),
        ("a\n\n```py", "<p>a</p>"),
        ("a\n\n$$\n\\frac{a", "<p>a</p>"),
        ("a \\(x_", "<p>a</p>"),
        ("a $x_1", "<p>a</p>"),
        ("a $5 b", "<p>a $5 b</p>"),
    ],
)
def test_what_is_not_whole_is_closed_or_left_out(text: str, html: str) -> None:
    assert "".join(render_growing(text)) == html


@pytest.mark.requirement("WEB-3")
def test_an_answer_grows_without_taking_anything_back() -> None:
    """Letters once shown stay, and a block that another follows never changes."""
    shown: list[str] = []
    for end in range(1, len(ANSWER) + 1):
        blocks = list(render_growing(ANSWER[:end]))
        assert len(blocks) >= len(shown)
        assert blocks[: len(shown) - 1] == shown[:-1]
        old, new = ("".join(map(str.strip, map(_text, one))) for one in (shown, blocks))
        # Of the last block white space and what is held back may be missing, words may not.
        assert new.startswith(old) or old.startswith(new)
        shown = blocks
    assert shown == list(render_blocks(ANSWER))


@pytest.mark.requirement("WEB-3")
def test_code_is_shown_while_its_fence_is_open() -> None:
    assert "".join(render_growing("```py\nx = 1\n``")) == render_html("```py\nx = 1\n```")


@pytest.mark.requirement("WEB-3")
@given(wild_markdown)
def test_any_beginning_is_safe(text: str) -> None:
    check_html("".join(render_growing(text)))
    assert len(steady(text)) <= len(text) + 20


def _text(html: str) -> str:
    return check_html(html)[0].replace("\n", "")
