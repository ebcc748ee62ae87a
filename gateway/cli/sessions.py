"""`sessions`: the conversations that the gateway keeps."""

import json
import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.answers import Refused
from gateway.cli.common import (
    AsJson,
    Limit,
    SessionName,
    ask_gateway,
    cell,
    escaped,
    group,
    plain,
    print_json,
    say,
    when,
    whole_number,
)
from gateway.cli.listing import OF_RUNS, Listing, Watch
from gateway.cli.listing import show as show_list
from runtime.domain.json_fields import objects_of, text_of

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient, JsonObject

app = group("Look at conversations.")

_ID: Final = re.compile(r"ses_[A-Za-z0-9_]{1,60}")
"""No key has this form: a key begins with its channel's name."""


@app.command("list")
def list_(
    context: typer.Context,
    limit: Limit = 50,
    watch: Watch = False,
    as_json: AsJson = False,
) -> None:
    """Show sessions, the newest first."""
    listing = Listing(
        lambda gateway: gateway.items("/v1/sessions", most=limit),
        lambda one: {
            **one,
            "state": state_of(one),
            "last": when(one.get("last_activity_at_ms")),
        },
        {"ID": "id", "STATE": "state", "LAST": "last", "KEY": "key", "TITLE": "title"},
        "There are no sessions yet.",
        ("session.created", "session.changed", *OF_RUNS),
    )
    show_list(context, listing, watch=watch, as_json=as_json)


@app.command()
def show(
    context: typer.Context,
    session: SessionName,
    limit: Annotated[
        int, typer.Option(parser=whole_number(1, 200), metavar="N", help="How many messages.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show one session and its newest messages."""

    async def read(gateway: "GatewayClient") -> "tuple[JsonObject, JsonObject]":
        path = f"/v1/sessions/{await session_id_of(gateway, session)}"
        return await gateway.get(path), await gateway.get(f"{path}/messages", {"limit": str(limit)})

    found, messages = ask_gateway(context, read)
    if as_json:
        print_json({"session": found, "messages": messages})
        return
    for name in ("id", "key", "title", "status", "state", "mode", "queue_mode", "model"):
        say(f"{name.ljust(10)}  {cell(found.get(name))}")
    for item in objects_of(messages, "items"):
        if item.get("text"):
            who = item.get("name") or item.get("kind")
            undone = "  (taken back)" if item.get("undone") is True else ""
            say(f"\n{when(item.get('at_ms'))}  {cell(who)}{undone}\n{plain(str(item['text']))}")


@app.command()
def export(
    context: typer.Context,
    session: SessionName,
    transcript: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1),
            metavar="N",
            help="Which of its conversations. Default: the present one.",
        ),
    ] = None,
) -> None:
    """Print a whole conversation, also a subagent's, as JSON: a message on each line, the oldest
    first."""
    query = {"limit": "200"} | ({} if transcript is None else {"transcript": str(transcript)})
    pages = ask_gateway(context, lambda gateway: pages_of(gateway, session, query))
    for page in reversed(pages):
        for item in page:
            say(escaped(json.dumps(item, ensure_ascii=False)))


def state_of(session: "JsonObject") -> str:
    """What goes on in a session; ``ended`` where nothing does and nothing can any more."""
    state, status = text_of(session, "state"), text_of(session, "status")
    return status if state == "idle" and status != "open" else state


async def session_id_of(gateway: "GatewayClient", name: str) -> str:
    """The id of the session that `name` is the id or the key of. Raises `Refused` for a key that
    no session has."""
    if _ID.fullmatch(name):
        return name
    # An older gateway takes no `key`, and answers with any session.
    for session in await gateway.items("/v1/sessions", {"key": name}):
        if session.get("key") == name:
            return str(session["id"])
    detail = f"no session has the id or the key {name!r}. `gatehouse sessions list` shows both."
    raise Refused(404, detail, "not_found")


async def pages_of(
    gateway: "GatewayClient", session: str, query: dict[str, str]
) -> "list[list[JsonObject]]":
    """The messages of a conversation, page by page, the newest page first."""
    path = f"/v1/sessions/{await session_id_of(gateway, session)}/messages"
    return [page async for page in gateway.pages(path, query)]
