"""Cards as people see them, and the application manifest that the workspace is installed by."""

from contextlib import suppress
from dataclasses import replace
from tempfile import NamedTemporaryFile

import pytest
import yaml

from adapters.slack.cards import approval_buttons
from adapters.slack.manifest import COMMAND, SCOPES, Experience, events_of, manifest
from gateway.cli.checks_platforms import slack_scopes, slack_view
from runtime.domain.decisions import Risk, RiskLevel
from runtime.domain.errors import DeliveryError
from runtime.domain.messages import ApprovalPart, FilePart, OutboundMessage, QuestionPart
from tests.contract.chat.slack_support import (
    Desk,
    Progress,
    desk,
    desk_at,
    installed,
    reply,
    slack,
)
from tests.wire.slack import ANNA, BEN, GENERAL, Install, SlackServer, Upload, buttons_of
from tests.wire.slack.events import subscription_of

__all__ = ["desk", "slack"]

APPROVAL = ApprovalPart(
    open_call_id="apr_1",
    code="a1b2c3",
    tool="shell",
    arguments='{"command": "rm -rf ``` /tmp/x && echo <!channel>"}',
    reason="It deletes files.",
)


def with_part(part: ApprovalPart | QuestionPart) -> OutboundMessage:
    return reply().model_copy(update={"parts": (part,)})


@pytest.mark.requirement("UI-8")
@pytest.mark.parametrize(
    ("level", "bright"), [("low", "Allow once"), ("medium", ""), ("high", "Deny")]
)
def test_the_bright_button_is_never_the_dangerous_one(level: RiskLevel, bright: str) -> None:
    risk = Risk(level=level, touches=(), words="It is so.")
    row = approval_buttons(APPROVAL.model_copy(update={"risk": risk}))
    assert row is not None
    styled = [one["text"]["text"] for one in row["elements"] if "style" in one]
    assert styled == ([bright] if bright else [])


async def test_an_approval_card_shows_the_exact_call_and_how_to_answer(desk: Desk) -> None:
    receipt = await desk.send(with_part(APPROVAL))
    (post,) = desk.slack.posts(GENERAL)
    labels = ["Allow once", "Allow for this session", "Deny", "Deny with a reason..."]
    assert buttons_of(post) == labels
    seen = post.visible_text
    assert "shell" in seen
    assert "It deletes files." in seen
    assert "rm -rf" in seen
    assert "<!channel>" not in seen
    for way in ("!approve a1b2c3", "!approve a1b2c3 session", "!deny a1b2c3", "/gatehouse approve"):
        assert way in seen
        assert way in post.text
    decided = APPROVAL.model_copy(update={"outcome": "Anna allowed it once."})
    await desk.adapter.edit(with_part(decided), receipt)
    (after,) = desk.slack.posts(GENERAL)
    assert "Anna allowed it once." in after.visible_text
    assert "rm -rf" in after.visible_text
    assert "!approve" not in after.visible_text
    assert buttons_of(after) == []


async def test_a_card_offers_only_what_may_be_chosen(desk: Desk) -> None:
    await desk.send(with_part(APPROVAL.model_copy(update={"choices": ("once", "deny")})))
    (post,) = desk.slack.posts(GENERAL)
    assert "session" not in post.visible_text
    assert "Allow for this session" not in buttons_of(post)


@pytest.mark.requirement("ACC-1")
async def test_a_card_that_lets_somebody_in_says_so_on_its_buttons(desk: Desk) -> None:
    pairing = APPROVAL.model_copy(update={"choices": ("approve", "deny"), "arguments": "Eve (U9)"})
    await desk.send(with_part(pairing))
    (post,) = desk.slack.posts(GENERAL)
    assert buttons_of(post) == ["Approve", "Deny"], "nobody is told a reason"
    for way in ("`!approve a1b2c3`", "`!deny a1b2c3`"):
        assert way in post.text
    assert "once" not in post.text


async def test_long_arguments_are_all_readable_and_the_answer_stands_at_the_end(
    desk: Desk,
) -> None:
    words = [f"word{number}" for number in range(4000)]
    await desk.send(with_part(APPROVAL.model_copy(update={"arguments": " ".join(words)})))
    posts = desk.slack.posts(GENERAL)
    assert len(posts) > 1
    # A block of code that is too long is closed and opened again, wherever its line has to break.
    everything = "".join(post.visible_text for post in posts).replace("```", "")
    assert "".join(words) in "".join(everything.split())
    assert ["!approve" in post.visible_text for post in posts] == [False] * (len(posts) - 1) + [
        True
    ]


@pytest.mark.requirement("REN-4", "APR-4")
async def test_of_a_long_card_only_the_end_is_edited_when_it_is_decided(desk: Desk) -> None:
    arguments = "\n".join(f"line {number} " + "x" * 80 for number in range(2000))
    long = APPROVAL.model_copy(update={"arguments": arguments})
    receipt = await desk.send(with_part(long))
    before = [post.visible_text for post in desk.slack.posts(GENERAL)]
    assert len(before) > 1
    decided = long.model_copy(update={"outcome": "Anna allowed it once."})
    for edits in (1, 2):
        await desk.adapter.edit(with_part(decided), receipt)
        assert len(desk.slack.calls_to("chat.update")) == edits, "safe to repeat"
    after = [post.visible_text for post in desk.slack.posts(GENERAL)]
    assert after[:-1] == before[:-1]
    assert "Anna allowed it once." in after[-1]


async def test_a_question_card_lists_its_options_and_then_its_answer(desk: Desk) -> None:
    question = QuestionPart(
        open_call_id="que_1", code="q1w2e3", question="Which **one**?", options=("red", "blue")
    )
    receipt = await desk.send(with_part(question))
    (post,) = desk.slack.posts(GENERAL)
    for line in ("Which *one*?", "1. red", "2. blue", "the number of an option"):
        assert line in post.visible_text
    answered = question.model_copy(update={"outcome": "Anna chose blue."})
    await desk.adapter.edit(with_part(answered), receipt)
    (after,) = desk.slack.posts(GENERAL)
    assert "Anna chose blue." in after.visible_text
    assert "the number of an option" not in after.visible_text


@pytest.mark.requirement("SLK-6", "SLK-9")
@pytest.mark.parametrize("view", ["agent", "assistant"])
async def test_the_manifest_asks_for_exactly_what_the_adapter_uses(view: Experience) -> None:
    application = yaml.safe_load(manifest(view=view))
    assert application["settings"]["socket_mode_enabled"] is True
    assert application["features"]["slash_commands"][0]["command"] == COMMAND == "/gatehouse"
    assert application["features"]["app_home"]["messages_tab_read_only_enabled"] is False
    async with SlackServer(installed(view)).running() as slack, desk_at(slack) as desk:
        async with desk.listening():
            await a_day_in_the_life(desk)
        assert all(call.error is None for call in slack.calls)
        assert slack.workspace.used_scopes == set(SCOPES)
        told = {
            subscription_of(slack.workspace, delivery.event)
            for delivery in slack.deliveries.all
            if delivery.kind == "events_api"
        }
    assert told == events_of(view)


@pytest.mark.requirement("SLK-6")
@pytest.mark.parametrize("missing", ["chat:write", "channels:read", "users:read", "files:write"])
async def test_none_of_the_scopes_can_be_left_out(missing: str) -> None:
    install = Install(scopes=frozenset(SCOPES) - {missing}, events=events_of("assistant"))
    async with SlackServer(install).running() as slack, desk_at(slack) as desk:
        async with desk.listening():
            with suppress(DeliveryError):
                await a_day_in_the_life(desk)
        assert "missing_scope" in {call.error for call in slack.calls}


@pytest.mark.requirement("SLK-6")
@pytest.mark.parametrize(
    ("scopes", "state", "found"),
    [
        (frozenset(SCOPES), "ok", "has all"),
        (frozenset(SCOPES) - {"files:write"}, "fail", "lacks files:write"),
        (None, "warn", "does not say which scopes"),
    ],
)
async def test_doctor_names_the_scopes_that_are_missing_where_slack_says_which_there_are(
    scopes: frozenset[str] | None, state: str, found: str
) -> None:
    async with SlackServer(Install(scopes=scopes)).running() as slack, desk_at(slack) as desk:
        await desk.adapter.connect()
        check = slack_scopes(desk.adapter)
    assert check.state == state
    assert found in check.found


@pytest.mark.requirement("SLK-9")
@pytest.mark.parametrize(
    ("scopes", "found"),
    [
        (frozenset(SCOPES), "may have Slack's agent view or its assistant view: it has the scope"),
        (frozenset(SCOPES) - {"assistant:write"}, "has neither Slack's agent view"),
        (None, "may have Slack's agent view or its assistant view: Slack does not say"),
    ],
)
async def test_doctor_says_what_the_scopes_prove_of_the_view_and_that_a_switch_is_for_good(
    scopes: frozenset[str] | None, found: str
) -> None:
    async with SlackServer(Install(scopes=scopes)).running() as slack, desk_at(slack) as desk:
        await desk.adapter.connect()
        check = slack_view(desk.adapter, "")
    assert check.state == "ok"
    assert found in check.found
    assert "cannot be undone" in check.found


@pytest.mark.requirement("SLK-9")
@pytest.mark.parametrize("scopes", [frozenset(SCOPES), None])
@pytest.mark.parametrize(("view", "state"), [("agent", "ok"), ("assistant", "warn")])
async def test_what_the_events_prove_counts_for_doctor_whatever_the_scopes_say(
    view: Experience, state: str, scopes: frozenset[str] | None
) -> None:
    install = replace(installed(view), scopes=scopes)
    async with SlackServer(install).running() as slack, desk_at(slack) as desk, desk.listening():
        assert desk.adapter.status().kind == ""
        if view == "assistant":
            await slack.user_opens_assistant(ANNA)
        else:
            await slack.user_opens_home(ANNA)
        await slack.wait_for_quiet()
        seen = desk.adapter.status().kind
        check = slack_view(desk.adapter, seen)
    assert seen == f"{view} view"
    assert check.state == state
    assert f"T0TEAM has Slack's {view} view, as its events show." in check.found
    assert "cannot be undone" in check.found
    assert ("February 2027" in check.found) == (view == "assistant")
    assert bool(check.fix) == (view == "assistant")


@pytest.mark.requirement("SLK-9")
@pytest.mark.parametrize("view", ["agent", "assistant"])
async def test_the_status_warns_of_the_assistant_view_once_it_was_used(view: Experience) -> None:
    async with SlackServer(installed(view)).running() as slack, desk_at(slack) as desk:
        async with desk.listening():
            assert "assistant view" not in desk.adapter.status().detail
            if view == "assistant":
                await slack.user_opens_assistant(ANNA)
            else:
                await slack.user_looks_at(ANNA, GENERAL)
            await slack.wait_for_quiet()
            told = desk.adapter.status().detail
        assert ("February 2027" in told) == (view == "assistant")


async def a_day_in_the_life(desk: Desk) -> None:
    """All that people do with it and that it does for them, once."""
    slack, direct = desk.slack, desk.direct(ANNA)
    secret = slack.workspace.add_channel("secret", private=True)
    group = slack.workspace.add_channel("", members=(ANNA, BEN))
    slack.workspace.channels[group].kind = "mpim"
    for place in (secret, GENERAL):
        await slack.user_joins(place, slack.install.bot_user)
    for place in (secret, group):
        await slack.user_says(place, ANNA, f"see <#{secret}> and <#{GENERAL}>")
    upload = Upload("notes.txt", b"12345")
    await slack.user_says(direct, ANNA, "read this", files=[upload])
    await slack.user_commands(GENERAL, ANNA, "status")
    await slack.user_opens_home(ANNA)
    if slack.install.experience == "agent":
        await slack.user_opens_home(ANNA, "messages")
        await slack.user_looks_at(ANNA, secret)
        root = await slack.user_says(direct, ANNA, "a title")
        await slack.user_stops(direct, ANNA, root.ts)
    else:
        thread = await slack.user_opens_assistant(ANNA, GENERAL)
        await slack.user_changes_context(thread, ANNA, secret)
        await slack.user_says(direct, ANNA, "a title", thread_ts=thread.ts)
    await slack.wait_for_quiet()
    await fetched(desk)
    said = await slack.user_says(GENERAL, ANNA, "hello", mention=True)
    talk = await slack.user_says(GENERAL, ANNA, "people only")
    await slack.user_says(GENERAL, ANNA, "go on", thread_ts=talk.ts)
    told = await slack.user_says(direct, ANNA, "hello")
    await slack.wait_for_quiet()
    await desk.adapter.typing(reply(thread=said.ts).target, "thinking")
    private = reply("yes", chat=direct, thread=told.ts, kind="direct", outbox_id="out_2")
    await desk.adapter.lookup(private, posted=())
    with NamedTemporaryFile() as file:
        file.write(b"a report")
        file.flush()
        part = FilePart(name="report.txt", path=file.name)
        sent = reply(thread=said.ts, outbox_id="out_3").model_copy(update={"parts": (part,)})
        await desk.adapter.send(sent, posted=(), on_posted=Progress())
    message = reply("one", "two", thread=said.ts)
    receipt = await desk.send(message)
    await desk.adapter.lookup(message, posted=())
    await desk.adapter.edit(reply("three", thread=said.ts), receipt)


async def fetched(desk: Desk) -> bytes:
    """The file that came with a message."""
    await desk.gatehouse.until(lambda: any(m.attachments for m in desk.gatehouse.messages))
    (message,) = [m for m in desk.gatehouse.messages if m.attachments]
    files = desk.adapter.files
    assert files is not None
    return b"".join([piece async for piece in files.fetch(message.attachments[0])])
