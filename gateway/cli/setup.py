"""`init`, `migrate`, `version`: the commands that need no running gateway."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from gateway.cli.common import AsJson, fail, print_json, read_config, say


def init(
    context: typer.Context,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that differ from the template.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
) -> None:
    """Make the home folder and the workspace's files; what is there stays."""
    config = read_config(context)
    # Lazy: the composition root loads the engine.
    from gateway import workspaces
    from runtime.domain.errors import Unavailable

    try:
        if force:
            for name, backup in workspaces.prepare_workspace(
                config, force=True, dry_run=True
            ).overwritten:
                say(f"replaces {name}, keeps the old one as {backup}")
        report = workspaces.prepare_workspace(config, force=force, dry_run=dry_run)
    except Unavailable as error:
        fail(str(error))
    would = "would make" if dry_run else "made"
    for name in report.made:
        say(f"{would} {name}")
    say(
        f"{config.workspace}: {len(report.made)} made, {len(report.kept)} kept, "
        f"{len(report.overwritten)} replaced{' (nothing was changed)' if dry_run else ''}"
    )


def migrate(context: typer.Context, as_json: AsJson = False) -> None:
    """Bring the database to this version's schema."""
    config = read_config(context)
    # Lazy: the composition root loads the engine.
    from gateway import wiring, workspaces
    from runtime.domain.errors import InvalidInput, Unavailable

    try:
        workspaces.make_home(config)
        report = asyncio.run(wiring.prepare_database(config))
    except (Unavailable, InvalidInput) as error:
        fail(str(error))
    if as_json:
        print_json(asdict(report))
    elif report.ahead:
        say(f"the database is at {report.after}, which is newer than this version: left alone")
    elif report.applied:
        say(f"applied {', '.join(report.applied)}; the database is at {report.after}")
    else:
        say(f"nothing to do; the database is at {report.after}")


def version(as_json: AsJson = False) -> None:
    """Print the version."""
    # Lazy: reading an installed package's data takes longer than all of `--help`.
    from gateway.config import gateway_version

    if as_json:
        print_json({"version": gateway_version()})
    else:
        say(f"gatehouse {gateway_version()}")
