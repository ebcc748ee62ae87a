"""Turns with tools: durable steps, crashes in their middle, stops, failures and limits."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from runtime.agent.turn_worker import CANCEL_CHECK_S
from runtime.domain.errors import IllegalTransition, ModelRejected, ModelRetry
from runtime.domain.runs import TERMINAL, RunState
from runtime.domain.tools import Effect
from runtime.domain.transcript import AssistantMessage, ToolMessage
from runtime.ports.bus import CANCEL
from runtime.sessions import runs, transcripts
from runtime.tools.base import AnyTool, ToolContext, ToolOutput
from runtime.tools.executor import MOST_CALLS
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.clock import FakeClock, settle
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import audited, both, reaches, results, state
from tests.scenario.cast import got_to
from tests.scenario.conftest import Worlds, agent
from tests.scenario.engine import Setup
from tests.scenario.schedules.test_reminders import House, goes_on, house
from tests.scenario.tools import Note, NoteArguments

__all__ = ["house"]


def call(text: str, tool: str = "note") -> tuple[str, str]:
    """A tool call of the model."""
    return tool, json.dumps({"text": text})


def offering(*tools: AnyTool) -> Callable[[Setup], Setup]:
    """A setup that offers these tools and no others."""
    return lambda setup: replace(setup, tools=tools)


@pytest.mark.requirement("MSG-7")
async def test_a_run_whose_process_died_goes_on_from_its_last_durable_step(
    worlds: Worlds,
) -> None:
    gate = Gate()
    note = Note()
    first = ScriptedModel([Said(calls=(call("milk"),)), Said("never said", before=gate)])
    async with worlds(first, change=offering(note)) as before:
        await before.says("buy milk")
        await gate.reached.wait()
    assert note.kept == ["milk"]
    second = ScriptedModel(["bought it"])
    async with worlds(second, change=offering(note)) as after:
        assert await after.sees(1) == ["bought it"]
    assert note.kept == ["milk"], "the step before the crash is not done again"
    seen = second.requests[0].messages
    assert [message.role for message in seen] == ["user", "assistant", "tool"]


@pytest.mark.requirement("MSG-8")
async def test_a_call_with_a_once_effect_is_never_run_again_after_a_crash(
    worlds: Worlds,
) -> None:
    gate, note = Gate(), Note(gate=Gate())
    note.gate = gate
    async with worlds(ScriptedModel([Said(calls=(call("pay"),))]), change=offering(note)) as before:
        await before.says("pay the bill")
        await gate.reached.wait()
    again = Note()
    second = ScriptedModel(["I will check first"])
    async with worlds(second, change=offering(again)) as after:
        assert await after.sees(1) == ["I will check first"]
    assert again.begun == 0
    told = second.requests[0].messages[-1]
    assert isinstance(told, ToolMessage)
    assert told.results[0].status == "unknown"
    assert "outcome is unknown" in told.results[0].content


@pytest.mark.requirement("MSG-8")
@pytest.mark.parametrize("effect", [Effect.READ, Effect.IDEMPOTENT])
async def test_a_harmless_call_is_run_again_after_a_crash(worlds: Worlds, effect: Effect) -> None:
    gate = Gate()
    async with worlds(
        ScriptedModel([Said(calls=(call("look"),))]),
        change=offering(Note(effect=effect, gate=gate)),
    ) as before:
        await before.says("look")
        await gate.reached.wait()
    again = Note(effect=effect)
    async with worlds(ScriptedModel(["seen"]), change=offering(again)) as after:
        assert await after.sees(1) == ["seen"]
    assert again.kept == ["look"]


@pytest.mark.requirement("TOOL-9")
async def test_reads_of_one_response_run_together_and_others_in_order(worlds: Worlds) -> None:
    gate = Gate()
    look, write = Note("look", effect=Effect.READ, gate=gate), Note("write")
    model = ScriptedModel(
        [
            Said(calls=(call("1", "look"), call("2", "look"), call("3", "write"))),
            "all done",
        ]
    )
    async with worlds(model, change=offering(look, write)) as world:
        await world.says("go")
        await gate.reached.wait()
        await world.chat.until(lambda: True)
        while look.begun < 2:
            await gate.reached.wait()
            break
        assert write.begun == 0
        gate.open.set()
        assert await world.sees(1) == ["all done"]
    assert look.begun == 2
    assert write.kept == ["3"]
    results = [r.content for r in model.requests[1].messages[-1].results]
    assert [text[-1] for text in results] == ["1", "2", "3"]


@pytest.mark.requirement("MSG-13")
async def test_stop_ends_the_model_stream_and_keeps_what_was_written(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("half of it and more", chunk=7, middle=gate, at=1), "next"])
    async with worlds(model) as world:
        accepted = await world.says("tell me")
        await gate.reached.wait()
        await world.says("/stop")
        assert await world.sees(1) == ["Stopped."]
        await reaches(world, accepted.run_id, *TERMINAL)
        assert await _state(world, accepted.run_id) is RunState.CANCELLED
        assert model.closed == 1
        lines = await _lines(world, accepted.session_id)
        kept = lines[-1].message
        assert isinstance(kept, AssistantMessage)
        assert (kept.text, kept.partial) == ("half of", True)
        await world.says("go on")
        assert (await world.sees(2))[-1] == "next"


@pytest.mark.requirement("MSG-13")
async def test_stop_ends_a_tool_that_runs(worlds: Worlds) -> None:
    gate = Gate()
    note = Note(gate=gate)
    model = ScriptedModel([Said(calls=(call("slow"),)), "fresh start"])
    async with worlds(model, change=offering(note)) as world:
        accepted = await world.says("do it")
        await gate.reached.wait()
        await world.says("/stop")
        await reaches(world, accepted.run_id, *TERMINAL)
        assert note.kept == []
        await world.says("again")
        await world.sees(2)
        roles = [message.role for message in model.requests[1].messages]
        assert roles == ["user", "assistant", "tool", "user"], "no call is without its result"


@pytest.mark.requirement("MSG-14")
async def test_a_failed_run_says_so_plainly_and_hides_the_providers_words(
    worlds: Worlds,
) -> None:
    secret = "sk-test-0000 at /srv/keys: 401 Unauthorized"
    error = ModelRejected(secret, "The model's key was refused.")
    async with worlds(ScriptedModel([error])) as world:
        accepted = await world.says("hi")
        (text,) = await world.sees(1)
        assert text.startswith("The model's key was refused.")
        assert accepted.run_id is not None
        assert accepted.run_id in text
        assert "sk-test" not in text
        assert "/srv" not in text
        assert await _state(world, accepted.run_id) is RunState.FAILED


@pytest.mark.requirement("MSG-14")
async def test_a_defect_in_a_turn_ends_in_words_and_the_lane_goes_on(worlds: Worlds) -> None:
    def broken(request: object) -> str:
        if len(model.requests) == 1:
            raise RuntimeError("a bug with /secret/path")
        return "fine again"

    model = ScriptedModel(broken)
    async with worlds(model) as world:
        await world.says("first")
        (text,) = await world.sees(1)
        assert "Something went wrong" in text
        assert "/secret" not in text
        await world.says("second")
        assert (await world.sees(2))[1] == "fine again"


@pytest.mark.requirement("TOOL-1", "POL-1")
async def test_of_a_flood_of_calls_only_the_first_are_looked_at(worlds: Worlds) -> None:
    note = Note(effect=Effect.IDEMPOTENT)
    flood = Said(calls=tuple(call(str(number)) for number in range(MOST_CALLS + 2)))
    model = ScriptedModel([flood, "done"])
    async with worlds(model, change=offering(note)) as world:
        accepted = await world.says("go")
        assert await world.sees(1) == ["done"]
        denied = await audited(world, "tool.deny")
    assert note.kept == [str(number) for number in range(MOST_CALLS)]
    answered = model.requests[1].messages[-1]
    assert isinstance(answered, ToolMessage)
    assert len(answered.results) == MOST_CALLS + 2, "every call has a result"
    assert {one.status for one in answered.results[:MOST_CALLS]} == {"ok"}
    for result in answered.results[MOST_CALLS:]:
        assert result.status == "error"
        assert f"asked for {MOST_CALLS + 2} calls; only the first {MOST_CALLS}" in result.content
    assert [one.run_id for one in denied] == [accepted.run_id] * 2


@pytest.mark.requirement("MSG-15")
async def test_the_iteration_limit_ends_a_run_with_what_it_has(worlds: Worlds) -> None:
    note = Note(effect=Effect.READ)
    model = ScriptedModel(lambda request: Said("so far so good", calls=(call("x"),)))

    def change(setup: Setup) -> Setup:
        return offering(note)(agent(max_steps=3)(setup))

    async with worlds(model, change=change) as world:
        await world.says("loop")
        (text,) = await world.sees(1)
        assert text.startswith("so far so good")
        assert "more than 3 steps" in text
        assert len(model.requests) == 3


@pytest.mark.requirement("MSG-18")
async def test_a_retryable_failure_is_retried_as_the_provider_asked(worlds: Worlds) -> None:
    clock = FakeClock()
    model = ScriptedModel([ModelRetry("429", after_s=7.0), "after all"])
    async with worlds(model, change=lambda s: replace(s, clock=clock)) as world:
        await world.says("hi")
        while not model.requests:
            await clock.advance(0)
        await clock.advance(6.5)
        assert len(model.requests) == 1
        while not world.chat.sent:
            await clock.advance(0.5)
        assert world.chat.texts() == ["after all"]
        assert clock.monotonic() < 12


@pytest.mark.requirement("MSG-18")
async def test_after_four_retries_the_fallback_model_answers(worlds: Worlds) -> None:
    clock = FakeClock()
    first = ScriptedModel(lambda request: ModelRetry("503"), name="a:down")
    second = ScriptedModel(["from the other one"], name="b:up")
    models = ScriptedModels(first, second, fallback=["b:up"])
    async with worlds(models, change=lambda s: replace(s, clock=clock)) as world:
        await world.says("hi")
        while not world.chat.sent:
            await clock.advance(1)
        assert world.chat.texts() == ["from the other one"]
    assert len(first.requests) == 5


@pytest.mark.requirement("MSG-14", "MSG-18")
async def test_an_owner_alone_is_told_where_the_model_is_that_nobody_reached(
    worlds: Worlds,
) -> None:
    away = ModelRetry("refused", after_s=0, host="10.0.0.7:11434")
    model = ScriptedModel(lambda request: away, name="ollama:x")
    async with worlds(model) as world:
        await world.says("hi")
        (alone,) = await world.sees(1)
        await world.says("hi", chat_id="G1", kind="group")
        (shared,) = await world.sees(1, "G1")
    behind = "although I tried several times. The operator can look into it with `gatehouse doctor`"
    assert f"The model ollama:x at 10.0.0.7:11434 could not be reached, {behind}." in alone
    assert f"The model ollama:x could not be reached, {behind}." in shared
    assert "10.0.0.7" not in shared


@pytest.mark.requirement("MSG-18")
async def test_a_refusal_is_not_retried(worlds: Worlds) -> None:
    model = ScriptedModel([ModelRejected("401")])
    async with worlds(model) as world:
        await world.says("hi")
        await world.sees(1)
    assert len(model.requests) == 1


@pytest.mark.requirement("MSG-18")
async def test_a_stream_that_breaks_begins_anew_and_ends_in_one_answer(worlds: Worlds) -> None:
    clock = FakeClock()
    model = ScriptedModel(
        [Said("half an ans", chunk=4, at=2, error=ModelRetry("cut")), "the whole answer"]
    )
    async with worlds(model, change=lambda s: replace(s, clock=clock)) as world:
        await world.says("hi")
        while not world.chat.sent:
            await clock.advance(0.5)
        assert world.chat.texts() == ["the whole answer"]


@pytest.mark.requirement("TOOL-1")
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("nota", "{}"), "note"),
        (("note", "{not json"), "JSON"),
        (("note", '{"text": 5}'), "text"),
        (("note", '{"words": "x"}'), "words"),
    ],
)
async def test_a_model_that_answers_nonsense_is_told_what_to_mend(
    worlds: Worlds, asked: tuple[str, str], told: str
) -> None:
    model = ScriptedModel([Said(calls=(asked,)), "mended"])
    async with worlds(model, change=offering(Note())) as world:
        await world.says("go")
        assert await world.sees(1) == ["mended"]
    result = model.requests[1].messages[-1].results[0]
    assert result.status == "error"
    assert told in result.content


async def test_a_model_that_says_nothing_twice_is_not_left_in_silence(worlds: Worlds) -> None:
    model = ScriptedModel(["", "  "])
    async with worlds(model) as world:
        await world.says("hi")
        (text,) = await world.sees(1)
        assert "gave no answer" in text


async def test_ten_megabytes_of_text_are_cut_and_said_so(worlds: Worlds) -> None:
    model = ScriptedModel([Said("x" * 10_000_000, chunk=100_000)])
    async with worlds(model) as world:
        await world.says("hi")
        (text,) = await world.sees(1)
        assert len(text) < 500_000
        assert "cut" in text


async def _state(world, run_id: str | None) -> RunState:
    return (await world.database.read(lambda conn: runs.get(conn, run_id or ""))).state


async def _lines(world, session_id: str | None) -> Sequence[transcripts.Line]:
    return await world.database.read(
        lambda conn: transcripts.since(conn, session_id or "", transcript=1, first=1)
    )


@pytest.mark.requirement("MSG-12")
async def test_what_a_stopped_run_wrote_stays_in_the_conversation_that_new_ended(
    worlds: Worlds,
) -> None:
    gate = Gate()
    model = ScriptedModel([Said("half an answer", chunk=4, middle=gate, at=1), "hello again"])
    async with worlds(model) as world:
        accepted = await world.says("a long story")
        await gate.reached.wait()
        await world.says("/new")
        await reaches(world, accepted.run_id, *TERMINAL)
        await world.says("hi")
        await world.sees(2)
        assert [message.role for message in model.requests[1].messages] == ["user"]
        old = await _lines(world, accepted.session_id)
        assert [line.message.text for line in old] == ["a long story", "half"]


@pytest.mark.requirement("MSG-13")
async def test_a_worker_looks_for_lost_stops_only_while_a_turn_runs(house: House) -> None:
    gate = Gate()
    async with house.begins(ScriptedModel([Said("done", before=gate)])) as at:
        clock, slept = at.engine.parts.clock, list[float]()
        sleep = clock.sleep

        async def noted(seconds: float) -> None:
            slept.append(seconds)
            await sleep(seconds)

        setattr(clock, "sleep", noted)  # noqa: B010 - of one object
        await goes_on(at, 10)
        assert CANCEL_CHECK_S not in slept
        await at.says("hi")
        await got_to(gate)
        await goes_on(at, 2)
        assert slept.count(CANCEL_CHECK_S) >= 4
        gate.open.set()
        await at.sees(1)
        await goes_on(at, 1)
        slept.clear()
        await goes_on(at, 10)
        assert CANCEL_CHECK_S not in slept


def timed(clock: FakeClock) -> Callable[[Setup], Setup]:
    """A setup under virtual time."""
    return lambda setup: replace(setup, clock=clock)


@pytest.mark.requirement("MSG-13", "MSG-21")
async def test_a_stop_whose_signal_is_lost_takes_effect_within_a_second(worlds: Worlds) -> None:
    clock, gate = FakeClock(), Gate()
    model = ScriptedModel([Said("half of it and more", chunk=7, middle=gate, at=1)])
    async with worlds(model, change=timed(clock)) as world:
        accepted = await world.says("tell me")
        await gate.reached.wait()
        publish = world.engine.parts.bus.publish

        def loses(topic: str, data: dict[str, object]) -> None:
            if topic != CANCEL:
                publish(topic, data)

        world.engine.parts.bus.publish = loses  # type: ignore[method-assign]  # the bus loses stops
        before = clock.monotonic()
        await world.says("/stop")
        async with asyncio.timeout(120):
            while await state(world, accepted.run_id) is RunState.RUNNING:
                await clock.advance(0.1)
        assert await state(world, accepted.run_id) is RunState.CANCELLED
        assert clock.monotonic() - before <= 1.0
        assert model.closed == 1


@pytest.mark.requirement("MSG-18", "REN-5")
async def test_while_a_model_is_tried_again_the_person_sees_that_it_works(worlds: Worlds) -> None:
    clock = FakeClock()
    chat = FakeChat(capabilities=replace(FAST, typing_interval_s=4.0))
    model = ScriptedModel([ModelRetry("503", after_s=30.0), "after all"])
    async with worlds(model, chat=chat, change=timed(clock)) as world:
        await world.says("hi")
        async with asyncio.timeout(120):
            while not chat.sent:
                await clock.advance(1.0)
        assert chat.texts() == ["after all"]
        working = [state for _, state in chat.typings if state == "thinking"]
        assert len(working) >= 30 // 5, "the signal is renewed as long as the wait lasts"
        assert chat.typings[-1][1] == "done"


@pytest.mark.requirement("MSG-6")
async def test_a_run_that_has_ended_is_moved_nowhere(worlds: Worlds) -> None:
    async with worlds(ScriptedModel(["fine"])) as world:
        accepted = await world.says("hi")
        await world.sees(1)
        run = await world.database.read(lambda conn: runs.get(conn, accepted.run_id or ""))
        for wanted in (RunState.QUEUED, RunState.RUNNING, RunState.CANCELLED):
            with pytest.raises(IllegalTransition):
                await world.database.write(
                    lambda conn, to=wanted: runs.move(conn, run, to), name="move"
                )
        assert await state(world, accepted.run_id) is RunState.COMPLETED


class Meeting(Note):
    """A tool whose calls end only once two of them are at work."""

    def __init__(self, name: str, effect: Effect) -> None:
        super().__init__(name, effect=effect)
        self.at_once = self.most = 0
        self.met = asyncio.Event()

    async def run(self, arguments: NoteArguments, context: ToolContext) -> ToolOutput:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        if self.effect is Effect.READ:
            if self.at_once == 2:
                self.met.set()
            await self.met.wait()
        else:
            await settle()
        self.at_once -= 1
        return await super().run(arguments, context)


@pytest.mark.requirement("TOOL-9")
async def test_two_reads_are_at_work_at_once_and_two_writes_never(worlds: Worlds) -> None:
    look, write = Meeting("look", Effect.READ), Meeting("write", Effect.ONCE)
    calls = (call("1", "look"), call("2", "look"), call("3", "write"), call("4", "write"))
    model = ScriptedModel([Said(calls=calls), "all done"])
    async with worlds(model, change=both(offering(look, write))) as world:
        await world.says("go")
        assert await world.sees(1) == ["all done"], "a read alone would wait for the other"
    assert (look.most, write.most) == (2, 1)
    assert write.kept == ["3", "4"]
    told = [one.content for one in results(model.requests[1])]
    assert told == ["kept 1", "kept 2", "kept 3", "kept 4"]
