"""Whole results of subagents, for those who may read them, and the files that they wrote."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, or_, select

from runtime.domain.call_paths import paths_of
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.tables import agent_results, agent_waits, agents
from runtime.sessions.tables import runs, tool_calls
from runtime.store.statements import hot, insert_new

WRITERS: Final = ("write_file", "edit_file", "apply_patch")
"""The tools whose calls say which file they leave."""
MOST_WRITTEN: Final = 64
"""Calls of an agent, from its last on, that are looked at for the files it wrote."""
MOST_HANDED: Final = 64
"""Results that one reader is given as files; of more, those that settled last."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A result that somebody may read as a file; `size` in bytes of UTF-8."""

    agent_id: str
    digest: str
    size: int


def keep(conn: Connection, agent_id: str, digest: str, words: str, *, now: int) -> None:
    """Keep a whole result, once."""
    row = {"session_id": agent_id, "digest": digest, "words": words, "created_ms": now}
    insert_new(conn, agent_results, {**row, "size": len(words.encode())})


def whole(conn: Connection, agent_id: str, digest: str) -> str | None:
    """A whole result; None where none is kept."""
    return conn.execute(
        select(agent_results.c.words).where(
            agent_results.c.session_id == agent_id, agent_results.c.digest == digest
        )
    ).scalar_one_or_none()


def result_of(conn: Connection, agent: Agent) -> str:
    """All that an agent gave in the end."""
    if agent.result_digest is None:
        return agent.result
    found = whole(conn, agent.session_id, agent.result_digest)
    return agent.result if found is None else found


_NEEDED = select(agent_waits.c.other_id).where(
    agent_waits.c.session_id == bindparam("the_session"), agent_waits.c.kind == "dependency"
)
_HANDED = hot(
    select(agent_results.c.session_id, agent_results.c.digest, agent_results.c.size)
    .join(agents, agents.c.session_id == agent_results.c.session_id)
    .where(or_(agents.c.parent_id == bindparam("the_session"), agents.c.session_id.in_(_NEEDED)))
    .order_by(agent_results.c.created_ms.desc(), agents.c.place.desc())
    .limit(MOST_HANDED)
)


def handed_to(conn: Connection, session_id: str) -> Sequence[Handed]:
    """The long results of a session's children, and of those that it depends on."""
    return [Handed(*row) for row in _HANDED.rows(conn, the_session=session_id)]


def written(conn: Connection, agent_id: str) -> Sequence[str]:
    """The paths of files that an agent wrote, as it named them, the newest last."""
    rows = conn.execute(
        select(tool_calls.c.arguments, tool_calls.c.result)
        .join(runs, runs.c.id == tool_calls.c.run_id)
        .where(
            runs.c.session_id == agent_id,
            tool_calls.c.name.in_(WRITERS),
            tool_calls.c.result.is_not(None),
        )
        .order_by(runs.c.seq.desc(), tool_calls.c.step.desc(), tool_calls.c.place.desc())
        .limit(MOST_WRITTEN)
    )
    done = [paths_of(row.arguments) for row in rows if json.loads(row.result)["status"] == "ok"]
    return list(dict.fromkeys(path for paths in reversed(done) for path in paths))
