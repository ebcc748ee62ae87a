"""A reply that grows in front of people, and always ends as the one whole reply."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runtime.domain.errors import DeliveryError, DeliveryRetry, DeliveryUnknown
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt
from runtime.ports.chat import Streams
from tests.contract.chat.slack_support import (
    Desk,
    Progress,
    desk_at,
    doors,
    in_every_view,
    reply,
    settings_for,
    shown,
    slack,
)
from tests.wire.slack import ANNA, BEN, GENERAL, Message, SlackServer

__all__ = ["slack"]

WORDS = "The plan has **three** steps. First we look, then we ask, and at last we write it down."
LONG = "\n\n".join(f"Paragraph {number}. " + "word " * 200 for number in range(30))
FENCED = "Look:\n\n```python\nprint('<!channel>')\nprint(2)\n```\n\nThat is all of it, @everyone."


class Reply:
    """One reply of a run in one place, from its first words to its receipt."""

    def __init__(self, desk: Desk, target: ChatAddress) -> None:
        self.desk = desk
        self.target = target
        self.progress = Progress()
        self.stream = ""

    @property
    def streams(self) -> Streams:
        found = self.desk.adapter.streams
        assert found is not None
        return found

    def saying(self, *texts: str) -> OutboundMessage:
        return reply(*texts).model_copy(update={"target": self.target})

    async def open(self, text: str) -> None:
        self.stream = await self.streams.open(self.saying(text))

    async def grow(self, text: str) -> None:
        await self.streams.grow(self.saying(text), self.stream)

    async def close(self, *texts: str, shown: str | None = None) -> Receipt:
        return await self.streams.close(
            self.saying(*texts),
            self.stream,
            posted=tuple(self.progress.ids),
            on_posted=self.progress,
            shown=None if shown is None else self.saying(shown),
        )

    @property
    def post(self) -> Message:
        return self.desk.slack.workspace.channels[self.target.chat_id].messages[self.stream]

    @property
    def seen(self) -> list[str]:
        """What people read there from the bot, post by post."""
        return shown(self.desk.slack.posts(self.target.chat_id, self.target.thread_id))


@pytest_asyncio.fixture
async def desk(slack: SlackServer) -> AsyncIterator[Desk]:
    async with doors(slack, "socket") as door:
        yield door.desk


@pytest_asyncio.fixture(params=["thread", "private thread", "direct", "channel", "old thread"])
async def answer(desk: Desk, request: pytest.FixtureRequest) -> Reply:
    return await asked(desk, request.param)


async def asked(desk: Desk, where: str) -> Reply:
    """Somebody asks, in one of the places where replies grow."""
    slack = desk.slack
    if where == "old thread":
        # Nobody asked there: the bot began it.
        begun = reply("The build is broken.").model_copy(update={"outbox_id": "out_old"})
        receipt = await desk.adapter.send(begun, posted=(), on_posted=Progress())
        return Reply(desk, reply(thread=receipt.message_ids[0]).target)
    chat = desk.direct(ANNA) if where in ("private thread", "direct") else GENERAL
    said = await slack.user_says(chat, ANNA, "plan!", mention=chat == GENERAL)
    await slack.wait_for_quiet()
    target = desk.gatehouse.messages[-1].address
    if where == "private thread":
        target = target.model_copy(update={"thread_id": said.ts})
    if where == "channel":
        target = target.model_copy(update={"thread_id": None})
    return Reply(desk, target)


def native(answer: Reply) -> bool:
    return bool(answer.desk.slack.calls_to("chat.startStream"))


@in_every_view
@pytest.mark.requirement("REN-4", "SLK-9")
async def test_slack_streams_where_it_can_and_elsewhere_the_post_is_edited(desk: Desk) -> None:
    places = {}
    for where in ("thread", "private thread", "direct", "channel", "old thread"):
        answer = await asked(desk, where)
        desk.slack.calls.clear()
        await answer.open("Well, let me")
        places[where] = (native(answer), answer.streams.interval_s(answer.target))
        await answer.close("Done.")
    assert places == {
        "thread": (True, 1.0),
        "private thread": (True, 1.0),
        # In the agent view a direct message begins a thread, and a thread has Slack's own streams.
        "direct": (True, 1.0) if desk.slack.install.experience == "agent" else (False, 3.0),
        "channel": (False, 3.0),
        "old thread": (False, 3.0),
    }


@pytest.mark.requirement("REN-4")
async def test_text_grows_in_one_post_and_ends_as_the_whole_reply(answer: Reply) -> None:
    await answer.open(WORDS[:20])
    before = ""
    for end in range(30, len(WORDS), 10):
        await answer.grow(WORDS[:end])
        text = answer.post.visible_text
        assert len(text) >= len(before)
        before = text
    receipt = await answer.close(WORDS)
    assert receipt.message_ids == (answer.stream,)
    assert answer.seen == [WORDS]
    found = await answer.desk.adapter.lookup(answer.saying(WORDS), posted=())
    assert found == receipt, "what was streamed carries its mark in the end"
    if native(answer):
        assert not answer.desk.slack.calls_to("chat.update"), "nothing had to be mended"
        appended = answer.desk.slack.calls_to("chat.appendStream")
        sent = "".join(str(call.arguments["markdown_text"]) for call in appended)
        assert len(sent) <= len(WORDS), "only what is new is sent"


@pytest.mark.requirement("REN-4", "REN-1")
async def test_code_and_mentions_stay_safe_and_whole_while_they_grow(answer: Reply) -> None:
    whole = await answered_at_once(answer, FENCED)
    await answer.open("Look:")
    for end in range(8, len(FENCED)):
        await answer.grow(FENCED[:end])
        seen = answer.post.visible_text
        assert "@everyone" not in seen
        assert "<!channel" not in (seen if native(answer) else answer.post.text)
        if native(answer):
            assert whole.startswith(seen), "what is streamed stays"
    await answer.close(FENCED)
    assert answer.seen[-1] == whole


async def answered_at_once(answer: Reply, text: str) -> str:
    """What people see of the same text when nothing of it was streamed."""
    message = answer.saying(text).model_copy(update={"outbox_id": "out_whole"})
    receipt = await answer.desk.adapter.send(message, posted=(), on_posted=Progress())
    messages = answer.desk.slack.workspace.channels[answer.target.chat_id].messages
    return messages[receipt.message_ids[0]].visible_text


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize("final", ["Something else came of it.", "The plan", ""])
async def test_the_final_text_wins_over_what_was_shown(answer: Reply, final: str) -> None:
    await answer.open("The plan has three")
    await answer.grow("The plan has three steps, I thought, but")
    await answer.grow("No: a model call that was repeated says it otherwise")
    receipt = await answer.close(final)
    assert answer.seen == ([final] if final else [])
    assert receipt.message_ids == ((answer.stream,) if final else ())


@pytest.mark.requirement("REN-4", "REN-2")
async def test_a_reply_of_several_posts_grows_in_the_first_and_ends_in_all(answer: Reply) -> None:
    await answer.open(LONG[:2000])
    for end in (8000, 14_000, len(LONG)):
        await answer.grow(LONG[:end])
        assert len(answer.seen) == 1
    receipt = await answer.close(LONG, "And a last part.")
    assert " ".join(answer.seen).split() == f"{LONG} And a last part.".split()
    assert len(receipt.message_ids) == len(answer.seen) == 4
    assert answer.progress.ids == list(receipt.message_ids[:-1])


@pytest.mark.requirement("REN-4", "SLK-8")
async def test_a_limit_slows_the_stream_and_never_fails_the_reply(answer: Reply) -> None:
    await answer.open("The plan has three")
    for method in ("chat.appendStream", "chat.update"):
        answer.desk.slack.rate_limit(method, retry_after=9)
    with pytest.raises(DeliveryRetry) as caught:
        await answer.grow("The plan has three steps, and the first of them")
    assert caught.value.after_s == 9.0
    with pytest.raises(DeliveryRetry):
        await answer.grow("The plan has three steps, and the first of them is")
    answer.desk.slack.clear_faults()
    answer.desk.clock.advance(9.0)
    for method in ("chat.stopStream", "chat.update"):
        answer.desk.slack.rate_limit(method, retry_after=4)
    with pytest.raises(DeliveryRetry):
        await answer.close(WORDS)
    answer.desk.slack.clear_faults()
    answer.desk.clock.advance(4.0)
    await answer.close(WORDS)
    assert answer.seen == [WORDS]


@pytest.mark.requirement("REN-4", "MSG-11")
@pytest.mark.parametrize("method", ["chat.appendStream", "chat.stopStream", "chat.update"])
async def test_an_answer_that_is_lost_doubles_no_words(answer: Reply, method: str) -> None:
    await answer.open("The plan has three")
    for end in range(30, len(WORDS), 10):
        if end == 50:
            answer.desk.slack.hang(method, cut=True)
        try:
            await answer.grow(WORDS[:end])
        except DeliveryError:
            continue
    for _ in range(3):
        try:
            await answer.close(WORDS)
        except DeliveryRetry:
            continue
        break
    answer.desk.slack.clear_faults()
    assert answer.seen == [WORDS]


@pytest.mark.requirement("REN-4")
async def test_a_post_that_reads_like_the_reply_is_not_edited_again(answer: Reply) -> None:
    await answer.open("The plan has three")
    await answer.grow(WORDS)
    edits = len(answer.desk.slack.calls_to("chat.update"))
    message, grown = answer.saying(WORDS), answer.saying(WORDS)
    assert answer.streams.ends_by_edit(message, answer.stream, shown=grown) is False
    receipt = await answer.close(WORDS, shown=WORDS)
    assert receipt.message_ids == (answer.stream,)
    assert answer.seen == [WORDS]
    assert len(answer.desk.slack.calls_to("chat.update")) == edits
    assert await answer.desk.adapter.lookup(message, posted=()) == receipt


@pytest.mark.requirement("REN-4")
async def test_a_post_that_reads_otherwise_is_edited_whatever_was_shown_before(
    answer: Reply,
) -> None:
    await answer.open("The plan has three")
    await answer.grow("The plan has three steps, or")
    await answer.close(LONG, shown="The plan has three steps, or")
    assert " ".join(answer.seen).split() == LONG.split()


@pytest.mark.requirement("REN-3", "REN-4")
@pytest.mark.parametrize("held", ["metadata", "markdown_text", "blocks"])
@pytest.mark.parametrize("error", ["a_code_of_next_year", "invalid_metadata_format"])
async def test_an_answer_that_grew_ends_in_a_plainer_form_where_one_is_refused(
    answer: Reply, held: str, error: str
) -> None:
    await answer.open("The plan has three")
    await answer.grow(WORDS[:60])
    for method in ("chat.stopStream", "chat.update"):
        answer.desk.slack.refuse(method, error, holding=held, times=9)
    receipt = await answer.close(WORDS)
    (post,) = answer.desk.slack.posts(answer.target.chat_id, answer.target.thread_id)[-1:]
    assert receipt.message_ids == (post.ts,)
    assert post.visible_text.replace("*", "") == WORDS.replace("*", "")


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize("by_user", [False, True])
async def test_a_stream_that_slack_or_the_person_ended_goes_on_as_a_post(
    answer: Reply, by_user: bool
) -> None:
    await answer.open("The plan has three")
    if native(answer):
        await answer.desk.slack.stream_ends(answer.target.chat_id, answer.stream, by_user=by_user)
    for end in (40, 60):
        await answer.grow(WORDS[:end])
    assert answer.post.visible_text.startswith("The plan has **three** steps. First")
    await answer.close(WORDS)
    assert answer.seen == [WORDS]


@pytest.mark.requirement("REN-4", "MSG-11")
@pytest.mark.parametrize("lost", ["ended", "stopped", "refused", "unanswered"])
async def test_last_words_that_a_stream_did_not_take_are_in_the_reply(
    answer: Reply, lost: str
) -> None:
    await answer.open("The plan has three")
    if native(answer) and lost in ("ended", "stopped"):
        by_user = lost == "stopped"
        await answer.desk.slack.stream_ends(answer.target.chat_id, answer.stream, by_user=by_user)
    if lost == "refused":
        answer.desk.slack.fail("chat.appendStream", "nobody_listed_this")
    if lost == "unanswered":
        answer.desk.slack.hang("chat.appendStream", cut=True)
    await answer.grow(WORDS)
    answer.desk.slack.clear_faults()
    edits = len(answer.desk.slack.calls_to("chat.update"))
    receipt = await answer.close(WORDS, shown=WORDS)
    assert answer.seen == [WORDS]
    assert receipt.message_ids == (answer.stream,)
    # Where the post was edited, it showed them, and is left; else one edit puts them there.
    assert len(answer.desk.slack.calls_to("chat.update")) == edits + native(answer)


@pytest.mark.requirement("REN-4")
async def test_a_stream_whose_process_died_is_found_and_ends_in_one_whole_message(
    slack: SlackServer, answer: Reply
) -> None:
    await answer.open("The plan has three")
    async with desk_at(slack) as later:
        await later.adapter.connect()
        heir = Reply(later, answer.target)
        assert await heir.streams.find(heir.saying("The plan")) == answer.stream
        heir.stream = answer.stream
        await heir.grow("The plan has three steps, and")
        receipt = await heir.close(WORDS)
        assert await heir.close(WORDS) == receipt, "closing it again changes nothing"
    assert answer.seen == [WORDS]


@pytest.mark.requirement("REN-4", "MSG-11")
async def test_a_stream_whose_opening_had_no_answer_is_found_by_its_place(answer: Reply) -> None:
    for method in ("chat.startStream", "chat.postMessage"):
        answer.desk.slack.hang(method, cut=True)
    with pytest.raises(DeliveryUnknown):
        await answer.open("The plan has three")
    answer.desk.slack.clear_faults()
    found = await answer.streams.find(answer.saying("The plan"))
    assert found is not None
    answer.stream = found
    await answer.close(WORDS)
    assert answer.seen == [WORDS]


@pytest.mark.requirement("REN-4")
async def test_where_nothing_was_streamed_nothing_is_found(answer: Reply) -> None:
    assert await answer.streams.find(answer.saying("The plan")) is None


@pytest.mark.requirement("REN-4")
async def test_of_two_half_streams_in_one_thread_nobody_can_tell(desk: Desk) -> None:
    first, second = await asked(desk, "thread"), await asked(desk, "thread")
    second.target = first.target
    await first.open("One thing is")
    await second.open("Another thing is")
    async with desk_at(desk.slack) as later:
        await later.adapter.connect()
        streams = later.adapter.streams
        assert streams is not None
        assert await streams.find(first.saying("One")) is None


@pytest.mark.requirement("REN-4")
async def test_a_post_that_a_person_deleted_while_it_grew_comes_back_whole(answer: Reply) -> None:
    await answer.open("The plan has three")
    answer.post.deleted = True
    for text in (WORDS[:40], WORDS[:60]):
        try:
            await answer.grow(text)
        except DeliveryError:
            continue
    receipt = await answer.close(WORDS)
    assert answer.seen == [WORDS]
    assert receipt.message_ids != (answer.stream,)


@pytest.mark.requirement("REN-4")
async def test_where_slack_has_no_streams_the_post_is_edited(desk: Desk) -> None:
    desk.slack.fail("chat.startStream", "unknown_method", times=9)
    answer = await asked(desk, "thread")
    await answer.open("The plan has three")
    await answer.grow(WORDS[:60])
    assert "First we" in answer.post.visible_text
    await answer.close(WORDS)
    assert answer.seen == [WORDS]


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize("refusal", ["unknown_method", "missing_scope", "nobody_listed_this", ""])
async def test_a_refused_stream_is_not_tried_again_with_each_message(
    desk: Desk, refusal: str
) -> None:
    elsewhere = desk.slack.workspace.add_channel("elsewhere")
    if refusal:
        desk.slack.fail("chat.startStream", refusal, times=9)
    else:
        desk.slack.break_http("chat.startStream", 404, times=9)
    for chat in (GENERAL, GENERAL, elsewhere):
        said = await desk.slack.user_says(chat, ANNA, "plan!", mention=True)
        await desk.slack.wait_for_quiet()
        answer = Reply(desk, reply(chat=chat, thread=said.ts).target)
        await answer.open("The plan has three")
        assert answer.streams.interval_s(answer.target) == 3.0
        assert answer.streams.grows_by_edits(answer.target, answer.stream)
        await answer.grow(WORDS[:60])
        assert "First we" in answer.post.visible_text
        await answer.close(WORDS)
        assert answer.seen == [WORDS]
    assert len(desk.slack.calls_to("chat.startStream")) == 1
    desk.clock.advance(3600.0)
    desk.slack.clear_faults()
    late = await asked(desk, "thread")
    await late.open("The plan has three")
    assert len(desk.slack.calls_to("chat.startStream")) == 2
    assert not late.streams.grows_by_edits(late.target, late.stream)


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize(
    ("refusal", "calls"), [("channel_type_not_supported", 2), ("user_not_in_channel", 3)]
)
async def test_what_is_refused_to_one_chat_or_person_is_refused_to_nobody_else(
    desk: Desk, refusal: str, calls: int
) -> None:
    elsewhere = desk.slack.workspace.add_channel("elsewhere")
    desk.slack.fail("chat.startStream", refusal, times=9, channel=GENERAL)
    native = []
    for chat in (GENERAL, GENERAL, elsewhere):
        said = await desk.slack.user_says(chat, ANNA, "plan!", mention=True)
        await desk.slack.wait_for_quiet()
        answer = Reply(desk, reply(chat=chat, thread=said.ts).target)
        await answer.open("The plan has three")
        native.append(not answer.streams.grows_by_edits(answer.target, answer.stream))
        await answer.close(WORDS)
        assert answer.seen == [WORDS]
    assert native == [False, False, True]
    assert len(desk.slack.calls_to("chat.startStream")) == calls


@pytest.mark.requirement("REN-4")
async def test_a_stream_that_cannot_grow_goes_on_by_edits_and_so_do_the_next(desk: Desk) -> None:
    desk.slack.fail("chat.appendStream", "nobody_listed_this", times=9)
    for _ in range(2):
        answer = await asked(desk, "thread")
        await answer.open("The plan has three")
        for end in (40, 60):
            await answer.grow(WORDS[:end])
        assert "First we" in answer.post.visible_text
        await answer.close(WORDS)
        assert answer.seen == [WORDS]
    assert len(desk.slack.calls_to("chat.appendStream")) == 1
    assert len(desk.slack.calls_to("chat.startStream")) == 1


@pytest.mark.requirement("REN-4")
async def test_the_stream_is_shown_to_whoever_asked_last_in_the_thread(slack: SlackServer) -> None:
    desk = Desk(slack, settings_for(slack))
    try:
        async with desk.listening():
            first = await asked(desk, "thread")
            thread = first.target.thread_id
            await slack.user_says(GENERAL, BEN, "and mine?", thread_ts=thread, mention=True)
            await slack.wait_for_quiet()
            await first.open("The plan has three")
            (call,) = slack.calls_to("chat.startStream")
            assert call.arguments["recipient_user_id"] == BEN
            assert call.arguments["recipient_team_id"] == "T0TEAM"
            await first.close(WORDS)
    finally:
        await desk.adapter.close()


@pytest.mark.requirement("REN-4", "SLK-8")
async def test_with_many_replies_at_once_the_later_ones_grow_by_edits(desk: Desk) -> None:
    answers = []
    for number in range(17):
        said = await desk.slack.user_says(GENERAL, ANNA, f"plan {number}", mention=True)
        await desk.slack.wait_for_quiet()
        answers.append(Reply(desk, reply(thread=said.ts).target))
        await answers[-1].open("The plan has three")
    assert len(desk.slack.calls_to("chat.startStream")) == 15
    for answer in answers:
        await answer.close(WORDS)
        assert answer.seen == [WORDS]
    desk.clock.advance(60.0)
    late = await asked(desk, "thread")
    await late.open("The plan has three")
    assert len(desk.slack.calls_to("chat.startStream")) == 16


@pytest.mark.requirement("REN-4", "SLK-8")
async def test_a_limit_on_new_streams_is_no_limit_on_replies(desk: Desk) -> None:
    answer = await asked(desk, "thread")
    desk.slack.rate_limit("chat.startStream", retry_after=60)
    await answer.open("The plan has three")
    await answer.grow(WORDS[:60])
    await answer.close(WORDS)
    assert answer.seen == [WORDS]


@pytest.mark.requirement("REN-4", "MSG-11")
@pytest.mark.parametrize("error", ["message_not_found", "edit_window_closed"])
async def test_a_reply_that_must_be_posted_anew_is_posted_once(answer: Reply, error: str) -> None:
    await answer.open("The plan has three")
    answer.desk.slack.fail("chat.update", error, times=9)
    answer.desk.slack.fail("chat.stopStream", "message_not_in_streaming_state")
    answer.desk.slack.hang("chat.postMessage", cut=True)
    with pytest.raises(DeliveryUnknown):
        await answer.close(WORDS)
    receipt = await answer.close(WORDS)
    assert answer.seen == [WORDS]
    assert len(receipt.message_ids) == 1


@pytest.mark.requirement("REN-4")
async def test_who_asked_is_looked_up_where_another_process_heard_it(slack: SlackServer) -> None:
    asked_in = await slack.user_says(GENERAL, ANNA, "and mine?", mention=True)
    inside = await slack.user_says(GENERAL, BEN, "or this?", thread_ts=asked_in.ts)
    for ts, user in ((asked_in.ts, ANNA), (inside.ts, BEN)):
        slack.calls.clear()
        async with desk_at(slack) as desk:
            await desk.adapter.connect()
            answer = Reply(desk, reply(thread=asked_in.ts).target)
            message = answer.saying("The plan has three").model_copy(update={"reply_to": ts})
            answer.stream = await answer.streams.open(message)
            (call,) = slack.calls_to("chat.startStream")
            assert call.arguments["recipient_user_id"] == user
            assert call.arguments["recipient_team_id"] == "T0TEAM"
            await answer.close(WORDS)
    assert shown(slack.posts(GENERAL)) == [WORDS, WORDS]
