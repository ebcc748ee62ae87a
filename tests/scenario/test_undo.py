"""`/undo`: the last turn leaves every later prompt, and nothing else changes (MSG-22)."""

import json
from pathlib import Path

import pytest

from runtime.domain.errors import DeliveryRetry
from runtime.domain.runs import RunState
from runtime.domain.transcript import NoticeMessage
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import (
    GUEST,
    MEMBER,
    asks,
    audited,
    both,
    call,
    card,
    offering,
    reaches,
    script,
)
from tests.scenario.conftest import intake
from tests.scenario.engine import World
from tests.scenario.test_edits import deletes, edits
from tests.scenario.tools import Note
from tests.scenario.undoing import (
    EVERYBODY,
    GROUP,
    NOTHING,
    OTHER,
    Start,
    quiet,
    rows,
    says,
    start,
    told,
    undoes,
    undone,
)

__all__ = ["dialect", "migrated_url", "schema_templates", "start"]

pytestmark = pytest.mark.requirement("MSG-22")


async def test_the_last_turn_is_in_no_later_prompt_and_a_second_one_takes_the_turn_before(
    start: Start,
) -> None:
    model = ScriptedModel(["to alpha", "to bravo", "to charlie", "to delta"])
    async with start(model) as at:
        alpha, bravo = await says(at, "alpha"), await says(at, "bravo")
        lines = await rows(at, "messages")
        await undoes(at)
        assert await undone(at) == {bravo}
        assert await rows(at, "messages") == lines
        # The same process asks, whose memory of the conversation held the turn.
        charlie = await says(at, "charlie")
        assert "alpha" in told(model.requests[2])
        assert "bravo" not in told(model.requests[2])
        await undoes(at)
        await undoes(at)
        assert await undone(at) == {alpha, bravo, charlie}
        assert await undoes(at) == NOTHING
        await says(at, "delta")
        (only,) = model.requests[3].messages
        assert only.text == "delta"
        states = {one["run_id"]: one["state"] for one in await rows(at, "inputs")}
        assert [states[one] for one in (alpha, bravo, charlie)] == ["undone"] * 3


async def test_it_leaves_an_event_and_an_audit_row(start: Start) -> None:
    async with start(ScriptedModel(["to alpha"])) as at:
        run = await says(at, "alpha", user=MEMBER)
        await undoes(at, user=MEMBER)
        (event,) = [one for one in await rows(at, "events") if one["kind"] == "run.undone"]
        (row,) = await audited(at, "run.undone")
        (taken,) = [one["id"] for one in await rows(at, "inputs") if one["run_id"] == run]
        assert (event["run_id"], json.loads(str(event["data"]))) == (run, {"input_ids": [taken]})
        assert (row.run_id, row.data["runs"], row.data["inputs"]) == (run, [run], [taken])
        assert row.actor == await person_of(at, run)


async def person_of(at: World, run_id: str) -> str:
    (row,) = [one for one in await rows(at, "runs") if one["id"] == run_id]
    return str(json.loads(str(row["speaker"]))["person_id"])


async def test_a_redelivery_takes_nothing_more(start: Start) -> None:
    async with start(ScriptedModel(["to alpha", "to bravo"])) as at:
        await says(at, "alpha")
        bravo = await says(at, "bravo")
        await undoes(at, message_id="u1")
        assert (await at.says("/undo", message_id="u1")).disposition == "duplicate"
        assert await undone(at) == {bravo}


@pytest.mark.parametrize("mode", ["collect", "steer"])
async def test_all_inputs_of_the_run_go_with_it(start: Start, mode: str) -> None:
    gate = Gate()
    begins = [Said("", calls=(call("x"),), before=gate)] if mode == "steer" else []
    model = ScriptedModel([*begins, Said("one", before=gate), "two", "three"])
    queue = intake(access={"test": EVERYBODY}, queue_mode=mode, debounce_ms=0)
    async with start(model, both(queue, offering(Note()))) as at:
        first = await at.says("alpha")
        await gate.reached.wait()
        second = await at.says("bravo")
        third = await at.says("charlie")
        gate.open.set()
        await reaches(at, third.run_id, RunState.COMPLETED)
        await quiet(at)
        answer = await undoes(at)
        assert "`charlie`" in answer
        assert await undone(at) == {third.run_id}
        states = {one["id"]: one["state"] for one in await rows(at, "inputs")}
        assert (states[second.input_id], states[third.input_id]) == ("undone", "undone")
        assert (states[first.input_id] == "undone") is (mode == "steer")
        await says(at, "delta")
        last = told(model.requests[-1])
        assert "bravo" not in last
        assert "charlie" not in last
        assert ("alpha" in last) is (first.run_id != third.run_id)


async def test_whoever_said_all_of_it_may_and_the_owner_and_nobody_else(start: Start) -> None:
    model = ScriptedModel(script("fine"))
    async with start(model, intake(access={"test": EVERYBODY}, queue_mode="followup")) as at:
        run = await says(at, "alpha", user=MEMBER, **GROUP)
        refused = await undoes(at, user=OTHER, **GROUP)
        assert refused.startswith("The last turn answers somebody else too")
        assert await undoes(at, user=GUEST, **GROUP) == "`/undo` is not open to guests."
        assert await undone(at) == set()
        await undoes(at, user=MEMBER, **GROUP)
        assert await undone(at) == {run}
        other = await says(at, "bravo", user=MEMBER, **GROUP)
        await undoes(at, **GROUP)
        assert await undone(at) == {run, other}


async def test_a_turn_of_two_people_is_the_owners_to_take_back(start: Start) -> None:
    gate = Gate()
    model = ScriptedModel([Said("one", before=gate), "two"])
    queue = intake(access={"test": EVERYBODY}, queue_mode="collect", debounce_ms=0)
    async with start(model, queue) as at:
        await at.says("alpha", user=MEMBER, **GROUP)
        await gate.reached.wait()
        await at.says("bravo", user=MEMBER, **GROUP)
        shared = await at.says("charlie", user=OTHER, **GROUP)
        gate.open.set()
        await reaches(at, shared.run_id, RunState.COMPLETED)
        await quiet(at)
        for user in (MEMBER, OTHER):
            assert "somebody else" in await undoes(at, user=user, **GROUP)
        assert await undone(at) == set()
        await undoes(at, **GROUP)
        assert await undone(at) == {shared.run_id}


async def test_it_is_refused_while_the_lane_runs_waits_or_queues(start: Start) -> None:
    gate = Gate()
    model = ScriptedModel(["one", Said("two", before=gate), Said(calls=(asks("Which?"),)), "three"])
    async with start(model) as at:
        await says(at, "alpha")
        running = await at.says("bravo")
        await gate.reached.wait()
        assert "while I am at work:" in await refusal(at)
        gate.open.set()
        await reaches(at, running.run_id, RunState.COMPLETED)
        await quiet(at)
        await at.says("charlie")
        await card(at)
        assert "while I wait for an answer:" in await refusal(at)
        await at.says("/stop")
        await at.chat.until(lambda: any(one.startswith("Stopped") for one in at.chat.texts()))
        await quiet(at)
        assert await undone(at) == set()


async def test_it_is_refused_while_messages_wait(start: Start) -> None:
    queue = intake(access={"test": EVERYBODY}, debounce_ms=3_600_000)
    async with start(ScriptedModel(["one"]), queue) as at:
        await says(at, "alpha")
        # What arrives late is collected for a while.
        early = at.engine.parts.clock.now_ms() - 86_400_000
        await at.says("bravo", sent_ms=early)
        assert "while messages wait for their turn:" in await refusal(at)
        assert await undone(at) == set()


async def refusal(at: World) -> str:
    """What the chat says to `/undo`, whatever goes on in it."""
    before = len(at.chat.sent)
    await at.says("/undo")
    await at.chat.until(lambda: len(at.chat.sent) > before)
    return at.chat.texts()[-1]


async def test_it_is_refused_while_the_reply_is_on_its_way(start: Start) -> None:
    async with start(ScriptedModel(["one"])) as at:
        at.chat.failures.append(DeliveryRetry("busy", after_s=3_600))
        accepted = await at.says("alpha")
        await reaches(at, accepted.run_id, RunState.COMPLETED)
        said = await at.says("/undo")
        assert said.disposition == "command"
        assert await undone(at) == set()
        (answer,) = [one for one in await rows(at, "outbox") if one["kind"] == "notice"]
        assert "still on its way" in str(answer["message"])


async def test_what_was_posted_stays_and_is_quoted(start: Start) -> None:
    reply = "the quick brown fox " * 10
    async with start(ScriptedModel([reply])) as at:
        at.chat.shows_edits = True
        await says(at, "tell me all of it, " * 10)
        posted = list(at.chat.sent)
        answer = await undoes(at)
        assert at.chat.sent[:1] == posted
        assert at.chat.edits == []
        assert "I neither delete nor edit it" in answer
        assert f"`{reply[:80].rstrip()}" in answer
        assert reply[:82] not in answer
        assert f"`{('tell me all of it, ' * 10)[:80].rstrip()}" in answer


async def test_what_began_and_does_more_than_read_is_listed_and_told_to_the_model_once(
    start: Start, tmp_path: Path
) -> None:
    writes_it = ("write_file", json.dumps({"path": "plan.md", "content": "the secret plan"}))
    reads_it = ("read_file", json.dumps({"path": "plan.md"}))
    runs_it = ("exec", json.dumps({"command": "make all"}))
    model = ScriptedModel(
        [
            Said("", calls=(writes_it,)),
            Said("", calls=(reads_it, runs_it)),
            "done",
            "next",
            "and next",
        ]
    )
    async with start(model) as at:
        accepted = await at.says("alpha")
        part = await card(at)
        await at.says(f"/deny {part.code}")
        await reaches(at, accepted.run_id, RunState.COMPLETED)
        await quiet(at)
        answer = await undoes(at)
        # What was denied never began, and reading leaves nothing.
        assert answer.count("\n- ") == 1
        assert "- `write_file plan.md`" in answer
        (kept,) = (tmp_path / "workspace").rglob("plan.md")
        assert kept.read_text() == "the secret plan"
        for words in ("bravo", "charlie"):
            await says(at, words)
            given = model.requests[-1]
            (notice,) = [one for one in given.messages if isinstance(one, NoticeMessage)]
            assert "- write_file plan.md" in notice.text
            assert "Do not do it again" in notice.text
            assert "exec" not in notice.text
            assert "secret plan" not in told(given)
            assert "alpha" not in told(given)


async def test_a_notice_of_what_outside_content_may_have_led_to_is_untrusted(start: Start) -> None:
    model = ScriptedModel([Said("", calls=(call("x"),)), "done", "next"])
    async with start(model, offering(Note())) as at:
        await says(at, "alpha", authorship="forwarded")
        await undoes(at)
        await says(at, "bravo")
        (notice,) = [one for one in model.requests[-1].messages if isinstance(one, NoticeMessage)]
        assert notice.untrusted
        assert "<untrusted" in notice.text


async def test_budgets_grants_modes_and_the_audit_log_stay(start: Start) -> None:
    model = ScriptedModel([Said("", calls=(call("x"),)), "done"])
    async with start(model, offering(Note(command=True))) as at:
        await at.says("/plan")
        await at.says("/edit")
        accepted = await at.says("alpha")
        part = await card(at)
        await at.says(f"/approve {part.code} session")
        await reaches(at, accepted.run_id, RunState.COMPLETED)
        await quiet(at)
        kept = {name: await rows(at, name) for name in ("budgets", "sessions", "tool_calls")}
        log = await rows(at, "audit")
        used = {one["id"]: (one["input_tokens"], one["state"]) for one in await rows(at, "runs")}
        assert kept["sessions"][0]["grants"] != "[]"
        await undoes(at)
        assert await undone(at) == {accepted.run_id}
        assert {name: await rows(at, name) for name in kept} == kept
        after = await rows(at, "audit")
        assert after[: len(log)] == log
        assert [one["action"] for one in after[len(log) :]] == ["run.undone"]
        runs = await rows(at, "runs")
        assert {one["id"]: (one["input_tokens"], one["state"]) for one in runs} == used


async def test_it_never_reaches_across_a_new_conversation(start: Start) -> None:
    async with start(ScriptedModel(["one"])) as at:
        await says(at, "alpha")
        await at.says("/new")
        await quiet(at)
        assert await undoes(at) == NOTHING
        assert await undone(at) == set()


async def test_a_turn_that_began_after_it_was_said_is_never_taken(start: Start) -> None:
    async with start(ScriptedModel(["one", "two"])) as at:
        await says(at, "alpha")
        between = at.engine.parts.clock.now_ms() - 60_000
        bravo = await says(at, "bravo")
        answer = await undoes(at, sent_ms=between)
        assert answer.startswith("Another turn began after you wrote that")
        assert await undone(at) == set()
        await undoes(at)
        assert await undone(at) == {bravo}


async def test_edits_of_what_was_taken_back_reach_no_prompt(start: Start) -> None:
    model = ScriptedModel(["one", "two", "three", "four"])
    async with start(model) as at:
        await says(at, "by milk", message_id="x1")
        await says(at, "by rice", message_id="x2")
        # One before, which waits for the next run, and one after.
        assert (await edits(at, "x2", "buy rice")).disposition == "noted"
        await undoes(at)
        assert (await edits(at, "x2", "buy the rice", edited_at="e2")).disposition == "dropped"
        await deletes(at, "x2")
        assert (await edits(at, "x1", "buy milk")).disposition == "noted"
        await says(at, "go on")
        assert "rice" not in told(model.requests[-1])
        assert "buy milk" in told(model.requests[-1])
        # The turn that was told of an edit goes, and the edit of what still stands is told again.
        await undoes(at)
        await says(at, "once more")
        assert "buy milk" in told(model.requests[-1])
        assert "go on" not in told(model.requests[-1])
