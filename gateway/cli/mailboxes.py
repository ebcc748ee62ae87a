"""`mailboxes`: what agents write to each other."""

from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.common import (
    SESSION_HELP,
    AsJson,
    Limit,
    ask_gateway,
    cell,
    examples,
    group,
    one_of,
    plain,
    say,
    when,
)
from gateway.cli.listing import OF_RUNS, Listing, Watch
from gateway.cli.listing import show as show_list
from gateway.cli.sessions import session_id_of
from runtime.domain.json_fields import object_of, objects_of

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient, JsonObject

app = group("Look into the mailboxes of agents, and send a message to one.")

TYPES = ("message", "task", "result", "signal")
"""As `runtime.features.mailboxes.model` names them, which loads too much for the frame."""
AgentName = Annotated[
    str, typer.Argument(metavar="AGENT", help=f"An agent, by its session. {SESSION_HELP}")
]
_CHANGES = ("mail.accepted", "mail.delivered", "mail.dead", *OF_RUNS)


@app.command("list", epilog=examples("gatehouse mailboxes list terminal:main --json"))
def list_(
    context: typer.Context,
    agent: AgentName,
    dead: Annotated[
        bool, typer.Option("--dead", help="What it never read, with the reasons.")
    ] = False,
    limit: Limit = 50,
    watch: Watch = False,
    as_json: AsJson = False,
) -> None:
    """Show what waits in an agent's mailbox, the oldest first. Looking takes nothing out."""
    path = "mailbox/dead-letter" if dead else "mailbox"

    async def read(gateway: "GatewayClient") -> "list[JsonObject]":
        session_id = await session_id_of(gateway, agent)
        return await gateway.items(f"/v1/agents/{session_id}/{path}", {}, most=limit)

    columns = {"ID": "message_id", "FROM": "from", "SENT": "sent", "TYPE": "type"}
    listing = Listing(
        read,
        shown,
        columns | ({"REASON": "reason"} if dead else {}) | {"TEXT": "text"},
        "There are no dead letters." if dead else "Nothing waits in this mailbox.",
        _CHANGES,
        name="message_id",
    )
    show_list(context, listing, watch=watch, as_json=as_json)


@app.command()
def send(
    context: typer.Context,
    sender: Annotated[
        str, typer.Argument(metavar="FROM", help="The agent whose rights the message has.")
    ],
    to: Annotated[str, typer.Argument(metavar="TO", help="The agent that is to read it.")],
    text: Annotated[str, typer.Argument(help="What it says.")],
    kind: Annotated[
        str, typer.Option("--type", callback=one_of(*TYPES), help="What it is meant as.")
    ] = "message",
    message_id: Annotated[
        str, typer.Option("--id", help="Its id: a message with an id is taken once.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Send a message from one agent to another."""

    async def ask(gateway: "GatewayClient") -> "JsonObject":
        body: JsonObject = {
            "from": await session_id_of(gateway, sender),
            "to": await session_id_of(gateway, to),
            "payload": {"type": kind, "text": text},
        }
        if message_id:
            body["message_id"] = message_id
        return await gateway.post("/v1/mailboxes", body)

    receipt = ask_gateway(context, ask, as_json=as_json)
    was = "was there before" if receipt.get("duplicate") else "is in the mailbox"
    say(f"{cell(receipt.get('message_id'))} {was}.")


def shown(item: "JsonObject") -> "JsonObject":
    """A message for people, in one line."""
    payload = object_of(item, "payload")
    items = [_one_item(one) for one in objects_of(payload, "input_items")]
    uploads = payload.get("asset_ids")
    files = [f"[file: {one}]" for one in uploads] if isinstance(uploads, list) else []
    words = [str(item.get("subject") or ""), str(payload.get("text") or ""), *files, *items]
    if payload.get("data") is not None:
        words.append(str(payload["data"]))
    text = " ".join(" ".join(words).split())
    return {
        **item,
        "sent": when(item.get("sent_at_ms")),
        "type": payload.get("type"),
        "text": plain(text[:120]),
    }


def _one_item(item: "JsonObject") -> str:
    """An item of a message: its words, or which file it is."""
    if "text" in item:
        return str(item["text"])
    return f"[file: {item.get('name') or item.get('asset_id')}]"
