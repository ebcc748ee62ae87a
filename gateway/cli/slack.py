"""`slack`: setting up the Slack application."""

import typer

from gateway.cli.common import group, say

app = group("Set up Slack.")


@app.command()
def manifest() -> None:
    """Print the application manifest for api.slack.com, with exactly the scopes in use."""
    # Lazy: the composition root loads the adapters.
    from gateway import wiring

    say(wiring.slack_manifest().rstrip())


@app.callback()
def slack(context: typer.Context) -> None:
    """Set up Slack."""
    del context
