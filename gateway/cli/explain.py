"""`context` and `policy explain`: why the agent sees what it sees and may do what it may."""

import json
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.common import (
    AsJson,
    SessionName,
    ask_gateway,
    cell,
    examples,
    fail,
    group,
    note,
    one_of,
    plain,
    say,
    table,
)
from gateway.cli.sessions import session_id_of
from runtime.domain.json_fields import objects_of

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient, Json, JsonObject

policy = group("Look at what the agent may do.")

TRUST: Final = ("owner", "member", "guest", "bot")
"""As `runtime.domain.people` names them, which loads too much for the frame."""
_AS_JSON: Final = (
    "Write it as one argument in single quotes, for example: "
    'gatehouse policy explain terminal:main exec \'{"command": "ls"}\''
)
_KINDS: Final = {
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
    list: "a list",
}


def context(
    context: typer.Context,
    session: SessionName,
    full: Annotated[bool, typer.Option("--full", help="Print the whole prompt too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the prompt that a session's next turn begins with, and the tokens of each block."""

    async def prompt(gateway: "GatewayClient") -> "JsonObject":
        return await gateway.get(f"/v1/sessions/{await session_id_of(gateway, session)}/context")

    found = ask_gateway(context, prompt, as_json=as_json)
    blocks = objects_of(found, "blocks")
    shown = [{**one, "cut": "cut" if one.get("cut") else ""} for one in blocks]
    table(shown, {"BLOCK": "name", "TOKENS": "tokens", "": "cut"}, "The prompt is empty.")
    warnings = found.get("warnings")
    for one in warnings if isinstance(warnings, list) else ():
        note(f"workspace: {cell(one)}")
    say(f"system {cell(found.get('system_tokens'))}  tools {cell(found.get('tool_tokens'))}")
    if full:
        for block in blocks:
            say(f"\n{plain(str(block.get('text')))}")
        say(f"\n{plain(str(found.get('present')))}")


@policy.command(
    epilog=examples('gatehouse policy explain terminal:main exec \'{"command": "ls"}\'')
)
def explain(
    context: typer.Context,
    session: SessionName,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="A tool's name, such as exec.")],
    arguments: Annotated[
        str, typer.Argument(metavar="ARGUMENTS", help="The call's arguments as a JSON object.")
    ] = "{}",
    trust: Annotated[
        str,
        typer.Option(callback=one_of(*TRUST), help="Whose call: owner, member, guest or bot."),
    ] = "owner",
    as_json: AsJson = False,
) -> None:
    """Show what policy says about a call, and everything that was checked. Runs nothing."""
    try:
        given: Json = json.loads(arguments)
    except ValueError as error:
        fail(f"ARGUMENTS is not JSON: {error}. {_AS_JSON}", 2)
    if not isinstance(given, dict):
        fail(f"ARGUMENTS must be a JSON object, not {_KINDS[type(given)]}. {_AS_JSON}", 2)
    body: JsonObject = {"tool": tool, "arguments": given, "trust": trust}

    async def decision(gateway: "GatewayClient") -> "JsonObject":
        session_id = await session_id_of(gateway, session)
        return await gateway.post(f"/v1/sessions/{session_id}/policy/explain", body)

    found = ask_gateway(context, decision, as_json=as_json)
    say(f"{cell(found.get('verdict'))}  ({cell(found.get('rule'))})")
    if found.get("reason") and found.get("verdict") != "allow":
        say(plain(str(found["reason"])))
    chain = objects_of(found, "chain")
    table(chain, {"BOUND": "bound", "SAYS": "verdict", "RULE": "rule"}, "No limit was checked.")


@policy.callback()
def group_of_one() -> None:
    """Look at what the agent may do."""
