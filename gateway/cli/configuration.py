"""`config`: what is set, where it came from, and what could be set."""

import typer

from gateway.cli.common import AsJson, group, print_json, read_config, say

app = group("Show the settings.")


@app.command()
def show(context: typer.Context, as_json: AsJson = False) -> None:
    """Print the settings in force and where each came from; secrets are masked."""
    config = read_config(context)
    # Lazy: needs the settings' models.
    from gateway.config_report import rows

    listed = rows(config)
    if as_json:
        print_json({row.key: {"value": row.value, "origin": row.origin} for row in listed})
        return
    say(f"# home {config.home}")
    say(f"# file {config.file or '(none)'}")
    width = max(len(f"{row.key} = {row.shown}") for row in listed if len(row.shown) < 50)
    for row in listed:
        say(f"{f'{row.key} = {row.shown}'.ljust(width)}  # {row.origin}")


@app.command()
def schema() -> None:
    """Print the JSON schema of gatehouse.toml."""
    # Lazy: needs the settings' models.
    from gateway.config_report import schema as build

    print_json(build())


@app.command()
def path(context: typer.Context, as_json: AsJson = False) -> None:
    """Print where the configuration, the database and the workspace are."""
    config = read_config(context)
    # Lazy: needs the settings' models.
    from gateway.config_report import masked_url

    places = {
        "config": str(config.file) if config.file else None,
        "home": str(config.home),
        "secrets": str(config.home / "secrets.toml"),
        "database": masked_url(config.database_url),
        "workspace": str(config.workspace),
    }
    if as_json:
        print_json(places)
        return
    for name, place in places.items():
        say(f"{name.ljust(9)}  {place or '(none; gatehouse.toml here or in the home folder)'}")
