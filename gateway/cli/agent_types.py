"""`agents types`: which types of subagents there are, what one gives, and whether a file is right.

They read files and the configuration and ask no gateway. A model that a gateway would find on this
machine is looked for as the gateway does it.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from gateway.cli.common import (
    FAILED,
    AsJson,
    cell,
    examples,
    fail,
    group,
    note,
    plain,
    print_json,
    read_config,
    say,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.agent_type_files import Found
    from gateway.cli.client import JsonObject
    from gateway.config import Config
    from runtime.ports.model import Models
    from runtime.workspace.definition_file import Definition

T = TypeVar("T")

app = group("The types of subagents: built in, and defined in files.")


@app.command("list")
def list_types(context: typer.Context, as_json: AsJson = False) -> None:
    """List the types that the agent in your chats may start, and the problems in their files."""
    found = _found(read_config(context))
    names = sorted(found.types.known)
    rows = [_row(found, name) for name in names]
    if as_json:
        print_json({"items": rows, "problems": list(found.types.problems)})
        return
    shown = [{**row, "about": row["reason"] or row["about"]} for row in rows]
    columns = {"TYPE": "name", "FROM": "source", "USABLE": "usable", "ABOUT": "about"}
    table(shown, columns, "There are no types.")
    for one in found.types.problems:
        note(plain(one))


@app.command(epilog=examples("gatehouse agents types show explore"))
def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TYPE", help="A type's name.")],
    as_json: AsJson = False,
) -> None:
    """Show what a subagent of a type would be given."""
    found = _found(read_config(context))
    if name not in found.types.known:
        # Lazy: only for who mistypes.
        from difflib import get_close_matches

        near = get_close_matches(name, found.types.known, n=3, cutoff=0.5)
        fail(f"there is no type {plain(name)}; there are {', '.join(near or found.types.known)}")
    row = _row(found, name)
    if as_json:
        print_json(row)
        return
    for key, value in row.items():
        if key != "prompt" and value not in (None, "", False):
            listed = ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
            say(f"{key.ljust(16)}{cell('yes' if listed is True else listed)}")
    if row["prompt"]:
        say(f"\n{plain(str(row['prompt']))}")


@app.command()
def validate(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Definitions.")],
    as_json: AsJson = False,
) -> None:
    """Check definitions: show each problem with its file, field and rule. Fails if there is one."""
    # Lazy: it loads the engine.
    from gateway.agent_type_files import known, read_one, too_wide

    names = _asked(read_config(context), known)
    found = [(path, read_one(path, names)) for path in files]
    read = [(path, one, _problems(one, too_wide(one))) for path, one in found]
    if as_json:
        print_json([_judged(path, one, problems) for path, one, problems in read])
    for path, one, problems in () if as_json else read:
        for problem in problems:
            say(f"{path}: {plain(problem)}")
        for told in one.notes:
            note(f"{path}: {plain(told)} (the file is used)")
        if not problems:
            say(f"{path}: {one.name} has no problems")
    if any(problems for _, _, problems in read):
        raise typer.Exit(FAILED)


def _problems(one: "Definition", wider: tuple[str, ...]) -> tuple[str, ...]:
    return (*((one.reason,) if one.reason else ()), *one.problems, *wider)


def _judged(path: Path, one: "Definition", problems: tuple[str, ...]) -> "JsonObject":
    return {
        "file": str(path),
        "name": one.name,
        "usable": one.available,
        "problems": list(problems),
        "notes": list(one.notes),
    }


def _row(found: "Found", name: str) -> "JsonObject":
    one, profile = found.definitions.get(name), found.types.profiles[name]
    reason = found.types.known[name]
    return {
        "name": name,
        "source": found.source(name),
        "file": one.file if one else None,
        "about": found.types.about[name],
        "usable": "no" if reason else "yes",
        "reason": reason,
        "tools": [] if reason else list(profile.tools),
        "read_only": profile.read_only,
        "no_writing": profile.no_writing,
        "model": profile.model,
        "permission_mode": profile.permission_mode.value if profile.permission_mode else None,
        "max_steps": profile.max_steps,
        "background": profile.background,
        "isolation": one.header.isolation if one else None,
        "prompt": profile.prompt,
    }


def _found(config: "Config") -> "Found":
    # Lazy: it loads the engine.
    from gateway.agent_type_files import find

    return _asked(config, find)


def _asked(config: "Config", question: "Callable[[Config, Models], T]") -> "T":
    """What the configuration and its models answer; ends where they cannot be used."""
    # Lazy: the composition root loads the engine.
    from gateway import wiring
    from runtime.domain.errors import InvalidInput, Unavailable

    async def ask() -> "T":
        catalog = await wiring.find_models(config)
        try:
            return await asyncio.to_thread(question, config, catalog)
        finally:
            await catalog.close()

    try:
        return asyncio.run(ask())
    except (InvalidInput, Unavailable) as error:
        fail(str(error))
