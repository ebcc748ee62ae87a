"""`pairing`: letting strangers in, and the code that makes an owner (ACC-1, ACC-2)."""

from typing import Annotated

import typer

from gateway.cli.common import AsJson, ask_gateway, fail, group, say, table, when

app = group("Let people in.")

Code = Annotated[str, typer.Argument(help="The code that the stranger was told.")]


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the strangers who wait."""
    waiting = "/v1/pairings"
    found = ask_gateway(context, lambda gateway: gateway.items(waiting), as_json=as_json)
    shown = [{**one, "until": when(one.get("expires_at_ms"))} for one in found]
    columns = {"CODE": "code", "CHANNEL": "channel", "USER": "user_id", "NAME": "name"}
    table(shown, {**columns, "UNTIL": "until"}, "Nobody waits to be let in.")


@app.command()
def approve(
    context: typer.Context,
    code: Code,
    owner: Annotated[bool, typer.Option("--owner", help="As an owner.")] = False,
    member: Annotated[bool, typer.Option("--member", help="As a member (the default).")] = False,
) -> None:
    """Let a stranger in."""
    if owner and member:
        fail("choose one of --owner and --member", 2)
    trust = "owner" if owner else "member"
    done = ask_gateway(
        context,
        lambda gateway: gateway.post(f"/v1/pairings/{code}/approve", {"trust": trust}),
    )
    say(f"{done.get('name', code)} is let in as {trust}.")


@app.command()
def deny(context: typer.Context, code: Code) -> None:
    """Turn a stranger away."""
    done = ask_gateway(context, lambda gateway: gateway.post(f"/v1/pairings/{code}/deny"))
    say(f"{done.get('name', code)} is turned away.")


@app.command("owner-code")
def owner_code(context: typer.Context, as_json: AsJson = False) -> None:
    """Make a new one-time code that makes its sender an owner; an earlier one stops working."""
    code = "/v1/pairings/owner-code"
    done = ask_gateway(context, lambda gateway: gateway.post(code), as_json=as_json)
    say(f"{done.get('code')}")
    say("Send it to the bot in a direct message. It works once, so on one platform.")
    if done.get("replaced"):
        say("The code before it was not used, and no longer works.")
