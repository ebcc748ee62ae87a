"""`slack`: setting up the Slack application."""

from typing import Annotated

import typer

from gateway.cli.common import USAGE, examples, fail, group, say

app = group("Set up Slack.")


@app.command(
    epilog=examples(
        "gatehouse slack manifest", "gatehouse slack manifest --http https://bot.example.org"
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
) -> None:
    """Print the application manifest for api.slack.com, with exactly the scopes in use."""
    # Lazy: the composition root loads the adapters.
    from gateway import wiring_chats
    from runtime.domain.errors import InvalidInput

    try:
        say(wiring_chats.slack_manifest(http).rstrip())
    except InvalidInput as error:
        fail(str(error), USAGE)


@app.callback()
def slack(context: typer.Context) -> None:
    """Set up Slack."""
    del context
