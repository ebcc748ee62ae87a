"""`open` and `token`: ways into the gateway for whoever owns its home (WEB-2)."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from gateway.cli.answers import Refused, Unreachable
from gateway.cli.common import AsJson, ask_gateway, fail, group, note, print_json, read_config, say

if TYPE_CHECKING:
    from pydantic import SecretStr

token = group("The owner's token of this home.")
_WRONG_TOKEN: Final = frozenset({401, 429})
"""How a gateway refuses a token: 429 after several wrong ones. A right one always passes."""


def open_(context: typer.Context, as_json: AsJson = False) -> None:
    """Print a link that logs one browser in, once, within ten minutes."""
    link = "/v1/login-links"
    made = ask_gateway(context, lambda gateway: gateway.post(link), as_json=as_json)
    say(str(made.get("link")))
    note("It logs in one browser, once, within ten minutes.")
    if elsewhere := made.get("elsewhere"):
        note(f"From another machine, open this instead: {elsewhere}")


@token.command()
def show(context: typer.Context, as_json: AsJson = False) -> None:
    """Print the token. Whoever has it may do everything."""
    # Lazy: `--help` reads no settings.
    from gateway import home_token

    home = read_config(context).home
    found = home_token.read(home)
    if found is None:
        fail(f"{home} has no token yet: the first `gatehouse serve` makes it")
    if as_json:
        print_json({"token": found, "file": str(home_token.path(home))})
        return
    say(found)


@token.command()
def rotate(context: typer.Context) -> None:
    """Make a new token. The old token and the logins that were made with it stop working."""
    # Lazy, as above.
    from gateway import home_token
    from gateway.config import client
    from runtime.domain.errors import Unavailable

    config = read_config(context)
    if home_token.read(config.home) is None:
        fail(
            f"{config.home} has no token yet, so there is none to replace: the first "
            "`gatehouse serve` makes it"
        )
    old = client(config, environment={}).token
    try:
        home_token.rotate(config.home)
    except Unavailable as error:
        fail(str(error))
    reached = asyncio.run(tell(config.home, old))
    say(f"{home_token.path(config.home)} holds a new token; `gatehouse token show` prints it.")
    if reached:
        say("The old token and the logins that were made with it no longer work.")
    else:
        say(
            "No gateway of this home is running. The old token stops working when it starts "
            "next. Until then, for at most a day, gateways of other homes on the same database "
            "accept it."
        )


async def tell(home: Path, old: "SecretStr | None") -> int:
    """How many gateways of the home hold to the new token now; ends where one does not.

    A gateway knows the `old` token until it reads the file, which it does every second by itself.
    One that refuses the old token has read the file, and knows the new one.
    """
    # Lazy: the settings' types and the HTTP client take a while to load.
    from pydantic import SecretStr

    # Lazy, as above.
    from gateway import home_socket, home_token

    new = SecretStr(home_token.read(home) or "")
    sockets = home_socket.live(home)
    for path in sockets:
        try:
            try:
                await _reload(path, old)
            except Refused as error:
                if error.status not in _WRONG_TOKEN:
                    raise
                await _reload(path, new)
        except (Refused, Unreachable) as error:
            fail(
                f"the new token is in its file, but the running gateway could not be told: {error}"
            )
    return len(sockets)


async def _reload(path: Path, token: "SecretStr | None") -> None:
    # Lazy: the HTTP client is loaded by the commands that use it.
    from gateway.cli.client import GatewayClient

    async with GatewayClient("", token, socket=path) as gateway:
        await gateway.post("/v1/tokens/reload")
