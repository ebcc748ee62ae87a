"""Under which conditions a schedule asks the model, as its row keeps them. Pure.

A schedule that has some is checked at each of its times, before a run is made and a token is spent:
its gate is run, and what it observes is looked at. What was seen moves together with the run.
"""

from collections.abc import Mapping
from typing import Final, Literal

from runtime.domain.value import Value
from runtime.features.schedules.model import (
    Gate,
    GateStatus,
    ObservationSource,
    ScheduleCreateRequest,
    ScheduledRequest,
)

GateState = Literal["new", "waiting", "approved", "denied"]
NEW: Final = "new"
WAITING: Final = "waiting"
APPROVED: Final = "approved"
DENIED: Final = "denied"
GATE_STATES: Final[Mapping[GateStatus, tuple[GateState, ...]]] = {
    "waiting_for_approval": (NEW, WAITING),
    "approved": (APPROVED,),
    "denied": (DENIED,),
}
"""The states of a gate by what the API says of its approval."""
SKIP_CODE: Final = 77
"""The exit code by which a gate says that there is nothing to do, as test programs have it for a
test that is skipped."""
UNAPPROVED: Final = "its gate waits for approval"
REFUSED: Final = "its gate was denied"
CHANGED: Final = "its gate is not what was approved any more, and waits for approval again"
PRINTED_NOTHING: Final = "its gate printed nothing"
PRINTED_THE_SAME: Final = "its gate printed the same as last time"
SAID_SKIP: Final = f"its gate ended with exit code {SKIP_CODE}, which means that nothing is to do"
NOTHING_SAID: Final = "nothing was said there since the last time"
NOTHING_CHANGED: Final = "nothing changed under the path since the last time"
FIRST_LOOK: Final = "this was the first look; changes count from now on"


class Conditions(Value):
    """What a run is asked, and what is checked before."""

    request: ScheduledRequest
    gate: Gate | None = None
    source: ObservationSource | None = None
    heartbeat: bool = False

    @property
    def checked(self) -> bool:
        """Whether something is looked at before a run is made."""
        return self.gate is not None or self.source is not None

    @property
    def watches(self) -> str | None:
        """The path that is watched."""
        return None if self.source is None else self.source.watch_path

    @property
    def listens_to(self) -> str | None:
        """The session that is observed."""
        return None if self.source is None else self.source.session_id


def conditions_of(asked: ScheduleCreateRequest) -> Conditions | None:
    """The conditions that a new one has; None where it has none."""
    request, observed = asked.asked, asked.observation_materialization
    if request is None or not (asked.gate or observed or asked.heartbeat):
        return None
    return Conditions(
        request=request,
        gate=asked.gate,
        source=None if observed is None else observed.source,
        heartbeat=asked.heartbeat,
    )


class Seen(Value):
    """What the checks saw last: the digest of what the gate printed, the number of the last message
    of the session, and the digests of the files by their paths."""

    gate: str | None = None
    message: int | None = None
    files: Mapping[str, str] | None = None
