"""Tasks as people and programs see them: requests and answers (TSK-1, TSK-2). Pure."""

import json
from typing import Annotated, Final, Literal, get_args

from pydantic import AfterValidator, Field, field_validator

from runtime.domain.value import HAS_WORDS, JsonObject, Value

Status = Literal["pending", "in_progress", "blocked", "completed", "failed", "cancelled"]
Notify = Literal["done", "changes", "silent"]
Retrieval = Literal["success", "not_ready", "timeout"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)
OVER: Final[frozenset[Status]] = frozenset({"completed", "failed", "cancelled"})
"""The statuses that a task keeps."""

TAIL_BYTES: Final = 8 * 1024
MOST_TAIL_BYTES: Final = 256 * 1024
WAIT_MS: Final = 30_000
MOST_WAIT_MS: Final = 600_000
MOST_BLOCKERS: Final = 50
MOST_INPUT: Final = 64 * 1024
_METADATA_BYTES: Final = 16 * 1024
UNTRUSTED: Final = "untrusted"
"""The fact that says that an agent which had read something from outside wrote words of a task."""


def ends_line(text: str) -> bool:
    """Whether nothing that is typed behind a text can belong to a line of it: it is empty, or ends
    with a line break that no backslash takes away."""
    if not text:
        return True
    line = text[:-1]
    return text[-1] == "\n" and (len(line) - len(line.rstrip("\\"))) % 2 == 0


def is_same_command(text: str, other: str) -> bool:
    """Whether two texts are one command but for its spaces. A line break is none: what stands
    behind it is another command, also where the line before it ends in a comment."""
    return _lines(text) == _lines(other)


def _lines(command: str) -> list[list[str]]:
    return [line.split() for line in command.strip().split("\n")]


class TaskRecord(Value):
    """One task. ``metadata`` holds what its makers put there and what the gateway found out, as a
    command's ``exit_code``; where both have a key, the gateway's counts. Its ``untrusted`` says
    that an agent which had read something from outside wrote some of the words."""

    id: str
    title: str
    description: str
    status: Status
    owner_agent_id: str | None = None
    blocked_by: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    output: str | None = Field(default=None, description="path of the output in the workspace")
    metadata: JsonObject = Field(default_factory=dict)
    created_at_ms: int
    updated_at_ms: int

    @property
    def is_untrusted(self) -> bool:
        """Whether who is shown its words is shown something from outside (POL-6)."""
        return bool(self.metadata.get(UNTRUSTED))


class TaskOutputView(Value):
    """What a task printed. ``retrieval_status`` says how the reading went, and never how the task
    did. The excerpt is the end of the output; sizes are in bytes, of the file and of all that was
    ever printed."""

    retrieval_status: Retrieval
    task: TaskRecord
    output_file_path: str | None = None
    output_excerpt: str | None = None
    output_text: str | None = None
    output_truncated: bool = False
    output_size_bytes: int | None = None
    output_total_bytes: int | None = None
    output_rotated: bool = False
    output_rotation_count: int = 0


def _shown(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold a NUL character")
    return text


def _stripped(title: str) -> str:
    if not title.strip():
        raise ValueError("must not be blank")
    return title.strip()


Title = Annotated[
    str,
    Field(min_length=1, max_length=200, json_schema_extra={"pattern": HAS_WORDS}),
    AfterValidator(_shown),
    AfterValidator(_stripped),
]
Line = Annotated[str, Field(max_length=200), AfterValidator(_shown)]
Prose = Annotated[str, Field(max_length=8_000), AfterValidator(_shown)]
TaskId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")]


def _small(metadata: JsonObject) -> JsonObject:
    if len(json.dumps(metadata)) > _METADATA_BYTES:
        raise ValueError(f"must be at most {_METADATA_BYTES:,} bytes as JSON")
    return metadata


class TaskCreate(Value):
    """A task to be made."""

    title: Title
    description: Prose = ""
    blocked_by: tuple[TaskId, ...] = Field(
        default=(), max_length=MOST_BLOCKERS, description="ids of tasks that come first"
    )
    owner_agent_id: Line | None = None
    metadata: JsonObject = Field(default_factory=dict)
    notify: Notify = Field(default="silent", description="whether who asked is told of it")

    @field_validator("metadata")
    @classmethod
    def _not_too_large(cls, metadata: JsonObject) -> JsonObject:
        return _small(metadata)


class TaskUpdate(Value):
    """What is to change of a task; what is absent stays. ``metadata`` is merged key by key, and a
    null takes a key away."""

    title: Title | None = None
    description: Prose | None = None
    status: Literal["pending", "in_progress", "completed", "failed", "cancelled"] | None = None
    blocked_by: tuple[TaskId, ...] | None = Field(default=None, max_length=MOST_BLOCKERS)
    owner_agent_id: Line | None = None
    metadata: JsonObject | None = None
    notify: Notify | None = None

    @field_validator("metadata")
    @classmethod
    def _not_too_large(cls, metadata: JsonObject | None) -> JsonObject | None:
        return None if metadata is None else _small(metadata)


class OutputRequest(Value):
    """Which part of an output, and whether to wait for more of it or for a change of the task."""

    wait: bool = False
    timeout_ms: int = Field(default=WAIT_MS, ge=0, le=MOST_WAIT_MS)
    tail_bytes: int = Field(default=TAIL_BYTES, ge=1, le=MOST_TAIL_BYTES)
    full: bool = False
