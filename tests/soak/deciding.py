"""The operator of the soak: decides what waits for long, because its card never reached anybody."""

from collections.abc import Sequence
from typing import Final

from gateway.cli.answers import Refused, Unreachable
from gateway.cli.client import GatewayClient, JsonObject
from tests.soak.stage import PATIENCE_S, Stage

WAITS_MS: Final = PATIENCE_S * 1000


async def decide_for_the_absent(stage: Stage) -> None:
    """Allow and answer what nobody did; a gateway that is away is asked the next time."""
    try:
        async with stage.gateways.client() as client:
            for kind in ("approvals", "questions"):
                for one in await client.items(f"/v1/{kind}"):
                    if stage.clock.now_ms() - int(str(one["created_at_ms"])) > WAITS_MS:
                        await _decide(client, kind, one)
    except (Unreachable, Refused):
        return


async def _decide(client: GatewayClient, kind: str, one: JsonObject) -> None:
    said: JsonObject = {"request_id": one["request_id"]}
    path = f"/v1/runs/{one['run_id']}/{kind}"
    if kind == "approvals":
        await client.post(path, {"resolutions": [{**said, "behavior": "allow"}]})
    else:
        await client.post(path, {"answers": [{**said, "text": "left"}]})


async def problems(client: GatewayClient) -> Sequence[JsonObject]:
    """The deliveries that did not end well."""
    return await client.items("/v1/deliveries/problems", most=10_000)
