"""A network that is really cut: a replica loses its database without being told, and heals."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from sqlalchemy import URL, text

from runtime.store.postgres import postgres_engine
from tests.conftest import FailAfter
from tests.replicas.network import PORT, USER, Cable, network, private_server
from tests.replicas.test_failover import ALLOWED, Crowd, in_hand, script, taken_over
from tests.replicas.town import CLOCK, LIMIT_S, SHORT_LEASE_S, Deployment, deployment_at
from tests.scenario.process.test_store_away import until_ready


@pytest.fixture
async def parted(tmp_path: Path) -> AsyncIterator[tuple[Deployment, Cable]]:
    """A deployment whose first replica has a cable of its own to the database."""
    with network(2) as (first, second):
        async with (
            private_server(second.namespace, second.address) as server,
            deployment_at(tmp_path, server) as deployment,
        ):
            deployment.lease_s = SHORT_LEASE_S
            yield deployment, first


@pytest.mark.requirement("SCALE-2", "MSG-1", "MSG-7", "MSG-9")
async def test_a_partition_loses_and_doubles_nothing_and_heals(
    parted: tuple[Deployment, Cable], fail_after: FailAfter
) -> None:
    deployment, cable = parted
    deployment.model.plays = script
    url = f"postgresql://postgres@{cable.address}:5432/{deployment.database}"
    async with fail_after(LIMIT_S), AsyncExitStack() as stack:
        alone = await stack.enter_async_context(deployment.replica("a", url=url, more=ALLOWED))
        crowd = Crowd(deployment)
        await crowd.open(alone)
        await crowd.hold(alone)
        other = await stack.enter_async_context(deployment.replica("b", more=ALLOWED))
        await crowd.talk(alone, "before")
        await deployment.slack.wait_for_quiet(LIMIT_S)
        await deployment.until("SELECT count(*) FROM inputs", len(crowd.said))
        held = await in_hand(deployment, alone)
        cable.cut()
        await taken_over(deployment, alone, held)
        await crowd.talk(other, "meanwhile")
        deployment.model.gate("held").opened.set()
        await crowd.answered(other)
        cable.mend()
        await until_ready(alone.client.url, ready=True)
        await crowd.talk(alone, "after")
        await crowd.answered(alone)


@pytest.mark.requirement("SCALE-2")
async def test_what_a_replica_locked_is_free_soon_after_it_was_cut_off_between_two_packets(
    parted: tuple[Deployment, Cable], fail_after: FailAfter
) -> None:
    """A statement is prepared and not run, so that PostgreSQL does not take the client for idle."""
    deployment, cable = parted
    server, database = deployment.server, deployment.database
    await server.run("CREATE TABLE held AS SELECT 1 AS one", database=database)
    url = URL.create("postgresql+asyncpg", USER, host=cable.address, port=PORT, database=database)
    engine = postgres_engine(url, size=1, clock=CLOCK)
    async with fail_after(LIMIT_S), engine.connect() as lost:
        await lost.execute(text("UPDATE held SET one = 2"))
        driver = (await lost.get_raw_connection()).driver_connection
        assert driver is not None
        await driver.prepare("SELECT one FROM held")
        cable.cut()
        await server.run("UPDATE held SET one = 3", database=database)
        await lost.invalidate()
    cable.mend()
    await engine.dispose()
