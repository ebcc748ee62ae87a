"""What else happens in Slack: deletions, arrivals, the App Home, assistant threads, names."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runtime.domain.messages import ApprovalPart, ChatAddress, QuestionPart
from runtime.ports.gatehouse import Home, HomeSession
from tests.contract.chat.slack_support import Desk, Door, desk_at, doors, reply, slack
from tests.wire.slack import ANNA, BEN, GENERAL, Install, JsonObject, SlackServer
from tests.wire.slack.state import texts_in

__all__ = ["slack"]


@pytest_asyncio.fixture(params=["socket", "http"])
async def door(slack: SlackServer, request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    async with doors(slack, request.param) as made:
        yield made


@pytest_asyncio.fixture
async def desk(slack: SlackServer) -> AsyncIterator[Desk]:
    async with doors(slack, "socket") as made:
        yield made.desk


@pytest.mark.requirement("SLK-2")
async def test_a_deletion_is_told_with_its_author_and_ours_is_nobody_s_business(
    door: Door,
) -> None:
    desk = door.desk
    said = await desk.slack.user_says(GENERAL, ANNA, "never mind", mention=True)
    await desk.slack.wait_for_quiet()
    await desk.slack.user_deletes(GENERAL, said.ts)
    receipt = await desk.send(reply("mine"))
    await desk.slack.user_deletes(GENERAL, receipt.message_ids[0])
    await desk.slack.wait_for_quiet()
    (deletion,) = desk.gatehouse.deletions
    assert (deletion.channel, deletion.account) == ("slack", "T0TEAM")
    assert (deletion.chat_id, deletion.message_id) == (GENERAL, said.ts)
    assert deletion.sender is not None
    assert deletion.sender.id == ANNA


@pytest.mark.requirement("SLK-2")
async def test_the_deleted_head_of_a_thread_leaves_a_tombstone_and_counts_as_deleted(
    desk: Desk,
) -> None:
    event: JsonObject = {
        "type": "message",
        "subtype": "message_changed",
        "channel": GENERAL,
        "ts": "1700000009.000100",
        "message": {"subtype": "tombstone", "user": "USLACKBOT", "ts": "1700000001.000100"},
        "previous_message": {"user": ANNA, "text": "gone", "ts": "1700000001.000100"},
    }
    await desk.slack.dispatch("events_api", {"event": event})
    await desk.slack.wait_for_quiet()
    (deletion,) = desk.gatehouse.deletions
    assert deletion.message_id == "1700000001.000100"
    assert deletion.sender is not None
    assert deletion.sender.id == ANNA


@pytest.mark.requirement("SLK-2", "MSG-1")
async def test_an_edit_or_a_deletion_that_cannot_be_stored_comes_again(desk: Desk) -> None:
    said = await desk.slack.user_says(GENERAL, ANNA, "one", mention=True)
    await desk.slack.wait_for_quiet()
    for act in (
        lambda: desk.slack.user_edits(GENERAL, said.ts, "<@U0BOT> two"),
        lambda: desk.slack.user_deletes(GENERAL, said.ts),
    ):
        desk.gatehouse.break_store()
        told = await act()
        # What follows in the same channel is taken, so the first try is over by then.
        await desk.slack.user_says(GENERAL, BEN, f"after {told.ts}", mention=True)
        await desk.slack.until(lambda told=told: desk.slack.unacked == list(told.deliveries))
        await desk.slack.redeliver_unacked()
        await desk.slack.wait_for_quiet()
    assert [m.text for m in desk.gatehouse.revisions] == ["two"]
    assert [d.message_id for d in desk.gatehouse.deletions] == [said.ts]


@pytest.mark.requirement("SLK-2")
async def test_it_greets_a_channel_once_and_nobody_else(slack: SlackServer) -> None:
    quiet = slack.workspace.add_channel("quiet")
    async with doors(slack, "socket") as first:
        joined = await slack.user_joins(quiet, slack.install.bot_user)
        await slack.user_joins(quiet, slack.workspace.add_user("carla"))
        await slack.wait_for_quiet()
        await slack.wait_for_ack(await slack.duplicate(joined.deliveries[0]))
        assert first.desk.gatehouse.offered == []
    async with doors(slack, "http"):
        await slack.user_joins(quiet, slack.install.bot_user)
        await slack.wait_for_quiet()
    (greeting,) = slack.posts(quiet)
    assert "Mention me" in greeting.text
    async with doors(slack, "socket", greeting=False):
        await slack.user_joins(GENERAL, slack.install.bot_user)
        await slack.wait_for_quiet()
    assert slack.posts(GENERAL) == []


@pytest.mark.requirement("SLK-4")
async def test_the_home_shows_what_the_engine_tells_and_no_markup_of_anybody(door: Door) -> None:
    desk = door.desk
    place = ChatAddress(channel="slack", account="T0TEAM", chat_id=GENERAL, chat_kind="channel")
    alone = place.model_copy(update={"chat_id": "D01", "chat_kind": "direct"})
    desk.gatehouse.shown = Home(
        known=True,
        sessions=(
            HomeSession(
                session_id="ses_1",
                title="<!channel> *deploy*",
                address=place,
                state="running",
                updated_at_ms=1,
            ),
            HomeSession(session_id="ses_2", title="", address=alone, state="idle", updated_at_ms=0),
        ),
        cards=(
            ApprovalPart(
                open_call_id="apr_1", code="a1b2c3", tool="shell", arguments="ls", reason=""
            ),
            ApprovalPart(
                open_call_id="apr_2", code="d4e5f6", tool="shell", arguments="x" * 9000, reason=""
            ),
            QuestionPart(open_call_id="que_1", code="g7h8j9", question="Sure?"),
        ),
    )
    await desk.slack.wait_for_ack((await desk.slack.user_opens_home(ANNA)).deliveries[0])
    home = desk.slack.home_of(ANNA)
    assert home is not None
    blocks = home.body["blocks"]
    assert isinstance(blocks, list)
    seen = "\n".join(texts_in(blocks))
    for line in ("deploy* · working", f"<#{GENERAL}>", "direct messages", "(no words)", "Sure?"):
        assert line in seen
    formatted = [b for b in blocks if "mrkdwn" in str(b.get("text")) and "deploy" in str(b)]
    assert formatted == [], "a title cannot format itself or ring anybody"
    carried = str([block for block in blocks if block["type"] == "actions"])
    assert "apr_1 once" in carried
    assert "apr_2" not in carried, "what is not shown whole cannot be allowed here"
    assert "decide on its card, d4e5f6" in seen
    assert [(one.id, one.name) for one in desk.gatehouse.homes] == [(ANNA, "anna")]


@pytest.mark.requirement("SLK-4")
async def test_the_home_of_a_stranger_says_only_that(door: Door) -> None:
    desk = door.desk
    desk.gatehouse.shown = Home(known=False)
    await desk.slack.wait_for_ack((await desk.slack.user_opens_home(BEN)).deliveries[0])
    home = desk.slack.home_of(BEN)
    assert home is not None
    seen = "\n".join(texts_in(home.body["blocks"]))
    assert "I do not know you yet." in seen
    assert "Conversations" not in seen
    messages = await desk.slack.user_opens_home(BEN, tab="messages")
    await desk.slack.wait_for_ack(messages.deliveries[0])
    assert len(desk.gatehouse.homes) == 1, "the messages tab is no home"


@pytest.mark.requirement("SLK-4")
async def test_an_assistant_thread_gets_prompts_and_the_title_of_its_first_words(
    door: Door,
) -> None:
    desk = door.desk
    thread = await desk.slack.user_opens_assistant(ANNA)
    await desk.slack.wait_for_quiet()
    (asked,) = desk.slack.calls_to("assistant.threads.setSuggestedPrompts")
    assert "general" not in str(asked.arguments)
    await desk.slack.user_changes_context(thread, ANNA, GENERAL)
    await desk.slack.wait_for_quiet()
    again = desk.slack.calls_to("assistant.threads.setSuggestedPrompts")[-1]
    assert "About #general" in str(again.arguments["prompts"])
    for words in ("plan the\nrelease " + "x" * 200, "and then?"):
        await desk.slack.user_says(thread.channel, ANNA, words, thread_ts=thread.ts)
        await desk.slack.wait_for_quiet()
    root = desk.slack.workspace.channels[thread.channel].messages[thread.ts]
    assert root.assistant_title is not None
    assert root.assistant_title.startswith("plan the release xxx")
    assert len(root.assistant_title) == 80
    assert len(desk.slack.calls_to("assistant.threads.setTitle")) == 1
    first, second = desk.gatehouse.messages
    assert first.thread_id == second.thread_id == thread.ts
    await desk.adapter.typing(first.address, "thinking")
    (status,) = desk.slack.calls_to("assistant.threads.setStatus")
    assert (status.arguments["thread_ts"], status.error) == (thread.ts, None)


@pytest.mark.requirement("SLK-4")
async def test_an_assistant_thread_works_without_its_ornaments(desk: Desk) -> None:
    for method in ("setSuggestedPrompts", "setTitle"):
        desk.slack.fail(f"assistant.threads.{method}", "internal_error")
    thread = await desk.slack.user_opens_assistant(ANNA, GENERAL)
    await desk.slack.user_says(thread.channel, ANNA, "hello", thread_ts=thread.ts)
    await desk.slack.wait_for_quiet()
    assert desk.gatehouse.texts == ["hello"]


@pytest.mark.requirement("SLK-7")
async def test_names_of_people_and_channels_are_known_for_an_hour(desk: Desk) -> None:
    async def said() -> str:
        await desk.slack.user_says(desk.direct(ANNA), ANNA, f"<@{BEN}> in <#{GENERAL}>")
        await desk.slack.wait_for_quiet()
        return desk.gatehouse.texts[-1]

    assert [await said(), await said()] == ["@ben in #general"] * 2
    assert len(desk.slack.calls_to("conversations.info")) == 1
    desk.slack.workspace.users[BEN].name = "benedict"
    desk.slack.workspace.channels[GENERAL].name = "everyone"
    assert await said() == "@ben in #general"
    desk.clock.advance(3600.0)
    assert await said() == "@benedict in #everyone"


@pytest.mark.requirement("SLK-7")
async def test_each_workspace_has_its_own_account_and_its_own_address() -> None:
    one = Install()
    other = Install(
        team_id="T0OTHER",
        bot_token="xoxb-other",
        app_token="xapp-other",
        signing_secret="other-made-up-secret",
    )
    async with (
        SlackServer(one).running() as here,
        SlackServer(other).running() as there,
        doors(here, "http", name="acme") as acme,
        doors(there, "http", name="umbrella") as umbrella,
    ):
        for server in (here, there):
            await server.user_says(server.workspace.im(ANNA), ANNA, server.install.team_id)
            await server.wait_for_quiet()
        for door, path in ((acme, "slack/acme"), (umbrella, "slack/umbrella")):
            (message,) = door.desk.gatehouse.messages
            assert message.account == message.text == door.desk.adapter.account
            hook = door.desk.adapter.webhook
            assert hook is not None
            assert hook.path == path


@pytest.mark.requirement("SLK-7")
async def test_an_event_for_another_workspace_is_none_of_ours(desk: Desk) -> None:
    said = await desk.slack.user_says(desk.direct(ANNA), ANNA, "here")
    await desk.slack.wait_for_quiet()
    payload = dict(said.deliveries[0].payload)
    payload["authorizations"] = [{"team_id": "T0OTHER", "user_id": "U0BOT"}]
    await desk.slack.wait_for_ack(await desk.slack.dispatch("events_api", payload))
    assert len(desk.gatehouse.offered) == 1


@pytest.mark.requirement("SLK-4", "MSG-12")
async def test_a_command_where_it_could_not_answer_is_told_at_once(door: Door) -> None:
    desk = door.desk
    elsewhere = desk.slack.workspace.add_channel("elsewhere", with_bot=False)
    secret = desk.slack.workspace.add_channel("secret", private=True, with_bot=False)
    for place in (elsewhere, secret):
        delivery = await desk.slack.user_commands(place, ANNA, "status")
        await desk.slack.wait_for_ack(delivery)
        assert delivery.response is not None
        assert "I am not in this channel" in str(delivery.response["text"])
        assert delivery.response["response_type"] == "ephemeral"
    assert desk.gatehouse.offered == []
    await desk.slack.user_joins(elsewhere, desk.slack.install.bot_user)
    await desk.slack.wait_for_ack(await desk.slack.user_commands(elsewhere, ANNA, "status"))
    assert desk.gatehouse.texts == ["/status"]


async def test_a_person_whose_name_is_markup_is_only_a_name(slack: SlackServer) -> None:
    slack.workspace.users[ANNA].name = "<!channel> *Anna* `x`"
    async with desk_at(slack) as desk, desk.listening():
        await slack.user_says(desk.direct(BEN), BEN, f"ask <@{ANNA}>")
        await slack.wait_for_quiet()
        await desk.send(reply("Hello, " + desk.gatehouse.texts[0]))
    (post,) = slack.posts()
    assert "<!channel>" not in post.text
    assert "<!channel>" not in post.visible_text


@pytest.mark.requirement("SLK-1", "SLK-7")
async def test_what_is_only_good_to_have_keeps_no_acknowledgement_waiting(desk: Desk) -> None:
    held = [desk.slack.hold(method) for method in ("users.info", "views.publish")]
    said = await desk.slack.user_says(desk.direct(ANNA), ANNA, "hello")
    await held[0].entered.wait()
    desk.clock.advance(1.5)
    await desk.slack.wait_for_ack(said.deliveries[0])
    assert [m.sender.id for m in desk.gatehouse.messages] == [ANNA]
    opened = await desk.slack.user_opens_home(BEN)
    await held[1].entered.wait()
    desk.clock.advance(1.5)
    await desk.slack.wait_for_ack(opened.deliveries[0])
    for gate in held:
        gate.release()
