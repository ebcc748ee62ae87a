"""Pairing: how a stranger gets in, and how the first owner is made (ACC-1, ACC-2)."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runtime.domain.errors import Conflict, NotFound
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Speaker, Trust
from runtime.domain.printable import person_name
from runtime.intake.access import speaker_named
from runtime.sessions import audit, people, settings
from runtime.sessions.people import Pairing
from runtime.store import Connection
from runtime.store.database import now_ms

OWNER_CODE: Final = "owner_code"
CODE_LIFE_MS: Final = 3600 * 1000
MAX_PENDING: Final = 3
_ALPHABET: Final = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
_LONGEST: Final = 80
GIVEN_AWAY: Final = (
    "That was the owner code, and others could read it here, so it no longer works. "
    "`gatehouse pairing owner-code` makes a new one: send that one to me in a direct message."
)
_OWNER_SHAPE = re.compile(r"(?:/start\s+)?(GH-[A-Z0-9]{5}-[A-Z0-9]{5})")


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def new_owner_code(conn: Connection) -> str | None:
    """Make the one-time code that claims the first chat owner; None once it was made or used.

    Only its digest is stored: the code is shown once, on the operator's terminal.
    """
    code = _owner_code()
    return code if settings.put_new(conn, OWNER_CODE, _digest(code)) else None


def has_owner_code(conn: Connection) -> bool:
    """Whether there is a code that nobody has used yet."""
    return bool(settings.get(conn, OWNER_CODE))


def replace_owner_code(conn: Connection) -> str:
    """Make a new one-time code; an earlier one stops working."""
    code = _owner_code()
    settings.put(conn, OWNER_CODE, _digest(code))
    return code


def _owner_code() -> str:
    return f"GH-{_random(5)}-{_random(5)}"


def is_owner_code(text: str) -> bool:
    """Whether a text has the shape of an owner code, right or wrong."""
    return _code_in(text) is not None


def _code_in(text: str) -> str | None:
    if len(text) > _LONGEST:
        return None
    found = _OWNER_SHAPE.fullmatch(text.strip().upper().replace("/START", "/start"))
    return None if found is None else found[1]


def _use(conn: Connection, code: str) -> bool:
    """Whether this is the unused code, which it is no longer: of two who say it at once one is
    told True."""
    kept, digest = settings.get(conn, OWNER_CODE), _digest(code)
    if not kept or not hmac.compare_digest(digest, kept):
        return False
    return settings.swap(conn, OWNER_CODE, digest, "")


def give_away(conn: Connection, message: InboundMessage) -> bool:
    """Make the unused code void when it is said where others read it."""
    code = _code_in(message.text)
    if message.chat_kind == "direct" or code is None or not _use(conn, code):
        return False
    audit.append(conn, actor="system", action="owner.code_void", data={"chat": message.chat_id})
    return True


def claim_owner(conn: Connection, message: InboundMessage) -> Speaker | None:
    """Make the sender an owner if their direct message is the unused code, in their own words."""
    code = _code_in(message.text)
    if message.chat_kind != "direct" or not message.speaks_for_sender or message.said is not None:
        return None
    if code is None or not _use(conn, code):
        return None
    known = people.find(
        conn, channel=message.channel, account=message.account, user_id=message.sender.id
    )
    person = known.speaker.person_id if known else new_id(IdPrefix.PERSON, now_ms(conn))
    speaker = speaker_named(person, message, Trust.OWNER)
    people.put(conn, speaker, direct_chat=message.address)
    account = f"{speaker.channel}:{speaker.account}:{speaker.user_id}"
    audit.append(conn, actor=person, action="owner.claimed", data={"account": account})
    return speaker


@dataclass(frozen=True, slots=True)
class Requested:
    """What a stranger is told; `new` is their request where it is the first."""

    told: str
    new: Pairing | None = None


def request(conn: Connection, message: InboundMessage) -> Requested | None:
    """Give a stranger a code for the owner; None where too many wait already."""
    pending = people.pending_of(
        conn, channel=message.channel, account=message.account, user_id=message.sender.id
    )
    if pending:
        return Requested(_told(pending[0].code))
    waiting = people.count_pending(conn, channel=message.channel, account=message.account)
    if waiting >= MAX_PENDING:
        return None
    now = now_ms(conn)
    code = _random(6)
    new = Pairing(
        code=code,
        channel=message.channel,
        account=message.account,
        user_id=message.sender.id,
        name=person_name(message.sender.name or message.sender.id),
        address=message.address,
        created_ms=now,
        expires_ms=now + CODE_LIFE_MS,
        state="pending",
    )
    people.add_pairing(conn, new)
    return Requested(_told(code), new)


def approve(conn: Connection, code: str, *, trust: Trust, by: str) -> Pairing:
    """Let a stranger in. Raises `NotFound` or `Conflict` (answered or run out).

    Who became known otherwise meanwhile keeps their id, and ownership (ACC-2) is not lost by it.
    """
    found = _open_pairing(conn, code)
    known = people.find(conn, channel=found.channel, account=found.account, user_id=found.user_id)
    owner = known is not None and known.speaker.trust is Trust.OWNER
    speaker = Speaker(
        person_id=known.speaker.person_id if known else new_id(IdPrefix.PERSON, now_ms(conn)),
        channel=found.channel,
        account=found.account,
        user_id=found.user_id,
        name=found.name,
        trust=Trust.OWNER if owner else trust,
    )
    people.put(conn, speaker, direct_chat=found.address)
    _settle(conn, found, "approved", by, speaker.trust.value)
    return found


def approve_own(conn: Connection, owner: Speaker) -> Sequence[Pairing]:
    """Settle what an owner asked for as a stranger; the requests."""
    found = people.pending_of(
        conn, channel=owner.channel, account=owner.account, user_id=owner.user_id
    )
    for one in found:
        _settle(conn, one, "approved", owner.person_id, owner.trust.value)
    return found


def deny(conn: Connection, code: str, *, by: str) -> Pairing:
    """Turn a stranger away. Raises `NotFound` or `Conflict`."""
    found = _open_pairing(conn, code)
    _settle(conn, found, "denied", by, "")
    return found


def _open_pairing(conn: Connection, code: str) -> Pairing:
    found = people.pairing(conn, code.strip().upper())
    if found is None:
        raise NotFound("pairing", code)
    return found


def _settle(conn: Connection, found: Pairing, state: str, by: str, trust: str) -> None:
    if not people.settle_pairing(conn, code=found.code, state=state):
        # Somebody else may have answered since it was read.
        latest = people.pairing(conn, found.code) or found
        now = "expired" if latest.state == "pending" else latest.state
        raise Conflict(f"this pairing code is {now}", now)
    audit.append(
        conn,
        actor=by,
        action=f"pairing.{state}",
        data={"channel": found.channel, "user": found.user_id, "trust": trust},
    )


def _told(code: str) -> str:
    return (
        "I do not know you yet. Ask the person who runs me to let you in: "
        f"`gatehouse pairing approve {code}` (the code works for one hour)."
    )


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
