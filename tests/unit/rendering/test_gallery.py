"""docs/rendering.md says what the code does."""

import pytest

from adapters.rendering import Entity, TelegramPart
from tests.rendering.gallery import PAGE, page, telegram_html


@pytest.mark.requirement("REN-1")
def test_the_gallery_is_what_the_code_renders() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make gallery` and look at the change"


def test_entities_are_shown_as_nested_tags() -> None:
    part = TelegramPart(
        "👍 a b", (Entity("bold", 3, 3), Entity("italic", 5, 1), Entity("code", 0, 2))
    )
    assert telegram_html(part) == "<code>👍</code> <b>a <i>b</i></b>"
