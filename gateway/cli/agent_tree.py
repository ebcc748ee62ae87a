"""`agents`: who works for whom, once or as they get on; `agents types` is in `agent_types`."""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli import agent_types
from gateway.cli.common import (
    COLORS,
    SESSION_HELP,
    AsJson,
    Limit,
    aligned,
    ask_gateway,
    cell,
    examples,
    group,
    note,
    one_of,
    say,
    table,
)
from gateway.cli.listing import OF_RUNS, WATCHES, watch_events
from gateway.cli.sessions import session_id_of
from runtime.domain.counts import counted
from runtime.domain.json_fields import number_of, object_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gateway.cli.client import GatewayClient, JsonObject

app = group("Show subagents and their types.")
app.add_typer(agent_types.app, name="types")

STATUSES: Final = (
    *("idle", "running", "waiting_for_approval", "waiting_for_user_input"),
    *("failed", "completed", "cancelled"),
)
"""As `runtime.features.subagents.status_words` names them, which loads too much for the frame."""
_BRIEF: Final = {
    "AGENT": "agent_id",
    "SESSION": "session_id",
    "TYPE": "type",
    "STATUS": "status",
    "STEPS": "steps",
    "TOKENS": "used",
    "TIME": "time",
}
MOST: Final = 10_000
EVERY_S: Final = 1.0
"""While somebody is at work it is looked again: their times go on, and an event may be missed."""
_KINDS: Final = ("agent.spawned", "agent.settled", *OF_RUNS, "step.model", "step.tools")
_HEADINGS: Final = ("AGENT", "TYPE", "STATUS", "STEPS", "TOKENS", "COST", "TIME")
_LEFT_OUT: Final = tuple(map(_HEADINGS.index, ("COST", "TYPE", "TOKENS", "STEPS")))
"""Columns without which a narrow terminal is drawn, in that order."""
_NAME: Final = 12
"""Characters of a name that are worth more than any of those columns."""
_GAP: Final = 2
ENDED: Final = 5
"""Trees that stay in sight after their end, until others begin."""
_NOBODY: Final = "No subagents here."
_NOBODY_AT_WORK: Final = (
    "No subagents are at work. To see finished ones, name a session of `gatehouse sessions list`."
)

Session = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="A session of the tree, by its id or its key. Default: all trees at work.",
    ),
]


@app.command()
def tree(
    context: typer.Context,
    session: Session = "",
    watch: Annotated[bool, typer.Option("--watch", help="Update the tree until Ctrl+C.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show subagents below the agents that started them: status, steps, tokens, cost and time."""
    if watch and as_json:
        raise typer.BadParameter("--watch is for people, --json for programs")
    if watch:
        watching = _in_place if sys.stdout.isatty() else _in_lines
        # That is how one stops watching.
        with suppress(KeyboardInterrupt):
            ask_gateway(context, lambda gateway: watching(gateway, session))
        return
    found = ask_gateway(context, lambda gateway: _rows(gateway, session), as_json=as_json)
    for line in plain_tree(found) or (_empty(session),):
        say(line)


@app.command(epilog=examples("gatehouse agents summaries --status running --json"))
def summaries(
    context: typer.Context,
    root: Annotated[
        str, typer.Option(help=f"The conversation at the top of the tree. {SESSION_HELP}")
    ] = "",
    session: Annotated[
        str, typer.Option("--session-id", help=f"Any session of the tree. {SESSION_HELP}")
    ] = "",
    status: Annotated[
        str, typer.Option(callback=one_of(*STATUSES), help="Only these, such as running.")
    ] = "",
    has_runtime: Annotated[
        bool | None,
        typer.Option("--has-runtime/--no-runtime", help="Only those at work, or only the others."),
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List subagents in brief. Without a tree: those of all trees in which somebody is at work."""

    async def read(gateway: "GatewayClient") -> list["JsonObject"]:
        query = {"status": status} if status else {}
        for name, given in (("root", root), ("session_id", session)):
            if given:
                query[name] = await session_id_of(gateway, given)
        if has_runtime is not None:
            query["has_runtime"] = "true" if has_runtime else "false"
        return await gateway.items("/v1/agents/summaries", query, most=limit)

    found = ask_gateway(context, read, as_json=as_json)
    table(map(_brief, found), _BRIEF, "There are no such subagents.")


def _brief(row: "JsonObject") -> "JsonObject":
    return {
        **row,
        "steps": f"{_steps(row):,}",
        "used": f"{_number(row.get('tokens')):,.0f}",
        "time": _time(row.get("elapsed_ms")),
    }


def plain_tree(rows: Sequence["JsonObject"]) -> list[str]:
    """The tree in aligned lines, with the sums in front; nothing where nobody is."""
    if not rows:
        return []
    lines = [_HEADINGS, *(_cells(row, indent) for row, indent in nested(rows))]
    return [_summed(rows), *aligned(lines)]


def nested(rows: Sequence["JsonObject"]) -> list[tuple["JsonObject", str]]:
    """Each row behind its parent's, with the lines that lead to it."""
    there = {row.get("session_id") for row in rows}
    children: dict[object, list[JsonObject]] = {}
    for row in rows:
        parent = row.get("parent_session_id")
        children.setdefault(parent if parent in there else None, []).append(row)
    found: list[tuple[JsonObject, str]] = []
    left = [(row, "", "") for row in reversed(children.get(None, []))]
    while left:
        row, indent, below = left.pop()
        found.append((row, indent))
        inner = children.get(row.get("session_id"), [])
        for place, child in reversed(list(enumerate(inner, start=1))):
            last = place == len(inner)
            left.append(
                (child, f"{below}{'└─ ' if last else '├─ '}", f"{below}{'   ' if last else '│  '}")
            )
    return found


def fitting(lines: Sequence[tuple[str, ...]], width: int) -> tuple[tuple[int, int], ...]:
    """The columns to draw on a terminal of `width` characters, each with its own width. A name is
    cut where nothing more can be left out."""
    widths = {place: max(map(len, column)) for place, column in enumerate(zip(*lines, strict=True))}
    name = min(widths[0], _NAME)
    for place in _LEFT_OUT:
        if name + sum(widths.values()) - widths[0] + _GAP * len(widths) <= width:
            break
        del widths[place]
    others = sum(widths.values()) - widths[0] + _GAP * len(widths)
    widths[0] = max(min(widths[0], width - others), 1)
    return tuple(widths.items())


def changes(before: Sequence["JsonObject"], now: Sequence["JsonObject"]) -> list[str]:
    """A line for each agent that is new, or stands otherwise, or went a step further."""
    old = {row.get("session_id"): _news(row) for row in before}
    return [
        f"{cell(row.get('agent_id'))} ({cell(row.get('type'))}) {_news(row)}"
        for row in now
        if old.get(row.get("session_id")) != _news(row)
    ]


async def _rows(gateway: "GatewayClient", session: str) -> list["JsonObject"]:
    query = {"session_id": await session_id_of(gateway, session)} if session else {}
    return await gateway.items("/v1/agents/summaries", query, most=MOST)


class Watched:
    """What is looked at: the tree of a session; or all that work, with those that ended last.

    Who watches until the end sees how it ended: a tree that works no longer stays until another
    begins where nobody was at work.
    """

    def __init__(self, read: Callable[[str], Awaitable[list["JsonObject"]]], session: str) -> None:
        self._read = read
        self._session = session
        self._live: tuple[str, ...] = ()
        self._ended: dict[str, list[JsonObject]] = {}

    async def rows(self) -> list["JsonObject"]:
        """As they are now. Raises as the client."""
        rows = await self._read(self._session)
        if self._session:
            return rows
        live = tuple(dict.fromkeys(str(row.get("root_session_id")) for row in rows))
        if live and not self._live:
            self._ended = {}
        for root in self._live:
            if root not in live:
                self._ended[root] = await self._read(root)
        self._live = live
        kept = [root for root in self._ended if root not in live][-ENDED:]
        self._ended = {root: self._ended[root] for root in kept}
        return [*(row for ended in self._ended.values() for row in ended), *rows]


async def _in_lines(gateway: "GatewayClient", session: str) -> None:
    """For a pipe: the tree, then a line for whatever changed."""
    seen: list[JsonObject] = []
    begun = False

    def show(rows: list["JsonObject"]) -> None:
        nonlocal seen, begun
        for line in plain_tree(rows) if not seen else changes(seen, rows):
            say(line)
        sys.stdout.flush()
        if not begun:
            note(WATCHES)
        seen, begun = rows, True

    await _watch(gateway, session, show)


async def _in_place(gateway: "GatewayClient", session: str) -> None:
    """For a terminal: one picture that is drawn anew."""
    # Lazy: only this command draws.
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(highlight=False), auto_refresh=False, vertical_overflow="ellipsis")
    with live:
        await _watch(
            gateway,
            session,
            lambda rows: live.update(_picture(rows, session, live.console.width), refresh=True),
        )


async def _watch(
    gateway: "GatewayClient", session: str, show: Callable[[list["JsonObject"]], None]
) -> None:
    """Show the tree whenever something happened in it. Raises as `watch_events`."""
    watched = Watched(lambda one: _rows(gateway, one), session)

    async def look() -> float | None:
        rows = await watched.rows()
        show(rows)
        works = any(row.get("settled_at_ms") is None for row in rows)
        return EVERY_S if works else None

    await watch_events(gateway, _KINDS, look)


def _picture(rows: Sequence["JsonObject"], session: str, width: int) -> "RenderableType":
    # Lazy: as above.
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return Text(_empty(session), style="dim")
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="dim")
    drawn = [(row, _cells(row, indent)) for row, indent in nested(rows)]
    columns = fitting([_HEADINGS, *(line for _, line in drawn)], width)
    for place, size in columns:
        name = _HEADINGS[place]
        numbers = name in ("STEPS", "TOKENS", "COST", "TIME")
        table.add_column(
            name,
            justify="right" if numbers else "left",
            no_wrap=True,
            width=size,
            overflow="ellipsis",
        )
    for row, line in drawn:
        cells = [Text(one) for one in line]
        cells[2].stylize(COLORS.get(str(row.get("standing")), ""))
        table.add_row(*(cells[place] for place, _ in columns))
    return Group(Text(_summed(rows), style="bold"), table)


def _cells(row: "JsonObject", indent: str) -> tuple[str, ...]:
    """What stands in a row's columns, without anything that could steer the terminal."""
    label = row.get("label")
    name = cell(row.get("agent_id")) + (f" ({cell(label)})" if label else "")
    return (
        f"{indent}{name}",
        cell(row.get("type")),
        _standing(row),
        f"{_steps(row):,}",
        f"{_number(row.get('tokens')):,.0f}",
        _cost(row.get("cost_usd")),
        _time(row.get("elapsed_ms")),
    )


def _summed(rows: Sequence["JsonObject"]) -> str:
    """How many stand where, and what all of them used."""
    stand = Counter(_standing(row) for row in rows)
    standing = ", ".join(f"{count} {name}" for name, count in stand.most_common())
    costs = [row.get("cost_usd") for row in rows if row.get("cost_usd") is not None]
    spent = f", {_cost(sum(map(_number, costs)))}" if costs else ""
    tokens = sum(_number(row.get("tokens")) for row in rows)
    steps = sum(_steps(row) for row in rows)
    used = f"{counted(steps, 'step')}, {counted(round(tokens), 'token')}"
    return f"{counted(len(rows), 'subagent')}: {standing}. {used}{spent}"


def _news(row: "JsonObject") -> str:
    tokens = counted(round(_number(row.get("tokens"))), "token")
    return f"{_standing(row)}, {counted(_steps(row), 'step')}, {tokens}"


def _standing(row: "JsonObject") -> str:
    return cell(row.get("standing")).replace("_", " ")


def _steps(row: "JsonObject") -> int:
    return number_of(object_of(row, "progress"), "steps") or 0


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0


def _cost(value: object) -> str:
    return f"${value:.4f}" if isinstance(value, int | float) else "-"


def _time(value: object) -> str:
    minutes, seconds = divmod(int(_number(value)) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _empty(session: str) -> str:
    return _NOBODY if session else _NOBODY_AT_WORK
