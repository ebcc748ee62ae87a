"""`slack`: setting up the Slack application."""

from typing import Annotated

import typer

from gateway.cli.common import USAGE, examples, fail, group, note, say

app = group("Set up Slack.")


@app.command(
    epilog=examples(
        "gatehouse slack manifest",
        "gatehouse slack manifest --http https://bot.example.org",
        "gatehouse slack manifest --assistant-view",
    )
)
def manifest(
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="URL",
            help="The gateway's public https address. Slack calls it, and no socket is needed.",
        ),
    ] = None,
    socket: Annotated[
        bool,
        typer.Option("--socket", help="For Socket Mode, as without --http."),
    ] = False,
    assistant_view: Annotated[
        bool,
        typer.Option(
            "--assistant-view",
            help="For an app that was installed with the assistant view, until February 2027. "
            "New apps get the agent view.",
        ),
    ] = False,
) -> None:
    """Print the application manifest for api.slack.com, with exactly the scopes in use."""
    # Lazy: the composition root loads the adapters.
    from gateway import wiring_chats
    from runtime.domain.errors import InvalidInput

    if socket and http is not None:
        fail(
            "--socket and --http exclude each other: with --http Slack calls the gateway, with "
            "--socket the gateway opens the connection. Leave one of them out.",
            USAGE,
        )
    try:
        printed = wiring_chats.slack_manifest(http, assistant_view=assistant_view)
    except InvalidInput as error:
        fail(str(error), USAGE)
    say(printed.text.rstrip())
    if printed.note:
        note(f"gatehouse: {printed.note}")


@app.callback()
def slack(context: typer.Context) -> None:
    """Set up Slack."""
    del context
