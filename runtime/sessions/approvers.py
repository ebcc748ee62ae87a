"""Who may answer an open call (APR-2): an approver, and a question also whoever its run answers."""

from typing import Final

from runtime.domain.people import Approvers, Speaker
from runtime.sessions import audit, runs
from runtime.sessions.open_calls import APPROVAL, OpenCall
from runtime.store import Connection

REFUSED: Final = "Only an approver of this conversation may answer that."


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
    return _same_account(runs.get(conn, call.run_id).speaker, speaker)


def _same_account(one: Speaker, other: Speaker) -> bool:
    """By platform account: a guest is kept nowhere and has no lasting person id."""
    return (one.channel, one.account, one.user_id) == (
        other.channel,
        other.account,
        other.user_id,
    )
