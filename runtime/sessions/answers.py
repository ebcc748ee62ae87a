"""Which open call a person means, its answer, and who may give it (APR-2): an approver, and to a
question also whoever its run answers."""

from dataclasses import dataclass
from typing import Final

from runtime.domain.errors import Conflict, NotFound
from runtime.domain.ids import code_of
from runtime.domain.people import Approvers, Speaker
from runtime.sessions import approvals, audit, open_calls, runs
from runtime.sessions.approvals import Answer, Answered, Choice
from runtime.sessions.open_calls import APPROVAL, FOR_PEOPLE, OpenCall
from runtime.sessions.unit import Unit
from runtime.store import Connection


def find(conn: Connection, code: str, *, kind: str | None = None) -> OpenCall:
    """The open call that an id or its last characters name. Raises `NotFound` or `Conflict`."""
    if len(code.strip()) < 4:
        raise NotFound("request", code)
    found = [call for call in open_calls.by_code(conn, code.strip()) if _fits(call, kind)]
    if not found:
        raise NotFound("request", code)
    waiting = [call for call in found if call.state == "open"]
    if len(waiting) > 1:
        raise Conflict(f"{code} names several requests: {', '.join(c.id for c in waiting)}")
    return waiting[0] if waiting else found[0]


@dataclass(frozen=True, slots=True)
class Picked:
    """The call that somebody's words are about, and the words behind what names it. Without a call
    `problem` says why they name none, where they should."""

    call: OpenCall | None = None
    rest: str = ""
    problem: str = ""


NONE: Final = Picked()


def pick(conn: Connection, words: str, *, kind: str, card: OpenCall | None) -> Picked:
    """The call that the first of `words` names, else the one whose `card` they reply to."""
    code, _, rest = words.partition(" ")
    try:
        return Picked(find(conn, code, kind=kind), rest.strip())
    except Conflict as error:
        return Picked(problem=str(error))
    except NotFound as error:
        if card is None or not _fits(card, kind):
            return Picked(problem=str(error))
        return Picked(card, words.strip())


def _fits(call: OpenCall, kind: str | None) -> bool:
    return call.kind in FOR_PEOPLE and kind in (None, call.kind)


REFUSED: Final = "Only an approver of this conversation may answer that."
NEWER = "That card is newer than your words, which arrived late. Look at it and answer again."


def answer(
    unit: Unit, call: OpenCall, speaker: Speaker, *, choice: Choice | None = None, text: str = ""
) -> Answered:
    """Settle a call whose answering was permitted. Raises `Conflict` with the present state.

    Its lane is held already where the unit holds any. One that was not open when it was read needs
    none.
    """
    if call.state != "open":
        raise Conflict(f"this was {call.state} already", call.state)
    given = Answer(by=speaker.person_id, name=speaker.name, choice=choice, text=text)
    return approvals.answer(unit, call, given)


def may_answer(conn: Connection, call: OpenCall, speaker: Speaker, approvers: Approvers) -> bool:
    """Whether `speaker` may answer `call`; a refusal is recorded, so the unit must not fail."""
    if permitted(conn, call, speaker, approvers):
        return True
    audit.append(
        conn,
        actor=speaker.person_id,
        action=f"{call.kind}.refused",
        session_id=call.session_id,
        run_id=call.run_id,
        data={"request_id": call.id, "trust": speaker.trust.value},
    )
    return False


def permitted(conn: Connection, call: OpenCall, speaker: Speaker, approvers: Approvers) -> bool:
    """The same of somebody who has not tried: nothing is recorded."""
    if approvers.include(speaker):
        return True
    if call.kind == APPROVAL:
        return False
    return runs.get(conn, call.run_id).speaker.platform_account == speaker.platform_account


def code(call: OpenCall) -> str:
    """What a person types to name a call."""
    return code_of(call.id)


def about(call: OpenCall) -> str:
    """What a call waits for, in a few words: its tool, and the path of a child that asks."""
    what = f"{call.kind} of `{call.payload.get('tool')}`" if call.kind == APPROVAL else call.kind
    path = call.payload.get("path")
    return f'{what}, for "{path}"' if path else what
