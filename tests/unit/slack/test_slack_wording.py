"""What people typed, as the agent reads it."""

import pytest

from adapters.slack.message_text import people_in, readable, without_quotes

NAMES = {"U1": "Anna", "U2": "Ben"}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<@U1> and <@U2|ben>", "@Anna and @Ben"),
        ("<@U9|carla> <@U8>", "@carla @U8"),
        ("<#C1|general> <#C2|> <#C3>", "#general #C2 #C3"),
        ("<!here> <!channel> <!everyone>", "@here @channel @everyone"),
        ("<!subteam^S1|@team> <!subteam^S2>", "@team @S2"),
        ("<!date^1392734382^{date}|18 February>", "18 February"),
        ("<https://a.test/x?a=1&amp;b=2>", "https://a.test/x?a=1&b=2"),
        ("<https://a.test|a.test>", "https://a.test"),
        ("<https://a.test|the &lt;site&gt;>", "the <site> (https://a.test)"),
        ("<mailto:a@b.test|a@b.test>", "a@b.test"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
        ("&lt;@U1&gt; is what I typed", "<@U1> is what I typed"),
        ("&amp;lt; stays", "&lt; stays"),
        ("nothing <special", "nothing <special"),
    ],
)
def test_what_slack_wrote_reads_as_it_was_seen(written: str, read: str) -> None:
    assert readable(written, NAMES) == read


def test_everybody_who_is_mentioned_is_found() -> None:
    assert people_in("<@U1> <@W2|x> <#C1|y> <!here> @U3") == {"U1", "W2"}


@pytest.mark.requirement("APR-10")
@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("approve x", None),
        ("1 &gt; 0", None),
        ("&gt; !approve x", ""),
        ("&gt;!approve x\nno", "no"),
        ("yes\n  &gt; old\n&gt; older", "yes"),
        ("&gt;&gt;&gt; !approve x\nand this", ""),
        ("mine\n&gt;&gt;&gt; all\nof this", "mine"),
        ("a &gt;&gt;&gt; b", None),
    ],
)
def test_what_is_quoted_is_told_from_what_is_said(text: str, own: str | None) -> None:
    found = without_quotes(text)
    assert (None if found is None else found.strip()) == own
