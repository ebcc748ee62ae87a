"""What Prometheus is told after a scripted day (OPS-8), and what it can never be told."""

from pathlib import Path

import pytest

from gateway.http.engine_metrics import MOST_NAMES, EngineMetrics
from runtime.domain.errors import DeliveryRejected, DeliveryRetry, ModelRejected, ModelRetry
from runtime.domain.runs import Usage
from runtime.store.observed_database import count_commits
from tests.conftest import FailAfter
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.unit.http.metrics_support import Scrape, counted

USED = Usage(input_tokens=70, output_tokens=5, cached_tokens=30, cost_usd=0.25)
MODEL = "scripted:model"


@pytest.mark.requirement("OPS-8", "API-5")
async def test_messages_models_and_replies_are_counted(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    model = ScriptedModel(
        [
            ModelRetry("overloaded", after_s=0.0),
            Said("one", usage=USED),
            Said("two", usage=Usage(input_tokens=1)),
        ]
    )
    async with fail_after(), counted(tmp_path, model) as world:
        await world.says("a", message_id="same")
        await world.sees(1)
        await world.says("a", message_id="same")
        await world.says("/status")
        await world.sees(2)
        world.chat.failures.append(DeliveryRetry("busy", after_s=0.0))
        await world.says("b")
        await world.sees(3)
        found = await world.scrape()
    for disposition, amount in (("queued", 2), ("duplicate", 1), ("command", 1)):
        assert found.of("messages_in_total", channel="test", disposition=disposition) == amount
    assert found.of("queue_seconds_count") == 2
    assert found.of("reply_seconds_count", channel="test") == 2
    assert found.of("deliveries_total", channel="test", result="sent") == 3
    assert found.of("deliveries_total", channel="test", result="retry") == 1
    assert found.of("model_calls_total", model=MODEL, outcome="answered") == 2
    assert found.of("model_calls_total", model=MODEL, outcome="failed") == 1
    assert found.of("model_seconds_count", model=MODEL) == 3
    tokens = {kind: found.of("model_tokens_total", model=MODEL, kind=kind) for kind in KINDS}
    assert tokens == {"input": 71, "output": 5, "cached": 30}
    assert found.of("model_cost_usd_total", model=MODEL) == 0.25
    assert found.of("model_unpriced_calls_total", model=MODEL) == 1
    assert found.of("runs_ended_total", state="completed") == 2
    assert found.of("step_seconds_count") == 2


KINDS = ("input", "output", "cached")


@pytest.mark.requirement("OPS-8")
async def test_times_are_those_that_a_person_waited(tmp_path: Path, fail_after: FailAfter) -> None:
    async with fail_after(), counted(tmp_path, ScriptedModel(["one"])) as world:
        await world.says("a")
        await world.sees(1)
        found = await world.scrape()
    queue, step = found.of("queue_seconds_sum"), found.of("model_seconds_sum", model=MODEL)
    whole = found.of("reply_seconds_sum", channel="test")
    assert queue is not None
    assert step is not None
    assert whole is not None
    # The ids and rows that the whole is made of count whole milliseconds.
    assert 0 <= queue < whole + 0.002
    assert 0 <= step < whole + 0.002
    assert 0 < whole < 30


@pytest.mark.requirement("OPS-8")
async def test_tool_calls_are_counted_by_decision(tmp_path: Path, fail_after: FailAfter) -> None:
    calls = (
        ("read_file", '{"path": "AGENTS.md"}'),
        ("read_file", '{"path": "/etc/shadow"}'),
        ("no_such_tool_ses_01", "{}"),
        ("exec", '{"command": "make"}'),
    )
    async with fail_after(), counted(tmp_path, ScriptedModel([Said(calls=calls)])) as world:
        await world.says("go")
        await world.sees(1)
        found = await world.scrape()
    assert found.of("tool_decisions_total", tool="read_file", verdict="allow") == 1
    assert found.of("tool_decisions_total", tool="exec", verdict="ask") == 1
    assert found.of("tool_decisions_total", tool="read_file", verdict="deny") == 1
    assert found.of("tool_decisions_total", tool="unknown", verdict="deny") == 1
    assert found.of("tool_calls_total", tool="read_file", status="ok") == 1
    assert found.of("tool_seconds_count", tool="read_file") == 1
    assert found.of("tool_calls_total", tool="exec", status="ok") is None
    assert "no_such_tool" not in found.text
    assert found.of("runs", state="waiting_for_approval") == 1
    lanes = {state: found.of("lanes", state=state) for state in ("active", "waiting", "ready")}
    assert lanes == {"active": 1, "waiting": 1, "ready": 0}
    assert found.of("open_calls") == 1


@pytest.mark.requirement("OPS-8")
async def test_what_ends_badly_is_counted(tmp_path: Path, fail_after: FailAfter) -> None:
    gate = Gate()
    model = ScriptedModel([ModelRejected("bad key"), Said("never said", before=gate)])
    async with fail_after(), counted(tmp_path, model) as world:
        world.chat.failures.append(DeliveryRejected("blocked"))
        await world.says("a")
        while (await world.services.views.status()).outbox != {"dead": 1}:
            await world.database.read(lambda conn: None)
        await world.says("b")
        await gate.reached.wait()
        during = await world.scrape()
        await world.says("/stop")
        while world.engine.turns.running:
            await world.database.read(lambda conn: None)
        found = await world.scrape()
    assert (during.of("turns_running"), during.of("turns_limit")) == (1, 200)
    assert found.of("turns_running") == 0
    assert found.of("deliveries_total", channel="test", result="dead") == 1
    assert found.of("outbox_messages", state="dead") == 1
    assert found.of("model_calls_total", model=MODEL, outcome="rejected") == 1
    assert found.of("model_calls_total", model=MODEL, outcome="stopped") == 1
    ended = [found.of("runs_ended_total", state=state) for state in ("failed", "cancelled")]
    assert ended == [1, 1]


@pytest.mark.requirement("OPS-8", "TOOL-5")
async def test_the_process_says_what_it_is_and_holds(tmp_path: Path, fail_after: FailAfter) -> None:
    async with fail_after(), counted(tmp_path, ScriptedModel(["one"])) as world:
        await world.says("a")
        await world.sees(1)
        found = await world.scrape()
        held = {name for name in LEASES if found.of("lease_held", lease=name) == 1}
        await world.database.close()
        away = await world.scrape()
    assert found.of("sandbox_info", name="landlock") == 1
    assert found.of("build_info", version="1.2.3") == 1
    assert found.of("bus_connected") == 1
    assert found.of("part_up", part="engine") == 1
    assert found.of("adapter_connected", channel="test", account="A1") == 1
    assert held == LEASES
    units = found.of("store_units_total", unit="accept", result="kept")
    assert units == 1
    every = sum(n for (name, _), n in found.values.items() if name == "gatehouse_store_units_total")
    commits = found.of("store_commits_total")
    assert commits is not None
    assert 1 < commits <= every
    assert found.of("store_unit_seconds_count") == every
    assert found.of("store_units_waiting") == 0
    assert world.engine.worker not in found.text
    assert (found.of("database_up"), away.of("database_up")) == (1, 0)
    for state in ("active", "due", "paused", "failed"):
        assert found.of("schedules", state=state) == 0
        assert away.of("schedules", state=state) is None
    assert away.of("runs", state="queued") is None
    assert away.of("deliveries_total", channel="test", result="sent") == 1


LEASES = {"process", "timers", "deliver:test:A1", "listen:test:A1"}


@pytest.mark.requirement("OPS-8")
def test_names_from_outside_cannot_grow_a_metric_without_bound() -> None:
    metrics = EngineMetrics()
    for number in range(MOST_NAMES * 3):
        metrics.asked(f"openai:made-up-{number}", "answered", 1.0)
        metrics.called(f"tool-{number}", "ok", 1.0)
    series = [
        sample
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "gatehouse_model_calls_total"
    ]
    assert len(series) == MOST_NAMES + 1
    rest = next(one for one in series if one.labels["model"] == "other")
    assert rest.value == MOST_NAMES * 2
    assert sum(one.value for one in series) == MOST_NAMES * 3


def test_what_a_provider_reports_breaks_nothing() -> None:
    metrics = EngineMetrics()
    metrics.used("m", Usage(input_tokens=-3, cost_usd=-1.0))
    metrics.started(-5.0)
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
    }
    assert found["gatehouse_model_tokens_total", "m", "input"] == 0
    assert found["gatehouse_queue_seconds_sum",] == 0


def test_units_that_share_a_commit_are_one_commit() -> None:
    for grouped, commits in ((True, 2), (False, 3)):
        metrics = EngineMetrics()
        point = count_commits(metrics, grouped=grouped)
        for name in ("a:begin", "b:begin", "a:commit", "b:commit", "c:begin", "c:commit"):
            point(name)
        assert metrics.registry.get_sample_value("gatehouse_store_commits_total") == commits


def test_a_scrape_is_read_by_the_parser_of_prometheus() -> None:
    found = Scrape('# TYPE gatehouse_x counter\ngatehouse_x_total{a="b"} 2.0\n')
    assert found.of("x_total", a="b") == 2
    assert found.of("x_total") is None
