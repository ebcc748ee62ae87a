"""What came of a case in numbers: lost, doubled, unknown, and how long the person waited.

A message is lost when it has no answer and nobody is told so. It is unknown when the platform may
have its answer, cannot be asked, and the operator is shown that. Anything that is neither and yet
not as it must be is broken.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.crash import teams
from tests.crash.judging import (
    broken_rows,
    complete,
    doubled,
    effects_not_as_told,
    halves,
    halves_not_told,
    not_reached,
    unresolved,
)
from tests.crash.play import MESSAGES, Case
from tests.stateful.snapshot import Record


@dataclass(frozen=True)
class Unknown:
    """An outbox row of unknown outcome, and what its platform knows: whether it was posted."""

    kind: str
    posted: bool


@dataclass(frozen=True)
class Outcome:
    """One case. `half` are texts that were left standing half and that the audit log tells of;
    `recovered_s` is the longest wait after a death; None: nobody waited."""

    lost: Sequence[str]
    doubled: Sequence[str]
    half: Sequence[str]
    unknown: Sequence[Unknown]
    broken: Sequence[str]
    recovered_s: float | None

    @property
    def good(self) -> bool:
        """Whether nothing happened that must not; an unknown outcome may happen, and half a text
        where nobody can find it again."""
        return not (self.lost or self.doubled or self.broken)


def outcome(case: Case) -> Outcome:
    """A case, judged."""
    if case.order.team:
        return _of_team(case)
    broken = [*not_reached(case), *effects_not_as_told(case), *broken_rows(case)]
    broken += unresolved(case)
    broken += halves(case) if case.order.lookup else halves_not_told(case)
    return Outcome(
        lost=lost(case),
        doubled=doubled(case),
        half=halves(case),
        unknown=unknown(case),
        broken=broken,
        recovered_s=max(case.recovered_s, default=None),
    )


def _of_team(case: Case) -> Outcome:
    told = teams.handoffs(case)
    return Outcome(
        lost=[*teams.unanswered(case), *(one for one in told if one.endswith("handoffs"))],
        doubled=[*teams.repeated(case), *(one for one in told if not one.endswith("handoffs"))],
        half=(),
        unknown=unknown(case),
        broken=[*teams.not_reached(case), *teams.effects(case)],
        recovered_s=max(case.recovered_s, default=None),
    )


def lost(case: Case) -> Sequence[str]:
    """Messages that have no answer, where no unknown outcome stands for it."""
    found = [f"{one} was never acknowledged" for one in {"m1", "m2"} - case.acknowledged]
    stored = Counter(message_id(row) for row in case.rows.inputs)
    found += [f"{one} is stored {stored[one]} times" for one in ("m1", "m2") if stored[one] != 1]
    found += [
        f"no answer to {asked!r}"
        for asked, one in zip(MESSAGES, ("m1", "m2"), strict=True)
        if not case.answers(asked) and final_state(case, one) != "unknown"
    ]
    found += [f"a {row['kind']} is dead" for row in case.rows.outbox if row["state"] == "dead"]
    return found


def unknown(case: Case) -> Sequence[Unknown]:
    """The rows of which nobody inside knows whether they were sent."""
    posted = {post.outbox_id for post in complete(case)}
    return [
        Unknown(str(row["kind"]), row["id"] in posted)
        for row in case.rows.outbox
        if row["state"] == "unknown"
    ]


def message_id(row: Record) -> str:
    """The platform's name of the message that an input row holds."""
    return str(json.loads(row["message"])["message_id"])


def final_state(case: Case, message: str) -> str:
    """How the reply to a message ended in the outbox; empty where there is none."""
    runs = {row["run_id"] for row in case.rows.inputs if message_id(row) == message}
    states = [
        str(row["state"])
        for row in case.rows.outbox
        if row["kind"] == "final" and row["run_id"] in runs
    ]
    return states[0] if states else ""
