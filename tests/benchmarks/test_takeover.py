"""How long a run of a killed replica waits for another one. Run with ``make bench``."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.contract.store_support import postgres_server
from tests.replicas.test_failover import worker_of_most
from tests.replicas.town import CLOCK, Deployment, deployment_at
from tests.scenario.gateway.page import Page
from tests.wire.openai import says

KILLS = 50
LEASE_S = 3.0


async def now_ms(deployment: Deployment) -> int:
    """The database's own time."""
    ((now,),) = await deployment.rows(
        "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    )
    return int(str(now))


async def test_takeover_of_a_run_whose_replica_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = []
    async with deployment_at(tmp_path, postgres_server()) as deployment, AsyncExitStack() as stack:
        deployment.lease_s = LEASE_S
        deployment.model.plays = lambda prompt: says("Wait", hold="held", ending=".")
        living = [await stack.enter_async_context(deployment.replica(name)) for name in ("a", "b")]
        page = await Page.open(living[0].client)
        run = await page.says("hold this")
        for number in range(KILLS):
            await deployment.until(f"SELECT state FROM runs WHERE id = '{run}'", "running")
            victim = await worker_of_most(deployment, living)
            since = await now_ms(deployment)
            await victim.killed()
            resumed = (
                f"SELECT max(at_ms) FROM events WHERE kind = 'run.resumed' AND at_ms > {since}"
            )
            while (found := (await deployment.rows(resumed))[0][0]) is None:
                await CLOCK.sleep(0.02)
            waits.append((int(str(found)) - since) / 1000)
            living.remove(victim)
            living.append(await stack.enter_async_context(deployment.replica(f"r{number}")))
            if number % 3 == 2:
                # A run that dies five times is given up: then another one is held.
                await living[0].client.post(f"/v1/sessions/{page.session_id}/interrupt")
                await deployment.until(f"SELECT state FROM runs WHERE id = '{run}'", "cancelled")
                run = await Page(living[0].client, page.session_id).says("hold this")
    waits.sort()
    with capsys.disabled():
        print(
            f"\n  takeover after {len(waits)} kills with leases of {LEASE_S:g} s: "
            f"p50 {waits[len(waits) // 2]:.2f} s, longest {waits[-1]:.2f} s "
            f"({waits[-1] / LEASE_S:.2f} lease periods; two are promised)"
        )
