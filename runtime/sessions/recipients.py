"""The conversations that a run may write to besides its own: where the person whom it answers
takes part (POL-4, TOOL-14)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from runtime.domain.messages import MOVED, ChatAddress
from runtime.domain.people import Speaker, Trust
from runtime.sessions import inputs, people, runs, sessions
from runtime.sessions.keys import OF_USER, place_of
from runtime.sessions.sessions import Session
from runtime.store import Connection, Database, leases

LISTED: Final = 200
"""The newest conversations that are looked through for those that can be listed."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """A conversation by its key, which is what a call and its card name."""

    key: str
    session_id: str
    address: ChatAddress


RecipientsOf = Callable[[str, str], Awaitable[Sequence[Recipient]]]
"""Whom the run with this id may write to, newest first; of one key, or of all where it is empty."""


async def nobody(_run_id: str, _key: str) -> Sequence[Recipient]:
    """For whoever sends to no other conversation."""
    return ()


def recipients_by_rows(database: Database) -> RecipientsOf:
    """They are looked for among the sessions of the accounts that some process delivers to."""

    async def found(run_id: str, key: str) -> Sequence[Recipient]:
        return await database.read(partial(_found, run_id=run_id, key=key))

    return found


def _found(conn: Connection, *, run_id: str, key: str) -> Sequence[Recipient]:
    run = runs.get(conn, run_id)
    served = {lease.name for lease in leases.listing(conn)}
    named = sessions.by_key(conn, key) if key else None
    # All of a group read what is listed there: who else talks to the gateway is not for them.
    in_group = run.target.chat_kind != "direct"
    looked = [named] if named else [] if key else sessions.listing(conn, limit=LISTED)
    return [
        Recipient(one.key, one.id, one.address)
        for one in looked
        if leases.delivery(one.address.channel, one.address.account) in served
        and one.address != run.target.of_session
        and one.parent_id is None
        and f":{MOVED}:" not in one.key
        and (key or not in_group or one.address.chat_kind != "direct")
        and _takes_part(conn, run.speaker, one)
    ]


def _takes_part(conn: Connection, speaker: Speaker, session: Session) -> bool:
    """Owners reach every conversation of the gateway; members their own direct chats, and those of
    several people in which they spoke lately; guests and bots none."""
    if speaker.trust is Trust.OWNER:
        return True
    if speaker.trust is not Trust.MEMBER:
        return False
    address = session.address
    if address.chat_kind == "direct":
        chats = (one.direct_chat for one in people.of_person(conn, speaker.person_id))
        return any(chat is not None and _chat(chat) == _chat(address) for chat in chats)
    place = place_of(session.key)
    spoke = inputs.speakers(conn, place, below=f"{place}{OF_USER}", chat_id=address.chat_id)
    return any(one.person_id == speaker.person_id for one in spoke)


def _chat(address: ChatAddress) -> tuple[str, str, str]:
    return address.channel, address.account, address.chat_id
