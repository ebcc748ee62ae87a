"""`backup`: copies of everything that the gateway keeps, and the way back (OPS-6)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from gateway.cli.common import (
    AsJson,
    cell,
    examples,
    fail,
    group,
    note,
    print_json,
    read_config,
    say,
    when,
)
from runtime.domain.counts import counted

if TYPE_CHECKING:
    from gateway.config import Config
    from gateway.wiring import DatabaseBackup
    from runtime.domain.backups import Manifest
    from runtime.ports.clock import Clock

T = TypeVar("T")
SHOWN: Final = 10

app = group("Make, check and restore backups.")

_ROWS: Final = {"outbox": "outbox row"}
"""What rows of a table are called, where that is not its name."""
File = Annotated[Path, typer.Argument(metavar="FILE", help="A backup's file.")]


@app.command(epilog=examples("gatehouse backup create", "gatehouse backup create copy.tar.gz"))
def create(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH", help="A folder or a new file. Default: `backups` in the home folder."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy the database and the workspace into one file, also while the gateway runs."""
    # Lazy: the work of these commands loads the settings and the engine.
    from gateway import backup

    config = read_config(context)

    async def work(base: "DatabaseBackup", clock: "Clock") -> backup.Created:
        return await backup.create(config, base, now_ms=clock.now_ms(), path=path)

    made = _run(config, work)
    if as_json:
        print_json({"file": str(made.file), "size": made.size, **_facts(made.manifest)})
        return
    say(f"{made.file}: {made.size} bytes, {_told(made.manifest)}")
    _name_skipped(made.manifest)
    note("It holds everybody's messages, but no tokens and no settings. Save those separately.")


@app.command()
def verify(context: typer.Context, file: File, as_json: AsJson = False) -> None:
    """Check a backup: its checksums, its database, and that this version can restore it."""
    # Lazy, as above.
    from gateway import backup

    manifest = _run(read_config(context), lambda base, _: backup.verify(base, file))
    if as_json:
        print_json({"file": str(file), **_facts(manifest)})
        return
    say(f"{file} is complete: {_told(manifest)}")
    _name_skipped(manifest)


@app.command()
def restore(
    context: typer.Context,
    file: File,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace the data that exists. It is kept under another name."
        ),
    ] = False,
    resend: Annotated[
        bool,
        typer.Option(
            "--resend", help="Send the messages that had not been sent when the backup was made."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put a backup in place of the database and the workspace; the gateway must be stopped."""
    # Lazy, as above.
    from gateway import backup, workspaces

    config = read_config(context)

    async def work(base: "DatabaseBackup", _: "Clock") -> backup.Restored:
        await asyncio.to_thread(workspaces.make_home, config)
        return await backup.restore(config, base, file, force=force, resend=resend)

    done = _run(config, work)
    database, settled = done.database, done.database.settled
    if as_json:
        print_json(
            {
                "database_kept": database.kept,
                "workspace_kept": done.workspace_kept and str(done.workspace_kept),
                "revision_before": database.before,
                "revision_after": database.after,
                "messages_held_back": settled.held,
                "unfinished_runs": settled.unfinished,
                **_facts(done.manifest),
            }
        )
        return
    say(f"restored {file}: {_told(done.manifest)}")
    if database.before != database.after:
        say(f"migrated the database from {database.before} to {database.after}")
    for kept in (database.kept, done.workspace_kept):
        if kept is not None:
            say(f"kept the earlier one as {kept}")
    if settled.held:
        say(
            f"{counted(settled.held, 'message')} had not been sent when the backup was made. "
            "What was not sent is marked unknown and will not be sent, because it may have been "
            "sent since then."
        )
    if settled.unfinished:
        say(
            f"{counted(settled.unfinished, 'run')} had not ended when the backup was made. What "
            "had not ended goes on when the gateway starts, and may answer a second time."
        )


def _run(config: "Config", work: "Callable[[DatabaseBackup, Clock], Awaitable[T]]") -> T:
    # Lazy: the composition root loads the engine.
    from gateway import wiring
    from runtime.domain.errors import Conflict, InvalidInput, Unavailable

    clock = wiring.system_clock()

    async def with_database() -> T:
        return await work(wiring.database_backup(config, clock), clock)

    try:
        return asyncio.run(with_database())
    except (Unavailable, InvalidInput, Conflict) as error:
        fail(str(error))


def _facts(manifest: "Manifest") -> dict[str, object]:
    facts = manifest.model_dump(mode="json", exclude={"files", "links"})
    return {**facts, "files": len(manifest.files), "links": len(manifest.links)}


def _told(manifest: "Manifest") -> str:
    rows = ", ".join(
        counted(amount, _ROWS.get(name, name.removesuffix("s")))
        for name, amount in sorted(manifest.counts.items())
    )
    made = when(manifest.created_ms)
    return (
        f"{manifest.database} at {cell(manifest.revision)} of {made}, {cell(rows)}, "
        f"{counted(len(manifest.files) - 1, 'file')} of the workspace"
    )


def _name_skipped(manifest: "Manifest") -> None:
    for one in manifest.skipped[:SHOWN]:
        note(f"left out: {cell(one)}")
    if len(manifest.skipped) > SHOWN:
        note(f"left out: {len(manifest.skipped) - SHOWN} more; --json names all of them")
