"""What accompanies a turn of a kind of session: where it works, a judgement of its steps, its end.

The turn asks its guest at fixed moments and knows nothing of its kind.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from runtime.agent.turn_ends import TurnState
from runtime.domain.errors import ModelError
from runtime.sessions.calls import CallRow
from runtime.sessions.claims import Claimed
from runtime.sessions.run_steps import Finish
from runtime.sessions.runs import Retry
from runtime.workspace.content import WorkspaceSnapshot


class TurnGuest:
    """Accompanies the turn of a conversation: people bound it, so it does nothing of its own."""

    idle_s: float | None = None
    """Seconds without progress after which the turn is ended; None: however long."""

    async def enter(self, state: TurnState) -> None:
        """The turn begins. Raises `ModelRejected` where it has no place to work in."""

    def shown(self, snapshot: WorkspaceSnapshot) -> WorkspaceSnapshot:
        """What the prompt shows of the workspace."""
        return snapshot

    def max_steps(self, most: int) -> int:
        """How many steps the run may take, where the settings allow `most`."""
        return most

    def counted_from(self, state: TurnState) -> int:
        """The step behind which these are counted: what people say gives a run as many again."""
        return state.heard

    def hears(self, step: int) -> bool:  # noqa: ARG002 - for those whose last step is known
        """Whether what was said meanwhile is heard behind a step."""
        return True

    def after_step(self, rows: Sequence[CallRow]) -> tuple[str, ...]:  # noqa: ARG002
        """What the run is told about a step whose calls have all ended."""
        return ()

    def cut(self, state: TurnState) -> Finish | None:  # noqa: ARG002
        """The end of a run that goes no further, before the model is asked again."""
        return None

    def retry(self, error: ModelError, jitter: float) -> Retry | None:  # noqa: ARG002
        """Leave to begin anew, where the run failed by `error`."""
        return None

    async def before_end(self, end: Finish) -> Finish:
        """The end of the run as it is to be kept."""
        return end


GuestOf = Callable[[Claimed], TurnGuest]


@dataclass(frozen=True, slots=True)
class Guests:
    """The guests of turns by the kind of their session; a kind without one has the plain guest."""

    by_kind: Mapping[str, GuestOf] = field(default_factory=dict)

    def of(self, claimed: Claimed) -> TurnGuest:
        """The guest of a turn that begins."""
        make = self.by_kind.get(claimed.session.kind)
        return TurnGuest() if make is None else make(claimed)
