"""`agents`: subagents, as far as they can be looked at from a terminal."""

from gateway.cli import agent_types
from gateway.cli.common import group

app = group("Look at subagents and at what defines them.")
app.add_typer(agent_types.app, name="types")


@app.callback()
def group_of_one() -> None:
    """Look at subagents and at what defines them."""
