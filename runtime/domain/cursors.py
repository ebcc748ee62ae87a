"""Pages of lists, and their cursors: where the next one begins, opaque to others. Pure."""

import base64
import json
from dataclasses import dataclass
from typing import Generic, TypeVar

from runtime.domain.errors import InvalidInput
from runtime.domain.value import Value

T = TypeVar("T", bound=Value)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `next_cursor` is opaque; None at the end."""

    items: tuple[T, ...]
    next_cursor: str | None = None
    total_count: int | None = None


def encode(*parts: int | str) -> str:
    """A cursor made of numbers and texts."""
    raw = json.dumps(parts, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode(cursor: str, *kinds: type[int] | type[str]) -> tuple[int | str, ...]:
    """The parts of a cursor, which are of `kinds`. Raises `InvalidInput` for anything else."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts: object = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise _bad() from None
    if not isinstance(parts, list) or [type(part) for part in parts] != list(kinds):
        raise _bad()
    if any(isinstance(part, int) and abs(part) >= 2**63 for part in parts):
        raise _bad()
    return tuple(parts)


def number(cursor: str) -> int:
    """The one number of a cursor."""
    (found,) = decode(cursor, int)
    return int(found)


def _bad() -> InvalidInput:
    return InvalidInput("cursor", "must be a next_cursor of an earlier answer")
