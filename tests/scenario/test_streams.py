"""Replies that are shown while they grow: one message in the end, whatever breaks (REN-4)."""

from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.errors import DeliveryRejected, DeliveryRetry, DeliveryUnknown, ModelRejected
from runtime.domain.messages import OutboundMessage
from runtime.domain.runs import RunState
from runtime.sessions import runs
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import asks, call, cards
from tests.scenario.conftest import intake
from tests.scenario.engine import world
from tests.scenario.streams import FIRST, WHOLE, Stage, all_but_its_end, half, orphans, rows


@pytest.mark.requirement("REN-4", "MSG-9")
async def test_a_reply_grows_in_its_chat_and_ends_as_one_message(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        assert await rows(at) == [("stream", "streaming")]
        gate.open.set()
        await stage.until(lambda: stage.chat.texts() == [WHOLE])
        await stage.settled(at)
        assert await rows(at) == [("final", "sent")]
        assert stage.did("open") == stage.did("close") == 1


@pytest.mark.requirement("REN-4")
async def test_a_reply_that_is_shown_whole_already_is_not_changed_again(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path, lookup=True), Gate()
    changed: list[str] = []
    change = stage.chat.change

    def count(identifier: str, message: OutboundMessage) -> bool:
        changed.append(identifier)
        return change(identifier, message)

    setattr(stage.chat, "change", count)  # noqa: B010 - of one object
    async with world(await stage.setup(ScriptedModel([all_but_its_end(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [WHOLE])
        await stage.clock.advance(5)
        before = len(changed)
        gate.open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert await rows(at) == [("final", "sent")]
        assert stage.did("close") == 1
        assert len(changed) == before


@pytest.mark.requirement("REN-4", "RUN-4")
async def test_the_answers_of_a_run_that_goes_on_grow_one_behind_the_other(
    tmp_path: Path,
) -> None:
    stage, gates = Stage(tmp_path), [Gate(), Gate()]
    other = WHOLE.replace("it", "that")
    model = ScriptedModel([half(gates[0]), half(gates[1], other)])
    setup = intake(queue_mode="steer")(await stage.setup(model))
    async with world(setup, stage.chat) as at:
        first = await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        assert (await at.says("and that")).run_id == first.run_id
        gates[0].open.set()
        await stage.until(lambda: stage.chat.texts() == [WHOLE, other[: len(FIRST)]])
        gates[1].open.set()
        await stage.until(lambda: stage.chat.texts() == [WHOLE, other])
        await stage.settled(at)
        assert await rows(at) == [("said", "sent"), ("final", "sent")]


@pytest.mark.requirement("REN-4")
async def test_nothing_is_shown_of_a_short_answer_before_a_second_has_passed(
    tmp_path: Path,
) -> None:
    stage, gate = Stage(tmp_path), Gate()
    said = Said("Yes, it is.", chunk=4, middle=gate, at=1)
    async with world(await stage.setup(ScriptedModel([said])), stage.chat) as at:
        await at.says("is it?")
        await gate.reached.wait()
        await stage.clock.advance(0.5)
        assert stage.streams.calls == []
        await stage.until(lambda: stage.chat.texts() == ["Yes,"])
        gate.open.set()
        await stage.until(lambda: stage.chat.texts() == ["Yes, it is."])


@pytest.mark.requirement("REN-4")
async def test_an_answer_that_is_there_at_once_is_sent_plainly(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    async with world(await stage.setup(ScriptedModel(["Yes."])), stage.chat) as at:
        await at.says("is it?")
        await stage.until(lambda: stage.chat.texts() == ["Yes."])
        await stage.settled(at)
        assert stage.streams.calls == []


@pytest.mark.requirement("REN-4", "MSG-10")
async def test_edits_keep_their_interval_and_take_no_token_of_a_message(tmp_path: Path) -> None:
    stage = Stage(tmp_path, lookup=True, chat_rate=0.5, chat_burst=2)
    gates = [Gate() for _ in range(2)]
    model = ScriptedModel([half(gates[0]), half(gates[1])])
    async with world(await stage.setup(model), stage.chat) as at:
        await at.says("one")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        began = stage.clock.monotonic()
        gates[0].open.set()
        await stage.until(lambda: stage.chat.texts() == [WHOLE], step=0.1)
        assert stage.clock.monotonic() - began <= 0.5, "its token was left for it"
        assert stage.did("grow") == 0
        gates[1].open.set()
        await stage.settled(at)


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize("why", ["no streams", "quiet", "no interval", "refused"])
async def test_without_a_stream_the_reply_is_sent_whole(tmp_path: Path, why: str) -> None:
    stage, gate = Stage(tmp_path), Gate()
    match why:
        case "no streams":
            stage.chat.streams = None
        case "quiet":
            stage.quiet = frozenset({"test"})
        case "no interval":
            stage.streams.interval = None
        case _:
            stage.streams.failures["open"] = [DeliveryRejected("not here")]
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await gate.reached.wait()
        await stage.clock.advance(3.0)
        assert stage.chat.texts() == []
        gate.open.set()
        await stage.until(lambda: stage.chat.texts() == [WHOLE])
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert stage.did("close") == 0
        assert await orphans(at) == 0


@pytest.mark.requirement("REN-4")
async def test_a_rate_limit_slows_the_text_down_and_the_reply_wins(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    stage.streams.failures["open"] = [DeliveryRetry("429", after_s=5.0)]
    stage.streams.failures["close"] = [DeliveryRetry("429", after_s=5.0)]
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.did("open") == 1)
        tried = stage.clock.monotonic()
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        assert stage.clock.monotonic() - tried >= 4.7
        gate.open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert stage.did("close") == 2


@pytest.mark.requirement("REN-4")
@pytest.mark.parametrize("error", [DeliveryUnknown("time-out"), DeliveryRejected("gone")])
async def test_a_stream_that_breaks_ends_in_one_complete_message(
    tmp_path: Path, error: Exception
) -> None:
    stage, gates = Stage(tmp_path), [Gate()]
    said = Said(WHOLE * 3, chunk=len(FIRST), middle=gates[0], at=2)
    assert isinstance(error, DeliveryUnknown | DeliveryRejected)
    stage.streams.failures["grow"] = [error]
    stage.streams.failures["close"] = [DeliveryUnknown("time-out")]
    async with world(await stage.setup(ScriptedModel([said])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: len(stage.chat.texts()) == 1)
        gates[0].open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE * 3]
        assert await rows(at) == [("final", "sent")]


@pytest.mark.requirement("REN-4")
async def test_the_text_of_a_step_is_replaced_by_the_next_and_the_reply_is_the_last(
    tmp_path: Path,
) -> None:
    stage, gates = Stage(tmp_path), [Gate(), Gate()]
    first = Said("I will look into that for you.", calls=(call("x"),), middle=gates[0], at=3)
    async with world(await stage.setup(ScriptedModel([first, half(gates[1])])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == ["I will look into that fo"])
        gates[0].open.set()
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        gates[1].open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert await rows(at) == [("final", "sent")]


@pytest.mark.requirement("REN-4", "APR-6")
async def test_a_run_that_asks_closes_what_it_said_before_its_card(tmp_path: Path) -> None:
    stage, gates = Stage(tmp_path), [Gate(), Gate()]
    said = "I need to know one thing first."
    first = Said(said, calls=(asks("Which?"),), chunk=24, middle=gates[0], at=1)
    stage.chat.streams = stage.streams
    setup = await stage.setup(ScriptedModel([first, half(gates[1])]))
    async with world(replace(setup, tools=()), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [said[:24]])
        gates[0].open.set()
        await stage.until(lambda: stage.chat.texts() == [said, "question"])
        ((_, card),) = cards(at)
        await at.says(f"/answer {card.code} that one")
        await stage.until(lambda: len(stage.chat.texts()) == 4)
        gates[1].open.set()
        await stage.settled(at)
        assert stage.chat.texts()[:2] == [said, "question"]
        assert WHOLE in stage.chat.texts()
        assert FIRST not in stage.chat.texts()


@pytest.mark.requirement("REN-4", "MSG-13")
async def test_a_stopped_run_keeps_what_it_had_said(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        await at.says("/stop")
        await stage.settled(at)
        assert sorted(stage.chat.texts()) == [
            "Stopped.",
            f"{FIRST.strip()}\n\n(I was stopped here.)",
        ]
        assert sorted(await rows(at)) == [("notice", "sent"), ("said", "sent")]


@pytest.mark.requirement("REN-4", "MSG-14")
async def test_a_failed_run_says_so_in_the_place_of_its_text(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    said = Said(
        WHOLE, chunk=len(FIRST), middle=gate, at=1, error=ModelRejected("bad", "I may not.")
    )
    async with world(await stage.setup(ScriptedModel([said])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        gate.open.set()
        await stage.settled(at)
        (told,) = stage.chat.texts()
        assert told.startswith("I may not.")


@pytest.mark.requirement("REN-4", "MSG-12")
async def test_commands_are_answered_while_a_text_grows(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path), Gate()
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.chat.texts() == [FIRST])
        await at.says("/status")
        await stage.until(lambda: len(stage.chat.texts()) == 2)
        assert stage.chat.texts()[0] == FIRST
        gate.open.set()
        await stage.settled(at)
        assert stage.chat.texts()[0] == WHOLE


@pytest.mark.requirement("REN-4")
async def test_a_draft_leaves_no_post_and_the_reply_is_sent(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path, drafts=True), Gate()
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        await at.says("tell me")
        await stage.until(lambda: stage.did("open") == 1)
        assert stage.chat.texts() == []
        gate.open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]


@pytest.mark.requirement("REN-4")
async def test_the_reply_waits_for_an_edit_that_is_on_its_way(tmp_path: Path) -> None:
    stage, gate, held = Stage(tmp_path), Gate(), Gate()
    stage.streams.hold["opened"] = held.wait
    async with world(await stage.setup(ScriptedModel([half(gate)])), stage.chat) as at:
        accepted = await at.says("tell me")
        await stage.until(held.reached.is_set)
        gate.open.set()
        done = False
        while not done:
            await stage.clock.advance(0.5)
            run = await at.database.read(lambda conn: runs.get(conn, accepted.run_id or ""))
            done = run.state is RunState.COMPLETED
        await stage.clock.advance(3.0)
        assert stage.did("close") == 0
        held.open.set()
        await stage.settled(at)
        assert stage.chat.texts() == [WHOLE]
        assert await orphans(at) == 0
