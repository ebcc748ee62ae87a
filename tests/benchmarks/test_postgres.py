"""The figures of docs/scaling.md, on PostgreSQL. Run with ``make bench``; each prints one line."""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import process_time

import pytest
import structlog

from adapters.system.clock import SystemClock
from runtime.store.migrate import migrate
from tests.benchmarks.load import flood, paced
from tests.benchmarks.replica import replica
from tests.contract.store_support import PostgresServer, postgres_server
from tests.scenario.heard import Heard

IDLE_S = 30
FILL = """
INSERT INTO sessions (id, key, address, title, status, mode, queue_mode, agent, grants,
                      created_ms, updated_ms)
SELECT 'ses_fill_' || n, 'test:fill:' || n, '{}', '', 'open', 'auto', 'followup', 'main', '[]', n, n
FROM generate_series(1, %(sessions)d) n;
INSERT INTO lanes (session_id, root_id, message_seq)
SELECT 'ses_fill_' || n, 'ses_fill_' || n, 10
FROM generate_series(1, %(sessions)d) n;
INSERT INTO messages (session_id, seq, transcript, role, payload, tokens, created_ms)
SELECT 'ses_fill_' || n, seq, 1, 'user', repeat('x', 200), 50, n
FROM generate_series(1, %(sessions)d) n, generate_series(1, 10) seq;
ANALYZE;
"""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Logs of every message would be measured too."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    yield
    structlog.reset_defaults()


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]):
    """Print past the capture."""

    def line(text: str) -> None:
        with capsys.disabled():
            print(f"\n  PostgreSQL: {text}")

    return line


@pytest.fixture
def server() -> PostgresServer:
    return postgres_server()


@pytest.fixture
async def name(server: PostgresServer) -> AsyncIterator[str]:
    """A migrated database."""
    made = await server.create()
    try:
        await migrate(server.url(made))
        yield made
    finally:
        await server.drop(made)


async def rate_of(url: str, replicas: int, **order: object) -> tuple[float, float]:
    """Messages a second of so many processes together, and the processor's milliseconds of each."""
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.benchmarks.replica",
            # An account of its own: what another one said to it would be told again.
            json.dumps({"url": url, "account": f"A{replicas}{number}", **order}),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for number in range(replicas)
    ]
    try:
        for one in processes:
            assert one.stdout is not None
            assert await one.stdout.readline() == b"ready\n"
        for one in processes:
            assert one.stdin is not None
            one.stdin.write(b"go\n")
        figures = [json.loads(await one.stdout.readline()) for one in processes if one.stdout]
    finally:
        for one in processes:
            one.kill()
            await one.wait()
    messages = int(str(order["messages"])) * replicas
    longest = max(one["seconds"] for one in figures)
    return messages / longest, sum(one["busy_s"] for one in figures) / messages * 1000


async def test_one_replica_flooded(tmp_path: Path, server: PostgresServer, name: str, say) -> None:
    async with replica(tmp_path, server.url(name)) as world:
        await flood(world, messages=400, sessions=200, first=1)
        busy = process_time()
        figures = await flood(world, messages=2000, sessions=200, first=2)
        cost = (process_time() - busy) / 2
        say(f"one replica: {figures.rate:.0f} messages/s, {cost:.2f} ms of the processor each")


async def test_accept_at_a_hundred_messages_a_second(
    tmp_path: Path, server: PostgresServer, name: str, say
) -> None:
    async with replica(tmp_path, server.url(name)) as world:
        await flood(world, messages=400, sessions=200, first=1)
        figures = await paced(world, rate=100, seconds=15, sessions=200)
        say(
            f"accept at {figures.rate:.0f} messages/s: p50 {figures.percentile(0.5):.1f} ms, "
            f"p99 {figures.percentile(0.99):.1f} ms"
        )


@pytest.mark.parametrize(("latency_s", "messages"), [(0.5, 2000), (0.0, 1000)])
async def test_two_replicas_beside_one(
    server: PostgresServer, name: str, say, latency_s: float, messages: int
) -> None:
    order = {"sessions": 100, "latency_s": latency_s, "turns": 50, "messages": messages}
    # With a model that takes its time people wait for their replies; without, all write at once.
    order["talks"] = latency_s > 0
    one, cost = await rate_of(server.url(name), 1, **order)
    two, cost_of_two = await rate_of(server.url(name), 2, **order)
    say(
        f"a model of {latency_s * 1000:.0f} ms, 50 turns each: one replica {one:.0f}, two "
        f"{two:.0f} messages/s ({two / one:.2f} times); {cost:.2f} and {cost_of_two:.2f} ms of "
        "the processor a message"
    )


async def test_an_idle_replica(tmp_path: Path, server: PostgresServer, name: str, say) -> None:
    heard = Heard()
    try:
        async with replica(tmp_path, server.url(name)):
            await SystemClock().sleep(2)
            heard.clear()
            busy = process_time()
            await SystemClock().sleep(IDLE_S)
            say(
                f"idle: {len(heard) / IDLE_S:.2f} statements/s, "
                f"{(process_time() - busy) / IDLE_S * 100:.2f} % of a processor"
            )
    finally:
        heard.close()


async def test_cost_against_sessions(
    tmp_path: Path, server: PostgresServer, name: str, say
) -> None:
    costs = {}
    async with replica(tmp_path, server.url(name)) as world:
        await flood(world, messages=400, sessions=200, first=1)
        for sessions in (200, 20_000):
            if sessions > 200:
                await server.run(FILL % {"sessions": sessions - 200}, database=name)
            busy = process_time()
            figures = await flood(world, messages=1000, sessions=200, first=sessions)
            costs[sessions] = (figures.rate, (process_time() - busy))
    say(
        "with 200 and 20,000 sessions: "
        + ", ".join(f"{rate:.0f} messages/s at {busy:.2f} ms" for rate, busy in costs.values())
    )
