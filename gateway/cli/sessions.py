"""`sessions`: the conversations that the gateway keeps."""

from typing import Annotated

import typer

from gateway.cli.common import AsJson, ask_gateway, cell, group, plain, print_json, say, table, when

app = group("Look at conversations.")


@app.command("list")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show sessions, the newest first."""
    found = ask_gateway(context, lambda gateway: gateway.items("/v1/sessions", most=limit))
    if as_json:
        print_json(found)
        return
    shown = [{**one, "last": when(one.get("last_activity_at_ms"))} for one in found]
    columns = {"ID": "id", "STATE": "state", "LAST": "last", "KEY": "key", "TITLE": "title"}
    table(shown, columns, "There are no sessions yet.")


@app.command()
def show(
    context: typer.Context,
    session: Annotated[str, typer.Argument(help="A session's id.")],
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many messages.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show one session and its newest messages."""
    found = ask_gateway(context, lambda gateway: gateway.get(f"/v1/sessions/{session}"))
    messages = ask_gateway(
        context,
        lambda gateway: gateway.get(f"/v1/sessions/{session}/messages", {"limit": str(limit)}),
    )
    if as_json:
        print_json({"session": found, "messages": messages})
        return
    for name in ("id", "key", "title", "status", "state", "mode", "queue_mode", "model"):
        say(f"{name.ljust(10)}  {cell(found.get(name))}")
    items = messages.get("items")
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and item.get("text"):
            who = item.get("name") or item.get("kind")
            say(f"\n{when(item.get('at_ms'))}  {cell(who)}\n{plain(str(item['text']))}")
