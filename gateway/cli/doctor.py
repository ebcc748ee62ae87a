"""`doctor`: is everything as it must be, and if not, what to do."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from gateway.cli.common import FAILED, AsJson, plain, print_json, read_config, say

if TYPE_CHECKING:
    from gateway.cli.checks import Check
    from gateway.config import Config


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check the installation and name the fix for what is wrong. Changes nothing."""
    config = read_config(context)
    found = asyncio.run(_run(config, quiet=as_json))
    if as_json:
        print_json([asdict(check) for check in found])
    if any(check.state == "fail" for check in found):
        raise typer.Exit(FAILED)


async def _run(config: "Config", *, quiet: bool) -> "list[Check]":
    # Lazy: the checks load the engine and the adapters.
    from gateway.cli.checks import run

    found = []
    async for check in run(config):
        found.append(check)
        if not quiet:
            say(f"{check.state.ljust(4)}  {check.name.ljust(11)}  {plain(check.found)}")
            if check.fix and check.state != "ok":
                say(f"{' ' * 19}fix: {plain(check.fix)}")
    return found
