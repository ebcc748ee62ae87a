"""`doctor`: is everything as it must be, and if not, what to do."""

import asyncio
import shutil
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import typer

from gateway.cli.common import FAILED, AsJson, load_config, plain, print_json, say

if TYPE_CHECKING:
    from gateway.cli.check_result import Check
    from gateway.config import Config


INDENT: Final = 24
WIDEST: Final = 100


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check the installation and name the fix for what is wrong. Changes nothing."""
    found = _checked(context, quiet=as_json)
    if as_json:
        print_json([asdict(check) for check in found])
    if any(check.state == "fail" for check in found):
        raise typer.Exit(FAILED)


def _checked(context: typer.Context, *, quiet: bool) -> "list[Check]":
    # Lazy: the settings take most of the time of `gatehouse --help`.
    from gateway.cli.check_result import Check
    from gateway.config import ConfigError

    try:
        config = load_config(context)
    except ConfigError as error:
        # Without it nothing else can be checked.
        fix = "Change what is named; `gatehouse config schema` lists every key."
        found = [Check("config", "fail", str(one), fix) for one in error.problems]
        for one in () if quiet else found:
            _show(one)
        return found
    return asyncio.run(_run(config, quiet=quiet))


async def _run(config: "Config", *, quiet: bool) -> "list[Check]":
    # Lazy: the checks load the engine and the adapters.
    from gateway.cli.checks import run

    found = []
    async for check in run(config):
        found.append(check)
        if not quiet:
            _show(check)
    return found


def _show(check: "Check") -> None:
    first, *others = _lines(check.found)
    say(f"{check.state.ljust(4)}  {check.name.ljust(16)}  {first}")
    if check.fix and check.state != "ok":
        others += _lines(f"fix: {check.fix}")
    for line in others:
        say(f"{' ' * INDENT}{line}")


def _lines(text: str) -> list[str]:
    """A text as a person reads it beside the names: no line is wider than the terminal."""
    width = max(40, min(shutil.get_terminal_size().columns, WIDEST) - INDENT)
    lines = []
    for line in text.split("\n"):
        # A path or an address stays whole, so that it can be copied.
        wrapped = textwrap.wrap(plain(line), width, break_long_words=False, break_on_hyphens=False)
        lines += wrapped or [""]
    return lines
