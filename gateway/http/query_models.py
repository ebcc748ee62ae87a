"""What queries may say: the models that hold them, and the reading of them.

A query is text. Numbers and flags are read from it strictly: what the document does not allow is
refused, and so is a parameter that it does not know.
"""

import re
from typing import Annotated, Final, Literal, TypeVar

from aiohttp import web
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from gateway.http.problems import BrokenBody
from runtime.domain.errors import InvalidInput
from runtime.domain.runs import RunState
from runtime.domain.value import Value
from runtime.features.schedules.model import GateStatus, ScheduleStatus
from runtime.features.subagents.status_words import AgentStatus
from runtime.features.tasks.model import MOST_TAIL_BYTES, MOST_WAIT_MS, TAIL_BYTES, WAIT_MS
from runtime.features.tasks.model import Status as TaskStatus

V = TypeVar("V", bound=Value)
MAX_LIMIT: Final = 200
DEFAULT_LIMIT: Final = 50
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


def _whole(text: object) -> object:
    if isinstance(text, str) and not re.fullmatch(r"[0-9]{1,10}", text, re.ASCII):
        raise ValueError("must be a whole number")
    return text


def _flag(text: object) -> object:
    if isinstance(text, str):
        if text not in _FLAGS:
            raise ValueError("must be true or false")
        return _FLAGS[text]
    return text


Whole = Annotated[int, Field(ge=0, lt=2**31), BeforeValidator(_whole)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")]


class NoQuery(Value):
    """A route without parameters."""


class UploadQuery(Value):
    """What an upload is called."""

    name: str = Field(
        default="file", min_length=1, max_length=255, description="The name of the file."
    )


class Paging(Value):
    """Which part of a list."""

    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT), BeforeValidator(_whole)] = Field(
        default=DEFAULT_LIMIT, description="How many items, at most."
    )
    cursor: str | None = Field(
        default=None,
        description="`next_cursor` of the page before.",
        json_schema_extra={"pattern": "^[A-Za-z0-9_-]*={0,2}$"},
    )
    page: Flag = Field(default=True, description="Accepted and not needed: every list is paged.")

    @property
    def after(self) -> str | None:
        """The cursor; an empty one is none."""
        return self.cursor or None


class SessionsQuery(Paging):
    """Which sessions."""

    subagents: Flag = Field(default=True, description="`false` leaves out those of subagents.")
    q: str = Field(default="", description="A part of the title.")
    key: str = Field(default="", description="The one session with this key.")
    archived: Flag | None = Field(default=None, description="Those put aside, or the others.")


class MessagesQuery(Paging):
    """Which part of a conversation."""

    transcript: Whole | None = Field(default=None, description="Counts from 1; `/new` begins one.")
    html: Flag = Field(default=False, description="Adds sanitised HTML.")


class RunsQuery(Paging):
    """Which runs."""

    session_id: Id | None = Field(default=None, description="Of this session.")
    status: RunState | None = Field(default=None, description="In this state.")


class OpenCallsQuery(Paging):
    """Which approvals or questions."""

    session_id: Id | None = Field(default=None, description="Of this session.")


class SnapshotsQuery(Paging):
    """Which agents."""

    session_id: Id | None = Field(default=None, description="Any session of the tree.")


class AgentsQuery(Paging):
    """Which agents. Without a scope: every tree in which somebody is at work."""

    session_id: Id | None = Field(default=None, description="Any session of the tree.")
    root: Id | None = Field(default=None, description="The session at the top of the tree.")
    root_agent_id: Id | None = Field(default=None, description="The same as `root`.")
    status: AgentStatus | None = Field(default=None, description="In this state.")
    has_runtime: Flag | None = Field(default=None, description="Whether they are at work.")

    @model_validator(mode="after")
    def _one_scope(self) -> "AgentsQuery":
        given = (self.session_id, self.root, self.root_agent_id)
        if sum(one is not None for one in given) > 1:
            raise ValueError("give one of session_id, root and root_agent_id")
        return self


class SchedulesQuery(Paging):
    """Which schedules."""

    session_id: Id | None = Field(
        default=None, description="Made in this session, or with their runs in it."
    )
    status: ScheduleStatus | None = Field(default=None, description="In this state.")
    gate_status: GateStatus | None = Field(
        default=None,
        description="With a gate in this state of approval. One that waits may have no card yet.",
    )


class TasksQuery(Paging):
    """Which tasks of the session."""

    status: TaskStatus | None = Field(default=None, description="In this state.")


class OutputQuery(Value):
    """Which part of an output, and whether to wait for it."""

    wait: Flag = Field(
        default=False, description="Answers once there is more output or the task changes."
    )
    timeout_ms: Annotated[int, Field(ge=0, le=MOST_WAIT_MS), BeforeValidator(_whole)] = Field(
        default=WAIT_MS, description="How long to wait, at most."
    )
    tail_bytes: Annotated[int, Field(ge=1, le=MOST_TAIL_BYTES), BeforeValidator(_whole)] = Field(
        default=TAIL_BYTES, description="Length of the excerpt."
    )
    full: Flag = Field(default=False, description="Adds all of the output.")


class ExportQuery(Value):
    """The form of an export."""

    format: Literal["markdown", "json"] = Field(default="markdown", description="Of the file.")


class EventsQuery(Value):
    """Which events."""

    session_id: Id | None = Field(default=None, description="Of this session.")
    run_id: Id | None = Field(default=None, description="Of this run.")
    kinds: str = Field(
        default="", description="Kinds such as `run.completed`, or their first words; by commas."
    )
    last_event_id: str = Field(
        default="",
        pattern=r"^[0-9]{0,18}$",
        description="Go on behind this event; the header `Last-Event-ID` comes first.",
    )
    html: Flag = Field(default=False, description="`prose` events with HTML instead of `delta`.")


def read_query(request: web.Request, model: type[V]) -> V:
    """The query as `model`. Raises `InvalidInput` and `BrokenBody`."""
    for name in request.query:
        if len(request.query.getall(name)) > 1:
            raise InvalidInput(name or "query", "must be given once")
        if "\x00" in name or "\x00" in request.query[name]:
            raise InvalidInput("query", "must not hold the character NUL")
    try:
        return model.model_validate(dict(request.query))
    except ValidationError as error:
        raise BrokenBody(error, model) from None
