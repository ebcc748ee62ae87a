"""What is said of a settled child (SUB-8 to SUB-10): a header of ours, and the child's words.

The words are fenced as data, so that nothing in them can pass for the header, for a status or for
a person; so are the names of the files that it wrote. A long result is given as its beginning with
a path: whoever takes a run that is told so writes the file first, from what this unit kept.
"""

import json
from collections.abc import Sequence
from typing import Final

from runtime.domain import worktrees
from runtime.domain.counts import counted
from runtime.domain.fence import fence
from runtime.domain.printable import printable_name
from runtime.domain.results import SPOOLED, cut, path_of, plain
from runtime.features.subagents.agent_words import in_words, retried
from runtime.features.subagents.notices import Told
from runtime.features.subagents.rows import agents, results
from runtime.features.subagents.rows.agents import Agent
from runtime.sessions import inputs
from runtime.store import Connection

TASK: Final = "task:"
"""How the identity of the input begins that is an agent's task, before its session."""
AWAITED: Final = 31 * 1024
"""Bytes of the results of one call: the cap of a tool's output less the words around them."""
AROUND: Final = 1_024
"""Bytes at most of a header, a fence and a path."""
LEAST: Final = 200
MOST_FILES: Final = 20
_PATH: Final = 200


def told(conn: Connection, agent: Agent, *, reader: str, most: int = SPOOLED) -> str:
    """One child's end in words for the session `reader`, with at most `most` bytes of its own."""
    words, size = agent.result, agent.result_bytes
    if agent.result_digest is not None and most > SPOOLED:
        words = results.result_of(conn, agent)
    shown = cut(words, most)
    parts = [header(agent)]
    tree = worktrees.words(agent.session_id, agent.tree_state)
    if tree:
        parts.append(tree)
    if not shown:
        parts.append("It gave no result.")
    elif agent.status != "completed":
        parts.append("What it had so far:")
    if shown:
        parts.append(fence(shown, f"subagent {agent.name}"))
    left = size - len(shown.encode())
    if left > 0:
        parts.append(f"[{left:,} of {size:,} bytes were left out; {_where(agent, reader)}]")
    files = json.loads(agent.artifacts)
    if files:
        parts += ["It wrote files:", fence(_files(files), f"files of subagent {agent.name}")]
    return "\n".join(parts)


def together(conn: Connection, there: Sequence[Agent]) -> Told:
    """What a call is told of its children that settled, within the cap of a tool's output."""
    most = max(AWAITED // max(1, len(there)) - AROUND, LEAST)
    said = [
        stands(one)
        if one.share == "isolated"
        else f"{reply(conn, one)}\n{told(conn, one, reader=one.parent_id, most=most)}"
        for one in there
    ]
    if len(there) > 1:
        done = sum(one.status == "completed" for one in there)
        said.insert(0, f"{len(there)} subagents: {done} completed, {len(there) - done} did not.")
    open_ones = [one for one in there if one.share != "isolated"]
    tainted = any(agents.totals(conn, one.session_id).tainted for one in open_ones)
    return Told("\n\n".join(said), tainted)


def reply(conn: Connection, agent: Agent) -> str:
    """The line about an agent for the call that spawned it, in JSON: ``accepted`` while it works,
    then ``completed`` or ``failed``. The run is the one that the agent began with."""
    status = "accepted"
    if agent.settled:
        status = "completed" if agent.status == "completed" else "failed"
    begun = inputs.known(conn, f"{TASK}{agent.session_id}")
    names = {"agent_id": agent.name, "session_id": agent.session_id}
    return json.dumps({"status": status, **names, "run_id": begun.run_id if begun else None})


def stands(agent: Agent) -> str:
    """All that is said of an isolated one: who it is, and how it ended (SUB-16)."""
    state = {"agent_id": agent.name, "session_id": agent.session_id, "status": agent.status}
    return f"{json.dumps(state)}\nIt is isolated: read its result with subagents, action output."


def header(agent: Agent) -> str:
    """Who ended, how, and what it used, in the gateway's own words."""
    ended = f"{in_words(agent.status or '')} after {agent.lasted_ms(agent.created_ms) / 1000:.1f} s"
    cost = "cost unknown" if agent.cost_usd is None else f"{agent.cost_usd:.4f} USD"
    return (
        f"The subagent {agent.name} ({agent.type}) {ended}: "
        f"{counted(agent.steps, 'step')}, {counted(agent.tool_calls, 'tool call')}, "
        f"{counted(agent.input_tokens + agent.output_tokens, 'token')}, {cost}"
        f"{retried(agent.retries)}."
    )


def _where(agent: Agent, reader: str) -> str:
    if agent.result_digest is None:
        return "read it with subagents, action output"
    return f"all of it is in {path_of(reader, agent.session_id, agent.result_digest)}"


def _files(files: Sequence[str]) -> str:
    """Paths as the child named them, each on one line."""
    lines = []
    for one in files[-MOST_FILES:]:
        lines.append(printable_name(plain(one), _PATH))
    if len(files) > MOST_FILES:
        lines.insert(0, f"({len(files) - MOST_FILES} earlier ones are left out)")
    return "\n".join(lines)
