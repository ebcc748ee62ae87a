"""`runs`: what the agent does and did."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.common import (
    SESSION_HELP,
    AsJson,
    Limit,
    ask_gateway,
    cell,
    group,
    one_of,
    print_json,
    say,
    when,
)
from gateway.cli.listing import OF_RUNS, Listing, Watch
from gateway.cli.listing import show as show_list
from gateway.cli.sessions import session_id_of

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient, JsonObject

app = group("Look at runs and stop them.")

STATES: Final = (
    "queued",
    "running",
    "waiting_for_approval",
    "waiting_for_user_question",
    "waiting_for_children",
    "completed",
    "failed",
    "interrupted",
    "cancelled",
)
"""As `runtime.domain.runs` names them, which loads too much for the frame."""
RunId = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id; `gatehouse runs list` shows it.")
]


@app.command("list")
def list_(
    context: typer.Context,
    session: Annotated[
        str, typer.Option("--session-id", "--session", help=f"Only its runs. {SESSION_HELP}")
    ] = "",
    status: Annotated[
        str, typer.Option(callback=one_of(*STATES), help="In this state only, such as running.")
    ] = "",
    limit: Limit = 50,
    watch: Watch = False,
    as_json: AsJson = False,
) -> None:
    """Show runs, the newest first."""

    async def read(gateway: "GatewayClient") -> "list[JsonObject]":
        session_id = await session_id_of(gateway, session) if session else ""
        asked = {"session_id": session_id, "status": status}
        query = {name: value for name, value in asked.items() if value}
        return await gateway.items("/v1/runs", query, most=limit)

    columns = {"ID": "id", "STATE": "state", "STEP": "step", "MADE": "made"}
    listing = Listing(
        read,
        lambda one: {**one, "made": when(one.get("created_at_ms"))},
        {**columns, "ABOUT": "summary", "BY": "speaker", "ERROR": "error"},
        "There are no such runs.",
        (*OF_RUNS, "step.model", "step.tools"),
    )
    show_list(context, listing, watch=watch, as_json=as_json)


@app.command()
def show(context: typer.Context, run: RunId, as_json: AsJson = False) -> None:
    """Show one run and its events."""
    found = ask_gateway(context, lambda gateway: gateway.get(f"/v1/runs/{run}"))
    events = ask_gateway(context, lambda gateway: gateway.items(f"/v1/runs/{run}/events"))
    if as_json:
        print_json({"run": found, "events": events})
        return
    for name in (
        "id",
        "session_id",
        "kind",
        "state",
        "summary",
        "step",
        "model",
        "speaker",
        "error",
    ):
        say(f"{name.ljust(10)}  {cell(found.get(name))}")
    if found.get("undone") is True:
        say("undone      yes: the agent does not know it any more")
    for event in events:
        say(f"{when(event.get('at_ms'))}  {cell(event.get('kind'))}")


@app.command()
def cancel(context: typer.Context, run: RunId, as_json: AsJson = False) -> None:
    """End a run. Ending it twice changes nothing."""
    path = f"/v1/runs/{run}/cancel"
    found = ask_gateway(context, lambda gateway: gateway.post(path), as_json=as_json)
    say(f"{run} is {found.get('state')}, and was told to stop.")
