"""A gateway whose roles are split over processes that share a PostgreSQL database."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from gateway.cli.answers import Refused
from gateway.cli.client import GatewayClient
from runtime.domain.json_fields import objects_of
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.scenario.gateway.page import Feed, Page
from tests.scenario.gateway.town import ALLOWED, Town, town_at
from tests.scenario.process.program import (
    ADMIN,
    SHORT_LEASE,
    Place,
    Program,
    command,
    gateway,
)
from tests.scenario.process.test_store_away import until_ready
from tests.wire.openai import Answer, Prompt, calls, says, use

FRONT, BACK = "adapters,http", "workers,timers"


@asynccontextmanager
async def database_url() -> AsyncIterator[str]:
    """A fresh database, as the configuration names it."""
    server = postgres_server()
    name = await server.create()
    try:
        yield server.url(name).replace("postgresql://", "postgresql+asyncpg://", 1)
    finally:
        await server.drop(name)


@asynccontextmanager
async def town_on_postgres(path: Path) -> AsyncIterator[Town]:
    """A town whose gateways share a database and a workspace."""
    async with database_url() as url, town_at(path) as town:
        town.place.variables |= {
            "GATEHOUSE_DATABASE__URL": url,
            "GATEHOUSE_WORKSPACE__PATH": str(path / "home" / "workspace"),
            **SHORT_LEASE,
        }
        town.configure(ALLOWED)
        yield town


@asynccontextmanager
async def following(client: GatewayClient) -> AsyncIterator[Feed]:
    """The feed of events, read while the block runs."""
    feed = Feed()
    reading = asyncio.create_task(feed.follow(client), name="feed")
    try:
        yield feed
    finally:
        reading.cancel()
        await asyncio.wait([reading])


async def ready(program: Program) -> str:
    """Until a process without a page says that it works; what it says."""
    return await program.until(program.out, lambda line: line.startswith("Gatehouse is ready: "))


async def roles_of(client: GatewayClient) -> set[str]:
    """The roles of each process, as the status shows them."""
    leases = objects_of(await client.get("/v1/status"), "leases")
    parts = [str(one["name"]).split(":") for one in leases]
    return {part[2] for part in parts if part[0] == "process" and len(part) == 3}


@pytest.mark.requirement("SCALE-1")
async def test_two_processes_with_half_of_the_roles_each_answer_like_one(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    def script(prompt: Prompt) -> Answer:
        if not prompt.results:
            return calls(use("exec", command="echo once >> effects"))
        return says("It ", "is done.")

    async with fail_after(120), town_on_postgres(tmp_path) as town:
        town.model.plays = script
        async with (
            gateway(town.place, "serve", "--roles", FRONT) as front,
            GatewayClient(await front.url(), ADMIN) as client,
        ):
            page = await Page.open(client)
            said = await town.on_slack("hello")
            town.on_telegram("hello")
            run = await page.says("hello")
            await town.slack.wait_for_ack(said.deliveries[0])
            assert town.model.prompts == [], "nobody takes turns yet"
            assert await roles_of(client) == {"adapters+http"}
            async with gateway(town.place, "serve", "--roles", BACK) as back:
                await ready(back)
                await town.slack.wait_for_post(lambda post: post.visible_text == "It is done.")
                await town.telegram.wait_for_message(lambda one: one.text == "It is done.")
                async with following(client) as feed:
                    await feed.settled(3)
                assert feed.kinds(run).count("delivery.sent") == 1
                assert await page.texts() == ["It is done."]
                assert town.lines("effects") == ["once"] * 3
                assert await roles_of(client) == {"adapters+http", "workers+timers"}
                back.signal(signal.SIGTERM)
                assert await back.ended() == 0
            assert await roles_of(client) == {"adapters+http"}
            front.signal(signal.SIGTERM)
            assert await front.ended() == 0
        assert "Traceback" not in front.transcript + back.transcript


@pytest.mark.requirement("SCALE-1")
async def test_a_worker_process_that_is_killed_is_replaced_and_nothing_is_doubled(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with fail_after(120), town_on_postgres(tmp_path) as town:
        town.model.plays = lambda prompt: says("Half ", hold="half", ending="and whole.")
        async with (
            gateway(town.place, "serve", "--roles", FRONT) as front,
            GatewayClient(await front.url(), ADMIN) as client,
        ):
            async with gateway(town.place, "serve", "--roles", BACK) as back:
                await ready(back)
                await town.on_slack("hello")
                await town.model.gate("half").entered.wait()
                back.signal(signal.SIGKILL)
                assert await back.ended() == -signal.SIGKILL
            town.model.gate("half").opened.set()
            async with gateway(town.place, "serve", "--roles", BACK) as other:
                await ready(other)
                async with following(client) as feed:
                    await feed.settled(1)
            assert town.slack_texts() == ["Half and whole."]


async def ask(url: str, path: str, token: str | None = None) -> int:
    """The status of an answer."""
    async with GatewayClient(url, token and SecretStr(token)) as client:
        try:
            await client.get(path)
        except Refused as error:
            return error.status
        return 200


@pytest.mark.requirement("SCALE-1", "API-5", "SEC-3")
async def test_a_process_of_workers_alone_answers_probes_and_nothing_else(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with fail_after(120), database_url() as url:
        place = Place(tmp_path)
        place.variables |= {
            "GATEHOUSE_DATABASE__URL": url,
            "GATEHOUSE_HTTP__HEALTH_PORT": "0",
            "GATEHOUSE_HTTP__HOST": "0.0.0.0",
            "GATEHOUSE_HTTP__ADMIN_TOKEN": "made-up-token",
            "GATEHOUSE_LOG__FORMAT": "json",
        }
        async with gateway(place, "serve", "--roles", "workers") as program:
            assert (await ready(program)) == "Gatehouse is ready: workers"
            port = json.loads(await program.says("http_listening"))["port"]
            probes = f"http://127.0.0.1:{port}"
            assert await ask(probes, "/healthz") == 200
            await until_ready(probes, ready=True)
            assert await ask(probes, "/metrics") == 401
            assert await ask(probes, "/metrics", "made-up-token") == 200
            for path in ("/v1/status", "/v1/sessions", "/login", "/"):
                assert await ask(probes, path, "made-up-token") == 404, path
            program.signal(signal.SIGTERM)
            assert await program.ended() == 0


async def test_a_port_for_probes_that_is_taken_is_named_by_its_key(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    async with fail_after(120), taken, database_url() as url:
        place = Place(tmp_path)
        place.variables |= {
            "GATEHOUSE_DATABASE__URL": url,
            "GATEHOUSE_HTTP__HEALTH_PORT": str(taken.sockets[0].getsockname()[1]),
        }
        ended = await command(place, "serve", "--roles", "workers,timers")
    assert ended.code == 1
    assert "http.health_port in gatehouse.toml, or GATEHOUSE_HTTP__HEALTH_PORT" in ended.err


@pytest.mark.parametrize(
    ("roles", "code", "told"),
    [
        ("workers,timers", 1, "postgresql+asyncpg://"),
        ("workers,page", 2, "page is not a role; the roles are adapters, workers, timers, http"),
        ("", 2, "nothing is not a role"),
    ],
)
async def test_roles_that_cannot_be_are_said_plainly(
    place: Place, roles: str, code: int, told: str, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        ended = await command(place, "serve", "--roles", roles)
    assert ended.code == code
    assert told in ended.err
    assert "Traceback" not in ended.err
    assert not place.home.exists()


async def test_all_roles_by_name_are_no_split(place: Place, fail_after: FailAfter) -> None:
    place.variables["GATEHOUSE_ROLES"] = "http,timers,workers,adapters"
    async with fail_after(60), gateway(place) as program:
        async with GatewayClient(await program.url(), ADMIN) as client:
            runtime = await client.get("/v1/runtime")
        assert runtime["roles"] == ["adapters", "workers", "timers", "http"]
