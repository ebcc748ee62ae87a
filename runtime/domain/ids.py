"""Identifiers: UUIDv7 (RFC 9562) behind a type prefix, such as ``run_01jd...``.

They sort by the time of their making, so that a listing by id is a listing by age.
"""

import secrets
from enum import StrEnum

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 26
CODE_LENGTH = 6


class IdPrefix(StrEnum):
    """The kinds of things that carry an id."""

    SESSION = "ses"
    INPUT = "inp"
    RUN = "run"
    MESSAGE = "msg"
    CALL = "cal"
    OUTBOX = "out"
    APPROVAL = "apr"
    QUESTION = "que"
    PERSON = "per"
    AGENT = "agt"
    TASK = "tsk"
    SCHEDULE = "sch"
    WORKER = "wrk"


def new_id(prefix: IdPrefix, at_ms: int) -> str:
    """A fresh id: 48 bits of milliseconds since the epoch, version, 74 random bits."""
    random = secrets.randbits(74)
    value = (at_ms & (1 << 48) - 1) << 80 | 0x7 << 76 | (random >> 62) << 64 | 0b10 << 62
    value |= random & (1 << 62) - 1
    digits = [_CROCKFORD[value >> 5 * place & 31] for place in range(_LENGTH - 1, -1, -1)]
    return f"{prefix}_{''.join(digits)}"


def digest_id(prefix: str, digest: str) -> str:
    """The id of what is named by its content, from a digest in hexadecimal digits."""
    value, digits = int(digest, 16), ""
    for _ in range(-(-len(digest) * 4 // 5)):
        digits = _CROCKFORD[value & 31] + digits
        value >>= 5
    return f"{prefix}_{digits}"


def code_of(identifier: str) -> str:
    """The last six characters, short enough for a person to type; random, so nearly unique."""
    return identifier[-CODE_LENGTH:]


def made_at_ms(identifier: str) -> int:
    """When an id was made, in milliseconds since the epoch: the first 48 bits of the UUIDv7."""
    value = 0
    for character in identifier.rpartition("_")[2]:
        value = value << 5 | _CROCKFORD.index(character)
    return value >> 80 & (1 << 48) - 1
