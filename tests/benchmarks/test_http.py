"""The figures of the HTTP API in docs/performance.md: ``make bench`` prints a line for each."""

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from statistics import median, quantiles

import pytest

from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.harness import Plan, site

STREAMS, EVENTS, TOKENS = 1_000, 20, 10
ASKED = 300


def resident_kb() -> int:
    """What this process holds of memory that is its own."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1])
    raise RuntimeError("no Private_Dirty")


def percentile(values: list[float], of_100: int) -> float:
    return quantiles(values, n=100)[of_100 - 1]


async def test_1000_streams_each_get_an_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(tmp_path, ScriptedModels(ScriptedModel(["ok"])))
    plan.http = {}
    tokens = [f"bench-{number}" for number in range(TOKENS)]
    async with site(plan) as gateway:
        gateway.admin_tokens.extend(tokens)
        gc.collect()
        before = resident_kb()
        readers = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.benchmarks.stream_readers"),
            *(str(gateway.port), str(STREAMS), ",".join(tokens)),
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )
        assert readers.stdout is not None
        try:
            assert await readers.stdout.readline() == b"ready\n"
            gc.collect()
            held = (resident_kb() - before) / STREAMS
            every, slowest = list[float](), list[float]()
            cpu = time.process_time()
            for number in range(EVENTS):
                began = time.perf_counter()
                await gateway.session(title=f"number {number}")
                had = json.loads(await readers.stdout.readline())
                waits = [(one - began) * 1000 for one in had]
                every += waits
                slowest.append(max(waits))
            cpu = (time.process_time() - cpu) / EVENTS * 1000
            after = (resident_kb() - before) / STREAMS
            idle = time.process_time()
            await plan.clock.sleep(3)
            idle = (time.process_time() - idle) / 3 * 100
        finally:
            readers.kill()
            await readers.wait()
    with capsys.disabled():
        print(
            f"\n  {STREAMS} event streams: an event reaches them in p50 {median(every):.0f}, "
            f"p99 {percentile(every, 99):.0f} ms, the slowest {max(slowest):.0f} ms; "
            f"{held:.1f} KB each, {after:.1f} KB behind {EVENTS} events; {cpu:.0f} ms of the "
            f"processor for an event, {idle:.0f} % of one while nothing happens"
        )


@pytest.mark.parametrize("keys", [False, True], ids=["plain", "with a key"])
async def test_a_run_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, keys: bool
) -> None:
    plan = Plan(tmp_path, ScriptedModels(ScriptedModel(lambda _: "ok")))
    took = list[float]()
    async with site(plan) as gateway:
        sessions = [await gateway.session() for _ in range(20)]
        for number in range(ASKED):
            headers = {"Idempotency-Key": f"k{number}"} if keys else {}
            path = f"/v1/sessions/{sessions[number % 20]}/runs"
            began = time.perf_counter()
            status, done = await gateway.ask("POST", path, {"content": "hello"}, headers=headers)
            took.append((time.perf_counter() - began) * 1000)
            assert status == 202
            run, state = f"/v1/runs/{done['run_id']}", ""
            while state != "completed":
                state = str((await gateway.ask("GET", run))[1]["state"])
    with capsys.disabled():
        print(
            f"\n  POST run to accepted{' with a key' if keys else ''}: "
            f"p50 {median(took):.1f} ms, p99 {percentile(took, 99):.1f} ms"
        )
