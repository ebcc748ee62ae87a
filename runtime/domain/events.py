"""Events: the durable record of what happened to a session, and the live ones that are not kept.

Durable events are numbered per session. Live events (text deltas, typing) carry (run, step,
offset) instead: a reader that finds a gap asks for a snapshot of the running step (MSG-21).
"""

from enum import StrEnum

from runtime.domain.value import JsonObject, Value


class EventKind(StrEnum):
    """Durable kinds; the word before the dot is the noun that a filter names."""

    SESSION_CREATED = "session.created"
    SESSION_CHANGED = "session.changed"
    INPUT_ACCEPTED = "input.accepted"
    INPUT_TAKEN = "input.taken"
    INPUT_REVISED = "input.revised"
    INPUT_WITHDRAWN = "input.withdrawn"
    RUN_QUEUED = "run.queued"
    RUN_STARTED = "run.started"
    RUN_RESUMED = "run.resumed"
    RUN_WAITING = "run.waiting"
    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"
    RUN_INTERRUPTED = "run.interrupted"
    RUN_CANCELLED = "run.cancelled"
    RUN_UNDONE = "run.undone"
    STEP_MODEL = "step.model"
    STEP_TOOLS = "step.tools"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_DECIDED = "approval.decided"
    QUESTION_ASKED = "question.asked"
    QUESTION_ANSWERED = "question.answered"
    AGENT_SPAWNED = "agent.spawned"
    AGENT_SETTLED = "agent.settled"
    SCHEDULE_CHANGED = "schedule.changed"
    SCHEDULE_FIRED = "schedule.fired"
    SCHEDULE_DISPATCHED = "schedule.dispatched"
    SCHEDULE_SKIPPED = "schedule.skipped"
    SCHEDULE_SETTLED = "schedule.settled"
    TASK_CREATED = "task.created"
    TASK_CHANGED = "task.changed"
    MAIL_ACCEPTED = "mail.accepted"
    MAIL_DELIVERED = "mail.delivered"
    MAIL_DEAD = "mail.dead"
    DELIVERY_SENT = "delivery.sent"
    DELIVERY_DEAD = "delivery.dead"
    DELIVERY_UNKNOWN = "delivery.unknown"


class Event(Value):
    """A durable event. ``seq`` is its place in its session, ``position`` in the global feed."""

    position: int
    session_id: str
    seq: int
    run_id: str | None
    kind: EventKind
    at_ms: int
    data: JsonObject


class TextDelta(Value):
    """A piece of the running step's text; ``offset`` is in characters from the step's start.

    ``offset`` 0 starts the step's text anew: a broken stream was begun again.
    """

    session_id: str
    run_id: str
    step: int
    offset: int
    text: str


class Activity(Value):
    """The running step in one word for typing signals: ``thinking``, ``writing``, a tool's name.

    ``done`` ends the signal.
    """

    session_id: str
    run_id: str
    step: int
    state: str
    detail: str = ""
