"""What every command shares: reading the settings, saying things, exit codes.

Exit codes: 0 fine, 1 failed, 2 usage, 3 no gateway can be reached (OPS-2). Results go to the
standard output, everything else to the standard error.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn, TypeVar

import typer

from gateway.cli.answers import Refused, Unreachable
from runtime.domain.counts import counted
from runtime.domain.printable import is_hidden, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gateway.cli.client import GatewayClient, Json
    from gateway.config import Client, Config

T = TypeVar("T")
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3

SESSION_HELP: Final = "The session's id or its key; `gatehouse sessions list` shows both."
SessionName = Annotated[str, typer.Argument(metavar="SESSION", help=SESSION_HELP)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


COLORS: Final = {
    "completed": "green",
    "running": "cyan",
    "failed": "red",
    "cancelled": "dim",
    "forced": "yellow",
    "awaiting": "blue",
    "stopping": "yellow",
    "timed_out": "red",
    "waiting_for_approval": "yellow",
    "waiting_for_user_input": "yellow",
    "waiting_for_user_question": "yellow",
}
"""How a terminal draws the word that says where something stands."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was said before the command."""

    config: Path | None = None


def examples(*commands: str) -> str:
    """The end of a command's help: commands to type as they stand; a test runs each of them."""
    # A line of its own for each: click fills paragraphs that do not begin with this mark.
    return "\n".join(("\b", "Examples:", *(f"  {one}" for one in commands)))


def group(help_text: str, *, epilog: str | None = None, completion: bool = False) -> typer.Typer:
    """A group of commands, in the plain style that all of them have. With `completion` it has the
    options by which a shell learns to complete its commands."""
    return typer.Typer(
        help=help_text,
        epilog=epilog,
        no_args_is_help=True,
        add_completion=completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def one_of(*values: str) -> Callable[[str], str]:
    """What looks at an option that takes one of these values: a wrong one is a usage error."""

    def look(value: str) -> str:
        if value and value not in values:
            raise typer.BadParameter(f"must be one of {', '.join(values)}, not {value[:40]!r}")
        return value

    return look


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """What reads an option that takes a whole number: a wrong one is a usage error."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            bounds = f"of at least {least}" if most is None else f"from {least} to {most:,}"
            raise typer.BadParameter(f"must be a whole number {bounds}, not {text[:40]!r}")
        return number

    return read


def say(text: str) -> None:
    """A line of the result."""
    sys.stdout.write(f"{text}\n")


def note(text: str) -> None:
    """A line beside the result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


async def pause(seconds: float) -> None:
    """Wait; the command line has no Clock, and nothing there depends on the exact time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


def fail(text: str, code: int = FAILED) -> NoReturn:
    """Say what is wrong and what to do, and end."""
    note(f"gatehouse: {text}")
    raise typer.Exit(code)


Limit = Annotated[
    int, typer.Option(parser=whole_number(1, 10_000), metavar="N", help="How many at most.")
]


def load_config(context: typer.Context) -> "Config":
    """The settings. Raises `ConfigError`."""
    # Lazy: pydantic and the settings' models take most of the time of `gatehouse --help`.
    from gateway.config import load

    options = context.find_object(Options) or Options()
    return load(options.config)


def read_config(context: typer.Context) -> "Config":
    """The settings; ends with every problem that they have."""
    # Lazy: as above.
    from gateway.config import ConfigError

    try:
        return load_config(context)
    except ConfigError as error:
        listed = "\n".join(f"  {problem}" for problem in error.problems)
        fail(f"the configuration has {counted(len(error.problems), 'problem')}:\n{listed}")


def place_of(config: "Config") -> "Client":
    """The gateway that a command talks to; ends with 2 where its address or token cannot be one."""
    # Lazy, as above.
    from gateway.config import client
    from gateway.config_text import address_problem, header_problem

    place = client(config)
    if place.url and address_problem(place.url):
        fail(
            f"GATEHOUSE_URL is {place.url!r}, which is not the address of a gateway. Write it like "
            "http://127.0.0.1:8080, or unset it to talk to the gateway of this home",
            USAGE,
        )
    if place.token and (problem := header_problem(place.token.get_secret_value())):
        fail(f"GATEHOUSE_TOKEN {problem}", USAGE)
    return place


def ask_gateway(
    context: typer.Context,
    question: Callable[["GatewayClient"], Awaitable[T]],
    *,
    as_json: bool = False,
) -> T:
    """What a running gateway answers; with `as_json` it is printed, and the command is over.

    Ends with 3 when there is no gateway, with 1 when it refuses.
    """
    # Lazy: the HTTP client is not needed by `--help`, `config` and `version`.
    from gateway.cli.client import GatewayClient

    place = place_of(read_config(context))

    async def ask() -> T:
        async with GatewayClient.of(place) as gateway:
            return await question(gateway)

    try:
        answer = asyncio.run(ask())
    except Unreachable as error:
        fail(str(error), UNREACHABLE)
    except Refused as error:
        fail(str(error))
    if as_json:
        print_json(answer)
        raise typer.Exit
    return answer


def print_json(value: object) -> None:
    """A value for programs."""
    say(escaped(json.dumps(value, indent=2, ensure_ascii=False, default=str)))


def escaped(text: str) -> str:
    """JSON text in which everything can be seen: the rest is written as escapes.

    To a program it is the same value. A person would be steered by it, or shown less than there is.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(json.dumps(one)[1:-1] if is_hidden(one) and one != "\n" else one for one in text)


def table(rows: Iterable[Mapping[str, "Json"]], columns: Mapping[str, str], empty: str) -> None:
    """Rows in columns; `columns` maps a heading to the key of its value. A terminal gets a table
    that fits its width, a pipe a line for each row."""
    there = list(rows)
    if not there:
        note(empty)
    elif sys.stdout.isatty():
        # Lazy: most commands draw nothing.
        from rich.console import Console

        Console(highlight=False).print(picture(there, columns))
    else:
        lines = [[cell(row.get(key)) for key in columns.values()] for row in there]
        for line in aligned([list(columns), *lines]):
            say(line)


def picture(rows: Iterable[Mapping[str, "Json"]], columns: Mapping[str, str]) -> "RenderableType":
    """A table for a terminal. What is too long for its column goes on below, so that an id is
    never cut."""
    # Lazy, as above.
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in columns:
        drawn.add_column(heading, overflow="fold", no_wrap=heading in ("ID", "CODE"))
    for row in rows:
        cells = [Text(cell(row.get(key))) for key in columns.values()]
        for part in cells:
            part.stylize(COLORS.get(part.plain, ""))
        drawn.add_row(*cells)
    return drawn


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Cells in columns, a line for each row."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    parted = [
        [part.ljust(width) for part, width in zip(line, widths, strict=True)] for line in lines
    ]
    return ["  ".join(parts).rstrip() for parts in parted]


def cell(value: object) -> str:
    """A value on one line, without anything that is hidden or could steer the terminal."""
    if value is None:
        return "-"
    return one_line(plain(str(value))) or "-"


def plain(text: str) -> str:
    """Text of people and models as a terminal may show it."""
    # Lazy: the renderer's tables of characters take a while to load.
    from adapters.rendering import strip_controls

    return strip_controls(text)


def when(at_ms: object) -> str:
    """A time for people, in UTC."""
    # Lazy for the sake of `--help`, as above.
    from datetime import UTC, datetime

    if not isinstance(at_ms, int):
        return "-"
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
