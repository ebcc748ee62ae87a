"""A network that is really cut: a replica loses its database without being told, and heals."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.replicas.network import Cable, network, private_server
from tests.replicas.test_failover import (
    ALLOWED,
    TWO_LEASES_MS,
    Crowd,
    now_ms,
    script,
    taken_over_within,
)
from tests.replicas.town import Deployment, deployment_at
from tests.scenario.process.test_store_away import until_ready


@pytest.fixture
async def parted(tmp_path: Path) -> AsyncIterator[tuple[Deployment, Cable]]:
    """A deployment whose first replica has a cable of its own to the database."""
    with network(2) as (first, second):
        async with (
            private_server(second.namespace, second.address) as server,
            deployment_at(tmp_path, server) as deployment,
        ):
            yield deployment, first


@pytest.mark.requirement("SCALE-2", "MSG-1", "MSG-7", "MSG-9")
async def test_a_partition_loses_and_doubles_nothing_and_heals(
    parted: tuple[Deployment, Cable], fail_after: FailAfter
) -> None:
    deployment, cable = parted
    deployment.model.plays = script
    url = f"postgresql://postgres@{cable.address}:5432/{deployment.database}"
    async with fail_after(120), AsyncExitStack() as stack:
        alone = await stack.enter_async_context(deployment.replica("a", url=url, more=ALLOWED))
        crowd = Crowd(deployment)
        await crowd.open(alone)
        await crowd.hold(alone)
        other = await stack.enter_async_context(deployment.replica("b", more=ALLOWED))
        await crowd.talk(alone, "before")
        cut_ms = await now_ms(deployment)
        cable.cut()
        assert await taken_over_within(deployment, alone, cut_ms) < TWO_LEASES_MS
        await crowd.talk(other, "meanwhile")
        deployment.model.gate("held").opened.set()
        await crowd.answered(other)
        cable.mend()
        await until_ready(alone.client.url, ready=True)
        await crowd.talk(alone, "after")
        await crowd.answered(alone)
