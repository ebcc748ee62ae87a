"""`agents`: who works for whom, and what defines subagents."""

from gateway.cli import agent_tree, agent_types
from gateway.cli.common import group

app = group("Show subagents and their types.")
app.add_typer(agent_types.app, name="types")
agent_tree.register(app)
