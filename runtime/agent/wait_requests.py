"""From calls that wait to the unit that opens them. What each waits for is a table of kinds."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from runtime.agent.settings import AgentSettings
from runtime.domain.grants import GrantKind
from runtime.domain.people import Approvers
from runtime.domain.printable import printable_name
from runtime.domain.runs import Holder
from runtime.policy.decide import Bounds
from runtime.sessions import approvals
from runtime.sessions.approvals import CardOpening, Parked
from runtime.sessions.open_calls import APPROVAL, FOR_PEOPLE
from runtime.sessions.runs import Run
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Opening, Units, WaitKind
from runtime.tools.executor import Planned


@dataclass(frozen=True, slots=True)
class Asking:
    """The run whose calls wait, as a maker of openings sees it."""

    run: Run
    session: Session
    bounds: Bounds


OpeningOf = Callable[[Planned, Asking], Awaitable[Opening]]
"""Looks up what a call of one kind needs to be opened, before the unit that opens it."""


@dataclass(frozen=True, slots=True)
class Parking:
    """Lets runs wait. The `approvers` may change while it works; `openings` are those of features,
    by the kind of wait."""

    units: Units
    settings: AgentSettings
    approvers: Callable[[], Approvers]
    openings: Mapping[str, OpeningOf] = field(default_factory=dict)

    async def park(
        self,
        holder: Holder,
        run: Run,
        session: Session,
        planned: Sequence[Planned],
        *,
        window_from: int,
        bounds: Bounds,
    ) -> Parked:
        """Open what calls wait for, in one unit. Raises `StaleLease`."""
        asking = Asking(run, session, bounds)
        found = [await self._opening(one, asking) for one in planned]
        unit = partial(
            approvals.park, holder=holder, run_id=run.id, openings=found, window_from=window_from
        )
        return await self.units.run(unit, name="park")

    async def _opening(self, one: Planned, asking: Asking) -> Opening:
        kind = wait_of(one, self.units.kinds.waits)
        if kind is None or kind.name in FOR_PEOPLE:
            return self._card(one, APPROVAL if kind is None else kind.name)
        return await self.openings[kind.name](one, asking)

    def _card(self, one: Planned, kind: str) -> CardOpening:
        """The card of a call that a person must answer."""
        asked = one.waits_for
        question = kind != APPROVAL and asked is not None
        return CardOpening(
            kind=kind,
            row=one.row,
            reason="" if question else _why(one),
            decision=None if question else one.row.decision,
            question=asked.question if question and asked is not None else "",
            options=asked.options if question and asked is not None else (),
            grant=None if question else one.grant,
            risk=None if question else one.risk,
            approvers=self.approvers(),
            expires_in_ms=self.settings.approval_expiry_ms,
        )


def wait_of(planned: Planned, waits: Mapping[str, WaitKind]) -> WaitKind | None:
    """What a call waits for now: what its tool says, unless policy asks a person first; None where
    it may run, or has ended."""
    if planned.row.result is not None or planned.prepared is None:
        return None
    kind = None if planned.waits_for is None else waits[planned.waits_for.kind]
    asked = planned.row.decision is not None and planned.row.decision.verdict == "ask"
    if asked and (kind is None or not kind.asks):
        return waits[APPROVAL]
    if kind is not None and kind.then == "runs" and planned.row.state in ("approved", "started"):
        return None
    return kind


def _why(one: Planned) -> str:
    """Why a card asks, and what it does not say by the arguments."""
    decision = one.row.decision
    said = [f"{decision.reason} ({decision.rule})"] if decision else []
    if one.changed:
        said.insert(0, "What it runs has changed since it was allowed, so it is asked about again.")
    if one.action is not None and one.action.circumstances:
        said.append(one.action.circumstances)
    if one.grant is not None and one.grant.kind is GrantKind.HOST:
        host = printable_name(one.grant.key)
        said.append(f"You can allow every address of {host} for this session.")
    if one.grant is None and one.action is not None and not one.action.known:
        said.append("It is not known which files it runs, so you can allow only this one call.")
    return " ".join(said)
