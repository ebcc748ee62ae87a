"""What is asked of schedules and what is shown of them: the shapes of `/v1/schedules`, which chat
and tools use as well. Pure."""

from typing import Annotated, Final, Literal, get_args

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator, model_validator

from runtime.domain.messages import ChatKind
from runtime.domain.value import JsonSchema, Value, any_of, given, one_of, tagged
from runtime.features.schedules.cadence import Cadence, Zone

MOST_GRACE_MS: Final = 24 * 3600 * 1000
MOST_CHARACTERS: Final = 100_000
"""Of a request's words."""
MOST_REMINDED: Final = 4_000
"""Characters of a plain reminder."""
MOST_EXECUTIONS_SHOWN: Final = 50
MOST_GATE: Final = 4_000
"""Characters of a gate's command."""
MOST_GATE_S: Final = 600.0
MOST_HEARTBEAT: Final = 2_000
"""Characters of what a heartbeat is asked: its whole prompt stays small."""

Id = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_]+$")]
Words = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS, pattern=r"\S")]
OverlapPolicy = Literal["skip", "queue_one", "parallel"]
ScheduleStatus = Literal["active", "paused", "completed", "cancelled"]
STATUSES: Final[tuple[ScheduleStatus, ...]] = get_args(ScheduleStatus)
ExecutionStatus = Literal["claimed", "dispatched", "retrying", "skipped", "rolled_back", "settled"]


class _Place(Value):
    channel: str = Field(min_length=1, max_length=40)
    account: str = Field(min_length=1, max_length=200)
    chat: str = Field(min_length=1, max_length=200)
    thread: str | None = Field(default=None, max_length=200)


class Place(_Place):
    """A chat, and the thread in it. It is stored whole and never changes by itself."""

    chat_kind: ChatKind


class AskedPlace(_Place):
    """A place as it is asked for. Without a ``chat_kind`` it has that of the conversations that are
    known in its chat; where there is none, it must be given."""

    chat_kind: ChatKind | None = None


class TextItem(Value):
    """Words of a request."""

    type: Literal["text"]
    text: Words


class ScheduledRequest(Value):
    """What a run is asked at each fire: ``content``, or items in the order in which they are
    meant."""

    model_config = one_of("content", "input_items")

    content: Words | None = None
    input_items: tuple[TextItem, ...] | None = Field(default=None, min_length=1, max_length=50)

    @model_validator(mode="after")
    def _one_of_both(self) -> "ScheduledRequest":
        if (self.content is None) == (self.input_items is None):
            raise ValueError("give either content or input_items")
        return self

    @property
    def text(self) -> str:
        """All its words."""
        return self.content or "\n\n".join(item.text for item in self.input_items or ())


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must hold no NUL character")
    return text


class Gate(Value):
    """A command whose exit code and output decide whether a run is made."""

    command: Annotated[
        str,
        Field(min_length=1, max_length=MOST_GATE, pattern=r"\S"),
        AfterValidator(_no_nul),
    ]
    working_dir: Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_no_nul)] = (
        "."
    )
    timeout_s: Annotated[float, Field(gt=0, le=MOST_GATE_S, allow_inf_nan=False)] = 60.0


class ObservationSource(Value):
    """What is observed: what was said in a session, or what changed under a path."""

    model_config = one_of("session_id", "watch_path")

    session_id: Id | None = None
    watch_path: (
        Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_no_nul)] | None
    ) = None
    room_id: Annotated[Id | None, WithJsonSchema({"type": "null"})] = Field(
        default=None, description="Rooms cannot be observed yet."
    )

    @field_validator("room_id")
    @classmethod
    def _no_rooms(cls, room_id: str | None) -> str | None:
        if room_id is not None:
            raise ValueError("cannot be observed yet: give session_id or watch_path")
        return room_id

    @model_validator(mode="after")
    def _one_of_both(self) -> "ObservationSource":
        if (self.session_id is None) == (self.watch_path is None):
            raise ValueError("give exactly one of session_id and watch_path")
        return self


class ObservationMaterialization(Value):
    """A run that is asked ``request`` together with what is new in the ``source``."""

    target_session_id: Id
    source: ObservationSource
    request: ScheduledRequest


class CoalesceOnce(Value):
    """What was missed while nothing ran fires once."""

    model_config = tagged()

    type: Literal["coalesce_once"] = "coalesce_once"


class SkipMissed(Value):
    """What is older than the grace window is dropped, the rest fires."""

    type: Literal["skip_missed"]
    grace_ms: Annotated[int, Field(strict=True, ge=0, le=MOST_GRACE_MS)] = 60_000


Misfire = Annotated[CoalesceOnce | SkipMissed, Field(discriminator="type")]
USUAL_MISFIRE: Final = CoalesceOnce()


_NOT_ONLY_SAID: Final[JsonSchema] = {
    "if": given("deliver_text"),
    "then": {
        "properties": {
            "overlap_policy": {"not": {"const": "queue_one"}},
            "gate": {"type": "null"},
            "heartbeat": {"const": False},
        }
    },
    "else": {
        "not": {
            "required": ["heartbeat", "overlap_policy"],
            "properties": {
                "heartbeat": {"const": True},
                "overlap_policy": {"const": "parallel"},
            },
        }
    },
}
"""The JSON Schema of what goes with words that are only said, and with a heartbeat."""


class ScheduleCreateRequest(Value):
    """A new schedule: ``request`` makes a run at each fire, ``observation_materialization`` makes
    one where something is new, ``deliver_text`` says words as they stand and asks no model."""

    model_config = one_of(
        *("request", "deliver_text", "observation_materialization"),
        **_NOT_ONLY_SAID,
    )

    name: str = Field(min_length=1, max_length=200, pattern=r"\S")
    target_session_id: Id
    place: AskedPlace | None = None
    owner_person_id: Id | None = None
    timezone: Zone = "UTC"
    deliver_text: Annotated[str, Field(min_length=1, max_length=MOST_REMINDED, pattern=r"\S")] | (
        None
    ) = None
    request: ScheduledRequest | None = None
    observation_materialization: ObservationMaterialization | None = None
    gate: Gate | None = None
    heartbeat: bool = False
    target_agent_id: Id | None = None
    owner_session_id: Id | None = None
    owner_agent_id: Id | None = None
    created_by_run_id: Id | None = None
    cadence: Cadence
    overlap_policy: OverlapPolicy = "skip"
    misfire_policy: Misfire = USUAL_MISFIRE
    max_executions: Annotated[int, Field(strict=True, gt=0, lt=2**31)] | None = None

    @model_validator(mode="after")
    def _one_of_three(self) -> "ScheduleCreateRequest":
        observed = self.observation_materialization
        if [self.request, self.deliver_text, observed].count(None) != 2:
            raise ValueError(
                "give exactly one of request, deliver_text and observation_materialization"
            )
        return self

    @property
    def asked(self) -> ScheduledRequest | None:
        """What its runs are asked; None where it only says words."""
        observed = self.observation_materialization
        return self.request if observed is None else observed.request


class ScheduleChange(Value):
    """What is to be another one in a schedule; what is left out stays."""

    model_config = any_of(
        "name",
        "timezone",
        "deliver_text",
        "request",
        "gate",
        "cadence",
        "overlap_policy",
        "misfire_policy",
        "max_executions",
    )

    name: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"\S")
    timezone: Zone | None = None
    deliver_text: (
        Annotated[str, Field(min_length=1, max_length=MOST_REMINDED, pattern=r"\S")] | None
    ) = None
    request: ScheduledRequest | None = None
    gate: Gate | None = None
    cadence: Cadence | None = None
    overlap_policy: OverlapPolicy | None = None
    misfire_policy: Misfire | None = None
    max_executions: Annotated[int, Field(strict=True, gt=0, lt=2**31)] | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> "ScheduleChange":
        given = {name for name in self.model_fields_set if getattr(self, name) is not None}
        if not given:
            raise ValueError("say what is to change")
        return self


class CancelRequest(Value):
    """``stop_run`` ends the run that is at work too."""

    stop_run: bool = False


class ExecutionView(Value):
    """What became of one time of a schedule. Green is only what ended well in both: the run
    (``run_status``) and its reply's delivery (``delivery_status``). ``spoke`` says whether a
    heartbeat had something to say; it is null for any other run."""

    fire_at_ms: int
    run_id: str | None = None
    run_status: str | None = None
    delivery_status: str | None = None
    spoke: bool | None = None
    status: ExecutionStatus
    attempt: int = 0
    from_queued_fire: bool = False
    claimed_at_ms: int | None = None
    dispatched_at_ms: int | None = None
    settled_at_ms: int | None = None
    retry_after_ms: int | None = None
    error: str | None = None


GateStatus = Literal["waiting_for_approval", "approved", "denied"]


class GateView(Gate):
    """A gate, and how its approval stands. An approval is given to what ``digest`` is of: the
    command, its folder and the files that it runs; there is none before somebody was asked. The
    card that asks has the ``request_id``."""

    status: GateStatus
    digest: str | None = None
    request_id: str | None = None
    shown: str | None = None


class GateDecision(Value):
    """A person's answer about a gate, given to the ``digest`` that they were shown.

    A ``request_id`` ties it to one card, which also says when the gate runs: the answer is refused
    once a newer card was posted."""

    behavior: Literal["allow", "deny"]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    request_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None


class ScheduleView(Value):
    """A schedule as it stands. Instants are milliseconds since the epoch."""

    schedule_id: str
    name: str
    target_session_id: str | None
    run_session_id: str | None
    place: Place
    owner_person_id: str
    timezone: str
    deliver_text: str | None = None
    request: ScheduledRequest | None = None
    observation_materialization: ObservationMaterialization | None = None
    gate: GateView | None = None
    heartbeat: bool = False
    target_agent_id: str | None = None
    owner_session_id: str | None = None
    owner_agent_id: str | None = None
    created_by_run_id: str | None = None
    cadence: Cadence | None = None
    overlap_policy: OverlapPolicy
    misfire_policy: Misfire
    max_executions: int | None = None
    status: ScheduleStatus
    next_fire_at_ms: int | None = None
    next_fires_at_ms: tuple[int, ...] = ()
    remaining_ms: int | None = None
    queued_fire_at_ms: int | None = None
    in_flight_fire_at_ms: int | None = None
    in_flight_run_id: str | None = None
    last_fire_at_ms: int | None = None
    last_dispatched_run_id: str | None = None
    last_error: str | None = None
    last_scheduler_error: str | None = None
    scheduler_retry_after_ms: int | None = None
    scheduler_retry_attempt: int = 0
    execution_count: int = 0
    consecutive_failures: int = 0
    recent_executions: tuple[ExecutionView, ...] = ()
    created_at_ms: int
    updated_at_ms: int


class ScheduleAnswer(Value):
    """The answer to whatever changes one schedule."""

    schedule: ScheduleView
