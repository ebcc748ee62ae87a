"""Every construct in every other: what the platforms' own servers say, and that nothing is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from adapters.rendering import (
    SlackLimits,
    TelegramPart,
    plain_telegram,
    render_slack,
    render_telegram,
)
from adapters.rendering.slack import SLACK_LIMITS
from adapters.rendering.terminal import render_terminal
from tests.rendering.texts import render_html, render_plain, split_plain
from tests.support.profiles import examples
from tests.unit.rendering.constructs import every_construct, reading
from tests.unit.rendering.strategies import WORD, any_text, wild_markdown
from tests.unit.rendering.validators import (
    NOTIFIES,
    check_html,
    check_slack,
    check_telegram,
    letters,
    markdown_of,
)
from tests.wire.slack.blocks import block_problems, markdown_length
from tests.wire.slack.state import JsonObject as SlackJson
from tests.wire.telegram.arguments import JsonObject
from tests.wire.telegram.entities import finish, from_json

SECTIONS = SlackLimits(markdown=0)
SMALL = SlackLimits(markdown=700, text=2400)
fuzz = examples(30)
anything = st.one_of(every_construct, wild_markdown, any_text)


def telegram_takes(part: TelegramPart) -> None:
    """The wire server keeps the text and every entity as they were sent."""
    stated: list[JsonObject] = []
    for entity in part.entities:
        item: JsonObject = {
            "type": entity.type,
            "offset": entity.offset,
            "length": entity.length,
        }
        if entity.url is not None:
            item["url"] = entity.url
        stated.append(item)
    kept = finish(part.text, from_json(stated))
    assert kept.text == part.text
    places = {(one.type, one.offset, one.length) for one in kept.entities}
    if len(kept.entities) < 100:
        assert {(one.type, one.offset, one.length) for one in part.entities} <= places


def slack_takes(text: str, blocks: tuple[dict[str, str | dict[str, str]], ...]) -> None:
    given_blocks: list[SlackJson] = [dict(block) for block in blocks]
    assert block_problems(given_blocks) == []
    assert markdown_length(given_blocks) <= 12_000
    assert len(text) <= 40_000


@pytest.mark.requirement("REN-1", "REN-2")
@fuzz
@given(anything)
def test_the_wire_servers_take_every_part(text: str) -> None:
    for part in render_telegram(text):
        check_telegram(part)
        telegram_takes(part)
    for limits in (SLACK_LIMITS, SECTIONS, SMALL):
        for post in render_slack(text, limits=limits):
            check_slack(post, limits)
            slack_takes(post.text, post.blocks)


@pytest.mark.requirement("REN-1", "REN-2", "REN-3")
@fuzz
@given(every_construct)
def test_every_word_of_every_construct_is_shown_in_order(text: str) -> None:
    words = WORD.findall(text)
    telegram = render_telegram(text)
    slack = render_slack(text, limits=SMALL)
    shown = {
        "telegram": "".join(part.text for part in telegram),
        "telegram plain": "".join("".join(plain_telegram(part)) for part in telegram),
        "slack text": "".join(part.text for part in slack),
        "slack sections": "".join(part.text for part in render_slack(text, limits=SECTIONS)),
        "slack markdown": "".join(markdown_of(slack)),
        "html": check_html(render_html(text))[0],
        "plain": render_plain(text),
        "split plain": "".join(split_plain(text, 512)),
        "terminal": "".join(
            segment.text for line in render_terminal(text, 9_000) for segment in line
        ),
    }
    assert {name: WORD.findall(value) for name, value in shown.items()} == dict.fromkeys(
        shown, words
    )


@pytest.mark.requirement("REN-2")
@fuzz
@given(every_construct)
def test_an_independent_reading_finds_the_same_words(text: str) -> None:
    """Another parser drops what ours keeps (unused definitions, extra cells), never the reverse."""
    ours = iter(WORD.findall(render_plain(text)))
    assert all(word in ours for word in WORD.findall(reading(text)))


@pytest.mark.requirement("REN-2")
@fuzz
@given(anything)
def test_the_nth_part_of_a_text_is_always_the_same(text: str) -> None:
    assert render_telegram(text) == render_telegram(text)
    assert render_slack(text) == render_slack(text)
    assert split_plain(text, 512) == split_plain(text, 512)


@pytest.mark.requirement("REN-1")
@fuzz
@given(anything, st.integers(1, 120))
def test_the_terminal_is_steered_by_nothing_and_loses_nothing(text: str, width: int) -> None:
    lines = render_terminal(text, width)
    shown = "\n".join("".join(segment.text for segment in line) for line in lines)
    assert all(char.isprintable() or char == "\n" or not char.isascii() for char in shown)
    assert "\x9b" not in shown
    assert all(segment.control is None for line in lines for segment in line)
    if width >= 40 and text.isascii():
        assert all(sum(cell_len(one.text) for one in line) <= width for line in lines)
    if "\x1b" not in text and text.isascii():
        assert letters(shown) == letters(render_plain(text))


@pytest.mark.requirement("REN-1")
@fuzz
@given(st.lists(st.one_of(any_text, st.sampled_from([
    "<!channel>", "<!here|x>", "<@U1>", "@everyone", "&lt;!channel&gt;", "[a](<@U1>)", "`", "```\n",
    "<!subteam^S1>", "\\", "\u200d", "\ufdd0", "[", "](https://e.org/<!here>)", "|", "\n", "> ",
])), max_size=12).map("".join))  # fmt: skip
def test_nobody_is_called_whatever_stands_around_it(text: str) -> None:
    for limits in (SLACK_LIMITS, SECTIONS):
        for part in render_slack(text, limits=limits):
            assert not NOTIFIES.search(part.text)
            assert not NOTIFIES.search(repr(part.blocks))
