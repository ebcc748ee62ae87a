"""PostgreSQL in trouble: restarted in the middle, out of connections, refusing what conflicts,
taking no writes.

People see nothing of it but a delay: what the platforms were not told that it arrived they deliver
again, and a run goes on where its rows are.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import make_url

from adapters.system.clock import SystemClock
from gateway.cli.client import GatewayClient, JsonObject
from tests.conftest import FailAfter
from tests.contract.store_support import PostgresServer, postgres_server
from tests.scenario.gateway.town import Serving, Town, town_at
from tests.scenario.process.program import ADMIN, SHORT_LEASE
from tests.scenario.process.test_store_away import Road, until_ready
from tests.wire.openai import Answer, Prompt, says
from tests.wire.slack import Said

WITHIN_S = 60.0
SLACK_RETRIES = 3
FOREVER = 2**40
CONFLICT = "40001"
DISK_FULL = "53100"
REFUSE = """
CREATE SEQUENCE asked;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF nextval('asked') <= TG_ARGV[0]::bigint THEN
    RAISE EXCEPTION 'refused' USING ERRCODE = TG_ARGV[1];
  END IF;
  RETURN NEW;
END $$;
"""


@dataclass
class Server:
    """The database server as its operator handles it. The gateway has a role of its own there."""

    postgres: PostgresServer
    name: str
    way: Road

    async def run(self, statement: str) -> None:
        """A statement of the operator in the gateway's database."""
        await self.postgres.run(statement, database=self.name)

    async def ask(self, query: str) -> object:
        """One value from the gateway's database."""
        connection = await asyncpg.connect(self.postgres.url(self.name))
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    async def hang_up(self) -> None:
        """End every session of the gateway, as a server that stops does (57P01)."""
        await self.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE usename = '{self.name}' AND pid <> pg_backend_pid()"
        )

    async def allow(self, connections: int) -> None:
        """How many connections the gateway's role may have; -1 is any number."""
        await self.run(f"ALTER ROLE {self.name} CONNECTION LIMIT {connections}")

    async def write_nothing(self, state: str) -> None:
        """Set ("on" or "off") whether the sessions that open from now on may only read."""
        change = f"ALTER DATABASE {self.name} SET default_transaction_read_only = {state}"
        await self.run(f"BEGIN READ WRITE; {change}; COMMIT")

    async def refuse(
        self, table: str, event: str, *, times: int = FOREVER, state: str = CONFLICT
    ) -> None:
        """Fail the next units that touch a table with an SQLSTATE."""
        await self.run(REFUSE)
        await self.run(
            f"CREATE TRIGGER refuse BEFORE {event} ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION refuse({times}, '{state}')"
        )

    async def relent(self, table: str) -> None:
        """Refuse nothing any more."""
        await self.run(f"DROP TRIGGER refuse ON {table}")


@asynccontextmanager
async def place_with_server(path: Path) -> AsyncIterator[tuple[Town, Server]]:
    """A town whose gateway reaches its database by a road, as a role that can be limited."""
    postgres = postgres_server()
    name = await postgres.create()
    password = "made-up-password"
    address = make_url(postgres.url(name))
    way = Road(address.host or "127.0.0.1", address.port or 5432)
    await way.mend()
    try:
        await postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        await postgres.run(f"ALTER DATABASE {name} OWNER TO {name}")
        url = address.set(
            drivername="postgresql+asyncpg",
            host="127.0.0.1",
            port=way.listening,
            username=name,
            password=password,
        )
        async with town_at(path) as town:
            town.place.variables |= {
                "GATEHOUSE_DATABASE__URL": url.render_as_string(hide_password=False),
                **SHORT_LEASE,
            }
            town.model.plays = script
            yield town, Server(postgres, name, way)
    finally:
        await way.cut()
        await postgres.drop(name)
        await postgres.run(f"DROP ROLE IF EXISTS {name}")


def script(prompt: Prompt) -> Answer:
    """A long answer for what is long, a short one for anything else."""
    if "long" in prompt.asked:
        return says("Half ", hold="half", ending="and whole.")
    return says("I am here.")


async def greeted(town: Town) -> None:
    """One message on each platform is answered, so that everything is connected."""
    await town.on_slack("hello")
    town.on_telegram("hello")
    await seen(town, slack=1, telegram=1)


async def seen(town: Town, *, slack: int, telegram: int) -> None:
    """Until people have so many messages of the bot."""
    await town.slack.until(lambda: len(town.slack_texts()) >= slack, WITHIN_S)
    await town.telegram.wait_until(lambda: len(town.telegram_texts()) >= telegram, timeout=WITHIN_S)


async def written_to_nobody(town: Town, here: Serving) -> Said:
    """People write while nothing can be stored: neither platform is told that it arrived."""
    said = await town.on_slack("meanwhile")
    town.on_telegram("meanwhile")
    await here.program.until(here.program.err, telegram_was_not_told)
    assert not any(delivery.acked for delivery in said.deliveries)
    assert town.telegram.queue.pending
    return said


def telegram_was_not_told(line: str) -> bool:
    """It kept nothing of an update; or its lease ended first, and it does not even ask for one."""
    return "telegram.not_confirmed" in line or ("lease_lost" in line and "listen:telegram" in line)


async def delivered_again(town: Town, *said: Said) -> None:
    """The platforms do what they do with a message that nobody took: Slack asks three times."""

    def arrived() -> bool:
        return all(delivery.acked for one in said for delivery in one.deliveries)

    for _ in range(SLACK_RETRIES):
        if arrived():
            return
        await town.slack.redeliver_unacked()
        with suppress(TimeoutError):
            await town.slack.until(arrived, WITHIN_S / SLACK_RETRIES)
    assert arrived(), "Slack gave it up: it was refused at each of its tries"


async def status(here: Serving) -> JsonObject:
    """What `gatehouse status` is told, also while the database is away."""
    async with GatewayClient(here.client.url, ADMIN) as client:
        return await client.get("/v1/status")


async def says_why(here: Serving, part: str) -> None:
    """It is not ready, and the status names the part that is not."""
    await until_ready(here.client.url, ready=False)
    while True:
        told = await status(here)
        checks = told["checks"]
        assert isinstance(checks, dict)
        assert told["ready"] is False
        if checks[part] is False:
            return
        # The writes fail at once; what depends on them follows when its lease has run out.
        await SystemClock().sleep(0.1)


async def all_is_well(town: Town, here: Serving, *, slack: list[str], telegram: list[str]) -> None:
    """Ready again, each message answered once, and a new one too."""
    await until_ready(here.client.url, ready=True)
    await seen(town, slack=len(slack), telegram=len(telegram))
    await town.on_slack("and now?")
    town.on_telegram("and now?")
    await seen(town, slack=len(slack) + 1, telegram=len(telegram) + 1)
    assert town.slack_texts() == [*slack, "I am here."]
    assert town.telegram_texts() == [*telegram, "I am here."]
    assert "Traceback" not in here.program.transcript


@pytest.mark.requirement("MSG-1", "MSG-7", "API-5")
async def test_a_server_that_restarts_in_the_middle_costs_no_message_and_doubles_none(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with (
        fail_after(180),
        place_with_server(tmp_path) as (town, server),
        town.serving() as here,
    ):
        await greeted(town)
        await town.on_slack("something long")
        await town.model.gate("half").entered.wait()
        await server.hang_up()
        await server.way.cut()
        await says_why(here, "database")
        said = await written_to_nobody(town, here)
        town.model.gate("half").opened.set()
        await here.program.says("run_interrupted")
        assert town.slack_texts() == ["I am here."]
        await server.way.mend()
        await until_ready(here.client.url, ready=True)
        await delivered_again(town, said)
        await all_is_well(
            town,
            here,
            slack=["I am here.", "Half and whole.", "I am here."],
            telegram=["I am here."] * 2,
        )


@pytest.mark.requirement("MSG-1", "API-5")
async def test_a_server_without_connections_left_takes_no_message_and_loses_none(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with (
        fail_after(180),
        place_with_server(tmp_path) as (town, server),
        town.serving() as here,
    ):
        await greeted(town)
        await server.allow(0)
        await server.hang_up()
        await says_why(here, "database")
        await here.program.says("too many connections")
        said = await written_to_nobody(town, here)
        await server.allow(-1)
        await until_ready(here.client.url, ready=True)
        await delivered_again(town, said)
        await all_is_well(town, here, slack=["I am here."] * 2, telegram=["I am here."] * 2)


@pytest.mark.requirement("MSG-1", "MSG-7", "API-5")
async def test_a_server_that_takes_no_writes_for_a_while_costs_nothing(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with (
        fail_after(180),
        place_with_server(tmp_path) as (town, server),
        town.serving() as here,
    ):
        await greeted(town)
        await town.on_slack("something long")
        await town.model.gate("half").entered.wait()
        await server.write_nothing("on")
        await server.hang_up()
        await here.program.says("takes no writes, it is read-only")
        await says_why(here, "writes")
        said = await written_to_nobody(town, here)
        town.model.gate("half").opened.set()
        await here.program.says("run_interrupted")
        # The sessions that are open stay read-only: the gateway opens others by itself.
        await server.write_nothing("off")
        await until_ready(here.client.url, ready=True)
        await delivered_again(town, said)
        await all_is_well(
            town,
            here,
            slack=["I am here.", "Half and whole.", "I am here."],
            telegram=["I am here."] * 2,
        )


@pytest.mark.requirement("MSG-1", "API-5")
async def test_a_server_whose_disk_is_full_takes_no_message_and_loses_none(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with (
        fail_after(180),
        place_with_server(tmp_path) as (town, server),
        town.serving() as here,
    ):
        await greeted(town)
        await server.refuse("inputs", "INSERT", state=DISK_FULL)
        said = await written_to_nobody(town, here)
        await here.program.says("Free space, then it works again")
        await server.relent("inputs")
        await delivered_again(town, said)
        await all_is_well(town, here, slack=["I am here."] * 2, telegram=["I am here."] * 2)


@pytest.mark.requirement("MSG-1", "SCALE-5")
async def test_fewer_connections_than_it_would_like_slow_it_down_and_lose_nothing(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    """Four: one for signals, one for leases, two for everything else."""
    async with fail_after(180), place_with_server(tmp_path) as (town, server):
        await server.allow(4)
        async with town.serving() as here:
            await greeted(town)
            said = [await town.on_slack(f"message {number}") for number in range(8)]
            for number in range(8):
                town.on_telegram(f"message {number}")
            await delivered_again(town, *said)
            await seen(town, slack=9, telegram=9)
            assert town.slack_texts() == ["I am here."] * 9
            assert town.telegram_texts() == ["I am here."] * 9
            assert "Traceback" not in here.program.transcript


@pytest.mark.requirement("MSG-1")
async def test_a_unit_that_conflicts_with_others_is_done_again_and_nobody_notices(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with (
        fail_after(180),
        place_with_server(tmp_path) as (town, server),
        town.serving() as here,
    ):
        await greeted(town)
        await server.refuse("inputs", "INSERT", times=3)
        said = await town.on_slack("hello again")
        await town.slack.wait_for_ack(said.deliveries[0], WITHIN_S)
        await seen(town, slack=2, telegram=1)
        assert await server.ask("SELECT last_value FROM asked") == 4
        assert said.deliveries[0].retries == 0
        assert "again and again" not in here.program.transcript


@pytest.mark.requirement("MSG-1", "MSG-7")
async def test_a_conflict_that_does_not_end_takes_no_message_and_loses_none(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with (
        fail_after(180),
        place_with_server(tmp_path) as (town, server),
        town.serving() as here,
    ):
        await greeted(town)
        await town.on_slack("something long")
        await town.model.gate("half").entered.wait()
        await server.refuse("inputs", "INSERT")
        said = await written_to_nobody(town, here)
        await here.program.says("refused the unit again and again")
        town.model.gate("half").opened.set()
        # What was accepted before goes on meanwhile: nothing of it conflicts.
        await seen(town, slack=2, telegram=1)
        await server.relent("inputs")
        await delivered_again(town, said)
        await all_is_well(
            town,
            here,
            slack=["I am here.", "Half and whole.", "I am here."],
            telegram=["I am here."] * 2,
        )


@pytest.mark.requirement("MSG-7", "API-5")
async def test_leases_that_cannot_be_renewed_stop_the_work_until_they_can(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with (
        fail_after(180),
        place_with_server(tmp_path) as (town, server),
        town.serving() as here,
    ):
        await greeted(town)
        await town.on_slack("something long")
        await town.model.gate("half").entered.wait()
        await server.refuse("leases", "UPDATE")
        await says_why(here, "engine")
        town.model.gate("half").opened.set()
        town.on_telegram("meanwhile")
        await server.relent("leases")
        await all_is_well(
            town,
            here,
            slack=["I am here.", "Half and whole."],
            telegram=["I am here."] * 2,
        )
