"""Every long-lived task of a whole gateway is killed by an error that nobody expected.

The gateway is the real assembly on the real start, with both platforms on their wire servers, in
the test's own process, because an error must be brought into each of its tasks. Its clock moves on
command, so that no back-off is waited for.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import aiohttp
import asyncpg
import pytest
from structlog.testing import capture_logs
from typing_extensions import override

from adapters.system.clock import SystemClock
from gateway import wiring
from gateway.config import Config, load
from gateway.logs import MASK, Redactor
from gateway.service import WATCH_S, Start, Started, running
from runtime.process.lease_keeper import LeaseSettings
from runtime.process.supervisor import FIRST_DELAY_S, SETTLED_S, Body, Supervisor, TaskHealth
from tests.conftest import FailAfter
from tests.contract.store_support import BOTH, postgres_server
from tests.fakes.clock import FakeClock
from tests.scenario.engine import Drain
from tests.scenario.gateway.town import Town
from tests.scenario.process.program import BEARER
from tests.support.templates import postgres_database
from tests.wire.openai import says

STEP_S = 0.05
SECRET = "sk-test-key"
"""The model's key in a town; a library may put such a thing into its error."""
DATABASE = "GATEHOUSE_DATABASE__URL"
AT_WORK, AT_RISK = " at work", " at risk"
_WORDS = re.compile(r"^(?:hello|once more|still there\?)$", re.MULTILINE)
HANG_UP = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
OWNED = ("hold ", "watch ", "slack-connection-", "slack-socket", "telegram polling")
"""Tasks whose owner is supervised and fails with them: what a lease holds, and what listens."""
OTHERS = ("gateway", "Task-")
"""The test's own, and those of libraries: a task of the product has a name."""
SHARED = ("bus", "lease roles")
"""What a gateway has besides where it shares its database."""


class Unforeseen(Exception):
    """An error that no part of the product knows."""


class Fragile(Supervisor):
    """A supervisor whose tasks end when the test wants it: by an error from within."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.begun: dict[str, int] = {}
        self._breaks: dict[str, asyncio.Event] = {}

    def kill(self, name: str) -> None:
        """The task fails."""
        self._breaks[name].set()

    @override
    async def keep(self, name: str, body: Body, *, needed: bool = True) -> None:
        await super().keep(name, partial(self._breakable, name, body), needed=needed)

    async def _breakable(self, name: str, body: Callable[[], Awaitable[None]]) -> None:
        self.begun[name] = self.begun.get(name, 0) + 1
        breaks = self._breaks[name] = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(body(), name=f"{name}{AT_WORK}")
            broken = group.create_task(breaks.wait(), name=f"{name}{AT_RISK}")
            await asyncio.wait([task, broken], return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                raise Unforeseen(f"{name} met a defect at {SECRET}")
            broken.cancel()


@dataclass
class Here:
    """A gateway in this process."""

    started: Started
    clock: FakeClock
    client: aiohttp.ClientSession
    town: Town
    supervisor: Fragile
    reload: list[Exception]
    said: list[str] = field(default_factory=list)

    @property
    def shared(self) -> bool:
        """Whether other gateways could work on its database."""
        return self.started.assembly.database.dialect == "postgresql"

    async def ready(self) -> bool:
        """What anybody is told."""
        async with self.client.get(f"{self.started.url}/readyz") as response:
            told = await response.json()
        assert told in ({"status": "ok"}, {"status": "not ready"}), "and nothing more"
        return response.status == 200

    async def status(self) -> dict[str, object]:
        """What the operator is told."""
        async with self.client.get(f"{self.started.url}/v1/status", headers=BEARER) as response:
            return await response.json()

    async def metrics(self) -> str:
        """What Prometheus is told."""
        async with self.client.get(f"{self.started.url}/metrics", headers=BEARER) as response:
            return await response.text()

    async def until(self, done: Callable[[], bool]) -> None:
        """Move time until it is done."""
        while not done():
            await self.clock.advance(STEP_S)

    async def answers(self, text: str) -> None:
        """People of both platforms say something, and are answered once."""
        self.said.append(text)
        self.town.on_telegram(text)
        await self.town.on_slack(text)
        wanted = [f"re {one}" for one in self.said]
        await self.until(lambda: self.town.telegram_texts() == wanted == self.town.slack_texts())


@asynccontextmanager
async def gateway_here(town: Town, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Here]:
    # The platforms' clocks are this machine's: what they send must not look late.
    clock = FakeClock(SystemClock().now_ms())
    supervisor = Fragile(clock)
    monkeypatch.setattr(wiring, "system_clock", lambda: clock)
    monkeypatch.setattr(wiring, "Supervisor", lambda _clock: supervisor)
    config = load(environment=town.place.environment())
    begun: asyncio.Future[Started] = asyncio.get_running_loop().create_future()
    stop, faults = asyncio.Event(), list[Exception]()

    def reload() -> Config:
        if faults:
            raise faults.pop()
        return load(environment=town.place.environment())

    async def serve() -> None:
        async with running(Start(config, reload, Redactor(()))) as started:
            begun.set_result(started)
            await stop.wait()

    serving = asyncio.create_task(serve(), name="gateway")
    try:
        while not begun.done() and not serving.done():
            await clock.advance(STEP_S)
        if serving.done():
            serving.result()
        started = begun.result()
        clock.drain = Drain(started.assembly.database)
        async with aiohttp.ClientSession() as client:
            here = Here(started, clock, client, town, supervisor, faults)
            accounts = started.assembly.engine.accounts
            await here.until(lambda: all(one.status().connected for one in accounts))
            yield here
    finally:
        stop.set()
        while not serving.done():
            await clock.advance(STEP_S)
        serving.result()


@pytest.fixture(params=BOTH)
async def here(
    request: pytest.FixtureRequest, town: Town, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Here]:
    """On PostgreSQL it has a bus and shares its leases."""
    async with AsyncExitStack() as stack:
        if request.param == "postgresql":
            server = postgres_server()
            name = await stack.enter_async_context(postgres_database(server))
            town.place.variables[DATABASE] = server.url(name)
        town.model.plays = lambda prompt: says(f"re {_WORDS.findall(prompt.asked)[-1]}")
        yield await stack.enter_async_context(gateway_here(town, monkeypatch))


def of(health: Sequence[TaskHealth], name: str) -> TaskHealth:
    """One of the tasks."""
    return next(one for one in health if one.name == name)


@pytest.mark.requirement("SEC-3", "OPS-8", "SCALE-2", "MSG-21")
async def test_whatever_ends_a_task_is_logged_and_shown_and_the_task_is_started_again(
    here: Here, fail_after: FailAfter
) -> None:
    async with fail_after(120):
        await here.answers("hello")
        await here.clock.advance(1.0)
        assert list(strangers(here)) == [], "nobody starts these again"
        names = [one.name for one in here.supervisor.health]
        assert set(SHARED) <= set(names) if here.shared else names
        for name in SHARED if here.shared else names:
            await killed(here, name)
        await here.answers("still there?")


def strangers(here: Here) -> Iterator[str]:
    """Tasks that last and that are neither supervised nor owned by one that is."""
    known = {one.name for one in here.supervisor.health}
    for task in asyncio.all_tasks():
        name = task.get_name().removesuffix(AT_WORK).removesuffix(AT_RISK)
        if name not in known and not name.startswith((*OWNED, *OTHERS)):
            yield name


async def killed(here: Here, name: str) -> None:
    """It fails, says why, is started again, and the gateway is ready again by itself."""
    assert await here.ready(), name
    begun = here.supervisor.begun[name]
    with capture_logs() as lines:
        here.supervisor.kill(name)
        while of(here.supervisor.health, name).up:
            await here.clock.advance(0)
    task = of(here.supervisor.health, name)
    assert not task.up, name
    reason = f"Unforeseen: {name} met a defect at "
    (line,) = [one for one in lines if one["event"] == "task_failed"]
    assert (line["task"], line["reason"]) == (name, reason + SECRET), "masked as it is written"
    assert isinstance(line["exc_info"], BaseException)
    assert await here.ready() != task.needed, name
    status = await here.status()
    (told,) = [one for one in status["tasks"] if not one["up"]]
    assert (told["name"], told["reason"]) == (name, reason + MASK)
    assert SECRET not in str(status)
    if task.needed:
        assert status["reasons"]["tasks"] == f"{name}: {reason}{MASK}"
    assert f'gatehouse_task_up{{task="{name}"}} 0.0' in await here.metrics()
    await here.clock.advance(FIRST_DELAY_S)
    assert here.supervisor.begun[name] == begun + 1
    await here.clock.advance(SETTLED_S)
    assert of(here.supervisor.health, name).up, name
    accounts = here.started.assembly.engine.accounts
    await here.until(lambda: all(one.status().connected for one in accounts))


@pytest.mark.requirement("SCALE-2", "MSG-21", "SEC-3")
@pytest.mark.parametrize("here", ["postgresql"], indirect=True)
async def test_when_the_server_ends_all_connections_it_says_so_and_is_ready_again_by_itself(
    here: Here, fail_after: FailAfter
) -> None:
    """Twice, because the second time the connections are others than those of the start."""
    async with fail_after(60):
        for text in ("hello", "once more"):
            await here.answers(text)
            hung_up = here.clock.monotonic()
            operator = await asyncpg.connect(here.town.place.variables[DATABASE])
            assert await operator.fetchval(HANG_UP) >= 2, "the store's and the bus's"
            await operator.close()
            # No time passes, so the bus does not connect again before it was seen to be away.
            while not (reasons := (await here.status())["reasons"]).get("bus"):
                await here.clock.advance(0)
            assert all(reasons.values())
            assert not await here.ready()
            while not await here.ready():
                await here.clock.advance(STEP_S)
            assert here.clock.monotonic() - hung_up <= 2 * LeaseSettings().ttl_s
            assert (await here.status())["reasons"] == {}
        await here.answers("still there?")


@pytest.mark.requirement("ACC-2", "API-1")
@pytest.mark.parametrize("here", ["sqlite"], indirect=True)
async def test_a_change_of_the_configuration_outlives_a_fault_of_the_watch_over_it(
    here: Here, fail_after: FailAfter
) -> None:
    config = here.started.assembly.current
    async with fail_after(60):
        here.reload.append(Unforeseen("half a file"))
        here.town.configure("[limits]\nowners = true\n")
        before = config.config
        while here.reload:
            await here.clock.advance(WATCH_S)
        assert config.config is before
        while config.config is before:
            await here.clock.advance(WATCH_S)
        await here.clock.advance(SETTLED_S)
        assert await here.ready()
