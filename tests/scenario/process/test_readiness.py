"""Whether the gateway is ready follows what it depends on; a supervisor asks `/readyz` (API-5)."""

import pytest

from gateway.cli.client import GatewayClient, JsonObject
from gateway.http.health import WHY
from runtime.domain.json_fields import objects_of
from tests.conftest import FailAfter
from tests.contract.bus.cable import Cable
from tests.contract.bus.conftest import nats_url
from tests.scenario.process.program import ADMIN, Place, gateway
from tests.scenario.process.test_store_away import until_ready
from tests.wire.telegram import TelegramServer


async def status(url: str) -> JsonObject:
    """What the operator is told."""
    async with GatewayClient(url, ADMIN) as client:
        return await client.get("/v1/status")


async def until_it_listens(url: str) -> None:
    """Before, it takes another replica for the one that listens."""
    listens = False
    while not listens:
        adapters = objects_of(await status(url), "adapters")
        listens = any(one["channel"] == "telegram" and one["connected"] for one in adapters)


async def down(url: str) -> dict[str, object]:
    """The parts that are not up, each with the reason."""
    told = await status(url)
    checks, reasons = told["checks"], told["reasons"]
    assert isinstance(checks, dict)
    assert isinstance(reasons, dict)
    assert set(reasons) == {name for name, up in checks.items() if not up}
    assert {"database", "bus", "adapters"} <= set(checks)
    return reasons


@pytest.mark.requirement("API-5")
async def test_it_is_not_ready_while_its_bus_or_its_only_platform_is_away(
    place: Place, fail_after: FailAfter
) -> None:
    async with TelegramServer() as telegram:
        bus, road = Cable(nats_url()), Cable(telegram.url)
        await bus.start()
        await road.start()
        place.variables |= {
            "GATEHOUSE_BUS__URL": bus.url,
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_API_URL": road.url,
        }
        try:
            async with fail_after(120), gateway(place) as program:
                url = await program.url()
                await until_it_listens(url)
                for name, cable in (("bus", bus), ("adapters", road)):
                    cable.cut()
                    await until_ready(url, ready=False)
                    assert await down(url) == {name: WHY[name]}
                    cable.mend()
                    await until_ready(url, ready=True)
                    assert await down(url) == {}
        finally:
            await bus.close()
            await road.close()
