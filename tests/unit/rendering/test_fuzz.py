"""Whatever a model writes, each part is valid, within its limit, and no word is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.rendering import SlackLimits, plain_telegram, render_slack, render_telegram
from adapters.rendering.slack import SLACK_LIMITS
from tests.rendering.texts import render_html, render_plain, split_plain
from tests.support.profiles import examples
from tests.unit.rendering.strategies import WORD, any_text, tame_markdown, wild_markdown
from tests.unit.rendering.validators import (
    check_html,
    check_slack,
    check_telegram,
    letters,
    markdown_of,
    units,
)

SMALL = SlackLimits(markdown=700, text=2400)
SECTIONS = SlackLimits(markdown=0, section=600, blocks=3, sections_total=1500)
EVERY_LIMIT = st.sampled_from([SLACK_LIMITS, SMALL, SECTIONS, SlackLimits(markdown=0)])

fuzz = examples(30)


@pytest.mark.requirement("REN-1", "REN-2")
@fuzz
@given(st.one_of(any_text, wild_markdown))
def test_telegram_parts_always_parse(text: str) -> None:
    for part in render_telegram(text):
        check_telegram(part)


@pytest.mark.requirement("REN-1", "REN-2")
@fuzz
@given(st.one_of(any_text, wild_markdown), EVERY_LIMIT)
def test_slack_parts_are_accepted_and_call_nobody(text: str, limits: SlackLimits) -> None:
    for part in render_slack(text, limits=limits):
        check_slack(part, limits)


@pytest.mark.requirement("REN-1")
@fuzz
@given(st.one_of(any_text, wild_markdown))
def test_html_is_balanced_and_within_the_list(text: str) -> None:
    check_html(render_html(text))


@pytest.mark.requirement("REN-2")
@fuzz
@given(tame_markdown, EVERY_LIMIT)
def test_every_word_of_the_source_is_in_the_parts_in_order(text: str, limits: SlackLimits) -> None:
    words = WORD.findall(text)
    html, _ = check_html(render_html(text))
    slack = render_slack(text, limits=limits)
    shown = {
        "telegram": "".join(part.text for part in render_telegram(text)),
        "slack text": "".join(part.text for part in slack),
        "slack markdown": "".join(markdown_of(slack)) if limits.markdown else text,
        "html": html,
        "plain": render_plain(text),
        "split plain": "".join(split_plain(text, 600)),
    }
    assert {name: WORD.findall(value) for name, value in shown.items()} == dict.fromkeys(
        shown, words
    )


@pytest.mark.requirement("REN-2", "REN-3")
@fuzz
@given(any_text)
def test_any_text_says_the_same_on_every_platform(text: str) -> None:
    said = letters(render_plain(text))
    assert letters("".join(split_plain(text, 512))) == said
    telegram = [line for part in render_telegram(text) for line in plain_telegram(part)]
    assert letters("".join(telegram)) == said
    markdown = markdown_of(render_slack(text, limits=SMALL))
    assert letters("".join(map(render_plain, markdown))) == said


@pytest.mark.requirement("REN-3")
@fuzz
@given(st.one_of(any_text, tame_markdown))
def test_the_plain_fallback_fits_and_keeps_every_address(text: str) -> None:
    parts = render_telegram(text)
    for part in parts:
        plain = plain_telegram(part)
        assert plain
        assert all(0 < units(line) <= 4096 for line in plain)
        for entity in part.entities:
            assert entity.url is None or entity.url in "".join(plain)
    assert all(0 < units(part) <= 512 for part in split_plain(text, 512))


HOSTILE = st.lists(
    st.sampled_from(
        ["<script>", "</script>", "<img src=x onerror=y>", "<a href='javascript:x'>", "`", "```",
         "data:text/html,x", "](", "[a](", ")", "![", "<", ">", '"', "'", "&lt;", "&#60;b&#62;",
         "javascript:x", "\n", " ", "onclick=x", 'https://e.org/"onload=x', "<!--", "-->", "<?x",
         "<![CDATA[", "<svg/onload=x>", "|", "|-|\n", "> ", "- ", "[r]: javascript:x\n", "[r]",
         "vbscript:x", "JaVaScRiPt:x", "java\nscript:x", "\\", "&", "<style>", "<javascript:x>"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@pytest.mark.requirement("REN-1")
@fuzz
@given(HOSTILE)
def test_hostile_markdown_makes_no_tag_and_no_address_of_its_own(text: str) -> None:
    _, links = check_html(render_html(text))
    assert all(link.lower().startswith(("http://", "https://", "mailto:")) for link in links)
