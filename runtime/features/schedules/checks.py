"""What the check of one time is and comes to. Pure.

A time is claimed, checked outside of any transaction, and concluded. The claim has a token and
ends by itself: whoever comes then checks that time again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

from runtime.domain.errors import Unavailable
from runtime.features.schedules.conditions import (
    DENIED,
    NEW,
    PRINTED_NOTHING,
    PRINTED_THE_SAME,
    REFUSED,
    SAID_SKIP,
    SKIP_CODE,
    UNAPPROVED,
    WAITING,
    Conditions,
    Seen,
)
from runtime.features.schedules.observations import Gathered

MOST_TRIES: Final = 3
"""How often the check of one time is begun before that time is given up."""
_SPARE_MS: Final = 60_000
"""Beyond the time that a gate may take, for all else that belongs to a check."""
REFUSALS: Final[Mapping[str, str]] = {NEW: UNAPPROVED, WAITING: UNAPPROVED, DENIED: REFUSED}
"""Why a time is skipped without a check, by how the approval of its gate stands."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The check of one time, for whoever has its token."""

    schedule_id: str
    slot_ms: int
    attempt: int
    token: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check came to: why no run is made, empty where one is; the `news` that go with its
    request; and what was seen by now. `ask_again`: its gate is not what was approved."""

    skip: str = ""
    news: tuple[Gathered, ...] = ()
    seen: Seen = field(default_factory=Seen)
    ask_again: bool = False


@dataclass(frozen=True, slots=True)
class GateEnd:
    """How a gate ended: its exit code and output, and what went wrong where it did not end by
    itself."""

    code: int
    output: str
    trouble: str = ""


def lease_ms(terms: Conditions) -> int:
    """For how long a claim holds."""
    gate_s = 0.0 if terms.gate is None else terms.gate.timeout_s
    return int(gate_s * 1000) + _SPARE_MS


class GateFailed(Unavailable):
    """The gate ended in a way that says neither yes nor no."""


def judged(end: GateEnd, seen: Seen, *, most: int) -> Checked:
    """What the end of a gate means (SCH-9). Raises `GateFailed`."""
    if end.trouble:
        raise GateFailed(f"its gate did not end by itself: {end.trouble}")
    if end.code == SKIP_CODE:
        return Checked(skip=SAID_SKIP, seen=seen)
    if end.code != 0:
        raise GateFailed(f"its gate ended with exit code {end.code}")
    output = end.output.strip()
    digest = sha256(output.encode("utf-8", "replace")).hexdigest()
    after = seen.model_copy(update={"gate": digest})
    if not output:
        return Checked(skip=PRINTED_NOTHING, seen=after)
    if digest == seen.gate:
        return Checked(skip=PRINTED_THE_SAME, seen=after)
    shown = output if len(output) <= most else f"{output[:most]}\n[cut here]"
    return Checked(news=(Gathered("output of the gate", shown),), seen=after)


def with_news(
    checked: Checked, found: Gathered | None, nothing: str, *, before: Seen, after: Seen
) -> Checked:
    """A check together with what an observation found. Where that is nothing there is no run, and
    what the gate printed stays new; `before` and `after` are what was seen before and by now."""
    if found is None:
        return Checked(skip=nothing, seen=after.model_copy(update={"gate": before.gate}))
    return replace(checked, news=(*checked.news, found), seen=after)
