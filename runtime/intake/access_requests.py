"""A stranger's request as a card in the owner's direct chat: let in or turned away there (ACC-1).

The same code works on the command line. Who answers must be an owner, wherever the card is seen.
"""

from collections.abc import Sequence
from typing import Final

from runtime.commands.parse import Words
from runtime.domain.errors import Conflict, NotFound
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ApprovalPart, ChatAddress, OutboundMessage, TextPart
from runtime.domain.people import Speaker, Trust
from runtime.intake import pairing
from runtime.ports.gatehouse import Pressed
from runtime.sessions import audit, outbox, people
from runtime.sessions.outbox import NewRow
from runtime.sessions.people import Pairing
from runtime.store import Connection
from runtime.store.database import now_ms

PREFIX: Final = "pair_"
TOOL: Final = "pairing"
ONLY_OWNERS: Final = "Only an owner may answer that."
LET_IN: Final = "You are let in. Write to me whenever you like."
LET_IN_AS_OWNER: Final = (
    "You are let in, and you are my owner now: you may approve what I ask, and let others in. "
    "Write to me whenever you like."
)
_CHOICES: Final = ("approve", "deny")


def ask(conn: Connection, found: Pairing) -> ChatAddress | None:
    """Post the card of a new request where an owner reads it; None where no chat is known."""
    chat = _owner_chat(conn, found)
    if chat is None:
        return None
    _post(conn, chat, card_of(found), kind="card")
    return chat


def card_of(found: Pairing, outcome: str = "") -> ApprovalPart:
    """The card of a request, as it looks now."""
    return ApprovalPart(
        open_call_id=f"{PREFIX}{found.code}",
        code=found.code,
        tool=TOOL,
        arguments=f"{found.name} ({found.user_id})",
        reason="asks to talk to me",
        choices=_CHOICES,
        outcome=outcome,
    )


def let_in(
    conn: Connection, code: str, *, by: str, name: str, trust: Trust = Trust.MEMBER
) -> tuple[Pairing, str]:
    """Let a stranger in, tell them, and say on the card who did. Raises `NotFound`, `Conflict`."""
    found, outcome = pairing.approve(conn, code, trust=trust, by=by), f"Let in by {name}"
    told = LET_IN_AS_OWNER if trust is Trust.OWNER else LET_IN
    _post(conn, found.address, TextPart(markdown=told), kind="notice")
    _change_card(conn, found, outcome)
    return found, outcome


def close_own(conn: Connection, owner: Speaker) -> None:
    """Close the requests of somebody who became an owner by a code: nobody need answer them."""
    for found in pairing.approve_own(conn, owner):
        _change_card(conn, found, "Became an owner by a code")


def turn_away(conn: Connection, code: str, *, by: str, name: str) -> tuple[Pairing, str]:
    """Turn a stranger away, and say so on the card. Raises `NotFound` or `Conflict`."""
    found, outcome = pairing.deny(conn, code, by=by), f"Turned away by {name}"
    _change_card(conn, found, outcome)
    return found, outcome


def waiting(conn: Connection, *, channel: str, account: str) -> Sequence[ApprovalPart]:
    """The cards of all requests of one platform account that wait."""
    return [
        card_of(one)
        for one in people.pairings_pending(conn)
        if (one.channel, one.account) == (channel, account)
    ]


def press(conn: Connection, open_call_id: str, choice: str, speaker: Speaker) -> Pressed:
    """Answer a request by its card's button."""
    if choice not in _CHOICES:
        return Pressed(accepted=False, text="The card offers no such choice.")
    accepted, said = _decide(conn, open_call_id.removeprefix(PREFIX), choice, speaker)
    return Pressed(accepted=accepted, text=said)


def word(conn: Connection, words: Words, speaker: Speaker) -> str | None:
    """Answer a request by ``/approve CODE`` or ``/deny CODE``; None where no request is meant."""
    if words.name not in ("approve", "deny"):
        return None
    code = words.rest.partition(" ")[0].removeprefix(PREFIX).upper()
    if not code or people.pairing(conn, code) is None:
        return None
    return _decide(conn, code, words.name, speaker)[1]


def _decide(conn: Connection, code: str, choice: str, speaker: Speaker) -> tuple[bool, str]:
    found = people.pairing(conn, code)
    if found is None:
        return False, "I do not know this card."
    if speaker.trust is not Trust.OWNER:
        audit.append(
            conn,
            actor=speaker.person_id,
            action="pairing.refused",
            data={"code": code, "trust": speaker.trust.value},
        )
        return False, ONLY_OWNERS
    try:
        if choice == "approve":
            outcome = let_in(conn, code, by=speaker.person_id, name=speaker.name)[1]
        else:
            outcome = turn_away(conn, code, by=speaker.person_id, name=speaker.name)[1]
    except (NotFound, Conflict) as error:
        text = str(error)
        return False, f"{text[:1].upper()}{text[1:]}."
    return True, f"{outcome}."


def _change_card(conn: Connection, found: Pairing, outcome: str) -> None:
    shown = outbox.card_of(conn, f"{PREFIX}{found.code}")
    if shown is not None:
        _post(conn, shown.message.target, card_of(found, outcome), kind="edit")


def _owner_chat(conn: Connection, found: Pairing) -> ChatAddress | None:
    for account in people.with_trust(conn, Trust.OWNER):
        chat = account.direct_chat
        if chat is not None and (chat.channel, chat.account) == (found.channel, found.account):
            return chat
    return None


def _post(conn: Connection, chat: ChatAddress, part: ApprovalPart | TextPart, *, kind: str) -> None:
    message = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, now_ms(conn)), target=chat, parts=(part,)
    )
    about = part.open_call_id if isinstance(part, ApprovalPart) else None
    outbox.add(conn, NewRow(kind=kind, message=message, open_call_id=about))
