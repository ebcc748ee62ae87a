"""Traces reach a collector by OTLP: what they hold, what they never hold, how they hang together.

(OPS-8)
"""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from gateway.telemetry import MOST_WAITING, Telemetry, TelemetrySettings
from gateway.tracing import open_tracer
from runtime.domain.errors import ModelRejected, ModelRetry
from runtime.domain.runs import RunState, Usage
from runtime.ports.tracing import NO_TRACER, Tracer
from runtime.sessions import outbox
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import both, call, card, offering, reaches
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import Setup, World
from tests.scenario.tools import Note
from tests.unit.config.support import reader
from tests.wire.otlp import ERROR, Collector, Span, collector

SECRET = "the-word-that-was-said"
SETTINGS = TelemetrySettings(None, content=False, version="1.2.3")


class Counted:
    """How many spans were sent and dropped."""

    def __init__(self) -> None:
        self.sent = 0
        self.dropped = 0

    def __call__(self, sent: bool, spans: int) -> None:
        self.sent += spans * sent
        self.dropped += spans * (not sent)


class HeldExporter(SpanExporter):
    """A collector that takes nothing until it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.open.wait(30)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing to give back."""


@asynccontextmanager
async def traced(
    *, content: bool = False
) -> AsyncIterator[tuple[Collector, Callable[[Setup], Setup], Callable[[], Awaitable[None]]]]:
    """A collector, a change of a setup that sends to it, and the end of a process."""
    async with collector() as found:
        made: list[Telemetry] = []

        def change(setup: Setup) -> Setup:
            settings = replace(SETTINGS, endpoint=found.url, content=content)
            made.append(Telemetry(settings, Counted()))
            return replace(setup, tracer=made[-1])

        async def end() -> None:
            for one in made:
                await asyncio.to_thread(one.close)

        yield found, change, end
        await end()


async def settled(world: World, run_id: str | None, state: RunState) -> None:
    """Return once a run has ended so and everything is delivered and kept."""
    await reaches(world, run_id, state)
    async with asyncio.timeout(120):
        while (await world.database.read(outbox.counts)).keys() - {"oldest_ms"}:
            pass


def of(spans: list[Span], operation: str) -> list[Span]:
    return [one for one in spans if one.operation == operation]


@pytest.mark.requirement("OPS-8")
@pytest.mark.parametrize(
    ("variable", "path"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/v1/traces"),
        ("GATEHOUSE_OBSERVABILITY__OTLP_ENDPOINT", "/"),
    ],
)
async def test_each_way_to_name_the_collector_reaches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, path: str
) -> None:
    async with collector() as found:
        monkeypatch.setenv(variable, f"{found.url}{path}")
        config = reader(tmp_path / "home")("", {variable: f"{found.url}{path}"})
        tracer, end = open_tracer(config, Counted())
        with tracer.span("chat", "run_1", "a:model", {}):
            pass
        await asyncio.to_thread(end)
        assert [one.name for one in await found.until(1)] == ["chat a:model"]


@pytest.mark.requirement("OPS-8")
async def test_a_run_its_model_its_tools_and_its_delivery_are_one_trace(worlds: Worlds) -> None:
    usage = Usage(input_tokens=70, output_tokens=5, cached_tokens=30, cost_usd=0.25)
    model = ScriptedModel([Said(calls=(call(SECRET),), usage=usage), Said(SECRET, usage=usage)])
    async with traced() as (found, change, end):
        async with worlds(model, change=both(offering(Note()), change)) as world:
            accepted = await world.says(SECRET)
            await world.sees(1)
            await settled(world, accepted.run_id, RunState.COMPLETED)
            await end()
        spans = await found.until(5)
    (turn,) = of(spans, "invoke_agent")
    first, second = of(spans, "chat")
    (tool,) = of(spans, "execute_tool")
    (delivery,) = of(spans, "deliver")
    assert {one.trace for one in spans} == {turn.trace}
    assert turn.parent == ""
    assert {one.parent for one in (first, second, tool, delivery)} == {turn.id}
    assert (turn.name, first.name) == ("invoke_agent main", "chat scripted:model")
    assert (tool.name, delivery.name) == ("execute_tool note", "deliver test")
    assert turn.facts["gatehouse.run.id"] == accepted.run_id
    assert turn.facts["gatehouse.run.state"] == "completed"
    assert turn.facts["gen_ai.conversation.id"] == accepted.session_id
    assert first.facts["gen_ai.provider.name"] == "scripted"
    assert first.facts["gen_ai.request.model"] == "model"
    assert first.facts["gen_ai.usage.input_tokens"] == 70
    assert first.facts["gen_ai.usage.output_tokens"] == 5
    assert first.facts["gen_ai.usage.cache_read.input_tokens"] == 30
    assert first.facts["gen_ai.response.finish_reasons"] == ["tool_call"]
    assert first.facts["gatehouse.cost_usd"] == 0.25
    assert tool.facts["gen_ai.tool.name"] == "note"
    assert tool.facts["gen_ai.tool.call.id"]
    assert tool.facts["gatehouse.outcome"] == "ok"
    assert {one.service for one in spans} == {"gatehouse"}
    assert not any(SECRET in one.raw for one in spans), "what was said is in no span"


@pytest.mark.requirement("OPS-8")
async def test_what_was_said_is_there_where_the_operator_wants_it(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(call("milk"),)), "bought"])
    async with traced(content=True) as (found, change, end):
        async with worlds(model, change=both(offering(Note()), change)) as world:
            accepted = await world.says("buy milk")
            await world.sees(1)
            await settled(world, accepted.run_id, RunState.COMPLETED)
            await end()
        spans = await found.until(5)
    first, second = of(spans, "chat")
    (tool,) = of(spans, "execute_tool")
    assert "buy milk" in str(first.facts["gen_ai.input.messages"])
    assert "You are an agent" in str(first.facts["gen_ai.system_instructions"])
    assert "bought" in str(second.facts["gen_ai.output.messages"])
    assert "milk" in str(tool.facts["gen_ai.tool.call.arguments"])
    assert tool.facts["gen_ai.tool.call.result"] == "kept milk"


@pytest.mark.requirement("OPS-8")
async def test_a_turn_after_a_card_and_a_restart_hangs_on_the_first_and_links_to_it(
    worlds: Worlds,
) -> None:
    async with traced() as (found, change, end):
        tools = offering(Note(command=True))
        model = ScriptedModel([Said(calls=(call("a"),))])
        async with worlds(model, change=both(tools, change)) as world:
            accepted = await world.says("do a")
            code = (await card(world)).code
        async with worlds(ScriptedModel(["done"]), change=both(tools, change)) as world:
            await world.says(f"/approve {code}", message_id="m-approve")
            await world.chat.until(lambda: "done" in world.chat.texts())
            await settled(world, accepted.run_id, RunState.COMPLETED)
            await end()
        spans = await found.until(6)
    first, second = of(spans, "invoke_agent")
    if first.parent:
        first, second = second, first
    assert first.facts["gatehouse.run.state"] == "waiting"
    assert second.facts["gatehouse.run.state"] == "completed"
    assert (second.trace, second.parent, second.links) == (first.trace, first.id, (first.id,))
    (tool,) = of(spans, "execute_tool")
    assert tool.parent == second.id
    asked, answered = of(spans, "chat")
    assert {asked.parent, answered.parent} == {first.id, second.id}


@pytest.mark.requirement("OPS-8")
async def test_a_failure_is_told_by_its_kind_and_not_by_its_words(worlds: Worlds) -> None:
    model = ScriptedModel([ModelRetry(SECRET, after_s=0.0), ModelRejected(SECRET)])
    async with traced() as (found, change, end):
        async with worlds(model, change=change) as world:
            accepted = await world.says("hi")
            await world.sees(1)
            await settled(world, accepted.run_id, RunState.FAILED)
            await end()
        spans = await found.until(4)
    failures = [one.facts["error.type"] for one in of(spans, "chat")]
    assert failures == ["ModelRetry", "ModelRejected"]
    assert all(one.status == ERROR for one in of(spans, "chat"))
    assert of(spans, "invoke_agent")[0].facts["gatehouse.run.state"] == "failed"
    assert not any(SECRET in one.raw for one in spans)


@pytest.mark.requirement("OPS-8")
async def test_a_collector_that_refuses_disturbs_no_run_and_is_counted(worlds: Worlds) -> None:
    async with collector() as found:
        found.refuses = 400
        counted = Counted()
        telemetry = Telemetry(replace(SETTINGS, endpoint=found.url), counted)

        def change(setup: Setup) -> Setup:
            return replace(setup, tracer=telemetry)

        async with worlds(ScriptedModel(["hello"]), change=change) as world:
            accepted = await world.says("hi")
            assert await world.sees(1) == ["hello"]
            await settled(world, accepted.run_id, RunState.COMPLETED)
        await asyncio.to_thread(telemetry.close)
        assert found.requests > 0
        assert (counted.sent, counted.dropped) == (0, 3)


@pytest.mark.requirement("OPS-8")
async def test_spans_beyond_the_queue_are_dropped_and_counted() -> None:
    gate = HeldExporter()
    counted = Counted()
    telemetry = Telemetry(SETTINGS, counted, exporter=gate)
    for number in range(MOST_WAITING + 100):
        with telemetry.span("chat", f"run_{number}", "m", {}):
            pass
    assert counted.dropped == 100
    gate.open.set()
    await asyncio.to_thread(telemetry.close)
    assert counted.sent == MOST_WAITING


@pytest.mark.requirement("OPS-8")
async def test_an_interrupted_turn_ends_its_span(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("never", before=gate), "the new"])
    async with traced() as (found, change, end):
        mode = intake(queue_mode="interrupt", debounce_ms=0)
        async with worlds(model, change=both(mode, change)) as world:
            await world.says("one")
            await gate.reached.wait()
            second = await world.says("two")
            await world.sees(1)
            await settled(world, second.run_id, RunState.COMPLETED)
            await end()
        spans = await found.until(5)
    turns = of(spans, "invoke_agent")
    assert [one.facts.get("error.type") for one in turns] == ["CancelledError", None]
    assert turns[0].trace != turns[1].trace


@pytest.mark.requirement("OPS-8")
def test_nothing_of_tracing_is_imported_while_it_is_off() -> None:
    program = (
        "import sys, gateway.wiring, gateway.service, gateway.tracing; "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_tracer_that_is_off_opens_spans_that_say_nothing() -> None:
    off: Tracer = NO_TRACER
    with off.span("chat", "run_1", "m", {}) as span:
        span.note("a", 1)
        span.content("b", lambda: pytest.fail("nobody asked for it"))
        span.failed("c")
