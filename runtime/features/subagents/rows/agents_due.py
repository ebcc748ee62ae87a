"""Whether there is something to do for subagents, as a part of the one statement that looks."""

from typing import Final

from sqlalchemy import ColumnElement, exists, or_, text

from runtime.features.subagents.rows.agents import ENDING, STARTABLE
from runtime.features.subagents.rows.deadlines import TIMED
from runtime.features.subagents.tables import agent_cards, agents
from runtime.sessions.due_work import DueCheck
from runtime.sessions.tables import lanes


def _due(now: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a subagent is to start, to run, to end, or to be shown."""
    wants = exists().where(lanes.c.wants_ms <= now)
    asked = exists().where(text(ENDING)).select_from(agents)
    shown = exists().where(agent_cards.c.next_ms <= now)
    late = exists().where(text(TIMED), agents.c.deadline_ms <= now)
    return or_(wants, asked, STARTABLE.exists(), shown, late)


SUBAGENTS_DUE: Final = DueCheck("subagents", _due)
