"""The words for where an agent stands: the fine ones of chats and models, and those of the API.

`words` is the one place that maps them. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from runtime.domain.runs import RunState

AgentStatus = Literal[
    "idle",
    "running",
    "waiting_for_approval",
    "waiting_for_user_input",
    "failed",
    "completed",
    "cancelled",
]
DashboardStatus = Literal[
    "queued", "queued_global", "waiting", "retrying", "running", "done", "failed", "cancelled"
]
AT_WORK: Final[Mapping[RunState, str]] = {
    RunState.RUNNING: "running",
    RunState.WAITING_FOR_APPROVAL: "waiting_for_approval",
    RunState.WAITING_FOR_USER_QUESTION: "waiting_for_user_input",
    RunState.WAITING_FOR_CHILDREN: "awaiting",
}
"""Where an agent stands whose lane such a run has."""


@dataclass(frozen=True, slots=True)
class Words:
    """The same place in the words of the API's agents and of a dashboard."""

    agent: AgentStatus
    dashboard: DashboardStatus


STANDINGS: Final[Mapping[str, Words]] = {
    "idle": Words("idle", "done"),
    "waiting": Words("idle", "queued"),
    "queued": Words("idle", "queued_global"),
    "retrying": Words("idle", "retrying"),
    "running": Words("running", "running"),
    "awaiting": Words("running", "waiting"),
    "stopping": Words("running", "running"),
    "waiting_for_approval": Words("waiting_for_approval", "waiting"),
    "waiting_for_user_input": Words("waiting_for_user_input", "waiting"),
    "completed": Words("completed", "done"),
    "forced": Words("completed", "done"),
    "failed": Words("failed", "failed"),
    "timed_out": Words("failed", "failed"),
    "settled": Words("failed", "failed"),
    "cancelled": Words("cancelled", "cancelled"),
}
"""`idle` is a conversation in which nothing is to be done. An agent is `waiting` for others,
`queued` for a slot, `retrying` after a while, `awaiting` its own children; `waiting_for_user_input`
is a person's word or its parent's answer (AGT-4). The last five say how one settled."""


def words(standing: str) -> Words:
    """The words of the API and of a dashboard for where an agent stands."""
    return STANDINGS[standing]
