"""`agents`: who works for whom."""

from gateway.cli import agent_tree
from gateway.cli.common import group

app = group("Look at subagents.")


@app.callback()
def _group() -> None:
    """Look at subagents."""


agent_tree.register(app)
