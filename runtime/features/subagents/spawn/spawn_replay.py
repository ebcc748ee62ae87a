"""A spawn that was sent before, under the same key: its agents, and nothing new (SUB-6).

What was sent is compared, as its digest in the agents' rows, and nothing that was looked up for it:
so it is the same spawn after a restart, and whatever its parent inherited or was granted meanwhile.
"""

from collections.abc import Sequence

from runtime.domain.tools import ToolResult
from runtime.features.subagents.ends import handoff_text
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.spawn.spawn_terms import Terms
from runtime.sessions import runs
from runtime.sessions.calls import CallRow
from runtime.sessions.runs import Run
from runtime.store import Connection

LIVE = "This request started them before, so nothing new was started. {rest}"
TOLD = "You will be told the results of those that still work."
SILENT = "Look after those that still work with subagents."


def repeated(conn: Connection, run: Run, row: CallRow, terms: Terms) -> ToolResult | None:
    """What a call is told that spawned before; None where it did not. The lane is held."""
    if terms.key is None:
        return None
    there = agents.of_request(conn, run.session_id, terms.key)
    if not there:
        return None
    wrong = _conflict(conn, there, run, terms)
    if wrong:
        names = ", ".join(one.name for one in there)
        text = f"Nothing was started:\n- spawn_request_id: {wrong} (it started {names})"
        return ToolResult(call_id=row.call.id, name=row.call.name, status="error", content=text)
    settled = [one for one in there if one.settled_ms is not None]
    live = [one for one in there if one.settled_ms is None]
    said, tainted = handoff_text.together(conn, settled)
    lines = [handoff_text.reply(conn, one) for one in live]
    parts = [LIVE.format(rest=_rest(live)).strip(), *lines, said]
    return ToolResult(
        call_id=row.call.id,
        name=row.call.name,
        content="\n".join(part for part in parts if part),
        untrusted=tainted,
    )


def _conflict(conn: Connection, there: Sequence[Agent], run: Run, terms: Terms) -> str:
    first = there[0]
    if first.request_digest != terms.digest:
        return (
            f"{terms.key} is the key of a spawn with other arguments; send the same ones again, "
            "or use another key"
        )
    # Nobody is told what somebody with other rights asked for.
    if runs.get(conn, first.run_id).speaker.trust is not run.speaker.trust:
        return f"{terms.key} is the key of a spawn for somebody else; use another key"
    return ""


def _rest(live: Sequence[Agent]) -> str:
    if not live:
        return ""
    return SILENT if any(one.share == "isolated" for one in live) else TOLD
