"""What the engine sends, and what people in Slack see of it, on good days and on bad ones."""

import pytest

from runtime.domain.errors import DeliveryRejected, DeliveryRetry, DeliveryUnknown
from runtime.domain.messages import ChatAddress, OutboundMessage
from runtime.ports.chat import ChatAdapter
from tests.contract.chat.slack_support import (
    Desk,
    Progress,
    desk,
    desk_at,
    in_every_view,
    reply,
    shown,
    slack,
)
from tests.wire.slack import ANNA, BEN, GENERAL, SlackServer

__all__ = ["desk", "slack"]

#: Three messages: a markdown block holds 12,000 characters.
LONG = "\n\n".join(f"Paragraph {number}. " + "word " * 200 for number in range(30))


def answer_to(ts: str, words: str) -> OutboundMessage:
    """A reply to the message at `ts`, in its channel."""
    return reply(words).model_copy(update={"reply_to": ts})


@pytest.mark.requirement("REN-1")
async def test_a_reply_is_formatted_and_stands_in_the_thread_of_its_question(desk: Desk) -> None:
    said = await desk.slack.user_says(GENERAL, ANNA, "how?", mention=True)
    receipt = await desk.send(reply("Use **tabs** & `make`.", thread=said.ts))
    (post,) = desk.slack.posts(GENERAL, said.ts)
    assert receipt.message_ids == (post.ts,) == tuple(desk.progress.ids)
    assert post.blocks[0]["type"] == "markdown"
    assert "**tabs**" in post.visible_text
    assert post.text == "Use *tabs* &amp; `make`."
    (call,) = desk.slack.calls_to("chat.postMessage")
    assert (call.arguments["unfurl_links"], call.arguments["unfurl_media"]) == (False, False)


@pytest.mark.requirement("REN-1")
async def test_nobody_is_called_by_what_the_agent_writes(desk: Desk) -> None:
    await desk.send(reply("<!channel> <!here> <@U0ANNA> @channel @everyone and `@here`"))
    (post,) = desk.slack.posts(GENERAL)
    for seen in (post.text, post.visible_text):
        assert not any(call in seen for call in ("<!channel", "<!here", "<@U0ANNA"))
        assert not any(call in seen for call in ("@channel", "@everyone", "@here"))
        assert "channel" in seen


@pytest.mark.requirement("REN-2")
async def test_a_long_reply_comes_in_several_messages_that_hold_all_of_it_in_order(
    desk: Desk,
) -> None:
    receipt = await desk.send(reply(LONG, "And a last part."))
    posts = desk.slack.posts(GENERAL)
    assert len(posts) == 4
    assert receipt.message_ids == tuple(post.ts for post in posts) == tuple(desk.progress.ids)
    assert all(len(post.visible_text) <= 12_000 for post in posts)
    assert " ".join(shown(posts)).split() == f"{LONG} And a last part.".split()


async def test_an_attempt_that_was_stopped_in_the_middle_goes_on_where_it_was(desk: Desk) -> None:
    message = reply(LONG)
    stopped: list[DeliveryRetry] = []

    async def limit_after_the_first(message_id: str) -> None:
        await desk.progress(message_id)
        if len(desk.progress.ids) == 1:
            desk.slack.rate_limit("chat.postMessage", retry_after=7, channel=GENERAL)

    with pytest.raises(DeliveryRetry) as caught:
        await desk.adapter.send(message, posted=(), on_posted=limit_after_the_first)
    stopped.append(caught.value)
    assert stopped[0].after_s == 7.0
    assert len(desk.slack.posts(GENERAL)) == len(desk.progress.ids) == 1
    desk.clock.advance(7.0)
    receipt = await desk.send(message)
    posts = desk.slack.posts(GENERAL)
    assert receipt.message_ids == tuple(post.ts for post in posts)
    assert " ".join(shown(posts)).split() == LONG.split()
    done = await desk.send(message)
    assert done == receipt
    assert len(desk.slack.posts(GENERAL)) == len(posts), "what is complete is not sent again"


@pytest.mark.requirement("SLK-8")
async def test_a_limit_holds_for_its_method_and_its_channel_and_for_as_long_as_slack_said(
    desk: Desk,
) -> None:
    other = desk.slack.workspace.add_channel("other")
    receipt = await desk.send(reply("first"))
    desk.slack.rate_limit("chat.update", retry_after=30, channel=GENERAL)
    with pytest.raises(DeliveryRetry) as caught:
        await desk.adapter.edit(reply("changed"), receipt)
    assert caught.value.after_s == 30.0
    desk.progress.ids.clear()
    await desk.send(reply("second"))
    elsewhere = await desk.adapter.send(reply("there", chat=other), posted=(), on_posted=Progress())
    await desk.adapter.edit(reply("there too", chat=other), elsewhere)
    desk.clock.advance(10.0)
    with pytest.raises(DeliveryRetry) as caught:
        await desk.adapter.edit(reply("changed"), receipt)
    assert caught.value.after_s == 20.0
    assert len(desk.slack.calls_to("chat.update")) == 2, "it is not asked before its time"
    desk.clock.advance(20.0)
    await desk.adapter.edit(reply("changed"), receipt)
    assert shown(desk.slack.posts()) == ["changed", "second", "there too"]


@pytest.mark.requirement("SLK-8", "MSG-11")
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_with_a_third_of_all_calls_refused_everything_arrives_once_and_in_order(
    desk: Desk, seed: int
) -> None:
    chats = [GENERAL, *(desk.slack.workspace.add_channel(f"c{n}") for n in range(4))]
    limits = desk.slack.limit_share(1 / 3, seed=seed, retry_after=3, now=desk.clock.monotonic)
    for number in range(10):
        for chat in chats:
            message = reply(f"message {number}", chat=chat, outbox_id=f"out_{chat}_{number}")
            while True:
                try:
                    await desk.adapter.send(message, posted=(), on_posted=Progress())
                except DeliveryRetry as retry:
                    desk.clock.advance(retry.after_s or 0.0)
                else:
                    break
    assert limits.refused > 10
    for chat in chats:
        assert shown(desk.slack.posts(chat)) == [f"message {number}" for number in range(10)]


@pytest.mark.requirement("SLK-8")
async def test_a_limit_in_one_channel_leaves_the_others_alone(desk: Desk) -> None:
    other = desk.slack.workspace.add_channel("other")
    desk.slack.rate_limit("chat.postMessage", retry_after=30, channel=GENERAL)
    with pytest.raises(DeliveryRetry, match="ratelimited"):
        await desk.send(reply("later"))
    await desk.send(reply("now", chat=other))
    assert shown(desk.slack.posts()) == ["now"]


@pytest.mark.requirement("MSG-11")
@pytest.mark.requirement("SLK-8")
@pytest.mark.parametrize("cut", [True, False])
async def test_a_post_without_an_answer_is_looked_up_and_found(
    slack: SlackServer, cut: bool
) -> None:
    async with desk_at(slack, request_timeout_s=0.5) as desk:
        said = await slack.user_says(GENERAL, ANNA, "well?", mention=True)
        message = reply("Maybe.", thread=said.ts)
        slack.hang("chat.postMessage", cut=cut)
        with pytest.raises(DeliveryUnknown):
            await desk.send(message)
    async with desk_at(slack) as later:
        found = await later.adapter.lookup(message, posted=())
    (post,) = slack.posts(GENERAL, said.ts)
    assert found is not None
    assert found.message_ids == (post.ts,)
    assert len(slack.calls_to("chat.postMessage")) == 1, "nothing repeated it"


@pytest.mark.requirement("MSG-11")
async def test_a_post_that_never_happened_is_not_found(desk: Desk) -> None:
    said = await desk.slack.user_says(GENERAL, ANNA, "well?", mention=True)
    await desk.send(reply("another one", outbox_id="out_other"))
    for thread in (None, said.ts, "1600000000.000100"):
        message = reply("Maybe.", thread=thread)
        assert await desk.adapter.lookup(message, posted=()) is None


@pytest.mark.requirement("MSG-11")
async def test_a_long_message_that_broke_off_is_finished_and_nothing_is_posted_twice(
    desk: Desk,
) -> None:
    message = reply(LONG)
    desk.slack.hang("chat.postMessage", cut=True)
    with pytest.raises(DeliveryUnknown):
        await desk.send(message)
    found = await desk.adapter.lookup(message, posted=())
    assert found is not None
    assert len(found.message_ids) == 1, "it is not all there"
    desk.progress.ids = list(found.message_ids)
    receipt = await desk.send(message)
    posts = desk.slack.posts(GENERAL)
    assert receipt.message_ids == tuple(post.ts for post in posts) == tuple(desk.progress.ids)
    assert " ".join(shown(posts)).split() == LONG.split()
    assert await desk.adapter.lookup(message, posted=receipt.message_ids[:1]) == receipt


async def test_a_lookup_reads_on_through_a_busy_channel_but_not_before_the_question(
    desk: Desk,
) -> None:
    asked = await desk.slack.user_says(GENERAL, ANNA, "where are you?", mention=True)
    message = reply("In the crowd.").model_copy(update={"reply_to": asked.ts})
    receipt = await desk.send(message)
    for number in range(450):
        await desk.slack.user_says(GENERAL, BEN, f"chatter {number}")
    assert await desk.adapter.lookup(message, posted=()) == receipt
    calls = desk.slack.calls_to("conversations.history")
    assert len(calls) == 3
    assert calls[0].arguments["oldest"] == asked.ts, "by Slack's own clock"


async def test_a_lookup_that_slack_refuses_for_now_is_a_retry(desk: Desk) -> None:
    desk.slack.rate_limit("conversations.history", retry_after=9)
    with pytest.raises(DeliveryRetry) as caught:
        await desk.adapter.lookup(reply("x"), posted=())
    assert caught.value.after_s == 9.0
    desk.clock.advance(9.0)
    desk.slack.break_http("conversations.history", 502)
    with pytest.raises(DeliveryRetry):
        await desk.adapter.lookup(reply("x"), posted=())
    desk.slack.fail("conversations.history", "token_revoked")
    with pytest.raises(DeliveryRetry, match="token_revoked"):
        await desk.adapter.lookup(reply("x"), posted=())


@pytest.mark.requirement("MSG-11")
async def test_where_the_bot_may_not_look_any_more_it_says_so_and_guesses_nothing(
    desk: Desk,
) -> None:
    elsewhere = desk.slack.workspace.add_channel("elsewhere", with_bot=False)
    with pytest.raises(DeliveryRejected, match="cannot be read: not_in_channel"):
        await desk.adapter.lookup(reply("x", chat=elsewhere), posted=())


@pytest.mark.requirement("REN-3")
@pytest.mark.parametrize("error", ["invalid_blocks", "msg_blocks_too_long"])
async def test_what_slack_will_not_format_goes_out_plain_with_every_word(
    desk: Desk, error: str
) -> None:
    desk.slack.fail("chat.postMessage", error)
    message = reply("**Bold** and <b>\n\n- one\n- two")
    receipt = await desk.send(message)
    (post,) = desk.slack.posts(GENERAL)
    assert receipt.message_ids == (post.ts,)
    assert post.blocks == []
    assert all(word in post.text for word in ("Bold", "&lt;b&gt;", "one", "two"))
    assert await desk.adapter.lookup(message, posted=()) == receipt


@pytest.mark.requirement("REN-3")
@pytest.mark.parametrize("error", ["invalid_metadata_schema", "metadata_too_large"])
async def test_where_slack_dislikes_the_mark_the_layout_stays(desk: Desk, error: str) -> None:
    desk.slack.refuse("chat.postMessage", error, holding="metadata", times=9)
    message = reply("**Bold**\n\n- one")
    receipt = await desk.send(message)
    (post,) = desk.slack.posts(GENERAL)
    assert receipt.message_ids == (post.ts,)
    assert post.blocks[0]["type"] == "markdown"
    assert len(desk.slack.calls_to("chat.postMessage")) == 2


@pytest.mark.requirement("REN-3")
@pytest.mark.parametrize("error", ["a_code_of_next_year", "invalid_arguments", "msg_too_long"])
async def test_a_code_that_nobody_listed_is_answered_by_plainer_forms(
    desk: Desk, error: str
) -> None:
    """First without the layout; without the mark only where nothing else passes."""
    desk.slack.refuse("chat.postMessage", error, holding="blocks", times=9)
    marked = reply("**Bold**")
    receipt = await desk.send(marked)
    (post,) = desk.slack.posts(GENERAL)
    assert (post.blocks, post.text) == ([], "*Bold*")
    assert await desk.adapter.lookup(marked, posted=()) == receipt


@pytest.mark.requirement("REN-3", "MSG-11")
async def test_what_went_out_as_plain_text_alone_is_looked_up_by_its_words(desk: Desk) -> None:
    asked = await desk.slack.user_says(GENERAL, ANNA, "which?", mention=True)
    desk.slack.refuse("chat.postMessage", "a_code_of_next_year", holding="metadata", times=9)
    async with desk.listening():
        words = "See **https://example.com/a?b=1&c** & go"
        message = answer_to(asked.ts, words)
        receipt = await desk.send(message)
        (post,) = [one for one in desk.slack.posts(GENERAL) if one.ts in receipt.message_ids]
        assert post.blocks == []
        assert await desk.adapter.lookup(message, posted=()) == receipt
        assert await desk.adapter.lookup(answer_to(asked.ts, "other words"), posted=()) is None
        # The same words from before the question are another answer.
        later = await desk.slack.user_says(GENERAL, ANNA, "and now?", mention=True)
        again = answer_to(later.ts, words)
        assert await desk.adapter.lookup(again, posted=()) is None
        # Without a question nothing says how far back the words may lie.
        assert await desk.adapter.lookup(reply(words), posted=()) is None
        desk.progress.ids.clear()
        await desk.send(again)
        desk.progress.ids.clear()
        await desk.send(again)
        with pytest.raises(DeliveryRejected, match="several posts"):
            await desk.adapter.lookup(again, posted=())


@pytest.mark.requirement("REN-3")
async def test_of_several_posts_only_the_refused_one_is_plain(desk: Desk) -> None:
    first = await desk.slack.user_says(GENERAL, ANNA, "go", mention=True)
    message = reply(LONG, thread=first.ts)
    desk.slack.fail("chat.postMessage", "a_code_of_next_year")
    await desk.send(message)
    posts = desk.slack.posts(GENERAL, first.ts)
    assert [bool(post.blocks) for post in posts] == [False, True, True]
    assert " ".join(post.visible_text for post in posts).split() == LONG.split()


@pytest.mark.requirement("REN-3")
async def test_an_edit_that_slack_will_not_format_is_plain_and_its_mark_stays(desk: Desk) -> None:
    receipt = await desk.send(reply("one"))
    desk.slack.refuse("chat.update", "a_code_of_next_year", holding="blocks")
    await desk.adapter.edit(reply("**two**"), receipt)
    assert shown(desk.slack.posts()) == ["*two*"]
    assert await desk.adapter.lookup(reply("two"), posted=()) == receipt


@pytest.mark.parametrize(
    ("error", "account_wide"),
    [
        ("channel_not_found", False),
        ("not_in_channel", False),
        ("is_archived", False),
        ("msg_too_long", False),
        ("something_nobody_knows", False),
        ("access_denied", False),
        ("no_permission", False),
        ("invalid_auth", True),
        ("account_inactive", True),
        ("token_revoked", True),
        ("missing_scope", True),
    ],
)
async def test_what_can_never_be_sent_is_rejected_with_slack_s_reason(
    desk: Desk, error: str, account_wide: bool
) -> None:
    desk.slack.fail("chat.postMessage", error, times=3)
    with pytest.raises(DeliveryRejected, match=error) as caught:
        await desk.send(reply("hello"))
    assert caught.value.account_wide is account_wide
    assert not desk.slack.posts()
    # No plainer form helps where Slack takes nothing at all.
    of_its_form = error in {"msg_too_long", "something_nobody_knows"}
    assert len(desk.slack.calls_to("chat.postMessage")) == (3 if of_its_form else 1)


@pytest.mark.requirement("SLK-8")
async def test_a_channel_that_the_bot_left_is_rejected_by_slack_itself(desk: Desk) -> None:
    elsewhere = desk.slack.workspace.add_channel("elsewhere", with_bot=False)
    with pytest.raises(DeliveryRejected, match="invite it"):
        await desk.send(reply("hello", chat=elsewhere))
    with pytest.raises(DeliveryRejected, match="channel_not_found"):
        await desk.send(reply("hello", chat="C0NOWHERE"))


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        ("service_unavailable", DeliveryRetry),
        ("request_timeout", DeliveryRetry),
        ("internal_error", DeliveryUnknown),
        ("fatal_error", DeliveryUnknown),
    ],
)
async def test_only_what_surely_was_not_posted_may_be_sent_again(
    desk: Desk, error: str, verdict: type[Exception]
) -> None:
    desk.slack.fail("chat.postMessage", error)
    with pytest.raises(verdict, match=error):
        await desk.send(reply("hello"))
    desk.slack.break_http("chat.postMessage", 503)
    with pytest.raises(DeliveryUnknown, match="HTTP 503"):
        await desk.send(reply("hello"))


async def test_with_slack_out_of_reach_nothing_was_posted_and_it_may_be_sent_again(
    desk: Desk,
) -> None:
    await desk.outage()
    with pytest.raises(DeliveryRetry, match=r"chat\.postMessage"):
        await desk.send(reply("hello"))
    await desk.slack.up()
    await desk.send(reply("hello"))
    assert shown(desk.slack.posts()) == ["hello"]


async def test_an_edit_replaces_what_people_see(desk: Desk) -> None:
    receipt = await desk.send(reply(LONG))
    desk.slack.hang("chat.update", cut=True)
    changed = reply("It is **done**.")
    with pytest.raises(DeliveryRetry):
        await desk.adapter.edit(changed, receipt)
    for _ in range(2):
        await desk.adapter.edit(changed, receipt)
    assert shown(desk.slack.posts()) == ["It is **done**."]
    desk.slack.fail("chat.update", "invalid_blocks")
    await desk.adapter.edit(reply("Or **not**."), receipt)
    assert shown(desk.slack.posts()) == ["Or *not*."]
    with pytest.raises(DeliveryRejected, match="4 posts and there are 3"):
        await desk.adapter.edit(reply(LONG, "more"), receipt)


@in_every_view
@pytest.mark.requirement("REN-5", "SLK-9")
async def test_while_a_run_works_its_thread_says_so_until_it_is_done(desk: Desk) -> None:
    async with desk.listening():
        asked = await desk.slack.user_says(GENERAL, ANNA, "think!", mention=True)
        await desk.slack.wait_for_quiet()
        told = await desk.slack.user_says(desk.direct(ANNA), ANNA, "think!")
        await desk.slack.wait_for_quiet()
        channel, direct = (m.address for m in desk.gatehouse.messages)
        for target in (channel, direct):
            for state in ("thinking", "web_fetch", "done"):
                await desk.adapter.typing(target, state)
    calls = desk.slack.calls_to("assistant.threads.setStatus")
    seen = [(call.arguments["thread_ts"], call.arguments["status"]) for call in calls]
    lines = ("is thinking...", "is using web_fetch...", "")
    assert seen == [(ts, line) for ts in (asked.ts, told.ts) for line in lines]
    assert all(call.error is None for call in calls)


async def test_a_status_that_slack_will_not_show_disturbs_nobody(desk: Desk) -> None:
    target = ChatAddress(channel="slack", account="T0TEAM", chat_id=GENERAL, chat_kind="channel")
    await desk.adapter.typing(target, "thinking")
    assert not desk.slack.calls, "there is no thread to show it under"
    threaded = target.model_copy(update={"thread_id": "1700000000.000100"})
    method = "assistant.threads.setStatus"
    desk.slack.rate_limit(method)
    await desk.adapter.typing(threaded, "thinking")
    desk.clock.advance(1.0)
    desk.slack.hang(method, cut=True)
    await desk.adapter.typing(threaded, "thinking")
    desk.slack.fail(method, "channel_not_found")
    await desk.adapter.typing(threaded, "thinking")
    assert len(desk.slack.calls) == 3
    await desk.adapter.typing(threaded, "thinking")
    assert len(desk.slack.calls) == 3, "what was refused is not tried with each change"
    elsewhere = threaded.model_copy(update={"chat_id": desk.slack.workspace.add_channel("other")})
    desk.slack.fail(method, "unknown_method", times=9)
    for target in (elsewhere, elsewhere, threaded):
        await desk.adapter.typing(target, "thinking")
    assert len(desk.slack.calls) == 4
    desk.slack.clear_faults()
    desk.clock.advance(3600.0)
    await desk.adapter.typing(elsewhere, "thinking")
    assert len(desk.slack.calls) == 5


@in_every_view
@pytest.mark.requirement("SLK-9")
async def test_an_answer_stands_where_the_direct_message_began_a_conversation(desk: Desk) -> None:
    async with desk.listening():
        asked = await desk.slack.user_says(desk.direct(ANNA), ANNA, "how much?")
        await desk.slack.wait_for_quiet()
        (message,) = desk.gatehouse.messages
        answer = reply("42").model_copy(update={"target": message.address})
        receipt = await desk.send(answer)
        await desk.adapter.edit(answer, receipt)
        found = await desk.adapter.lookup(answer, posted=())
    assert found == receipt
    (post,) = desk.slack.posts(desk.direct(ANNA))
    assert post.thread_ts == (asked.ts if desk.slack.install.experience == "agent" else None)


async def test_a_message_without_words_is_no_post(desk: Desk) -> None:
    assert (await desk.send(reply("  \n"))).message_ids == ()
    assert not desk.slack.calls


async def test_what_the_engine_may_ask_of_it(desk: Desk) -> None:
    port: ChatAdapter = desk.adapter
    can = port.capabilities
    assert (can.lookup, can.edits) == (True, True)
    assert (can.chat_rate, can.chat_burst) == (1.0, 5)
    # Slack takes a status away after two minutes.
    assert can.typing_interval_s is not None
    assert can.typing_interval_s < 120
