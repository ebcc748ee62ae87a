"""`status`: how the gateway is."""

import typer

from gateway.cli.common import AsJson, ask_gateway, cell, print_json, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(status)


def status(context: typer.Context, as_json: AsJson = False) -> None:
    """Show how the running gateway is."""
    found = ask_gateway(context, lambda gateway: gateway.get("/v1/status"))
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        _show(name, value)


def _show(name: str, value: object, indent: str = "") -> None:
    if isinstance(value, dict):
        say(f"{indent}{name}:")
        for inner, one in value.items():
            _show(inner, one, f"{indent}  ")
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        say(f"{indent}{name}:")
        for one in value:
            fields = one.items() if isinstance(one, dict) else ()
            say(f"{indent}  " + "  ".join(f"{key}={cell(inner)}" for key, inner in fields))
    elif isinstance(value, list):
        say(f"{indent}{name}: {', '.join(cell(one) for one in value) or '-'}")
    else:
        say(f"{indent}{name}: {cell(value)}")
