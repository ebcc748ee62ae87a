"""compose.yaml, run as it is written: two gateways, PostgreSQL and NATS (OPS-9, SCALE-1)."""

import signal

import pytest

from runtime.domain.json_fields import objects_of
from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.process.compose import CLOCK, stack

LIMIT_S = 240.0
GATEWAYS = ("gateway-1", "gateway-2")


async def answered(page: Page, amount: int) -> list[str]:
    """The answers of a conversation, once there are so many."""
    while len(found := await page.texts()) < amount:
        await CLOCK.sleep(0.1)
    return found


@pytest.mark.requirement("OPS-9", "SCALE-1", "SCALE-2")
async def test_a_conversation_goes_on_at_the_other_gateway_when_one_is_killed(
    fail_after: FailAfter,
) -> None:
    async with fail_after(LIMIT_S), stack() as deployment:
        await deployment.up()
        first = [deployment.running[name] for name in GATEWAYS]
        for program in first:
            await program.url()
        async with deployment.client("gateway-1") as one, deployment.client("gateway-2") as two:
            page = await Page.open(one)
            await page.says("remember that the door is green")
            assert len(await answered(page, 1)) == 1
            there = Page(two, page.session_id)
            assert await there.texts() == await page.texts()
            status = await two.get("/v1/status")
            assert status["checks"] == {**status["checks"], "bus": True, "database": True}
            holders = {one["holder"] for one in objects_of(status, "leases")}
            assert len(holders) == 2, "both work on one database"

            await page.says("list files")
            deployment.running["gateway-1"].signal(signal.SIGKILL)
            assert await deployment.running["gateway-1"].ended() == -signal.SIGKILL
            answers = await answered(there, 2)
            assert "empty folder" in answers[1], "what was said to the killed one is not lost"
            await there.says("hello")
            answers = await answered(there, 3)
            assert len(answers) == 3
        await deployment.start("gateway-1")
        async with deployment.client("gateway-1") as again:
            assert await Page(again, page.session_id).texts() == answers
        for name in GATEWAYS:
            deployment.running[name].signal(signal.SIGTERM)
            assert await deployment.running[name].ended() == 0
        codes = [line for one in first for line in one.out if line.startswith("Owner code")]
        assert len(codes) == 1, "both started on an empty database, at once"
