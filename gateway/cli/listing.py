"""Lists of what a running gateway has: once, as JSON, or drawn anew whenever something changes."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.answers import Refused, Unreachable
from gateway.cli.common import ask_gateway, cell, note, pause, picture, say, table

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient, JsonObject

Watch = Annotated[bool, typer.Option("--watch", help="Update the list until Ctrl+C.")]
OF_RUNS: Final = tuple(
    f"run.{what}"
    for what in (
        "queued",
        "started",
        "waiting",
        "resumed",
        "completed",
        "failed",
        "interrupted",
        "cancelled",
    )
)
"""The events that a run stands otherwise."""
WATCHES: Final = "Watching. Ctrl+C ends it."
_RETRY_S: Final = 1.0
_MOST_RETRY_S: Final = 5.0
_UNAVAILABLE: Final = 503
_AGAIN_S: Final = 5.0
"""A list is read again although nothing was told of: an event may have come before one listened."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list that a command shows: how its rows are read and what people see of one; `columns` maps
    a heading to the key of its value. `name` is the key that tells rows apart. After an event whose
    kind is among `kinds` the list may be another."""

    read: Callable[["GatewayClient"], Awaitable[list["JsonObject"]]]
    shown: Callable[["JsonObject"], "JsonObject"]
    columns: Mapping[str, str]
    empty: str
    kinds: tuple[str, ...]
    name: str = "id"


def show(context: typer.Context, listing: Listing, *, watch: bool, as_json: bool) -> None:
    """Print a list as the options of its command say."""
    if not watch:
        found = ask_gateway(context, listing.read, as_json=as_json)
        table(map(listing.shown, found), listing.columns, listing.empty)
        return
    if as_json:
        raise typer.BadParameter("--watch is for people, --json for programs")
    watching = _in_place if sys.stdout.isatty() else _in_lines
    # That is how one stops watching.
    with suppress(KeyboardInterrupt):
        ask_gateway(context, lambda gateway: watching(gateway, listing))


def changes(
    before: Iterable[Mapping[str, object]], now: Iterable[Mapping[str, object]], listing: Listing
) -> list[str]:
    """A line for each row that is new, differs from before, or is not listed any more."""
    old = {row.get(listing.name): _line(row, listing) for row in before}
    new = {row.get(listing.name): _line(row, listing) for row in now}
    told = [line for name, line in new.items() if old.get(name) != line]
    return [*told, *(f"{cell(name)} is not listed any more" for name in old if name not in new)]


async def watch_events(
    gateway: "GatewayClient",
    kinds: Sequence[str],
    look: Callable[[], Awaitable[float | None]],
    *,
    wait: Callable[[float], Awaitable[None]] = pause,
) -> None:
    """Look at once, and again whenever an event of one of these kinds came, or after as many
    seconds as `look` says.

    A gateway that goes away is said once and looked for again, by `wait` after longer and longer.
    Raises `Unreachable` or `Refused` where it is away before the first look, and what it refuses
    later for good.
    """
    retry_s, looks_made, looked, away = _RETRY_S, 0, False, False

    async def looks() -> float | None:
        nonlocal retry_s, looks_made, looked, away
        again_s = await look()
        looked, looks_made = True, looks_made + 1
        if looks_made > 1:
            # One that is stopping may still answer the first.
            retry_s, away = _RETRY_S, False
        return again_s

    while True:
        looks_made = 0
        try:
            await _until_away(gateway, kinds, looks)
        except (Unreachable, Refused) as error:
            passes = isinstance(error, Unreachable) or error.status == _UNAVAILABLE
            if not (looked and passes):
                raise
            if not away:
                note(f"{str(error).rstrip('.')}. Trying again until it is back.")
            away = True
        await wait(retry_s)
        retry_s = min(2 * retry_s, _MOST_RETRY_S)


async def _until_away(
    gateway: "GatewayClient", kinds: Sequence[str], look: Callable[[], Awaitable[float | None]]
) -> None:
    """Look at once and after events. Raises `Unreachable` once the gateway is gone."""
    news = asyncio.Event()

    async def listen() -> None:
        async for _event in gateway.events({"kinds": ",".join(kinds)}):
            news.set()
        raise Unreachable("the gateway stopped.")

    listening = asyncio.create_task(listen(), name="listen")
    try:
        while not listening.done():
            news.clear()
            again_s = await look()
            waiting = asyncio.create_task(news.wait(), name="news")
            await asyncio.wait(
                {listening, waiting}, timeout=again_s, return_when=asyncio.FIRST_COMPLETED
            )
            waiting.cancel()
        await listening
    finally:
        listening.cancel()
        # Both may have failed at once, and one of them says it.
        await asyncio.wait({listening})
        if not listening.cancelled():
            listening.exception()


async def _in_lines(gateway: "GatewayClient", listing: Listing) -> None:
    """For a pipe: the list, then a line for whatever changed."""
    seen: list[JsonObject] | None = None

    async def look() -> float:
        nonlocal seen
        rows = [listing.shown(row) for row in await listing.read(gateway)]
        if seen is None:
            table(rows, listing.columns, listing.empty)
            note(WATCHES)
        else:
            for line in changes(seen, rows, listing):
                say(line)
        sys.stdout.flush()
        seen = rows
        return _AGAIN_S

    await watch_events(gateway, listing.kinds, look)


async def _in_place(gateway: "GatewayClient", listing: Listing) -> None:
    """For a terminal: one table that is drawn anew."""
    # Lazy: only a list that is watched draws.
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    live = Live(console=Console(highlight=False), auto_refresh=False, vertical_overflow="ellipsis")

    async def look() -> float:
        rows = [listing.shown(row) for row in await listing.read(gateway)]
        drawn = picture(rows, listing.columns) if rows else Text(listing.empty, style="dim")
        live.update(drawn, refresh=True)
        return _AGAIN_S

    with live:
        await watch_events(gateway, listing.kinds, look)


def _line(row: Mapping[str, object], listing: Listing) -> str:
    return "  ".join(cell(row.get(key)) for key in listing.columns.values())
