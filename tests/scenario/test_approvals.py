"""A call that must be approved: parked, shown, decided by the right person, and run as shown."""

import asyncio
import json
from dataclasses import replace

import pytest
from sqlalchemy import text as sql

from runtime.commands.table import CommandSettings
from runtime.domain.errors import Conflict
from runtime.domain.messages import ApprovalPart, ChatAddress
from runtime.domain.people import Approvers, Speaker, Trust
from runtime.domain.runs import RunState
from runtime.intake.access import ChannelAccess
from runtime.sessions import approvals, open_calls, outbox, people, runs
from runtime.sessions.approvals import Answer
from runtime.sessions.keys import Scope
from runtime.views.shapes import open_call_view
from tests.fakes.clock import FakeClock
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import (
    MEMBER,
    audited,
    both,
    call,
    card,
    cards,
    offering,
    outcome,
    reaches,
    results,
    ruled,
    script,
    state,
)
from tests.scenario.conftest import Worlds, agent, intake
from tests.scenario.engine import OPEN, OWNER, World
from tests.scenario.tools import Note
from tests.support.kinds import unit_of

WITH_MEMBER = replace(OPEN, allow_users=frozenset({MEMBER}))


def asking() -> Note:
    """A tool that policy asks about."""
    return Note(command=True)


@pytest.mark.requirement("APR-1", "MSG-4", "UI-8")
async def test_an_ask_parks_the_run_and_shows_tool_arguments_reason_and_choices(
    worlds: Worlds,
) -> None:
    note = asking()
    async with worlds(ScriptedModel([Said(calls=(call("rm x"),))]), change=offering(note)) as world:
        accepted = await world.says("tidy up")
        part = await card(world)
        assert isinstance(part, ApprovalPart)
        assert part.tool == "note"
        assert part.arguments == json.dumps({"text": "rm x"})
        assert "default on commands" in part.reason
        assert part.choices == ("once", "session", "deny")
        assert part.risk is not None
        assert part.risk.words == "High risk: it deletes or overwrites files."
        assert part.code in part.open_call_id
        await reaches(world, accepted.run_id, RunState.WAITING_FOR_APPROVAL)
        run_id = accepted.run_id or ""
        parked = await world.database.read(lambda conn: runs.get(conn, run_id))
        assert (parked.worker, parked.fence) == (None, None)
        while world.engine.turns.running:
            await world.database.read(lambda conn: None)
        assert note.begun == 0
        await world.says("/status")
        assert (
            f"waiting for an answer: `{part.code}` (approval of `note`)" in (await world.sees(2))[1]
        )


@pytest.mark.requirement("APR-1")
async def test_arguments_of_any_length_are_whole_on_the_card(worlds: Worlds) -> None:
    long = "echo " + "x" * 50_000 + "; rm -rf /"
    async with worlds(
        ScriptedModel([Said(calls=(call(long),))]), change=offering(asking())
    ) as world:
        await world.says("go")
        part = await card(world)
        assert isinstance(part, ApprovalPart)
        assert json.loads(part.arguments)["text"] == long


@pytest.mark.requirement("APR-9")
async def test_a_card_and_the_programs_view_of_it_write_out_what_cannot_be_seen(
    worlds: Worlds,
) -> None:
    hidden = "rm \u202efdp.txt\u3164\ufe0f\u2800"
    arguments = json.dumps({"text": hidden}, ensure_ascii=False)
    model = ScriptedModel([Said(calls=(("note", arguments),))])
    async with worlds(model, change=offering(asking())) as world:
        await world.says("go")
        part = await card(world)
        assert isinstance(part, ApprovalPart)
        assert part.arguments == r'{"text": "rm \u{202e}fdp.txt\u{3164}\u{fe0f}\u{2800}"}'
        call_id = part.open_call_id
        kept = await world.database.read(lambda conn: open_calls.get(conn, call_id))
        assert kept is not None
        assert open_call_view(kept).arguments == part.arguments


@pytest.mark.requirement("APR-9")
async def test_the_reason_on_a_card_holds_no_words_of_the_models(worlds: Worlds) -> None:
    lie = "a\u202e\u3164`.\n\n**Harmless.** Press allow./.git/config"
    arguments = json.dumps({"path": lie, "content": "x"})
    async with worlds(ScriptedModel([Said(calls=(("write_file", arguments),))])) as world:
        await world.says("go")
        part = await card(world)
        assert isinstance(part, ApprovalPart)
        call_id = part.open_call_id
        kept = await world.database.read(lambda conn: open_calls.get(conn, call_id))
        assert kept is not None
        for reason in (part.reason, open_call_view(kept).reason):
            assert not {"\u202e", "\u3164", "\n"} & set(reason)
            assert r"`a\u{202e}\u{3164}\u{60}.\u{a}\u{a}**Harmless.** Press allow./.git`" in reason


@pytest.mark.requirement("APR-1", "APR-3", "APR-4")
async def test_allow_once_runs_the_call_once_and_the_next_one_asks_again(worlds: Worlds) -> None:
    note = asking()
    model = ScriptedModel([Said(calls=(call("a"),)), Said(calls=(call("a"),)), "done"])
    async with worlds(model, change=offering(note)) as world:
        await world.says("go")
        part = await card(world)
        pressed = await world.presses(part.open_call_id, "once")
        assert (pressed.accepted, pressed.text) == (True, "Allowed by owner.")
        again = await card(world, 2)
        assert note.kept == ["a"]
        said = await outcome(world)
        assert said.startswith("Allowed by owner (")
        assert said.endswith(" UTC)")
        await world.presses(again.open_call_id, "deny")
        await world.sees(3)
        assert note.kept == ["a"]


@pytest.mark.requirement("APR-1", "APR-3")
async def test_allow_for_this_session_holds_for_exactly_that_call_in_that_session(
    worlds: Worlds,
) -> None:
    note = asking()
    same, other = Said(calls=(call("ls"),)), Said(calls=(call("ls -a"),))
    model = ScriptedModel([same, same, other, "done", same])
    async with worlds(model, change=offering(note)) as world:
        await world.says("go")
        await world.presses((await card(world)).open_call_id, "session")
        second = await card(world, 2)
        assert note.kept == ["ls", "ls"]
        assert json.loads(second.arguments)["text"] == "ls -a"
        await world.presses(second.open_call_id, "deny")
        await world.sees(3)
        await world.says("go", chat_id="D-elsewhere")
        third = await card(world, 3)
        assert json.loads(third.arguments)["text"] == "ls"
        assert note.kept == ["ls", "ls"]


@pytest.mark.requirement("APR-1")
async def test_text_answers_approve_and_deny_with_a_reason(worlds: Worlds) -> None:
    note = asking()
    model = ScriptedModel([Said(calls=(call("a"),)), Said(calls=(call("b"),)), "done"])
    async with worlds(model, change=offering(note)) as world:
        await world.says("go")
        await world.says(f"/approve {(await card(world)).code}")
        second = await card(world, 2)
        await world.says(f"/deny {second.code} not on a Friday")
        await world.chat.until(lambda: "done" in world.chat.texts())
        assert note.kept == ["a"]
        (told,) = results(model.requests[2])
        assert told.status == "denied"
        assert "not on a Friday" in told.content
        assert "not on a Friday" in await outcome(world, 2)


@pytest.mark.requirement("APR-1")
async def test_a_text_answer_allows_for_the_session_too(worlds: Worlds) -> None:
    note = asking()
    same = Said(calls=(call("ls"),))
    async with worlds(ScriptedModel([same, same, "done"]), change=offering(note)) as world:
        await world.says("go")
        await world.says(f"/approve {(await card(world)).code} session")
        await world.chat.until(lambda: "done" in world.chat.texts())
        assert note.kept == ["ls", "ls"]
        assert (await outcome(world)).startswith("Allowed by owner for this session (")


@pytest.mark.requirement("APR-2", "APR-10")
async def test_codes_are_told_to_nobody_who_may_not_answer(worlds: Worlds) -> None:
    change = both(offering(asking()), intake(access={"test": WITH_MEMBER}))
    async with worlds(ScriptedModel([Said(calls=(call("a"),))]), change=change) as world:
        await world.says("go", chat_id="G1", kind="group")
        part = await card(world)
        for user in (MEMBER, OWNER):
            await world.says("/approve", user=user, chat_id="G1", kind="group")
        members, owners = (await world.sees(3, "G1"))[1:]
        assert "No request of this conversation waits for you." in members
        assert part.code not in members
        assert part.code in owners


@pytest.mark.requirement("APR-2")
async def test_a_strangers_forged_press_is_refused_privately_and_recorded(worlds: Worlds) -> None:
    note = asking()
    async with worlds(ScriptedModel([Said(calls=(call("a"),))]), change=offering(note)) as world:
        accepted = await world.says("go")
        part = await card(world)
        before = len(world.chat.sent)
        pressed = await world.presses(part.open_call_id, "once", user="U-mallory")
        assert not pressed.accepted
        assert "Only an approver" in pressed.text
        unknown = await world.presses("apr_00000000000000000000000000", "once", user="U-mallory")
        assert (unknown.accepted, unknown.text) == (False, "I do not know this card.")
        assert await state(world, accepted.run_id) is RunState.WAITING_FOR_APPROVAL
        (refused,) = await audited(world, "approval.refused")
        assert refused.data["request_id"] == part.open_call_id
        assert len(world.chat.sent) == before
        assert note.begun == 0


@pytest.mark.requirement("APR-2")
@pytest.mark.parametrize("kind", ["direct", "group"])
async def test_a_members_card_goes_to_the_owners_own_chat_and_the_member_cannot_answer(
    worlds: Worlds, kind: str
) -> None:
    note = asking()
    model = ScriptedModel(script(Said(calls=(call("a"),)), "done"))
    change = both(offering(note), intake(access={"test": WITH_MEMBER}))
    async with worlds(model, change=change) as world:
        await world.says("/help")
        place = "G1" if kind == "group" else f"D-{MEMBER}"
        accepted = await world.says("go", user=MEMBER, chat_id=place, kind=kind)
        part = await card(world)
        assert cards(world)[0][0].target.chat_id == f"D-{OWNER}"
        pressed = await world.presses(part.open_call_id, "once", user=MEMBER)
        assert not pressed.accepted
        await world.says(f"/approve {part.code}", user=MEMBER, chat_id=place, kind=kind)
        await world.chat.until(lambda: len(world.chat.texts(place)) >= 1)
        assert world.chat.texts(place) == ["Only an approver of this conversation may answer that."]
        assert await state(world, accepted.run_id) is RunState.WAITING_FOR_APPROVAL
        assert len(await audited(world, "approval.refused")) == 2
        await world.says(f"/approve {part.code}")
        await world.chat.until(lambda: world.chat.texts(place)[-1] == "done")
        assert note.kept == ["a"]


@pytest.mark.requirement("APR-2")
async def test_an_owner_in_a_group_gets_the_card_there_and_others_cannot_press_it(
    worlds: Worlds,
) -> None:
    note = asking()
    model = ScriptedModel(script(Said(calls=(call("a"),)), "done"))
    async with worlds(model, change=offering(note)) as world:
        await world.says("go", chat_id="G1", kind="group")
        part = await card(world)
        assert cards(world)[0][0].target.chat_id == "G1"
        assert not (await world.presses(part.open_call_id, "once", user="U-x")).accepted
        assert (await world.presses(part.open_call_id, "once")).accepted
        await world.chat.until(lambda: note.kept == ["a"])


@pytest.mark.requirement("APR-2")
@pytest.mark.parametrize(("approver", "scope"), [("owner", "room"), ("named", "user")])
async def test_a_members_card_stays_in_a_group_where_an_approver_speaks(
    worlds: Worlds, approver: str, scope: Scope
) -> None:
    note = asking()
    model = ScriptedModel(script(Said(calls=(call("a"),)), "done"))
    rules = replace(WITH_MEMBER, group_scope=scope, allow_users=frozenset({MEMBER, "U-named"}))
    named = CommandSettings(approvers=Approvers(frozenset({"test:A1:U-named"})))
    change = both(offering(note), intake(access={"test": rules}, commands=named))
    user = f"U-{approver}"
    async with worlds(model, change=change) as world:
        await world.says("/help")
        await world.says("/help", user=user, chat_id="G1", kind="group")
        await world.says("go", user=MEMBER, chat_id="G1", kind="group")
        part = await card(world)
        assert cards(world)[0][0].target.chat_id == "G1"
        assert (await world.presses(part.open_call_id, "once", user=user)).accepted
        await world.chat.until(lambda: note.kept == ["a"])
        await world.says("go", user=MEMBER, chat_id="G2", kind="group")
        await card(world, 2)
        assert cards(world)[1][0].target.chat_id == f"D-{OWNER}", "nobody of them speaks there"


@pytest.mark.requirement("APR-2")
async def test_a_named_approver_gets_the_card_where_they_asked(worlds: Worlds) -> None:
    commands = CommandSettings(approvers=Approvers(frozenset({f"test:A1:{MEMBER}"})))
    change = both(offering(asking()), intake(access={"test": WITH_MEMBER}, commands=commands))
    async with worlds(ScriptedModel([Said(calls=(call("a"),))]), change=change) as world:
        await world.says("/help")
        await world.says("go", user=MEMBER)
        await card(world)
        assert cards(world)[0][0].target.chat_id == f"D-{MEMBER}"


@pytest.mark.requirement("APR-2")
async def test_one_conversation_over_all_chats_counts_who_speaks_in_this_one(
    worlds: Worlds,
) -> None:
    rules = replace(WITH_MEMBER, group_scope="account")
    change = both(offering(asking()), intake(access={"test": rules}))
    async with worlds(ScriptedModel(script(Said(calls=(call("a"),)))), change=change) as world:
        await world.says("/help")
        await world.says("/help", chat_id="G1", kind="group")
        await world.says("go", user=MEMBER, chat_id="G2", kind="group")
        await card(world)
        assert cards(world)[0][0].target.chat_id == f"D-{OWNER}"


@pytest.mark.requirement("APR-2")
@pytest.mark.parametrize(("account", "where"), [("A1", f"D-{OWNER}"), ("A2", "G1")])
async def test_a_card_goes_to_an_owners_chat_with_the_same_bot_alone(
    worlds: Worlds, account: str, where: str
) -> None:
    """Another bot could not post it, and its press would come from another account."""
    change = both(offering(asking()), intake(access={"test": WITH_MEMBER}))
    owner = Speaker(
        person_id="per_owner",
        channel="test",
        account=account,
        user_id=OWNER,
        name="owner",
        trust=Trust.OWNER,
    )
    chat = ChatAddress(channel="test", account=account, chat_id=f"D-{OWNER}")
    async with worlds(ScriptedModel([Said(calls=(call("a"),))]), change=change) as world:
        await world.database.write(
            lambda conn: people.put(conn, owner, direct_chat=chat, paired=True), name="owner"
        )
        await world.says("go", user=MEMBER, chat_id="G1", kind="group")
        await card(world)
        assert cards(world)[0][0].target.chat_id == where


@pytest.mark.requirement("APR-2")
async def test_a_named_approver_may_answer(worlds: Worlds) -> None:
    note = asking()
    commands = CommandSettings(approvers=Approvers(frozenset({f"test:A1:{MEMBER}"})))
    change = both(offering(note), intake(access={"test": WITH_MEMBER}, commands=commands))
    async with worlds(ScriptedModel([Said(calls=(call("a"),)), "done"]), change=change) as world:
        await world.says("go")
        pressed = await world.presses((await card(world)).open_call_id, "once", user=MEMBER)
        assert pressed.text == "Allowed by member."
        await world.sees(2)
        assert note.kept == ["a"]


@pytest.mark.requirement("APR-3")
@pytest.mark.parametrize("column", ["arguments", "name", "digest"])
async def test_what_was_changed_after_it_was_shown_does_not_run(
    worlds: Worlds, column: str
) -> None:
    note = asking()
    model = ScriptedModel([Said(calls=(call("ls"),)), "so be it"])
    async with worlds(model, change=offering(note, Note("other", command=True))) as world:
        await world.says("go")
        part = await card(world)
        new = {"arguments": '{"text": "rm -rf /"}', "name": "other", "digest": "0" * 64}[column]
        await world.database.write(
            lambda conn: conn.execute(sql(f"UPDATE tool_calls SET {column} = :new"), {"new": new}),
            name="tamper",
        )
        await world.presses(part.open_call_id, "once")
        await world.sees(2)
        assert note.begun == 0
        assert results(model.requests[1])[0].status == "denied"
        assert "not the one that was shown" in await outcome(world)


@pytest.mark.requirement("APR-3")
async def test_a_press_chooses_among_what_the_card_offers_and_supplies_nothing_else(
    worlds: Worlds,
) -> None:
    note = asking()
    async with worlds(
        ScriptedModel([Said(calls=(call(""),)), "fine"]), change=offering(note)
    ) as world:
        accepted = await world.says("go")
        part = await card(world)
        assert isinstance(part, ApprovalPart)
        assert part.choices == ("once", "deny"), "without a subject there is nothing to grant"
        pressed = await world.presses(part.open_call_id, "session")
        assert not pressed.accepted
        assert await state(world, accepted.run_id) is RunState.WAITING_FOR_APPROVAL
        assert note.begun == 0


@pytest.mark.requirement("APR-4")
async def test_an_approval_survives_a_restart_and_runs_once(worlds: Worlds) -> None:
    note = asking()
    clock = FakeClock()
    async with worlds(
        ScriptedModel([Said(calls=(call("a"),))]),
        change=lambda s: replace(offering(note)(s), clock=clock),
    ) as before:
        await before.says("go")
        part = await card(before)
        while not await _posted(before, part.open_call_id):
            pass
    later = FakeClock(clock.now_ms() + 3 * 24 * 3600 * 1000)
    async with worlds(
        ScriptedModel(script("", "done")),
        change=lambda s: replace(offering(note)(s), clock=later),
    ) as after:
        pressed = await after.presses(part.open_call_id, "once")
        assert pressed.accepted
        again = await after.presses(part.open_call_id, "once")
        assert (again.accepted, again.text) == (False, "This was answered already.")
        assert await after.sees(1) == ["done"]
        assert "Allowed by owner (2027-01-18" in await outcome(after)
    assert note.kept == ["a"]


@pytest.mark.requirement("APR-4")
async def test_two_approvers_at_once_get_one_answer(worlds: Worlds) -> None:
    note = asking()
    access = replace(OPEN, owners=frozenset({OWNER, "U-second"}))
    change = both(offering(note), intake(access={"test": access}))
    async with worlds(ScriptedModel([Said(calls=(call("a"),)), "done"]), change=change) as world:
        await world.says("go")
        part = await card(world)
        pressed = await asyncio.gather(
            world.presses(part.open_call_id, "once"),
            world.presses(part.open_call_id, "deny", user="U-second"),
            world.presses(part.open_call_id, "once", user="U-second"),
        )
        assert sorted(one.accepted for one in pressed) == [False, False, True]
        await world.sees(2)
        assert len(await audited(world, "approval.")) == 1
        assert len(note.kept) == (1 if pressed[0].accepted or pressed[2].accepted else 0)


@pytest.mark.requirement("APR-5")
async def test_nobody_answered_in_time_denies_with_a_reason_and_the_run_goes_on(
    worlds: Worlds,
) -> None:
    note, clock = asking(), FakeClock()
    model = ScriptedModel([Said(calls=(call("a"),)), "I go on without it"])
    change = both(offering(note), agent(approval_expiry_ms=60_000))
    async with worlds(model, change=lambda s: replace(change(s), clock=clock)) as world:
        await world.says("go")
        part = await card(world)
        await clock.advance(58.0)
        assert len(model.requests) == 1
        async with asyncio.timeout(120):
            while len(world.chat.sent) < 2:
                await clock.advance(1.0)
        assert world.chat.texts()[-1] == "I go on without it"
        (told,) = results(model.requests[1])
        assert (told.status, told.content) == ("denied", "Nobody answered in time.")
        assert (await outcome(world)).startswith("Nobody answered in time.")
        late = await world.presses(part.open_call_id, "once")
        assert (late.accepted, late.text) == (False, "This was expired already.")
        assert note.begun == 0


@pytest.mark.requirement("APR-5")
async def test_an_approval_waits_for_seven_days_where_nothing_else_is_set(worlds: Worlds) -> None:
    async with worlds(
        ScriptedModel([Said(calls=(call("a"),))]), change=offering(asking())
    ) as world:
        await world.says("go")
        part = await card(world)
        row = await world.database.read(lambda conn: open_calls.get(conn, part.open_call_id))
        assert row is not None
        assert row.expires_ms == row.created_ms + 7 * 24 * 3600 * 1000


@pytest.mark.requirement("APR-5", "MSG-13")
async def test_stop_withdraws_the_card_and_the_card_says_so(worlds: Worlds) -> None:
    note = asking()
    model = ScriptedModel([Said(calls=(call("a"),)), "next"])
    async with worlds(model, change=offering(note)) as world:
        accepted = await world.says("go")
        part = await card(world)
        await world.says("/stop")
        assert (await outcome(world)).startswith("Withdrawn: stopped by owner")
        assert await state(world, accepted.run_id) is RunState.CANCELLED
        late = await world.presses(part.open_call_id, "once")
        assert (late.accepted, late.text) == (False, "This was withdrawn already.")
        await world.says("again")
        await world.chat.until(lambda: "next" in world.chat.texts())
        assert [m.role for m in model.requests[1].messages] == ["user", "assistant", "tool", "user"]
        assert note.begun == 0


@pytest.mark.requirement("APR-3", "POL-3")
async def test_a_deny_rule_that_came_meanwhile_beats_the_approval(worlds: Worlds) -> None:
    note = asking()
    async with worlds(
        ScriptedModel([Said(calls=(call("rm x"),))]), change=offering(note)
    ) as before:
        await before.says("go")
        part = await card(before)
    denying = both(offering(note), ruled(deny=("note(rm:*)",)))
    async with worlds(ScriptedModel(script("", "denied then")), change=denying) as after:
        await after.presses(part.open_call_id, "once")
        await after.chat.until(lambda: "denied then" in after.chat.texts())
    assert note.begun == 0


@pytest.mark.requirement("APR-2")
async def test_an_owner_may_press_in_a_group_where_direct_messages_are_off(worlds: Worlds) -> None:
    access = ChannelAccess(dm_policy="disabled", group_policy="open", owners=frozenset({OWNER}))
    change = both(offering(asking()), intake(access={"test": access}))
    async with worlds(ScriptedModel([Said(calls=(call("a"),)), "done"]), change=change) as world:
        await world.says("go", chat_id="G1", kind="group")
        assert (await world.presses((await card(world)).open_call_id, "once")).accepted


async def _posted(world: World, open_call_id: str) -> bool:
    row = await world.database.read(lambda conn: outbox.card_of(conn, open_call_id))
    return row is not None and row.state == "sent"


@pytest.mark.requirement("APR-4")
async def test_of_two_replicas_that_saw_the_card_open_one_decides(worlds: Worlds) -> None:
    note = Note(command=True)
    async with worlds(
        ScriptedModel([Said(calls=(call("a"),)), "done"]), change=offering(note)
    ) as world:
        await world.says("go")
        part = await card(world)
        seen = await world.database.read(lambda conn: open_calls.get(conn, part.open_call_id))
        assert seen is not None
        allowed = Answer(by="per_one", name="One", choice="once")
        denied = Answer(by="per_two", name="Two", choice="deny")
        await world.database.write(
            unit_of(lambda unit: approvals.answer(unit, seen, allowed)), name="one"
        )
        with pytest.raises(Conflict) as caught:
            await world.database.write(
                unit_of(lambda unit: approvals.answer(unit, seen, denied)), name="two"
            )
        assert caught.value.state == "answered"
        await world.sees(2)
        assert note.kept == ["a"]
