"""Answers to open calls that come by the API: a batch is one unit, all of it or nothing (RUN-3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from runtime.domain.errors import Conflict, InvalidInput, NotFound
from runtime.sessions import approvals, open_calls
from runtime.sessions.approvals import Answer, Choice
from runtime.sessions.open_calls import APPROVAL, QUESTION, OpenCall
from runtime.sessions.unit import Unit
from runtime.store import Connection


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a person decided about one approval. Arguments and tool are never theirs to say."""

    request_id: str
    behavior: Literal["allow", "deny"]
    scope: Literal["once", "session"] = "once"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person answered to one question."""

    request_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does it: a person's id for the audit log, and the name on the card."""

    id: str = "per_local_owner"
    name: str = "the owner"


def resolve(unit: Unit, run_id: str, batch: Sequence[Resolution], by: Actor) -> tuple[str, ...]:
    """Settle approvals of a run; the sentence of each. A raise undoes all of it.

    Raises `NotFound`, `InvalidInput` (a scope that the card does not offer, a request named
    twice) and `Conflict` with the present state.
    """
    return _settle(
        unit, run_id, APPROVAL, [(one.request_id, _given(one, by)) for one in batch], "resolutions"
    )


def reply(unit: Unit, run_id: str, batch: Sequence[Reply], by: Actor) -> tuple[str, ...]:
    """Answer questions of a run, in the same way."""
    given = [(one.request_id, Answer(by.id, by.name, text=one.text)) for one in batch]
    return _settle(unit, run_id, QUESTION, given, "answers")


def _given(one: Resolution, by: Actor) -> Answer:
    choice: Choice = "deny" if one.behavior == "deny" else one.scope
    return Answer(by.id, by.name, choice=choice, text=one.reason)


def _settle(
    unit: Unit, run_id: str, kind: str, batch: Sequence[tuple[str, Answer]], field: str
) -> tuple[str, ...]:
    unit.lane_of_run(run_id)
    seen: set[str] = set()
    outcomes = []
    for place, (request_id, given) in enumerate(batch):
        if request_id in seen:
            raise InvalidInput(f"{field}.{place}.request_id", "must be named once only")
        seen.add(request_id)
        call = _open(unit.conn, run_id, kind, request_id)
        _check_offered(call, given, f"{field}.{place}.scope")
        outcomes.append(approvals.answer(unit, call, given).outcome)
    return tuple(outcomes)


def _open(conn: Connection, run_id: str, kind: str, request_id: str) -> OpenCall:
    call = open_calls.get(conn, request_id)
    if call is None or call.run_id != run_id or call.kind != kind:
        raise NotFound(kind, request_id)
    if call.state != "open":
        raise Conflict(f"{request_id} was {call.state} already", call.state)
    return call


def _check_offered(call: OpenCall, given: Answer, field: str) -> None:
    offered = call.payload.get("choices")
    if call.kind != APPROVAL or not isinstance(offered, list) or given.choice in offered:
        return
    scopes = [str(one) for one in offered if one != "deny"]
    raise InvalidInput(field, f"must be one that the card offers: {', '.join(scopes)}")
