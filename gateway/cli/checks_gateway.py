"""The check of `doctor` that asks the gateway of this home, if one runs.

Doctor looks at the settings of its own shell. A gateway that was started from another shell, with
variables that are set only there, may have others.
"""

import asyncio
from typing import Final

from pydantic import SecretStr

from gateway import home_socket, home_token, wiring
from gateway.cli.check_result import Check
from gateway.cli.client import GatewayClient, JsonObject, Refused, Unreachable, objects
from gateway.config import SECRETS, Config
from runtime.domain.errors import InvalidInput

_ABOUT: Final = "The checks below are about the settings of this shell."


async def gateway(config: Config) -> Check:
    """Whether a gateway of this home runs, and what it has that this shell's settings have not."""
    home = config.home
    if not await asyncio.to_thread(home_socket.live, home):
        return Check("gateway", "ok", f"no gateway of {home} is running. {_ABOUT}")
    found = f"a gateway of {home} is running."
    token = home_token.read(home)
    try:
        async with GatewayClient("", SecretStr(token) if token else None, home=home) as client:
            status, runtime = await client.get("/v1/status"), await client.get("/v1/runtime")
    except (Refused, Unreachable) as error:
        return Check("gateway", "ok", f"{found} It does not say what it has: {error}. {_ABOUT}")
    more = [*_platforms(config, status), *await _model(config, runtime)]
    if not more:
        return Check("gateway", "ok", f"{found} {_ABOUT}")
    lacks = f"It has settings that this shell does not have: {', '.join(more)}."
    fix = f"Put them into {home / SECRETS}, or export them in this shell too."
    return Check("gateway", "warn", f"{found} {lacks} {_ABOUT}", fix)


def _platforms(config: Config, status: JsonObject) -> list[str]:
    slack, telegram = config.settings.slack, config.settings.telegram
    own = {
        "slack": slack.bot_token is not None or bool(slack.workspaces),
        "telegram": telegram.token is not None or bool(telegram.bots),
    }
    served = dict.fromkeys(str(one.get("channel")) for one in objects(status.get("adapters")))
    return [name.capitalize() for name in served if not own.get(name, True)]


async def _model(config: Config, runtime: JsonObject) -> list[str]:
    served = runtime.get("model")
    try:
        catalog = await wiring.find_models(config)
    except InvalidInput:
        return []
    await catalog.close()
    return [] if served == catalog.default else [f"the model {served}"]
