"""A reply as it is sent to Slack: the markdown block, the sections, the text beside them."""

import pytest

from adapters.rendering import SlackLimits, render_slack
from adapters.rendering.slack import SLACK_LIMITS
from tests.rendering.texts import render_plain
from tests.unit.rendering.validators import NOTIFIES, check_slack, markdown_of

SECTIONS = SlackLimits(markdown=0)
JOINER = "\u2060"


def shown(source: str) -> tuple[str, str]:
    """The markdown block and the text of the single part."""
    (part,) = render_slack(source)
    check_slack(part, SLACK_LIMITS)
    (markdown,) = markdown_of([part])
    return markdown, part.text


@pytest.mark.requirement("REN-1")
@pytest.mark.parametrize(
    ("source", "markdown", "mrkdwn"),
    [
        ("**a** *b* ~~c~~ `d`", "**a** _b_ ~~c~~ `d`", "*a* _b_ ~c~ `d`"),
        ("foo*bar*", "foo*bar*", "foo_bar_"),
        ("## T", "## T", "*T*"),
        ("[a | b](https://e.org/?x=1&y=2)", "[a | b](https://e.org/?x=1&y=2)",
         "<https://e.org/?x=1&amp;y=2|a ¦ b>"),
        ("[a](<https://e.org/(x)>)", "[a](https://e.org/%28x%29)", "<https://e.org/%28x%29|a>"),
        ("[a](file:///etc)", "\\[a\\](file:///etc)", "[a](file:///etc)"),
        ("a < b && c > d", "a \\< b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("- a\n  - b\n- c", "- a\n  - b\n- c", "• a\n  ◦ b\n• c"),
        ("9. a\n10. b", "9. a\n10. b", "9. a\n10. b"),
        ("> a\n>\n> b", "> a\n>\n> b", "> a\n>\n> b"),
        ("```py\na = `<b>`\n```", "```py\na = `<b>`\n```", "```\na = `&lt;b&gt;`\n```"),
        ("````\n```\n````", "````\n```\n````", f"```\n`{JOINER}`{JOINER}`\n```"),
        ("`` ` ``", "`` ` ``", "`"),
        ("1\\. a\n\\- b\n\\# c\n\\> d", "1\\. a\n\\- b\n\\# c\n\\> d", "1. a\n- b\n# c\n&gt; d"),
        ("a\\*b\\* snake_case_name", "a\\*b\\* snake_case_name", "a*b* snake_case_name"),
        ("|a|b|\n|-|-|\n|1|2|", "```\na | b\n--+--\n1 | 2\n```", "```\na | b\n--+--\n1 | 2\n```"),
        ("![a](https://e.org/i.png)", "[a](https://e.org/i.png)", "<https://e.org/i.png|a>"),
    ],
)  # fmt: skip
def test_each_construct(source: str, markdown: str, mrkdwn: str) -> None:
    assert shown(source) == (markdown, mrkdwn)


@pytest.mark.requirement("REN-1")
@pytest.mark.parametrize(
    "where",
    [
        "{}",
        "`{}`",
        "```\n{}\n```",
        "**{}**",
        "| {} |\n|---|",
        "# {}",
        "[{}](https://e.org)",
        "> - {}",
        "[a](https://e.org/{})",
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        "<!channel>",
        "<!here|here>",
        "<!subteam^S1|@t>",
        "<@U123>",
        "@channel",
        "@Everyone",
        "@here",
        "&lt;!channel&gt;",
        "\\<!channel>",
        "<#C1>",
    ],
)
def test_model_text_calls_nobody(where: str, call: str) -> None:
    for limits in (SLACK_LIMITS, SECTIONS):
        for part in render_slack(where.format(call), limits=limits):
            check_slack(part, limits)
            assert not NOTIFIES.search(repr(part.blocks) + part.text)


@pytest.mark.requirement("REN-1")
def test_a_defused_mention_still_reads_the_same() -> None:
    markdown, text = shown("Ask @here or <!channel>, mail a@heredity.org")
    assert markdown.replace(JOINER, "") == "Ask @here or \\<!channel>, mail a@heredity.org"
    assert text.replace(JOINER, "") == "Ask @here or &lt;!channel&gt;, mail a@heredity.org"
    assert markdown.count(JOINER) == 2


@pytest.mark.requirement("REN-1")
@pytest.mark.parametrize(
    "source",
    [
        "1\\. a",
        "\\# a",
        "a\n\\---",
        "a\n\\===",
        "\\`\\`\\`\na",
        "a \\| b\n\\-\\-\\- | ---",
        "\\[a]: b",
        "\\*\\*a\\*\\*",
        "\\_a\\_ b\\_",
        "&amp;lt; &amp;copy;",
        "# a \\#",
        "\\~\\~a\\~\\~",
        "\\+ a",
        "\\\\",
    ],
)
def test_text_that_looks_like_markup_stays_text(source: str) -> None:
    markdown, _ = shown(source)
    assert render_plain(markdown) == render_plain(source)


@pytest.mark.requirement("REN-1")
def test_sections_where_no_markdown_block_is_taken() -> None:
    (part,) = render_slack("**a** & b", limits=SECTIONS)
    assert part.blocks == ({"type": "section", "text": {"type": "mrkdwn", "text": "*a* &amp; b"}},)
    assert part.text == "*a* &amp; b"


@pytest.mark.requirement("REN-2")
def test_a_long_reply_fills_messages_of_twelve_thousand_characters() -> None:
    parts = render_slack("One two three four. " * 3000)
    for part in parts:
        check_slack(part, SLACK_LIMITS)
    lengths = [len(text) for text in markdown_of(parts)]
    assert len(parts) == 6
    assert min(lengths[:-1]) > 11_000
    assert sum(text.count("four.") for text in markdown_of(parts)) == 3000


@pytest.mark.requirement("REN-2")
@pytest.mark.parametrize("char", ["&", "<", ">", "`", "*", "@", "\\", "|", "\U0001f600", "漢"])
@pytest.mark.parametrize("form", ["{}", "```\n{}\n```", "# {}", "> - {}"])
def test_escaping_never_breaks_a_limit(char: str, form: str) -> None:
    for limits in (SLACK_LIMITS, SECTIONS):
        for part in render_slack(form.format(f"x{char}" * 12_000), limits=limits):
            check_slack(part, limits)


@pytest.mark.requirement("REN-2")
def test_sections_are_grouped_within_every_limit() -> None:
    limits = SlackLimits(markdown=0, section=1000, blocks=3, sections_total=10_000)
    parts = render_slack("word " * 4000, limits=limits)
    for part in parts:
        check_slack(part, limits)
    assert [len(part.blocks) for part in parts[:-1]] == [3] * (len(parts) - 1)
    assert sum(part.text.count("word") for part in parts) == 4000


@pytest.mark.requirement("REN-2")
def test_long_code_is_closed_and_reopened_with_its_language() -> None:
    code = "\n".join(f"line {number}" for number in range(3000))
    written = markdown_of(
        render_slack(f"> ```py\n> {code.replace(chr(10), chr(10) + '> ')}\n> ```")
    )
    assert len(written) > 2
    for text in written:
        assert text.startswith("> ```py\n")
        assert text.endswith("\n> ```")
    assert "\n".join(render_plain(text) for text in written).replace("> ", "") == code


@pytest.mark.requirement("REN-2")
def test_a_list_that_is_cut_goes_on_with_its_numbers() -> None:
    items = "\n".join(f"{number}. " + "word " * 60 for number in range(1, 101))
    written = markdown_of(render_slack(items))
    assert len(written) > 2
    numbers = [line.split(".")[0] for text in written for line in text.split("\n")]
    assert numbers == [str(number) for number in range(1, 101)]


@pytest.mark.requirement("REN-2")
def test_an_address_too_long_for_a_section_is_written_out() -> None:
    url = "https://e.org/?" + "&" * 2000
    parts = render_slack(f"[a]({url}) b", limits=SECTIONS)
    for part in parts:
        check_slack(part, SECTIONS)
    assert sum(part.text.count("&amp;") for part in parts) == 2000


def test_a_limit_too_small_to_hold_nested_text_is_refused() -> None:
    with pytest.raises(ValueError, match="512"):
        render_slack("a", limits=SlackLimits(markdown=100))


def test_nothing_to_see_is_no_message() -> None:
    assert render_slack(" \n\n ") == []
    assert render_slack("", limits=SECTIONS) == []
